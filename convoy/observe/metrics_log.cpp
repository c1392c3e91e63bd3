#include "convoy/observe/metrics_log.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "convoy/base/log.h"

namespace convoy::observe {

MetricsLog::MetricsLog(Files& files, std::string path, std::size_t flush_rows)
    : files_(files), path_(std::move(path)), flush_rows_(flush_rows) {
  const std::uint64_t size = files_.exists(path_) ? files_.size(path_) : 0;
  if (size > 0 && files_.read_range(path_, size - 1, 1) != "\n") pending_.push_back('\n');
}

MetricsLog::~MetricsLog() {
  try {
    flush();
  } catch (const std::exception& error) {
    log_warning("the last rows of {} are lost: {}", path_, error.what());
  }
}

void MetricsLog::add(const nlohmann::ordered_json& row) {
  pending_ += row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  pending_ += '\n';
  if (++pending_rows_ >= flush_rows_) flush();
}

void MetricsLog::flush() {
  if (pending_rows_ == 0) return;
  files_.append(path_, pending_);
  pending_.clear();
  pending_rows_ = 0;
}

}  // namespace convoy::observe
