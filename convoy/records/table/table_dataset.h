// Rows of a table as a dataset.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/records/dataset.h"
#include "convoy/records/table/encoder.h"

namespace convoy::records {

/// What the training file decides for all files of a table.
struct TableClasses {
  /// The names of the classes: the values of the target, by number where all are integers, else by their bytes.
  std::vector<std::string> names;
  /// The class whose scores are ranked; -1 unless there are two.
  int positive = -1;
};

/// Returns the classes of the whole training file, so that a part may lack one.
/// Errors:     kInvalidArgument naming file, line and column where the target is missing, a target with fewer than two
///             values, or a positive class that is none of two
TableClasses find_classes(const CsvTable& table, const std::vector<spec::DataColumn>& columns,
                          const TableSchema& schema, const std::string& positive);

/// A table, encoded.
class TableDataset final : public Dataset {
 public:
  /// Encodes a table.
  /// Errors:     kInvalidArgument naming file, line, column and value for a target that the training file does not have,
  ///             and what the encoder refuses
  TableDataset(std::shared_ptr<const CsvTable> table, std::vector<spec::DataColumn> columns, const TableSchema& schema,
               const TableEncoder& encoder, TableClasses classes);

  std::int64_t count() const override { return table_->rows(); }
  std::vector<std::int64_t> sample_shape() const override { return {static_cast<std::int64_t>(names_.size())}; }
  int classes() const override { return static_cast<int>(classes_.names.size()); }
  std::int64_t label(std::int64_t sample) const override { return labels_[static_cast<std::size_t>(sample)]; }
  std::string key_of(std::int64_t sample) const override;
  std::string content_of(std::int64_t sample) const override;
  void prepare(std::int64_t sample, const SampleUse& use, std::span<float> out) const override;
  std::vector<std::string> class_names() const override { return classes_.names; }
  int positive_class() const override { return classes_.positive; }
  std::vector<std::string> feature_names() const override { return names_; }
  std::vector<SliceColumn> slices(std::span<const std::string> names,
                                  std::span<const std::int64_t> part) const override;

  /// Returns the table as it was read.
  const CsvTable& table() const { return *table_; }
  /// Returns how each of its columns is used.
  const std::vector<spec::DataColumn>& columns() const { return columns_; }
  /// Returns the declarations.
  const TableSchema& schema() const { return schema_; }

 private:
  SliceColumn by_values(std::size_t column, std::span<const std::int64_t> part) const;
  SliceColumn by_time(std::size_t column, std::span<const std::int64_t> part) const;

  const std::shared_ptr<const CsvTable> table_;
  const std::vector<spec::DataColumn> columns_;
  const TableSchema schema_;
  const std::vector<std::string> names_;
  const TableClasses classes_;
  const std::vector<float> values_;
  std::vector<std::int64_t> labels_;
};

}  // namespace convoy::records
