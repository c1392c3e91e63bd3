// The picture has the bars of the story, in its order, and both of its forms show them.
#include "convoy/spec/document/step_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include "tests/unit/spec/recipe_fixtures.h"

namespace convoy::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

StepPicture draw(const Recipe& recipe, int ranks, std::int64_t parameters = 0) {
  return draw_step(tell_step(recipe, ranks, parameters));
}

std::vector<BarKind> kinds_of(const std::vector<PictureBar>& bars) {
  std::vector<BarKind> kinds;
  for (const PictureBar& bar : bars) kinds.push_back(bar.kind);
  return kinds;
}

const PictureBar& bar_of(const PictureRow& row, BarKind kind) {
  return *std::find_if(row.own.begin(), row.own.end(), [kind](const PictureBar& bar) { return bar.kind == kind; });
}

// Every element that opens is closed, in order.
bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

TEST(StepPicture, HasThePhasesOfADividedStepInOrder) {
  const StepPicture picture = draw(recipe_of(3, 90), 2, 1 << 21);
  ASSERT_EQ(picture.rows.size(), 2u);
  EXPECT_THAT(kinds_of(picture.rows[0].own),
              ElementsAre(BarKind::kForward, BarKind::kBackward, BarKind::kForward, BarKind::kBackward,
                          BarKind::kWaitBuckets, BarKind::kFacts, BarKind::kNorm, BarKind::kUpdate, BarKind::kBarrier));
  // The rank with one replica waits for the one with two.
  EXPECT_THAT(kinds_of(picture.rows[1].own),
              ElementsAre(BarKind::kForward, BarKind::kBackward, BarKind::kWaitSlowest, BarKind::kWaitBuckets,
                          BarKind::kFacts, BarKind::kNorm, BarKind::kUpdate, BarKind::kBarrier));
  EXPECT_DOUBLE_EQ(
      bar_of(picture.rows[1], BarKind::kWaitSlowest).end - bar_of(picture.rows[1], BarKind::kWaitSlowest).begin,
      90.0);  // a replica of 30 samples: 30 forward, 60 backward
  EXPECT_DOUBLE_EQ(bar_of(picture.rows[0], BarKind::kFacts).begin, bar_of(picture.rows[1], BarKind::kFacts).begin);
}

TEST(StepPicture, BucketsAreLaunchedUnderTheLastBackwardAndMoveWhenAllRanksHaveLaunchedThem) {
  const StepPicture picture = draw(recipe_of(3, 90), 2, 1 << 21);
  for (const PictureRow& row : picture.rows) {
    ASSERT_EQ(row.exchange.size(), 3u);  // 8 MiB in buckets of 4 MiB, the first a quarter
    const PictureBar& last = *std::find_if(row.own.rbegin(), row.own.rend(),
                                           [](const PictureBar& bar) { return bar.kind == BarKind::kBackward; });
    EXPECT_GT(row.exchange[0].begin, last.begin);
    EXPECT_LT(row.exchange[0].begin, last.end);
    EXPECT_GE(row.exchange[2].end, last.end);
  }
  EXPECT_GT(picture.rows[0].exchange[0].begin, picture.rows[1].exchange[0].begin);
  EXPECT_DOUBLE_EQ(picture.rows[0].exchange[0].end, picture.rows[1].exchange[0].end);
}

TEST(StepPicture, WithoutOverlapBucketsComeAfterBackward) {
  Recipe recipe = recipe_of(2, 64);
  recipe.parallel.overlap = false;
  const StepPicture picture = draw(recipe, 2, 1 << 21);
  EXPECT_DOUBLE_EQ(picture.rows[0].exchange.front().begin, bar_of(picture.rows[0], BarKind::kBackward).end);
}

TEST(StepPicture, AWholeUpdateTakesLongerAndHasNoBarrier) {
  Recipe recipe = recipe_of(4, 64);
  const StepPicture divided = draw(recipe, 4);
  recipe.parallel.divide_update = false;
  const StepPicture whole = draw(recipe, 4);
  const auto update = [](const StepPicture& picture) {
    const PictureBar& bar = bar_of(picture.rows[0], BarKind::kUpdate);
    return bar.end - bar.begin;
  };
  EXPECT_NEAR(update(whole), 4 * update(divided), 1e-9);
  EXPECT_EQ(divided.rows[0].own.back().kind, BarKind::kBarrier);
  EXPECT_EQ(whole.rows[0].own.back().kind, BarKind::kUpdate);
}

TEST(StepPicture, OfManyPassesShowsTheLast) {
  const StepPicture picture = draw(recipe_of(40, 400, 2), 2);
  EXPECT_EQ(picture.rows[0].own[0].kind, BarKind::kPasses);
  EXPECT_EQ(picture.rows[0].own[0].number, 39);  // 20 replicas x 2 micro-batches, but for one
  EXPECT_EQ(picture.rows[1].own[1].number, 39);  // the last replica
  EXPECT_THAT(picture_text(picture), HasSubstr("~~~"));
}

