// How the columns of a table become features: fitted on the training part, and on nothing else.
//
// A number becomes (value - mean) / deviation, a category as many features as it has values in the training part, of
// which one is 1. A missing number that may be missing becomes the mean, 0, and one more feature becomes 1; a missing
// category that may be missing is a category of its own; a category that the training part lacks, where that is allowed,
// leaves all features of its column at 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "convoy/records/table/schema.h"

namespace convoy::records {

/// A fitted encoding of number and category columns.
/// Threads:    any
class TableEncoder {
 public:
  /// Fits the encoding on the given rows, in their order; the sums do not depend on how many processes do the same.
  /// Errors:     kInvalidArgument naming file, line, column and value for a field that is missing or no number, and
  ///             naming the column for a number that the rows do not have at all
  TableEncoder(const CsvTable& table, const std::vector<spec::DataColumn>& columns, const TableSchema& schema,
               std::span<const std::int64_t> training);

  /// Returns a name for each feature: "age", "age is missing", "job = admin.".
  std::vector<std::string> feature_names() const;
  /// Returns the number of features.
  std::size_t features() const { return features_; }

  /// Writes the features of each row of a table, which may be another one than was fitted on.
  /// Shapes:     returns [rows, features]
  /// Errors:     kInvalidArgument naming file, line, column and value for a missing or unseen value that its column does
  ///             not allow, and for a field that is no number
  std::vector<float> encode(const CsvTable& table) const;

 private:
  struct Encoded {
    std::string name;
    spec::DataColumn declared;
    double mean = 0.0;
    double deviation = 1.0;
    std::vector<std::string> categories;  // ascending
    std::size_t first = 0;                // its first feature
    std::size_t width() const;
  };

  void fit_number(const CsvTable& table, std::size_t column, std::span<const std::int64_t> training, Encoded& encoded);
  void fit_category(const CsvTable& table, std::size_t column, std::span<const std::int64_t> training,
                    Encoded& encoded);
  void encode_field(const CsvTable& table, std::int64_t row, std::size_t column, const Encoded& encoded,
                    std::span<float> out) const;

  const TableSchema schema_;
  std::vector<Encoded> encoded_;
  std::size_t features_ = 0;
};

}  // namespace convoy::records
