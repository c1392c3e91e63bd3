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
#include "tests/unit/spec/recipe_fixtures.h"

namespace convoy::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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
    // Replicas are consecutive parts of the step's samples.
    RC_ASSERT(plan.replica_samples(0, share.replicas.begin).front() ==
              plan.step_samples(0)[static_cast<std::size_t>(share.first_sample)]);
    RC_ASSERT(share.most_in_micro_batch == most);
    RC_ASSERT(share.least_in_micro_batch == least);
  }
}

TEST(StepStory, CountsBytesOfAReduceScatterWhereTheUpdateIsDivided) {
  Recipe recipe = recipe_of(2, 128);
  recipe.parallel.bucket_bytes = 1 << 20;  // 262144 numbers; the first bucket is closed at 65536
  const StepStory story = tell_step(recipe, 2, 1 << 20);
  EXPECT_EQ(story.update, UpdateDivision::kOneHost);
  EXPECT_EQ(story.gradient_bytes, 4 << 20);
  EXPECT_EQ(story.buckets.size(), 5u);
  // Two aligned ranks: each sends what it has of the other's shard, and updates its own.
  for (const RankShare& share : story.work.ranks) {
    EXPECT_EQ(share.sent_bytes, 2 << 20);
    EXPECT_EQ(share.updated, 1 << 19);
  }
  const std::string text = step_tables(story);
  EXPECT_THAT(text, HasSubstr("4.0 MiB of gradients in at most 5 buckets"));
  EXPECT_THAT(text, HasSubstr("each by reduce_scatter ordered_exchange as soon as it is complete"));
  EXPECT_THAT(text, Not(HasSubstr("--parameters")));
}

TEST(StepStory, CountsBytesOfAnAllReduceWhereItIsNot) {
  Recipe recipe = recipe_of(2, 128);
  recipe.parallel.bucket_bytes = 1 << 20;
  recipe.parallel.divide_update = false;
  const StepStory story = tell_step(recipe, 2, 1 << 20);
  EXPECT_EQ(story.update, UpdateDivision::kNone);
  // Half of the elements as partial sums, half as finished shards; each rank updates everything.
  for (const RankShare& share : story.work.ranks) {
    EXPECT_EQ(share.sent_bytes, 4 << 20);
    EXPECT_EQ(share.updated, 1 << 20);
  }
  EXPECT_THAT(step_tables(story), HasSubstr("each by all_reduce ordered_exchange as soon as it is complete"));
}

// A schedule of many ranks at once says the same as the closed forms that the story adds up.
RC_GTEST_PROP(StepStory, SentBytesAreThoseOfTheSchedules, ()) {
  const int replicas = *rc::gen::inRange(2, 10);
  const int ranks = *rc::gen::inRange(2, replicas + 1);
  const auto elements = *rc::gen::inRange<std::int64_t>(1, 100000);
  Recipe recipe = recipe_of(replicas, 100);
  recipe.parallel.divide_update = *rc::gen::arbitrary<bool>();
  recipe.parallel.bucket_bytes = 100'000;
  const StepStory story = tell_step(recipe, ranks, elements);
  std::vector<std::int64_t> sent(static_cast<std::size_t>(ranks), 0);
  for (const std::int64_t bucket : story.buckets) {
    const Schedule schedule = recipe.parallel.divide_update ? ordered_reduce_scatter(story.work.layout, bucket)
                                                            : ordered_all_reduce(story.work.layout, bucket);
    const ScheduleFacts facts = validate(schedule);
    for (std::size_t rank = 0; rank < sent.size(); ++rank) sent[rank] += facts.sent_elements[rank];
  }
  for (std::size_t rank = 0; rank < sent.size(); ++rank) RC_ASSERT(story.work.ranks[rank].sent_bytes == 4 * sent[rank]);
}

RC_GTEST_PROP(StepStory, SharesOfTheUpdateCoverAllParametersOnEachHost, ()) {
  const int ranks = *rc::gen::inRange(2, 8);
  const auto elements = *rc::gen::inRange<std::int64_t>(1, 200000);
  Recipe recipe = recipe_of(ranks, 100);
  const int hosts = *rc::gen::inRange(1, 3);
  for (int rank = 0; rank < ranks; ++rank) recipe.comm.hosts.push_back(rank * hosts / ranks == 0 ? "a" : "b");
  const StepStory story = tell_step(recipe, ranks, elements);
  std::int64_t first_host = 0;
  std::int64_t ranks_there = 0;
  for (const RankShare& share : story.work.ranks) {
    first_host += share.host == 0 ? share.updated : 0;
    ranks_there += share.host == 0 ? 1 : 0;
  }
  RC_ASSERT(first_host == (story.update == UpdateDivision::kNone ? elements * ranks_there : elements));
}

