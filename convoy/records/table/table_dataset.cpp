// Labels, rows and slices of an encoded table.
#include "convoy/records/table/table_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/text.h"
#include "convoy/spec/recipe/toml_document.h"

namespace convoy::records {
namespace {

constexpr std::size_t kMostSlices = 64;
constexpr std::size_t kTimeRanges = 4;

[[noreturn]] void refuse(const std::string& message) { refuse_table(message); }

bool to_integer(const std::string& text, std::int64_t& number) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// Sorts by number where all are integers; texts like "1" and "01" keep an order by their bytes.
void sort_classes(std::vector<std::string>& names) {
  std::vector<std::pair<std::int64_t, std::string>> numbered;
  for (const std::string& name : names) {
    std::int64_t number = 0;
    if (to_integer(name, number)) numbered.emplace_back(number, name);
  }
  if (numbered.size() < names.size()) {
    std::sort(names.begin(), names.end());
    return;
  }
  std::sort(numbered.begin(), numbered.end());
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = numbered[i].second;
}

std::size_t target_of(const std::vector<spec::DataColumn>& columns) {
  const auto target = find_kind(columns, spec::ColumnKind::kTarget);
  CONVOY_CHECK(target.has_value(), "a bound table has a target");
  return *target;
}

}  // namespace

TableClasses find_classes(const CsvTable& table, const std::vector<spec::DataColumn>& columns,
                          const TableSchema& schema, const std::string& positive) {
  const std::size_t target = target_of(columns);
  std::map<std::string, bool, std::less<>> seen;
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    const std::string_view field = table.field(row, target);
    if (schema.is_missing(field)) refuse(place_of(table, row, target) + ": a target must not be missing");
    if (seen.find(field) == seen.end()) seen.emplace(field, true);
  }
  TableClasses classes;
  for (const auto& [name, there] : seen) classes.names.push_back(name);
  if (classes.names.size() < 2) {
    refuse(fmt::format("{}: the target '{}' has {} in all {} rows: there is nothing to tell apart", table.name(),
                       table.names()[target], classes.names.empty() ? "no value" : "one value", table.rows()));
  }
  sort_classes(classes.names);
  if (classes.names.size() == 2) classes.positive = 1;
  if (positive.empty()) return classes;
  const auto place = std::find(classes.names.begin(), classes.names.end(), positive);
  if (classes.names.size() != 2) {
    refuse(fmt::format("data.positive = \"{}\": the target '{}' has {} classes, and only two have a positive one",
                       spec::one_line(positive, 80), table.names()[target], classes.names.size()));
  }
  if (place == classes.names.end()) {
    refuse(fmt::format("data.positive = \"{}\": the target '{}' has the classes \"{}\"{}", spec::one_line(positive, 80),
                       table.names()[target], fmt::join(classes.names, "\" and \""),
                       positive.size() > 64 ? "" : did_you_mean(positive, classes.names)));
  }
  classes.positive = static_cast<int>(place - classes.names.begin());
  return classes;
}

TableDataset::TableDataset(std::shared_ptr<const CsvTable> table, std::vector<spec::DataColumn> columns,
                           const TableSchema& schema, const TableEncoder& encoder, TableClasses classes)
    : table_(std::move(table)),
      columns_(std::move(columns)),
      schema_(schema),
      names_(encoder.feature_names()),
      classes_(std::move(classes)),
      values_(encoder.encode(*table_)) {
  const std::size_t target = target_of(columns_);
  for (std::int64_t row = 0; row < table_->rows(); ++row) {
    const auto place = std::find(classes_.names.begin(), classes_.names.end(), table_->field(row, target));
    if (place == classes_.names.end()) {
      refuse(place_of(*table_, row, target) + " is a class that the training file does not have");
    }
    labels_.push_back(place - classes_.names.begin());
  }
}

std::string TableDataset::key_of(std::int64_t sample) const {
  return fmt::format("{} line {}", base_name(table_->name()), table_->line_of(sample));
}

std::string TableDataset::content_of(std::int64_t sample) const {
  std::string content;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    if (columns_[column].kind == spec::ColumnKind::kExcluded) continue;
    const std::string_view field = table_->field(sample, column);
    content += fmt::format("{}:{};", field.size(), field);
  }
  return content;
}

void TableDataset::prepare(std::int64_t sample, const SampleUse&, std::span<float> out) const {
  CONVOY_CHECK(out.size() == names_.size(), "a row and its buffer must have as many elements");
  const auto begin = values_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(sample) * names_.size());
  std::copy_n(begin, names_.size(), out.begin());
}

std::vector<SliceColumn> TableDataset::slices(std::span<const std::string> names,
                                              std::span<const std::int64_t> part) const {
  std::vector<SliceColumn> slices;
  for (const std::string& name : names) {
    const auto place = std::find(table_->names().begin(), table_->names().end(), name);
    if (place == table_->names().end() && name == kSourceFileSlice) {
      slices.push_back({name, {base_name(table_->name())}, std::vector<std::int32_t>(part.size(), 0)});
      continue;
    }
    if (place == table_->names().end()) {
      refuse(fmt::format("data.slices: {} has no column '{}'{}", table_->name(), spec::one_line(name, 80),
                         name.size() > 64 ? "" : did_you_mean(name, table_->names())));
    }
    const auto column = static_cast<std::size_t>(place - table_->names().begin());
    const bool time = columns_[column].kind == spec::ColumnKind::kTime;
    slices.push_back(time ? by_time(column, part) : by_values(column, part));
  }
  return slices;
}

SliceColumn TableDataset::by_values(std::size_t column, std::span<const std::int64_t> part) const {
  SliceColumn slice;
  slice.name = table_->names()[column];
  for (const std::int64_t row : part) {
    const std::string_view field = table_->field(row, column);
    const auto place = std::lower_bound(slice.values.begin(), slice.values.end(), field);
    if (place == slice.values.end() || *place != field) slice.values.emplace(place, field);
    if (slice.values.size() > kMostSlices) {
      refuse(fmt::format("data.slices: the column '{}' has more than {} values", slice.name, kMostSlices));
    }
  }
  for (const std::int64_t row : part) {
    const auto place = std::lower_bound(slice.values.begin(), slice.values.end(), table_->field(row, column));
    slice.value_of.push_back(static_cast<std::int32_t>(place - slice.values.begin()));
  }
  return slice;
}

SliceColumn TableDataset::by_time(std::size_t column, std::span<const std::int64_t> part) const {
  SliceColumn slice;
  slice.name = table_->names()[column];
  const std::vector<double> times = times_of(*table_, column);
  const auto time = [&](std::size_t place) { return times[static_cast<std::size_t>(part[place])]; };
  std::vector<std::size_t> order(part.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return time(a) < time(b); });
  slice.value_of.resize(part.size());
  for (std::size_t begin = 0, range = 1; begin < order.size(); ++range) {
    std::size_t end = std::max(begin + 1, order.size() * range / kTimeRanges);
    while (end < order.size() && time(order[end]) == time(order[end - 1])) ++end;  // one moment, one range
    const auto field = [&](std::size_t at) { return table_->field(part[order[at]], column); };
    for (std::size_t at = begin; at < end; ++at) {
      slice.value_of[order[at]] = static_cast<std::int32_t>(slice.values.size());
    }
    slice.values.push_back(fmt::format("{} to {}", field(begin), field(end - 1)));
    begin = end;
  }
  return slice;
}

}  // namespace convoy::records
