// Texts for people: sizes, durations, tables, and the word that somebody probably meant.
#include "convoy/base/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <sstream>

namespace convoy {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kKeys = {"learning_rate", "momentum", "epochs", "steps", "lr"};

TEST(FormatBytes, TakesTheUnitThatFits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536ull << 10), "1.5 MiB");
  EXPECT_EQ(format_bytes(~0ull), "16.0 EiB");
}

TEST(FormatBytes, NeverShowsAFullUnitAsAThousandTwentyFour) {
  EXPECT_EQ(format_bytes((1ull << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(1047500), "1022.9 KiB");
}

TEST(FormatDuration, TakesTheUnitThatFits) {
  EXPECT_EQ(format_duration(1500ns), "1.5 us");
  EXPECT_EQ(format_duration(12300us), "12.3 ms");
  EXPECT_EQ(format_duration(1s), "1.0 s");
  EXPECT_EQ(format_duration(245s), "4 min 05 s");
  EXPECT_EQ(format_duration(3600s), "1 h 00 min");
  EXPECT_EQ(format_duration(26h + 3min + 29s), "26 h 03 min");
}

TEST(FormatDuration, RoundsUpIntoTheNextUnit) {
  EXPECT_EQ(format_duration(999'990ns), "1.0 ms");
  EXPECT_EQ(format_duration(999'990us), "1.0 s");
  EXPECT_EQ(format_duration(59'990ms), "1 min 00 s");
  EXPECT_EQ(format_duration(59'900ms), "59.9 s");
}

TEST(Nearest, FindsMissingSwappedAndWrongLetters) {
  EXPECT_EQ(nearest("learning_rat", kKeys), "learning_rate");
  EXPECT_EQ(nearest("leraning_rate", kKeys), "learning_rate");
  EXPECT_EQ(nearest("momentun", kKeys), "momentum");
  EXPECT_EQ(nearest("epoch", kKeys), "epochs");
}

TEST(Nearest, FindsAWordItself) { EXPECT_EQ(nearest("steps", kKeys), "steps"); }

TEST(Nearest, SaysNothingWhenNothingWasMeant) {
  EXPECT_EQ(nearest("transport", kKeys), std::nullopt);
  EXPECT_EQ(nearest("xy", kKeys), std::nullopt);  // every letter of "lr" would have to change
  EXPECT_EQ(nearest("q", kKeys), std::nullopt);
  EXPECT_EQ(nearest("", kKeys), std::nullopt);
  EXPECT_EQ(nearest("steps", {}), std::nullopt);
}

TEST(Nearest, TakesTheFirstOfEquallyNearOnes) {
  const std::vector<std::string> candidates = {"beta2", "beta1"};
  EXPECT_EQ(nearest("beta", candidates), "beta2");
}

TEST(DidYouMean, IsReadyForTheEndOfAMessage) {
  EXPECT_EQ(did_you_mean("learning_rat", kKeys), " (did you mean 'learning_rate'?)");
  EXPECT_EQ(did_you_mean("transport", kKeys), "");
}

RC_GTEST_PROP(Nearest, SurvivesOneEditOfALongWord, (const std::string& letters)) {
  const std::string word = "abcdefgh" + letters;
  const auto at = *rc::gen::inRange<std::size_t>(0, word.size());
  const std::vector<std::string> candidates = {"----------", word};
  RC_ASSERT(nearest(word.substr(0, at) + word.substr(at + 1), candidates) == word);
  RC_ASSERT(nearest(word.substr(0, at) + "?" + word.substr(at), candidates) == word);
}

TEST(TextTable, AlignsTheFirstColumnLeftAndTheOthersRight) {
  TextTable table({"ranks", "step ms", "speed-up"});
  table.add({"1", "12.5", "1.00"});
  table.add({"sixteen", "100.25", "1.9"});
  EXPECT_EQ(table.str(),
            "ranks    step ms  speed-up\n"
            "--------------------------\n"
            "1           12.5      1.00\n"
            "sixteen   100.25       1.9\n");
}

TEST(TextTable, FillsMissingCellsAndGrowsByLongRows) {
  TextTable table({"a"});
  table.add({"b", "c", "d"});
  table.add({});
  EXPECT_EQ(table.str(), "a\n-------\nb  c  d\n\n");
}

TEST(TextTable, CountsCharactersAndNotBytes) {
  TextTable table({"name", "x"});
  table.add({"größe", "1"});
  EXPECT_EQ(table.str(), "name   x\n--------\ngröße  1\n");
}

TEST(TextTable, OfNoColumnsHasNoText) { EXPECT_EQ(TextTable({}).str(), ""); }

RC_GTEST_PROP(TextTable, HasNoLineLongerThanItsRule, (const std::vector<std::uint32_t>& numbers)) {
  TextTable table({"name", "value", "share"});
  for (const std::uint32_t number : numbers) {
    table.add({std::to_string(number % 1000), std::to_string(number), std::to_string(number / 7)});
  }
  std::istringstream lines(table.str());
  std::string line, rule;
  std::getline(lines, line);
  std::getline(lines, rule);
  RC_ASSERT(line.size() == rule.size());
  while (std::getline(lines, line)) RC_ASSERT(line.size() == rule.size());
}

}  // namespace
}  // namespace convoy
