// Damaged recipes are read or refused, never anything else: a fixed run of random damage, the fuzzer's small sibling.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "convoy/base/error.h"
#include "convoy/base/random.h"
#include "convoy/spec/recipe.h"
#include "convoy/spec/recipe/toml_document.h"
#include "tests/unit/spec/recipe_fixtures.h"

namespace convoy::spec {
namespace {

constexpr std::array<std::string_view, 24> kPieces = {"\"",
                                                      "'",
                                                      "\"\"\"",
                                                      "[",
                                                      "]",
                                                      "[[",
                                                      "]]",
                                                      "{",
                                                      "}",
                                                      "=",
                                                      ".",
                                                      ",",
                                                      "#",
                                                      "\n",
                                                      "\r",
                                                      "\\u12",
                                                      "\\",
                                                      "e",
                                                      "_",
                                                      "\xef\xbb\xbf",
                                                      "\xc3\xa9",
                                                      "\xf0\x9f\x9a\xa2",
                                                      "\xed\xa0\x80",
                                                      "1979-05-27T07:32:00Z"};

// Damages a text in one place: a bit, a byte, a piece of syntax put in, a range cut out or doubled.
void damage(std::string& text, RandomStream& random) {
  const std::size_t at = random.below(text.size() + 1);
  const std::size_t length = std::min<std::size_t>(random.below(20), text.size() - at);
  switch (random.below(6)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
      break;
    case 1: text.insert(at, 1, static_cast<char>(random.below(256))); break;
    case 2: text.insert(at, kPieces[random.below(kPieces.size())]); break;
    case 3: text.erase(at, length); break;
    case 4: text.insert(random.below(text.size() + 1), text.substr(at, length)); break;
    default: text.resize(at); break;
  }
}

// A short recipe as the seed: damage then hits keys and values rather than the many lines of a whole one.
const std::string kShort =
    "# caf\xc3\xa9 \xf0\x9f\x9a\xa2\n[task]\nname = \"\xe8\x88\xb9 a\\u00e9\"\n[model]\nhidden = [64, 32]\n"
    "[train]\nlearning_rate = 1e-3\nsteps = 20\nschedule = 'cosine'\n";

TEST(RecipeReader, ReadsOrRefusesAnyDamagedRecipe) {
  RandomStream random(20240501);
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = i % 20 == 0 ? whole_recipe() : kShort;
    for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) damage(text, random);
    try {
      const Recipe recipe = parse_recipe(text, "r.toml");
      ASSERT_EQ(parse_recipe(to_toml(recipe), "again.toml"), recipe) << text;
      ++accepted;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kInvalidArgument) << text;
      const std::string message = error.what();
      ASSERT_EQ(message.rfind("r.toml:", 0), 0u) << message;
      ASSERT_EQ(message.find('\n'), std::string::npos) << message;
      ASSERT_EQ(utf8_prefix(message), message.size()) << message;
      ++refused;
    }
  }
  EXPECT_GT(accepted, 1000) << "the damage leaves nothing to read";
  EXPECT_GT(refused, 1000) << "the damage does nothing";
}

TEST(RecipeReader, ReadsOrRefusesAnyDamagedOption) {
  RandomStream random(7);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string option = i % 2 == 0 ? "model.hidden=[64,32]" : "task.name=\"a\xc3\xa9\"";
    for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) damage(option, random);
    const std::string message = refusal("", {option});
    if (message == "accepted") continue;
    ASSERT_EQ(message.rfind("--set ", 0), 0u) << message;
    ++refused;
  }
  EXPECT_GT(refused, 1000);
}

TEST(Utf8Prefix, StopsAtTheFirstBrokenSequence) {
  EXPECT_EQ(utf8_prefix(""), 0u);
  EXPECT_EQ(utf8_prefix("ab\xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\xa2"), 11u);
  EXPECT_EQ(utf8_prefix("ab\xc3"), 2u);
  EXPECT_EQ(utf8_prefix("\xf4\x8f\xbf\xbf"), 4u);
  for (const char* broken : {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                             "\xf5\x80\x80\x80", "\xe2\x82", "\xe2(\xa1"}) {
    EXPECT_EQ(utf8_prefix(broken), 0u);
  }
}

}  // namespace
}  // namespace convoy::spec
