// From a recipe's CSV files to their datasets: bound, divided, fitted, encoded.
#include "convoy/records/open/open_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/records/table/table_dataset.h"

namespace convoy::records {
namespace {

using spec::ColumnKind;

[[noreturn]] void refuse(const std::string& message) { refuse_table(message); }

// A file bound to the declared columns.
struct Bound {
  std::shared_ptr<const CsvTable> table;
  std::vector<spec::DataColumn> columns;
  std::string digest;
};

Bound read_table(Files& files, const std::string& path, const char* key, const TableSchema& schema) {
  if (!files.exists(path)) refuse(fmt::format("there is no file {}; {} names it", path, key));
  const std::string text = files.read_range(path, 0, files.size(path));
  Bound bound;
  bound.table = std::make_shared<CsvTable>(parse_csv(text, path, schema.delimiter()));
  bound.columns = schema.bind(*bound.table);
  if (bound.table->rows() == 0) refuse(fmt::format("{} has no row below its header", path));
  bound.digest = hash128_hex(text);
  return bound;
}

std::map<std::string_view, std::int64_t> groups_of(const Bound& bound, std::size_t column) {
  std::map<std::string_view, std::int64_t> groups;
  for (std::int64_t row = 0; row < bound.table->rows(); ++row) {
    groups.emplace(bound.table->field(row, column), static_cast<std::int64_t>(groups.size()));
  }
  return groups;
}

// What the split looks at; the column's name enters the digest, since another column would divide otherwise.
SplitKeys split_keys(const Bound& bound, const TableSchema& schema, SplitKind kind, std::string& digest) {
  SplitKeys keys;
  if (kind != SplitKind::kGroup && kind != SplitKind::kTime) return keys;
  const auto column = find_kind(bound.columns, kind == SplitKind::kGroup ? ColumnKind::kGroup : ColumnKind::kTime);
  if (!column) refuse("data.split: the columns declare no group or time to split by");
  digest = hash128_hex(fmt::format("{} by {}", digest, bound.table->names()[*column]));
  if (kind == SplitKind::kTime) {
    keys.time_of = times_of(*bound.table, *column);
    return keys;
  }
  const auto groups = groups_of(bound, *column);
  for (std::int64_t row = 0; row < bound.table->rows(); ++row) {
    const std::string_view field = bound.table->field(row, *column);
    if (schema.is_missing(field)) refuse(place_of(*bound.table, row, *column) + ": a group must not be missing");
    keys.group_of.push_back(groups.at(field));
  }
  return keys;
}

// The official test file keeps what the split promises: no group, and no time, of the training file.
void check_apart(const Bound& training, const Bound& test, SplitKind kind) {
  if (kind == SplitKind::kGroup) {
    const std::size_t column = find_kind(training.columns, ColumnKind::kGroup).value();
    const std::size_t test_column = find_kind(test.columns, ColumnKind::kGroup).value();
    const auto groups = groups_of(training, column);
    for (std::int64_t row = 0; row < test.table->rows(); ++row) {
      if (groups.count(test.table->field(row, test_column)) > 0) {
        refuse(place_of(*test.table, row, test_column) + " is a group of the training file, too");
      }
    }
  }
  if (kind == SplitKind::kTime) {
    const auto trained = times_of(*training.table, find_kind(training.columns, ColumnKind::kTime).value());
    const auto tested = times_of(*test.table, find_kind(test.columns, ColumnKind::kTime).value());
    if (*std::min_element(tested.begin(), tested.end()) <= *std::max_element(trained.begin(), trained.end())) {
      refuse(fmt::format("{} begins before {} ends: a split by time tests on what comes later", test.table->name(),
                         training.table->name()));
    }
  }
}

}  // namespace

RunData open_table(const spec::DataRecipe& recipe, Files& files, const std::string& record_path, bool may_write) {
  const TableSchema schema(recipe);
  const auto bound = std::make_shared<Bound>(read_table(files, recipe.path, "data.path", schema));
  const TableClasses classes = find_classes(*bound->table, bound->columns, schema, recipe.positive);
  SplitOptions options = split_options(recipe, bound->table->rows());
  std::string digest = bound->digest;
  const SplitKeys keys = split_keys(*bound, schema, options.kind, digest);
  Split split = divide(files, record_path, may_write, options, digest, keys);
  const auto encoder = std::make_shared<TableEncoder>(*bound->table, bound->columns, schema, split.training);
  const auto dataset = std::make_shared<TableDataset>(bound->table, bound->columns, schema, *encoder, classes);
  dataset->slices(recipe.slices, {});  // refuses unknown names before anything is trained
  std::function<DataPart()> open_test;
  if (recipe.test_path.empty()) {
    open_test = [dataset, test = split.test] { return DataPart{dataset, test}; };
  } else {
    open_test = [&files, path = recipe.test_path, schema, bound, encoder, classes, kind = options.kind] {
      Bound test = read_table(files, path, "data.test_path", schema);
      check_apart(*bound, test, kind);
      const auto tested = std::make_shared<TableDataset>(test.table, test.columns, schema, *encoder, classes);
      std::vector<std::int64_t> all(static_cast<std::size_t>(tested->count()));
      std::iota(all.begin(), all.end(), 0);
      return DataPart{tested, std::move(all)};
    };
  }
  return {dataset, std::move(split), std::move(open_test)};
}

}  // namespace convoy::records
