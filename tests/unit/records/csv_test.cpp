// CSV: what RFC 4180 says, what files in the wild do, and one clear line for the rest.
#include "convoy/records/table/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const CsvTable& table) {
  Rows rows;
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    rows.emplace_back();
    for (std::size_t column = 0; column < table.names().size(); ++column)
      rows.back().emplace_back(table.field(row, column));
  }
  return rows;
}

Rows rows_of(const std::string& text, char delimiter = ',') { return rows_of(parse_csv(text, "f.csv", delimiter)); }

std::string refusal(const std::string& text) {
  return error_of([&] { parse_csv(text, "f.csv", ','); });
}

TEST(Csv, ReadsTheSameTableWhateverItsMarksAndLineEnds) {
  const std::string mark = "\xef\xbb\xbf";
  const std::vector<std::string> texts = {
      "label,x\n1,2\n0,3\n",
      "label,x\n1,2\n0,3",
      mark + "label,x\r\n1,2\r\n0,3",
      "label,x\r1,2\r0,3\r",
      mark + "label,x\n" + mark + "1,2\n" + mark + "0,3\n",
      mark + "label,x\r\n" + mark + "1,2\r\n" + mark + "0,3\r\n\r\n",
      "label,x\n1,2\n\n0,3\n\n\n",
      "\n\nlabel,x\n1,2\n0,3\n" + mark,
      "\"label\",\"x\"\n\"1\",2\n0,\"3\"",
  };
  for (const std::string& text : texts) {
    const CsvTable table = parse_csv(text, "f.csv", ',');
    EXPECT_THAT(table.names(), ElementsAre("label", "x")) << text;
    EXPECT_EQ(rows_of(table), (Rows{{"1", "2"}, {"0", "3"}})) << text;
  }
}

TEST(Csv, ReadsQuotesDelimitersAndLineBreaksInsideQuotedFields) {
  EXPECT_EQ(rows_of("a,b\n\"x,y\",\"he said \"\"no\"\"\"\n\"two\nlines\",\"cr\r\nlf\"\n\"\",\"\"\n"),
            (Rows{{"x,y", "he said \"no\""}, {"two\nlines", "cr\r\nlf"}, {"", ""}}));
  EXPECT_EQ(rows_of("a;b\n1,5;\"x;y\"\n", ';'), (Rows{{"1,5", "x;y"}}));
  EXPECT_EQ(rows_of("a\tb\n1\t2\n", '\t'), (Rows{{"1", "2"}}));
}

TEST(Csv, TakesAQuoteInsideAnUnquotedFieldAsText) {
  EXPECT_EQ(rows_of("a,b\n5\" pipe,x\n"), (Rows{{"5\" pipe", "x"}}));
}

TEST(Csv, KeepsEmptyFieldsAndSpaces) {
  EXPECT_EQ(rows_of("a,b,c\n,,\n , x ,\n"), (Rows{{"", "", ""}, {" ", " x ", ""}}));
}

TEST(Csv, CountsLinesThroughQuotedBreaksAndEmptyLines) {
  const CsvTable table = parse_csv("a,b\n\"1\n2\r\n3\",x\r\n\r\ny,z\rlast,one", "f.csv", ',');
  ASSERT_EQ(table.rows(), 3);
  EXPECT_EQ(table.line_of(0), 2);
  EXPECT_EQ(table.line_of(1), 6);
  EXPECT_EQ(table.line_of(2), 7);
}

TEST(Csv, NamesFileAndLineOfWhatIsWrong) {
  EXPECT_EQ(refusal(""), "InvalidArgument: f.csv line 1: there is no header: the file is empty");
  EXPECT_THAT(refusal("\xef\xbb\xbf\n\n"), StartsWith("InvalidArgument: f.csv line 1: there is no header"));
  EXPECT_EQ(refusal("a,,c\n"), "InvalidArgument: f.csv line 1: column 2 has no name");
  EXPECT_EQ(refusal("a,b,a\n"), "InvalidArgument: f.csv line 1: two columns are named 'a'");
  EXPECT_EQ(refusal("a,b\n1,2\n3\n"), "InvalidArgument: f.csv line 3: 1 fields, but the header names 2 columns");
  EXPECT_EQ(refusal("a,b\n1,2,3\n"), "InvalidArgument: f.csv line 2: 3 fields, but the header names 2 columns");
  EXPECT_EQ(refusal("a,b\n1,2\n3,\"x\n\n"), "InvalidArgument: f.csv line 3: a quoted field begins here and never ends");
  EXPECT_EQ(refusal("a,b\n1,\"x\"y\n"),
            "InvalidArgument: f.csv line 2: a quoted field goes on after its closing quote (a quote inside is written "
            "twice)");
}

TEST(Csv, MayHaveAHeaderAndNoRow) { EXPECT_EQ(parse_csv("a,b\r\n", "f.csv", ',').rows(), 0); }

RC_GTEST_PROP(Csv, ReadsBackWhatWasWritten, ()) {
  const auto delimiter = *rc::gen::elementOf(std::vector<char>{',', ';', '\t', '|'});
  const std::vector<std::string> ends = {"\n", "\r\n", "\r"};
  const auto columns = static_cast<std::size_t>(*rc::gen::inRange(2, 5));
  const Rows rows = *rc::gen::container<Rows>(rc::gen::container<std::vector<std::string>>(
      columns, rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab\",;\t|\r\n \xef\xbb\xbf")))));
  std::string text;
  for (std::size_t column = 0; column < columns; ++column) {
    text += (column == 0 ? "" : std::string(1, delimiter)) + "c" + std::to_string(column);
  }
  for (const auto& row : rows) {
    text += *rc::gen::elementOf(ends);
    for (std::size_t column = 0; column < columns; ++column) {
      if (column > 0) text += delimiter;
      text += csv_field(row[column], delimiter, *rc::gen::arbitrary<bool>());
    }
  }
  RC_ASSERT(rows_of(text, delimiter) == rows);
}

}  // namespace
}  // namespace convoy::records
