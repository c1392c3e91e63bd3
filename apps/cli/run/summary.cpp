// The tables after a run.
#include "apps/cli/run/summary.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/text.h"

namespace convoy::cli {
namespace {

constexpr const char* kMissing = "-";

const Json* find(const Json& summary, const std::string& path) {
  const Json::json_pointer pointer(path);
  return summary.contains(pointer) ? &summary.at(pointer) : nullptr;
}

std::string number(const Json& summary, const std::string& path, int digits) {
  const std::optional<double> value = summary_number(summary, path);
  return value ? fmt::format("{:.{}f}", *value, digits) : kMissing;
}

std::string text(const Json& summary, const std::string& path) {
  const Json* value = find(summary, path);
  if (value == nullptr || value->is_null()) return kMissing;
  return value->is_string() ? value->get<std::string>() : value->dump();
}

std::string bytes_or_missing(std::optional<double> bytes) {
  return bytes && *bytes >= 0.0 ? format_bytes(static_cast<std::uint64_t>(*bytes)) : kMissing;
}

std::string milliseconds(const Json& summary, const std::string& path) {
  const std::string value = number(summary, path, 2);
  return value == kMissing ? value : value + " ms";
}

// The sum of the categories, which together are the moment of the peak; its phase is a text and no part of it.
std::optional<double> peak_memory(const Json& summary) {
  if (const auto total = summary_number(summary, "/peak_memory_bytes/total")) return total;
  const Json* parts = find(summary, "/peak_memory_bytes");
  if (parts == nullptr || !parts->is_object()) return std::nullopt;
  std::optional<double> sum;
  for (const auto& part : *parts) {
    if (part.is_number()) sum = sum.value_or(0.0) + part.get<double>();
  }
  return sum;
}

std::string blas(const Json& summary) {
  const std::string library = text(summary, "/blas/library");
  const std::string kernel = text(summary, "/blas/kernel");
  return kernel == kMissing ? library : fmt::format("{}, kernel {}", library, kernel);
}

std::string ledger(const Json& summary) {
  return fmt::format("{} samples, {} repeated, {} missing", text(summary, "/ledger/samples"),
                     text(summary, "/ledger/repeated"), text(summary, "/ledger/missing"));
}

// Two classes: the ranking, and the rates at the threshold that was chosen on the validation part.
void add_binary(const Json& summary, const std::string& on, TextTable& table) {
  if (find(summary, "/quality/binary") == nullptr) return;
  table.add({"ROC AUC" + on, number(summary, "/quality/binary/roc_auc", 4)});
  table.add({"PR AUC" + on, number(summary, "/quality/binary/pr_auc", 4)});
  const std::string at = fmt::format(" at {}", number(summary, "/quality/binary/threshold", 3));
  table.add({"precision" + at + on, number(summary, "/quality/binary/precision", 4)});
  table.add({"recall" + at + on, number(summary, "/quality/binary/recall", 4)});
  table.add({"F1" + at + on, number(summary, "/quality/binary/f1", 4)});
}

std::string result_table(const Json& summary) {
  TextTable table({"result", ""});
  const std::string part = text(summary, "/quality/part");
  const std::string on = part == kMissing ? "" : fmt::format(" ({})", part);
  table.add({"accuracy" + on, number(summary, "/quality/accuracy", 4)});
  table.add({"macro F1" + on, number(summary, "/quality/macro_f1", 4)});
  add_binary(summary, on, table);
  table.add({"loss" + on, number(summary, "/quality/loss", 4)});
  table.add({"ranks", text(summary, "/ranks")});
  table.add({"replicas", text(summary, "/replicas")});
  table.add({"global batch", text(summary, "/global_batch")});
  table.add({"steps", text(summary, "/steps")});
  table.add({"step, median", milliseconds(summary, "/step_ms/median")});
  table.add({"step, P95", milliseconds(summary, "/step_ms/p95")});
  table.add({"samples a second", number(summary, "/samples_per_s", 0)});
  table.add({"peak memory of a rank", bytes_or_missing(peak_memory(summary))});
  table.add({"ledger", ledger(summary)});
  table.add({"BLAS", blas(summary)});
  table.add({"parameters digest", text(summary, "/parameters_digest")});
  return table.str();
}

std::string breakdown_table(const Json& summary) {
  const Json* parts = find(summary, "/breakdown_ms");
  if (parts == nullptr || !parts->is_object()) return "";
  const std::optional<double> step = summary_number(summary, "/step_ms/median");
  TextTable table({"part of a step", "ms", "of the step"});
  for (const auto& [name, value] : parts->items()) {
    const bool known = value.is_number() && std::isfinite(value.get<double>());
    const std::string share =
        known && step && *step > 0.0 ? fmt::format("{:.1f}%", 100.0 * value.get<double>() / *step) : kMissing;
    table.add({name, known ? fmt::format("{:.3f}", value.get<double>()) : kMissing, share});
  }
  return "\n" + table.str();
}

std::string speedup_table(const Json& summary) {
  if (find(summary, "/speedup") == nullptr) return "";
  const std::string baseline = text(summary, "/speedup/baseline");
  TextTable table({"speed-up over", "step, median", "speed-up"});
  const auto add = [&](const char* name, const char* step, const char* ratio) {
    const std::string mark = baseline == name ? " (the baseline: the faster)" : "";
    const std::string value = number(summary, ratio, 2);
    table.add({name + mark, milliseconds(summary, step), value == kMissing ? value : value + "x"});
  };
  add("same replicas on one rank", "/speedup/step_ms/one_rank_same_replicas", "/speedup/over_one_rank_same_replicas");
  add("whole batch in one process", "/speedup/step_ms/one_process_whole_batch",
      "/speedup/over_one_process_whole_batch");
  return fmt::format("\n{}{} timed steps each, {} rounds, medians; the same on this run's ranks: {}\n", table.str(),
                     text(summary, "/speedup/steps"), text(summary, "/speedup/rounds"),
                     milliseconds(summary, "/speedup/step_ms/this"));
}

}  // namespace

Json read_summary(const std::string& directory) {
  const std::string path = directory + "/summary.json";
  if (!local_files().exists(path)) throw Error(ErrorCode::kCorrupt, fmt::format("the ranks left no {}", path));
  Json summary = Json::parse(local_files().read(path), nullptr, false);
  if (!summary.is_object()) throw Error(ErrorCode::kCorrupt, fmt::format("{} is not a JSON object", path));
  return summary;
}

std::optional<double> summary_number(const Json& summary, const std::string& path) {
  const Json* value = find(summary, path);
  if (value == nullptr || !value->is_number() || !std::isfinite(value->get<double>())) return std::nullopt;
  return value->get<double>();
}

std::string summary_tables(const Json& summary) {
  return result_table(summary) + breakdown_table(summary) + speedup_table(summary);
}

}  // namespace convoy::cli
