// Fits and applies the encoding of a table's columns.
#include "convoy/records/table/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/base/error.h"

namespace convoy::records {
namespace {

[[noreturn]] void refuse(const std::string& message) { refuse_table(message); }

[[noreturn]] void refuse_missing(const CsvTable& table, std::int64_t row, std::size_t column, bool number) {
  refuse(fmt::format("{} is missing; declare \"{}\" to allow that", place_of(table, row, column),
                     number ? "number, missing = mean" : "category, missing = own"));
}

}  // namespace

// A category that may be missing has one feature more, the last.
std::size_t TableEncoder::Encoded::width() const {
  const std::size_t extra = declared.missing_allowed ? 1 : 0;
  return extra + (declared.kind == spec::ColumnKind::kNumber ? 1 : categories.size());
}

TableEncoder::TableEncoder(const CsvTable& table, const std::vector<spec::DataColumn>& columns,
                           const TableSchema& schema, std::span<const std::int64_t> training)
    : schema_(schema) {
  if (training.empty()) refuse("an empty training part has nothing to fit encoders on");
  for (std::size_t column = 0; column < columns.size(); ++column) {
    Encoded encoded;
    encoded.name = table.names()[column];
    encoded.declared = columns[column];
    encoded.first = features_;
    if (columns[column].kind == spec::ColumnKind::kNumber) {
      fit_number(table, column, training, encoded);
    } else if (columns[column].kind == spec::ColumnKind::kCategory) {
      fit_category(table, column, training, encoded);
    } else {
      continue;
    }
    features_ += encoded.width();
    encoded_.push_back(std::move(encoded));
  }
}

void TableEncoder::fit_number(const CsvTable& table, std::size_t column, std::span<const std::int64_t> training,
                              Encoded& encoded) {
  std::vector<double> numbers;
  for (const std::int64_t row : training) {
    if (!schema_.is_missing(table.field(row, column))) {
      numbers.push_back(number_at(table, row, column));
    } else if (!encoded.declared.missing_allowed) {
      refuse_missing(table, row, column, true);
    }
  }
  if (numbers.empty()) {
    refuse(fmt::format("{}: column '{}' has no value in the training part", table.name(), encoded.name));
  }
  const auto count = static_cast<double>(numbers.size());
  double sum = 0.0;
  for (const double number : numbers) sum += number;
  encoded.mean = sum / count;
  double squares = 0.0;
  for (const double number : numbers) squares += (number - encoded.mean) * (number - encoded.mean);
  const double deviation = std::sqrt(squares / count);
  if (!std::isfinite(encoded.mean) || !std::isfinite(deviation)) {
    refuse(fmt::format("{}: the numbers of column '{}' are too large to average", table.name(), encoded.name));
  }
  // Equal numbers may leave a rounding error in place of 0.
  const double smallest = 1e-12 * std::abs(encoded.mean);
  encoded.deviation = deviation > smallest && deviation > 0.0 ? deviation : 1.0;
}

void TableEncoder::fit_category(const CsvTable& table, std::size_t column, std::span<const std::int64_t> training,
                                Encoded& encoded) {
  std::vector<std::string> seen;
  for (const std::int64_t row : training) {
    const std::string_view field = table.field(row, column);
    if (!schema_.is_missing(field)) {
      const auto place = std::lower_bound(seen.begin(), seen.end(), field);
      if (place == seen.end() || *place != field) seen.emplace(place, field);
    } else if (!encoded.declared.missing_allowed) {
      refuse_missing(table, row, column, false);
    }
  }
  encoded.categories = std::move(seen);
}

std::vector<std::string> TableEncoder::feature_names() const {
  std::vector<std::string> names;
  for (const Encoded& encoded : encoded_) {
    if (encoded.declared.kind == spec::ColumnKind::kNumber) names.push_back(encoded.name);
    for (const std::string& category : encoded.categories) {
      names.push_back(fmt::format("{} = {}", encoded.name, category));
    }
    if (encoded.declared.missing_allowed) names.push_back(encoded.name + " is missing");
  }
  return names;
}

std::vector<float> TableEncoder::encode(const CsvTable& table) const {
  std::vector<std::size_t> places;
  for (const Encoded& encoded : encoded_) {
    const auto place = std::find(table.names().begin(), table.names().end(), encoded.name);
    CONVOY_CHECK(place != table.names().end(), "a table is bound to its columns before it is encoded");
    places.push_back(static_cast<std::size_t>(place - table.names().begin()));
  }
  std::vector<float> values(static_cast<std::size_t>(table.rows()) * features_, 0.0f);
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    const auto out = std::span(values).subspan(static_cast<std::size_t>(row) * features_, features_);
    for (std::size_t i = 0; i < encoded_.size(); ++i) {
      encode_field(table, row, places[i], encoded_[i], out.subspan(encoded_[i].first, encoded_[i].width()));
    }
  }
  return values;
}

void TableEncoder::encode_field(const CsvTable& table, std::int64_t row, std::size_t column, const Encoded& encoded,
                                std::span<float> out) const {
  const std::string_view field = table.field(row, column);
  const bool number = encoded.declared.kind == spec::ColumnKind::kNumber;
  if (schema_.is_missing(field)) {
    if (!encoded.declared.missing_allowed) refuse_missing(table, row, column, number);
    out.back() = 1.0f;
    return;
  }
  if (number) {
    out.front() = static_cast<float>((number_at(table, row, column) - encoded.mean) / encoded.deviation);
    return;
  }
  const auto place = std::lower_bound(encoded.categories.begin(), encoded.categories.end(), field);
  if (place != encoded.categories.end() && *place == field) {
    out[static_cast<std::size_t>(place - encoded.categories.begin())] = 1.0f;
  } else if (!encoded.declared.unseen_allowed) {
    refuse(
        fmt::format("{} is a category that the training part does not have; declare \"category, unseen = own\" to "
                    "allow that",
                    place_of(table, row, column)));
  }
}

}  // namespace convoy::records
