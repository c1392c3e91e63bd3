// Missing values, leaks and identifiers, column by column.
#include "convoy/records/check/column_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "convoy/eval/ranked.h"

namespace convoy::records {
namespace {

using spec::ColumnKind;

constexpr std::int64_t kLeastForIdentifier = 50;

// Samples of one table that are looked at together.
struct Rows {
  const TableDataset* dataset;
  std::span<const std::int64_t> indexes;
};

std::int64_t count_missing(const Rows& rows, std::size_t column) {
  return std::count_if(rows.indexes.begin(), rows.indexes.end(), [&](std::int64_t row) {
    return rows.dataset->schema().is_missing(rows.dataset->table().field(row, column));
  });
}

std::optional<double> try_number(const TableDataset& dataset, std::int64_t row, std::size_t column) {
  return to_number(dataset.table().field(row, column));
}

// A column's values as scores for one class: numbers as they are, categories by the class's share in the training part.
class Scorer {
 public:
  Scorer(const Rows& training, std::size_t column, std::int64_t label) {
    numeric_ = std::all_of(training.indexes.begin(), training.indexes.end(), [&](std::int64_t row) {
      return training.dataset->schema().is_missing(training.dataset->table().field(row, column)) ||
             try_number(*training.dataset, row, column).has_value();
    });
    for (const std::int64_t row : training.indexes) {
      Share& share = shares_[std::string(training.dataset->table().field(row, column))];
      const int hit = training.dataset->label(row) == label ? 1 : 0;
      share.hits += hit;
      ++share.samples;
      all_.hits += hit;
      ++all_.samples;
    }
  }

  // Missing numbers have no score; a category that the training part lacks scores as the whole part.
  std::optional<double> operator()(const TableDataset& dataset, std::int64_t row, std::size_t column) const {
    if (numeric_) return try_number(dataset, row, column);
    const auto share = shares_.find(dataset.table().field(row, column));
    return share == shares_.end() ? all_.value() : share->second.value();
  }

 private:
  struct Share {
    std::int64_t hits = 0, samples = 0;
    double value() const { return static_cast<double>(hits) / static_cast<double>(samples); }
  };

  bool numeric_ = false;
  std::map<std::string, Share, std::less<>> shares_;
  Share all_;
};

// Returns how well a column tells one class from the others; a rank from high to low is as good as one from low to high.
double auc_of(const Rows& training, const Rows& measured, std::size_t column, std::size_t measured_column,
              std::int64_t label) {
  const Scorer scorer(training, column, label);
  eval::RankedOutcomes outcomes;
  for (const std::int64_t row : measured.indexes) {
    const auto score = scorer(*measured.dataset, row, measured_column);
    if (score) outcomes.add(*score, measured.dataset->label(row) == label, row);
  }
  const eval::RankedCurve curve = outcomes.curve();
  if (curve.positives() < kLeastForAuc || curve.negatives() < kLeastForAuc) return 0.5;
  const double auc = curve.roc_auc().value_or(0.5);
  return std::max(auc, 1.0 - auc);
}

// Whether nearly each row has a value of its own, as numbers of customers and of rows do.
bool is_identifier(const Rows& rows, std::size_t column) {
  const auto count = static_cast<std::int64_t>(rows.indexes.size());
  if (count < kLeastForIdentifier) return false;
  std::set<std::string_view> values;
  bool whole = true;
  for (const std::int64_t row : rows.indexes) {
    const std::string_view field = rows.dataset->table().field(row, column);
    values.insert(field);
    const auto number = try_number(*rows.dataset, row, column);
    whole = whole && number && *number == std::trunc(*number);
  }
  const bool own = static_cast<std::int64_t>(values.size()) * 20 >= count * 19;
  return own && (whole || rows.dataset->columns()[column].kind == ColumnKind::kCategory);
}

}  // namespace

void check_columns(const TableDataset& training_set, const Split& split, const DataPart& test, DataReport& report) {
  const auto& tested = dynamic_cast<const TableDataset&>(*test.dataset);
  const Rows training{&training_set, split.training};
  const Rows validation{&training_set, split.validation};
  const Rows test_rows{&tested, test.indexes};
  const Rows& measured = split.validation.empty() ? test_rows : validation;
  for (std::size_t column = 0; column < training_set.columns().size(); ++column) {
    const spec::DataColumn& declared = training_set.columns()[column];
    ColumnReport entry;
    entry.name = training_set.table().names()[column];
    const auto& test_names = tested.table().names();
    const auto test_column =
        static_cast<std::size_t>(std::find(test_names.begin(), test_names.end(), entry.name) - test_names.begin());
    const std::size_t measured_column = &measured == &test_rows ? test_column : column;
    entry.missing =
        count_missing(training, column) + count_missing(validation, column) + count_missing(test_rows, test_column);
    const bool used = declared.kind == ColumnKind::kNumber || declared.kind == ColumnKind::kCategory;
    const bool looked_at = used || declared.kind == ColumnKind::kExcluded;
    for (int label = 0; looked_at && label < training_set.classes(); ++label) {
      entry.auc = std::max(entry.auc, auc_of(training, measured, column, measured_column, label));
    }
    if (used && entry.auc >= kLeakingAuc) {
      report.findings.push_back(
          fmt::format("column '{}' alone tells a class with ROC AUC {:.4f}: is it known when the "
                      "prediction is made?",
                      entry.name, entry.auc));
    } else if (entry.auc >= kLeakingAuc) {
      report.notes.push_back(fmt::format("column '{}' is excluded ({}); alone it tells a class with ROC AUC {:.4f}",
                                         entry.name, declared.reason, entry.auc));
    }
    if (used && is_identifier(training, column)) {
      report.findings.push_back(
          fmt::format("column '{}' has a value of its own in nearly each row: an identifier?", entry.name));
    }
    report.columns.push_back(std::move(entry));
  }
}

}  // namespace convoy::records