TEST(StepStory, TellsTheDividedUpdateOfOneHost) {
  const StepStory story = tell_step(recipe_of(8, 128), 3, 1 << 20);
  std::vector<std::string> names;
  for (const StepPhase& phase : story.phases) names.push_back(phase.name);
  EXPECT_THAT(names, ElementsAre("input", "forward and backward", "sum on the rank", "exchange of gradients",
                                 "exchange of facts", "norm and check", "update", "barrier", "record"));
  const std::string text = step_tables(story);
  for (const char* words : {"group host 0: ranks 0 to 2; parameters, and the summed gradient, lie once in its memory",
                            "into sums that the host has once", "sums of squares of canonical blocks, 256 of them",
                            // 8 B x (2 x (8 replicas + 3 ranks) + 256 blocks)
                            "one all_reduce of 2.2 KiB", "each rank updates the shards that it has summed",
                            "waits for every other rank: for its share of the update", "a rank lost in an update",
                            "Strategy: data, divided update"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  // The norm is formed of what was exchanged with the facts.
  EXPECT_EQ(story.phases[5].waits_for, "nobody");
  EXPECT_EQ(story.phases[5].group, "");
}

TEST(StepStory, TellsTheWholeUpdate) {
  Recipe recipe = recipe_of(8, 128);
  recipe.parallel.divide_update = false;
  recipe.train.momentum = 0.9;
  const StepStory story = tell_step(recipe, 3, 1 << 20);
  EXPECT_EQ(story.phases[5].waits_for, "every other rank");
  EXPECT_EQ(story.phases[5].group, "world");
  const std::string text = step_tables(story);
  for (const char* words : {"each rank has all of them in memory of its own", "an all_reduce of 176 B and 16 B",
                            "brings the sums of all blocks together (256 of them, 2.0 KiB)",
                            "each rank updates all of its parameters", "Strategy: data, whole update"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  EXPECT_THAT(text, Not(HasSubstr("barrier")));
  EXPECT_THAT(text, Not(HasSubstr("lie once")));
  EXPECT_THAT(text, Not(HasSubstr("journal")));
}

TEST(StepStory, TellsADividedUpdateOverSeveralHosts) {
  Recipe recipe = recipe_of(8, 128);
  recipe.train.optimizer = "adam";
  recipe.comm.hosts = {"left", "left", "right"};
  const StepStory story = tell_step(recipe, 3, 1 << 20);
  EXPECT_EQ(story.update, UpdateDivision::kSeveralHosts);
  EXPECT_EQ(story.work.ranks[1].updated, 1 << 19);
  EXPECT_EQ(story.work.ranks[2].updated, 1 << 20);
  const std::string text = step_tables(story);
  for (const char* words : {"group host 0: ranks 0, 1; parameters and moments lie once in its memory",
                            "group host 1: rank 2; parameters and moments lie once in its memory",
                            "each by all_reduce ordered_hierarchical", "brings the sums of all blocks together",
                            "its part of its host's parameters with adam"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
}

TEST(StepStory, SynchronisedBatchNormMeetsInEveryPass) {
  Recipe recipe = recipe_of(4, 64);
  recipe.model.sync_batch_norm = true;
  EXPECT_THAT(step_tables(tell_step(recipe, 2, 0)),
              HasSubstr("waits for every other rank, at each layer of synchronised batch norm"));
  EXPECT_EQ(tell_step(recipe, 1, 0).phases[1].waits_for, "nobody");
}

TEST(StepStory, SaysThatARunMeasuresTheShares) {
  Recipe recipe = recipe_of(4, 64);
  EXPECT_THAT(step_tables(tell_step(recipe, 2, 0)), Not(HasSubstr("equally fast")));
  recipe.parallel.share = "auto";
  EXPECT_THAT(step_tables(tell_step(recipe, 2, 0)), HasSubstr("dealt to equally fast ranks"));
}

TEST(StepStory, SaysWhereTheSizeOfBucketsComesFrom) {
  EXPECT_THAT(step_tables(tell_step(recipe_of(4, 64), 2, 0, "built in")),
              HasSubstr("buckets of about 4.0 MiB (built in)"));
}

TEST(StepStory, HostsOfOneRankDivideNothing) {
  Recipe recipe = recipe_of(8, 128);
  recipe.comm.hosts = {"a", "b", "c"};
  EXPECT_EQ(tell_step(recipe, 3, 0).update, UpdateDivision::kNone);
  EXPECT_EQ(tell_step(recipe, 3, 0).prices.front().algorithm, "ordered_exchange");
  recipe.comm.hosts = {"a", "a"};
  EXPECT_THROW(tell_step(recipe, 3, 0), Error);
}

TEST(StepStory, SaysHowTheGlobalBatchComesAbout) {
  const auto words = [](std::int64_t replicas, std::int64_t batch, std::int64_t accumulation) {
    return global_batch_words(recipe_of(replicas, batch, accumulation), static_cast<int>(replicas));
  };
  EXPECT_EQ(words(4, 128, 2), "4 replicas x micro-batch 16 x accumulation 2 = 128");
  EXPECT_EQ(words(1, 7, 1), "1 replica x micro-batch 7 x accumulation 1 = 7");
  EXPECT_EQ(words(3, 128, 1),
            "2 replicas x micro-batch 43 x accumulation 1 + 1 replica x micro-batch 42 x accumulation 1 = 128");
  EXPECT_EQ(words(3, 128, 4),
            "2 replicas x (3 micro-batches of 11 + 1 of 10) + 1 replica x (2 micro-batches of 11 + 2 of 10) = 128");
  EXPECT_EQ(words(2, 130, 5), "2 replicas x micro-batch 13 x accumulation 5 = 130");
}

TEST(StepStory, ShowsThePriceOfReproducibility) {
  // On 3 ranks two bring two partial sums of two thirds of the gradient each; a ring sends two thirds.
  const std::string unaligned = step_tables(tell_step(recipe_of(8, 64), 3, 0));
  for (const char* words :
       {"1.33 gradients", "2.00 times what it would by a ring reduce_scatter", "This split is not aligned",
        "Aligned splits of 8 replicas: 1, 2, 4, 8 ranks with equal work, 5 to 7 with unequal work",
        "at most 2 partial sums"}) {
    EXPECT_THAT(unaligned, HasSubstr(words));
  }
  const std::string aligned = step_tables(tell_step(recipe_of(8, 64), 4, 1 << 20));
  EXPECT_THAT(aligned, HasSubstr("1.00 times what it would by a ring reduce_scatter"));
  EXPECT_THAT(aligned, HasSubstr("0.75 gradients, 3.0 MiB"));
  EXPECT_THAT(aligned, HasSubstr("This split is aligned"));
}

TEST(StepStory, SaysWhatFailuresChange) {
  Recipe recipe = recipe_of(4, 64);
  EXPECT_THAT(step_tables(tell_step(recipe, 2, 0)), HasSubstr("goes on from the beginning, since no checkpoint"));
  recipe.checkpoint.every_steps = 50;
  recipe.comm.timeout_s = 7;
  const std::string text = step_tables(tell_step(recipe, 2, 0));
  for (const char* words : {"on all ranks within 7 s", "at most 50 steps back, on any number of ranks from 1 to 4",
                            "a slow rank holds everybody up", "wait_slowest"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  EXPECT_THAT(step_tables(tell_step(recipe, 1, 0)), Not(HasSubstr("slow rank")));
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
  EXPECT_TRUE(json["exchanges"][0]["sent_bytes"].is_null());
  EXPECT_EQ(json["exchanges"][0]["most_gradients"], 0.5);
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
  const StepStory story = tell_step(recipe, 4, 0);
  EXPECT_FALSE(story.prices.front().ordered);
  EXPECT_TRUE(to_json(story)["aligned_splits"].is_null());
  EXPECT_THAT(step_tables(story), HasSubstr("on 4 ranks, since without replicas"));
}

TEST(StepStory, NamesTheAlgorithmOfTheExchange) {
  Recipe recipe = recipe_of(4, 64);
  const auto told = [&] { return step_tables(tell_step(recipe, 4, 1000)); };
  recipe.comm.algorithm = "ordered_direct";
  EXPECT_THAT(told(), HasSubstr("(comm.algorithm ordered_direct is for an all_reduce)"));
  recipe.parallel.divide_update = false;
  EXPECT_THAT(told(), HasSubstr("each by all_reduce ordered_direct as soon as"));
  recipe.comm.algorithm = "auto";
  EXPECT_THAT(told(), HasSubstr("each by all_reduce ordered_exchange as soon as"));
  recipe.comm.transport = "gloo";
  EXPECT_THAT(told(), HasSubstr("ordered_exchange, unless the calibration knows a quicker one, as soon as"));
  recipe.replicas.mode = "off";
  recipe.comm.algorithm = "ring";
  EXPECT_THAT(told(),
              HasSubstr("each by all_reduce ring as soon as it is complete, while backward goes on: a sum over all "
                        "ranks, in an order that depends on their number"));
}

TEST(StepStory, OverTcpSaysThatHostsAreNotKnown) {
  Recipe recipe = recipe_of(4, 64);
  recipe.comm.transport = "gloo";
  EXPECT_THAT(step_tables(tell_step(recipe, 4, 0)), HasSubstr("told as if on one host, since comm.hosts names none"));
  recipe.comm.hosts = {"a", "a", "a", "a"};
  EXPECT_THAT(step_tables(tell_step(recipe, 4, 0)), Not(HasSubstr("as if on one host")));
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
