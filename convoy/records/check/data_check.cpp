// Opens data and reports on its parts.
#include "convoy/records/check/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "convoy/base/hash.h"
#include "convoy/records/balance.h"
#include "convoy/records/check/column_check.h"
#include "convoy/records/table/table_dataset.h"

namespace convoy::records {
namespace {

// A class with fewer samples than this in a part says little there.
constexpr std::int64_t kFewSamples = 10;
// So many places are named for each kind of duplicate.
constexpr int kNamedPlaces = 3;

struct NamedPart {
  std::string name;
  DataPart part;
};

// Counts samples of equal content, and names the first of those that lie in two parts.
void check_duplicates(const std::vector<NamedPart>& parts, DataReport& report) {
  struct First {
    std::size_t part;
    std::int64_t sample;
  };
  std::unordered_map<std::string, First> seen;
  std::vector<std::string> places;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const DataPart& part = parts[i].part;
    for (const std::int64_t sample : part.indexes) {
      const auto [entry, fresh] = seen.emplace(hash128_hex(part.dataset->content_of(sample)), First{i, sample});
      if (fresh) continue;
      const First& first = entry->second;
      if (first.part == i) {
        ++report.parts[i].duplicates;
        continue;
      }
      ++report.duplicates_across;
      if (report.duplicates_across > kNamedPlaces) continue;
      places.push_back(fmt::format("{} ({}) and {} ({})", parts[first.part].part.dataset->key_of(first.sample),
                                   parts[first.part].name, part.dataset->key_of(sample), parts[i].name));
    }
  }
  if (report.duplicates_across > 0) {
    report.findings.push_back(fmt::format("{} samples have an equal one in an earlier part, for example {}",
                                          report.duplicates_across, fmt::join(places, "; ")));
  }
  for (const PartReport& part : report.parts) {
    if (part.duplicates == 0) continue;
    report.notes.push_back(fmt::format("{} has {} samples that repeat another one of it", part.name, part.duplicates));
  }
}

void check_classes(DataReport& report) {
  for (const PartReport& part : report.parts) {
    if (part.samples == 0) continue;
    std::vector<std::string> rare;
    for (std::size_t i = 0; i < part.class_counts.size(); ++i) {
      if (part.class_counts[i] >= kFewSamples) continue;
      rare.push_back(fmt::format("{} ({})", report.classes[i], part.class_counts[i]));
    }
    if (rare.empty()) continue;
    report.findings.push_back(
        fmt::format("{} nearly lacks classes: {} of its {} samples", part.name, fmt::join(rare, ", "), part.samples));
  }
}

// Groups tell samples that are related: of one customer, one patient, one recording.
void check_groups(const std::vector<NamedPart>& parts, DataReport& report) {
  std::map<std::string, std::size_t, std::less<>> part_of;
  std::map<std::string, bool, std::less<>> shared;
  std::string column_name;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& dataset = dynamic_cast<const TableDataset&>(*parts[i].part.dataset);
    const auto column = find_kind(dataset.columns(), spec::ColumnKind::kGroup);
    if (!column) return;
    column_name = dataset.table().names()[*column];
    for (const std::int64_t row : parts[i].part.indexes) {
      const std::string group(dataset.table().field(row, *column));
      const auto [entry, fresh] = part_of.emplace(group, i);
      if (!fresh && entry->second != i) shared.emplace(group, true);
    }
  }
  report.groups_across = static_cast<std::int64_t>(shared.size());
  if (shared.empty()) return;
  report.findings.push_back(
      fmt::format("{} groups of column '{}' are in more than one part, for example '{}': data.split "
                  "= \"group\" keeps them together",
                  shared.size(), column_name, shared.begin()->first));
}

}  // namespace

DataReport check_data(const spec::DataRecipe& recipe, Files& files) {
  RunData data = open_data(recipe, files, "", false);
  const DataPart training{data.validation().dataset, data.split().training};
  const std::vector<NamedPart> parts = {
      {"training", training}, {"validation", data.validation()}, {"test", data.test()}};
  DataReport report;
  report.classes = data.training_set().class_names();
  report.features = data.training_set().sample_elements();
  for (const NamedPart& named : parts) {
    const auto samples = static_cast<std::int64_t>(named.part.indexes.size());
    report.parts.push_back({named.name, samples, count_classes(*named.part.dataset, named.part.indexes), 0});
  }
  check_classes(report);
  check_duplicates(parts, report);
  if (const auto* table = dynamic_cast<const TableDataset*>(&data.training_set())) {
    check_groups(parts, report);
    check_columns(*table, data.split(), data.test(), report);
  }
  return report;
}

std::string to_json(const DataReport& report) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["ok"] = report.findings.empty();
  json["features"] = report.features;
  json["classes"] = report.classes;
  json["parts"] = Json::array();
  for (const PartReport& part : report.parts) {
    json["parts"].push_back({{"name", part.name},
                             {"samples", part.samples},
                             {"class_counts", part.class_counts},
                             {"duplicates", part.duplicates}});
  }
  json["duplicates_across"] = report.duplicates_across;
  json["groups_across"] = report.groups_across;
  json["columns"] = Json::array();
  for (const ColumnReport& column : report.columns) {
    json["columns"].push_back({{"name", column.name}, {"missing", column.missing}, {"auc", column.auc}});
  }
  json["findings"] = report.findings;
  json["notes"] = report.notes;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace convoy::records
