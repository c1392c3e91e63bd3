// A step's story agrees with the sample plan and with the schedules that ranks really run.
#include "convoy/spec/document/step_story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/spec/collectives/ordered.h"
#include "convoy/spec/sample_plan.h"
#include "convoy/spec/schedule/validate.h"

namespace convoy::spec {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Recipe recipe_of(std::int64_t replicas, std::int64_t global_batch, std::int64_t accumulation = 1) {
  Recipe recipe;
  recipe.replicas.count = replicas;
  recipe.train.global_batch = global_batch;
  recipe.train.accumulation = accumulation;
  return recipe;
}

RC_GTEST_PROP(StepStory, SharesAreThoseOfTheSamplePlan, ()) {
  const int replicas = *rc::gen::inRange(1, 12);
  const int ranks = *rc::gen::inRange(1, replicas + 1);
  const int accumulation = *rc::gen::inRange(1, 5);
  const auto batch = *rc::gen::inRange<std::int64_t>(replicas * accumulation, 200);
  const WorkDivision work = divide_work(recipe_of(replicas, batch, accumulation), ranks);
  SamplePlanOptions options;
  options.samples = options.global_batch = batch;
  options.replicas = replicas;
  options.accumulation = accumulation;
  const SamplePlan plan(options);
  RC_ASSERT(static_cast<int>(work.ranks.size()) == ranks);
  for (const RankShare& share : work.ranks) {
    std::int64_t samples = 0;
    std::int64_t most = 0;
    std::int64_t least = batch;
    for (int replica = share.replicas.begin; replica < share.replicas.end; ++replica) {
      for (const auto& micro_batch : plan.micro_batches(0, replica)) {
        const auto size = static_cast<std::int64_t>(micro_batch.size());
        samples += size;
        most = std::max(most, size);
        least = std::min(least, size);
      }
    }
    RC_ASSERT(share.samples == samples);
    RC_ASSERT(share.most_in_micro_batch == most);
    RC_ASSERT(share.least_in_micro_batch == least);
  }
}

RC_GTEST_PROP(StepStory, SentElementsAreThoseOfTheSchedule, ()) {
  const int replicas = *rc::gen::inRange(1, 10);
  const int ranks = *rc::gen::inRange(1, replicas + 1);
  const auto elements = *rc::gen::inRange<std::int64_t>(1, 100000);
  const OrderedLayout layout{replicas, deal_replicas(replicas, ranks)};
  const ScheduleFacts facts = validate(ordered_all_reduce(layout, elements));
  for (int rank = 0; rank < ranks; ++rank) {
    RC_ASSERT(ordered_sent_elements(layout, rank, elements) == facts.sent_elements[static_cast<std::size_t>(rank)]);
  }
}

TEST(StepStory, CountsBytesOnceParametersAreKnown) {
  Recipe recipe = recipe_of(2, 128);
  recipe.parallel.bucket_bytes = 1 << 20;  // 262144 numbers; the first bucket is closed at 65536
  const StepStory story = tell_step(recipe, 2, 1 << 20);
  EXPECT_EQ(story.gradient_bytes, 4 << 20);
  EXPECT_EQ(story.buckets, 5);
  // Two aligned ranks: half of the elements as partial sums, half as finished shards.
  EXPECT_EQ(story.work.ranks[0].sent_bytes, 4 << 20);
  EXPECT_EQ(story.work.ranks[1].sent_bytes, 4 << 20);
  const std::string text = step_tables(story);
  EXPECT_THAT(text, HasSubstr("4.0 MiB of gradients in at most 5 buckets"));
  EXPECT_THAT(text, Not(HasSubstr("--parameters")));
}

TEST(StepStory, DoublesTakeTwiceTheBytes) {
  Recipe recipe = recipe_of(2, 128);
  recipe.model.dtype = "float64";
  EXPECT_EQ(tell_step(recipe, 2, 1000).gradient_bytes, 8000);
}

TEST(StepStory, SaysThatBytesAreNotKnown) {
  const StepStory story = tell_step(recipe_of(4, 64), 2, 0);
  EXPECT_THAT(step_tables(story), HasSubstr("give --parameters N"));
  const auto json = to_json(story);
  EXPECT_TRUE(json["parameters"].is_null());
  EXPECT_TRUE(json["shares"][0]["sent_bytes"].is_null());
  EXPECT_EQ(json["shares"][1]["replicas"], nlohmann::ordered_json::parse("[2,4]"));
}

TEST(StepStory, UnalignedSharesBringMorePartialSums) {
  const WorkDivision work = divide_work(recipe_of(8, 64), 3);
  EXPECT_EQ(work.ranks[0].partials, 2);  // {0 1}{2}
  EXPECT_EQ(work.ranks[1].partials, 2);  // {3}{4 5}
  EXPECT_EQ(work.ranks[2].partials, 1);  // {6 7}
}

TEST(StepStory, OneRankSendsNothingAndWaitsForNobody) {
  const StepStory story = tell_step(recipe_of(2, 64), 1, 5000);
  EXPECT_EQ(story.work.ranks[0].sent_bytes, 0);
  for (const StepPhase& phase : story.phases) {
    EXPECT_TRUE(phase.waits_for == "nobody" || phase.waits_for == "its own loader") << phase.name;
  }
  EXPECT_THAT(step_tables(story), HasSubstr("nothing is sent"));
}

TEST(StepStory, FollowsTheRecipe) {
  Recipe recipe = recipe_of(4, 64, 2);
  recipe.parallel.overlap = false;
  recipe.checkpoint.every_steps = 50;
  recipe.train.clip_norm = 2.5;
  recipe.data.prefetch = 7;
  const std::string text = step_tables(tell_step(recipe, 4, 0));
  for (const char* words : {"2 micro-batches, whose gradients add up", "once backward has ended", "every 50 steps",
                            "clipped at 2.5", "up to 7 steps ahead", "losses and counts of 4 replicas"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
}

TEST(StepStory, WithoutReplicasEachRankIsAShard) {
  Recipe recipe = recipe_of(2, 60);
  recipe.replicas.mode = "off";
  const WorkDivision work = divide_work(recipe, 4);
  EXPECT_EQ(work.replicas, 4);
  EXPECT_EQ(work.ranks[3].samples, 15);
}

TEST(StepStory, NamesTheAlgorithmOfTheExchange) {
  Recipe recipe = recipe_of(4, 64);
  const auto told = [&] { return step_tables(tell_step(recipe, 4, 1000)); };
  EXPECT_THAT(told(), HasSubstr("each by ordered_exchange as soon as"));
  recipe.comm.transport = "gloo";
  EXPECT_THAT(told(), HasSubstr("each by ordered_exchange, unless hosts or the calibration make another one quicker"));
  recipe.comm.algorithm = "ordered_direct";
  EXPECT_THAT(told(), HasSubstr("each by ordered_direct as soon as"));
}

TEST(StepStory, RefusesMoreRanksThanReplicas) {
  try {
    tell_step(recipe_of(2, 64), 3, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("3 ranks cannot share 2 replicas"));
  }
  EXPECT_THROW(tell_step(recipe_of(2, 64), 2, -1), Error);
}

TEST(StepStory, OfManyRanksShowsTheEnds) {
  const std::string text = step_tables(tell_step(recipe_of(100, 1000), 100, 10));
  EXPECT_THAT(text, HasSubstr("\n7  "));
  EXPECT_THAT(text, HasSubstr("..."));
  EXPECT_THAT(text, HasSubstr("\n92 "));
  EXPECT_THAT(text, Not(HasSubstr("\n50 ")));
}

}  // namespace
}  // namespace convoy::spec
