// What is worth knowing about data before anything is trained on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/records/open/run_data.h"

namespace convoy::records {

/// One part of the data.
struct PartReport {
  /// "training", "validation" or "test".
  std::string name;
  /// How many samples it has.
  std::int64_t samples = 0;
  /// How many of each class.
  std::vector<std::int64_t> class_counts;
  /// Samples beyond the first of each content.
  std::int64_t duplicates = 0;
};

/// A column of a table.
struct ColumnReport {
  /// Its name.
  std::string name;
  /// Missing values in all parts.
  std::int64_t missing = 0;
  /// How well it ranks some class alone, by ROC AUC on samples that it was not fitted on; 0.5 says nothing.
  double auc = 0.5;
};

/// What was looked at and found.
struct DataReport {
  /// Training, validation and test; empty parts too.
  std::vector<PartReport> parts;
  /// The names of the classes.
  std::vector<std::string> classes;
  /// Numbers in one prepared sample.
  std::int64_t features = 0;
  /// Samples of a later part whose content is in an earlier one.
  std::int64_t duplicates_across = 0;
  /// Groups that are in more than one part.
  std::int64_t groups_across = 0;
  /// The columns of a table.
  std::vector<ColumnReport> columns;
  /// What should be looked at, one line each.
  std::vector<std::string> findings;
  /// What is good to know and nothing wrong.
  std::vector<std::string> notes;
};

/// Opens all files that a recipe's [data] names, the test files too, and looks for duplicates inside and across parts,
/// groups in several parts, parts that nearly lack a class, missing values, and columns that give the class away.
/// Errors:     as open_data, and as RunData::test
/// Cost:       a hash of each sample, and a sort of each column for each class
DataReport check_data(const spec::DataRecipe& recipe, Files& files);

/// Returns the report as one JSON object.
std::string to_json(const DataReport& report);

}  // namespace convoy::records