TEST(StepPicture, InLockStepReplicasGoForwardTogether) {
  Recipe recipe = recipe_of(4, 64, 2);
  recipe.model.sync_batch_norm = true;
  const StepPicture picture = draw(recipe, 2);
  std::vector<int> replicas;
  for (std::size_t i = 0; i < 4; ++i) replicas.push_back(picture.rows[1].own[i].number);
  EXPECT_THAT(replicas, ElementsAre(2, 3, 2, 3));
  EXPECT_EQ(picture.rows[1].own[1].kind, BarKind::kForward);
  EXPECT_EQ(picture.rows[1].own[2].kind, BarKind::kBackward);
  EXPECT_EQ(picture.rows[1].own[4].kind, BarKind::kForward);  // the second micro-batch
}

TEST(StepPicture, OneRankExchangesNothing) {
  const StepPicture picture = draw(recipe_of(2, 64, 2), 1, 1000);
  EXPECT_TRUE(picture.rows[0].exchange.empty());
  EXPECT_EQ(kinds_of(picture.rows[0].own).back(), BarKind::kUpdate);
  EXPECT_THAT(picture_text(picture), Not(HasSubstr("buckets")));
}

RC_GTEST_PROP(StepPicture, BarsOfAThreadFollowEachOther, ()) {
  const int replicas = *rc::gen::inRange(1, 30);
  const int ranks = *rc::gen::inRange(1, replicas + 1);
  const int accumulation = *rc::gen::inRange(1, 4);
  Recipe recipe = recipe_of(replicas, *rc::gen::inRange<std::int64_t>(replicas * accumulation, 200), accumulation);
  recipe.parallel.bucket_bytes = 1000;
  recipe.parallel.overlap = *rc::gen::arbitrary<bool>();
  recipe.parallel.divide_update = *rc::gen::arbitrary<bool>();
  const StepPicture picture = draw(recipe, ranks, *rc::gen::inRange<std::int64_t>(0, 20000));
  RC_ASSERT(picture.rows.size() == static_cast<std::size_t>(std::min(ranks, 8)));
  for (const PictureRow& row : picture.rows) {
    for (const auto* bars : {&row.own, &row.exchange}) {
      double at = 0;
      for (const PictureBar& bar : *bars) {
        RC_ASSERT(bar.begin >= at - 1e-9);
        RC_ASSERT(bar.end > bar.begin);
        RC_ASSERT(bar.end <= picture.length + 1e-9);
        at = bar.end;
      }
    }
    RC_ASSERT(row.own.front().begin == 0.0);
    for (std::size_t i = 1; i < row.own.size(); ++i) {
      RC_ASSERT(std::abs(row.own[i].begin - row.own[i - 1].end) < 1e-9);  // a rank's own thread has no gaps
    }
  }
  RC_ASSERT(is_well_formed(picture_svg(picture)));
}

TEST(StepPicture, TextHasALineForEachThreadAndALegend) {
  const std::string text = picture_text(draw(recipe_of(3, 90), 2, 1 << 21), 60);
  EXPECT_THAT(text, HasSubstr("rank 0  0FF"));
  EXPECT_THAT(text, HasSubstr("rank 1  2FF"));
  EXPECT_THAT(text, HasSubstr("B..."));
  EXPECT_THAT(text, HasSubstr("waits for the slowest rank (wait_slowest)\n"));
  EXPECT_THAT(text, HasSubstr("not to scale"));
  EXPECT_THAT(text, Not(HasSubstr("several passes")));
}

TEST(StepPicture, ABarMayStandForSeveralBuckets) {
  Recipe recipe = recipe_of(2, 64);
  recipe.parallel.bucket_bytes = 4000;
  const StepPicture picture = draw(recipe, 2, 20'000);  // 1000 numbers a bucket, the first 250
  EXPECT_EQ(picture.buckets, 21);
  EXPECT_EQ(picture.rows[0].exchange.size(), 7u);
  EXPECT_THAT(picture_text(picture), HasSubstr("a bar stands for up to 3 of 21"));
  EXPECT_THAT(picture_svg(picture), HasSubstr("<title>buckets 19 to 21</title>"));
  EXPECT_THAT(picture_text(draw(recipe, 2)), HasSubstr("drawn as 3, since their number is not known"));
}

TEST(StepPicture, SvgIsAFileOfItsOwn) {
  Recipe recipe = recipe_of(20, 100);
  recipe.task.name = "dogs & <cats> \"here\"";
  const std::string svg = picture_svg(draw(recipe, 20));
  EXPECT_TRUE(is_step_svg(svg));
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_THAT(svg, HasSubstr("dogs &amp; &lt;cats&gt; &quot;here&quot;"));
  EXPECT_THAT(svg, HasSubstr("... 12 more ranks ..."));
  EXPECT_THAT(svg, HasSubstr(">rank 19</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_FALSE(is_step_svg("<svg xmlns=\"http://www.w3.org/2000/svg\"></svg> data-made-by=\"convoy explain\""));
  EXPECT_FALSE(is_step_svg("notes"));
}

TEST(StepPicture, JsonHasTheBars) {
  const auto json = to_json(draw(recipe_of(2, 64), 2, 1000));
  EXPECT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][1]["rank"], 1);
  EXPECT_EQ(json["rows"][1]["own"][0]["kind"], "forward");
  EXPECT_EQ(json["rows"][1]["own"][0]["number"], 1);
  EXPECT_EQ(json["rows"][0]["exchange"][0]["kind"], "bucket");
}

}  // namespace
}  // namespace convoy::spec
