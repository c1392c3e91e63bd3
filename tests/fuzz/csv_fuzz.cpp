// Feeds arbitrary text to the CSV reader, and what it accepts to the encoders: each field comes through writing and
// reading, and each feature is a finite number. The first byte chooses delimiter and declarations.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>

#include "convoy/base/error.h"
#include "convoy/records/table/table_dataset.h"

namespace {

using namespace convoy::records;

// Writes the table again, each field in quotes or not, and reads it back.
void check_round_trip(const CsvTable& table, char delimiter, bool quoted) {
  std::string text;
  for (std::size_t i = 0; i < table.names().size(); ++i) {
    text += (i == 0 ? "" : std::string(1, delimiter)) + csv_field(table.names()[i], delimiter, true);
  }
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    text += "\r\n";
    // A lone empty field would be an empty line.
    const bool lone = table.names().size() == 1;
    for (std::size_t i = 0; i < table.names().size(); ++i) {
      text += (i == 0 ? "" : std::string(1, delimiter)) + csv_field(table.field(row, i), delimiter, quoted || lone);
    }
  }
  const CsvTable again = parse_csv(text, "again", delimiter);
  if (again.names() != table.names() || again.rows() != table.rows()) __builtin_trap();
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    for (std::size_t i = 0; i < table.names().size(); ++i) {
      if (again.field(row, i) != table.field(row, i)) __builtin_trap();
    }
  }
}

void encode(const std::shared_ptr<const CsvTable>& table, char delimiter, std::size_t choice) {
  static const std::array<const char*, 6> kinds = {
      "number, missing = mean", "category, missing = own, unseen = own", "number", "time", "category", "excluded: x"};
  convoy::spec::DataRecipe recipe;
  recipe.delimiter = std::string(1, delimiter);
  for (std::size_t i = 0; i < table->names().size(); ++i) {
    recipe.columns[table->names()[i]] = i + 1 == table->names().size() ? "target" : kinds[(i + choice) % kinds.size()];
  }
  const TableSchema schema(recipe);
  const auto columns = schema.bind(*table);
  std::vector<std::int64_t> all(static_cast<std::size_t>(table->rows()));
  std::iota(all.begin(), all.end(), 0);
  if (const auto time = find_kind(columns, convoy::spec::ColumnKind::kTime)) times_of(*table, *time);
  const TableClasses classes = find_classes(*table, columns, schema, "");
  const TableEncoder encoder(*table, columns, schema, std::span(all).first((all.size() + 1) / 2));
  const TableDataset dataset(table, columns, schema, encoder, classes);
  std::vector<float> out(static_cast<std::size_t>(dataset.sample_elements()));
  for (const std::int64_t row : all) {
    if (dataset.label(row) < 0 || dataset.label(row) >= dataset.classes()) __builtin_trap();
    dataset.prepare(row, {}, out);
    for (const float value : out) {
      if (std::isnan(value)) __builtin_trap();
    }
  }
  dataset.slices(std::span(table->names()).first(1), all);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::array<char, 4> kDelimiters = {',', ';', '\t', '|'};
  const char delimiter = kDelimiters[data[0] % 4];
  try {
    const auto table =
        std::make_shared<CsvTable>(parse_csv({reinterpret_cast<const char*>(data) + 1, size - 1}, "input", delimiter));
    check_round_trip(*table, delimiter, data[0] >= 128);
    encode(table, delimiter, data[0] / 4u);
  } catch (const convoy::Error& error) {
    if (error.code() != convoy::ErrorCode::kInvalidArgument) __builtin_trap();
    if (std::string(error.what()).find('\n') != std::string::npos) __builtin_trap();
  }
  return 0;
}
