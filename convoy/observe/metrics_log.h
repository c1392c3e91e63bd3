// The metrics log: rows of JSON, one a line, as metrics.jsonl and evaluation.jsonl hold them.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "convoy/base/files.h"

namespace convoy::observe {

/// Appends rows to a file.
/// Threads:    one caller at a time
class MetricsLog {
 public:
  /// Appends to `path`, bringing rows to the file `flush_rows` at a time. A last line that an earlier writer left
  /// unfinished stays a line of its own.
  /// Ownership:  borrows the files
  MetricsLog(Files& files, std::string path, std::size_t flush_rows = 1);
  /// Writes what is left; a failure is logged, not thrown. Call flush to learn of it.
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// Adds a row. Numbers that are not finite become null, as JSON has none.
  /// Errors:     kIo when the file cannot be written; the rows are kept for the next try
  void add(const nlohmann::ordered_json& row);
  /// Writes all rows to the file.
  /// Errors:     kIo
  void flush();

 private:
  Files& files_;
  const std::string path_;
  const std::size_t flush_rows_;
  std::string pending_;
  std::size_t pending_rows_ = 0;
};

}  // namespace convoy::observe
