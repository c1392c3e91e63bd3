// Planted defects in what a collective means: outputs that are complete and final, and yet not what was asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "convoy/base/error.h"
#include "convoy/spec/collectives/registry.h"
#include "convoy/spec/schedule/builder.h"
#include "convoy/spec/schedule/validate.h"

namespace convoy::spec {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const Schedule& schedule) {
  try {
    (void)validate(schedule);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  return "accepted";
}

Schedule make(std::string_view collective, std::string_view algorithm, int ranks, std::int64_t elements) {
  CollectiveShape shape;
  shape.ranks = ranks;
  shape.elements = elements;
  return build(collective, algorithm, shape);
}

Operation& find(Schedule& schedule, int rank, int round, OpKind kind, int nth = 0) {
  for (Operation& operation : schedule.ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(round)]) {
    if (operation.kind == kind && nth-- == 0) return operation;
  }
  throw std::logic_error("no such operation");
}

TEST(ValidateMeaning, FindsGatheredPartsInTheWrongPlaces) {
  Schedule schedule = make("gather", "direct", 3, 9);
  std::swap(find(schedule, 0, 0, OpKind::kReceive, 0).target, find(schedule, 0, 0, OpKind::kReceive, 1).target);
  EXPECT_THAT(refusal(schedule),
              AllOf(HasSubstr("rank 0: output elements [3, 6) hold 2.0"), HasSubstr("gather means")));
}

TEST(ValidateMeaning, FindsScatteredPartsOfOthers) {
  Schedule schedule = make("scatter", "direct", 3, 9);
  std::swap(find(schedule, 0, 0, OpKind::kSend, 0).target, find(schedule, 0, 0, OpKind::kSend, 1).target);
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 1: output elements [0, 3) hold 0.0 from element 6 on")));
}

TEST(ValidateMeaning, FindsBlocksOfAnAllToAllThatAreForOthers) {
  Schedule schedule = make("all_to_all", "pairwise", 4, 8);
  find(schedule, 1, 0, OpKind::kSend).target.offset = 0;  // what is for rank 0, to rank 2
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 2: output elements [2, 4) hold 1.0 from element 0 on"),
                                       HasSubstr("all_to_all means")));
}

TEST(ValidateMeaning, FindsSwappedSlotsOfBruck) {
  Schedule schedule = make("all_to_all", "bruck", 4, 8);
  std::swap(find(schedule, 2, 0, OpKind::kCopy, 1).sources, find(schedule, 2, 0, OpKind::kCopy, 2).sources);
  EXPECT_THAT(refusal(schedule), HasSubstr("which is not what all_to_all means"));
}

TEST(ValidateMeaning, FindsAContributionThatIsNotReduced) {
  Schedule schedule = make("reduce", "binomial", 4, 5);
  Operation& reduce = find(schedule, 2, 0, OpKind::kReduce);
  reduce.program = {1};
  reduce.sources.erase(reduce.sources.begin());  // its own input is forgotten
  reduce.program = {0};
  EXPECT_THAT(refusal(schedule),
              AllOf(HasSubstr("rank 0: output elements [0, 5) hold ((0.0 + 1.0) + 3.0)"), HasSubstr("reduce means")));
}

TEST(ValidateMeaning, FindsABarrierThatSomebodyLeavesEarly) {
  Schedule schedule = make("barrier", "dissemination", 4, 0);
  for (RankRounds& rounds : schedule.ranks) rounds.pop_back();
  EXPECT_THAT(refusal(schedule), HasSubstr("rank 0 leaves without having heard of rank 1"));
}

TEST(ValidateMeaning, FindsABroadcastFromAnotherRoot) {
  Schedule schedule = make("broadcast", "binomial", 4, 3);
  schedule.root = 1;
  EXPECT_THAT(refusal(schedule), HasSubstr("which is not what broadcast means"));
  schedule.root = 4;
  EXPECT_THAT(refusal(schedule), HasSubstr("the root of a broadcast is 4"));
  schedule.root = -1;
  EXPECT_THAT(refusal(schedule), HasSubstr("the root of a broadcast is -1"));
}

TEST(ValidateMeaning, FindsCountsForAnotherNumberOfRanks) {
  Schedule schedule = make("all_to_all", "direct", 3, 6);
  schedule.counts[1].pop_back();
  EXPECT_THAT(refusal(schedule), HasSubstr("counts of an all_to_all are not for 3 ranks"));
}

TEST(ValidateMeaning, TakesResultsInTheOrderThatTheScheduleSays) {
  // Ranks 0 and 2 trade places: rank 0 ends with part 2.
  Schedule schedule = make("reduce_scatter", "pairwise", 3, 3 * 4096);
  EXPECT_EQ(refusal(schedule), "accepted");
  schedule.part_of = {2, 1, 0};
  EXPECT_THAT(refusal(schedule), HasSubstr("which is not what reduce_scatter means"));
  std::swap(schedule.ranks[0], schedule.ranks[2]);
  for (RankRounds& rounds : schedule.ranks) {
    for (Round& round : rounds) {
      for (Operation& operation : round) {
        if (operation.peer >= 0) operation.peer = 2 - operation.peer;
      }
    }
  }
  EXPECT_EQ(refusal(schedule), "accepted");
  schedule.part_of = {2, 1, 1};
  EXPECT_THAT(refusal(schedule), HasSubstr("part_of does not name each of 3 parts once"));
  Schedule gather = make("all_gather", "direct", 2, 4);
  gather.part_of = {1, 0};
  EXPECT_THAT(refusal(gather), HasSubstr("which is not what all_gather means"));
}

TEST(ValidateWork, MayBeWrittenAgainButNotReadBefore) {
  Schedule schedule = make("reduce", "binomial", 4, 5);
  EXPECT_EQ(refusal(schedule), "accepted");
  Schedule unread = schedule;
  find(unread, 2, 0, OpKind::kReduce).target.offset = 1;
  find(unread, 2, 0, OpKind::kReduce).target.count = 4;
  for (Chunk& source : find(unread, 2, 0, OpKind::kReduce).sources) source.count = 4;
  find(unread, 2, 0, OpKind::kReceive).target.count = 4;
  find(unread, 3, 0, OpKind::kSend).target.count = 4;
  EXPECT_THAT(refusal(unread), AllOf(HasSubstr("rank 2, round 1"), HasSubstr("work element 0 was never written")));
  Schedule outside = schedule;
  outside.work_elements[2] = 4;
  EXPECT_THAT(refusal(outside), HasSubstr("work [0, 5) does not lie in 1 buffers of 4 elements"));
  outside.work_elements = {};
  EXPECT_THAT(refusal(outside), HasSubstr("does not lie in"));
  outside.work_elements = {5, 5};
  EXPECT_THAT(refusal(outside), HasSubstr("4 ranks, but work memory for 2"));
}

// Rank 0 lends its work memory to rank 1, who lets it go when it has also heard rank 2; rank 2 waits for rank 0.
Schedule lending(bool apart) {
  ScheduleBuilder builder("exchange", "planted", 3, 4);
  builder.sizes().contributions = 3;
  builder.need_work(0, 8);
  const Chunk input{BufferKind::kInput, 0, 0, 4};
  const Chunk lent{BufferKind::kWork, 0, 0, 4};
  const Chunk written{BufferKind::kWork, 0, apart ? 4 : 0, 4};
  const Chunk output{BufferKind::kOutput, 0, 0, 4};
  builder.reduce(0, 0, lent, {input}, {0}, false);
  const Chunk at_1 = builder.take(1, 0, lent, 1);
  const Chunk at_0 = builder.take(1, 2, input, 0);
  builder.add(1, 0, written, lent, at_0, false);
  builder.transfer(2, 0, written, 2, output);
  builder.reduce(3, 2, output, {output}, {0}, true);
  const Chunk last = builder.take(4, 2, input, 1);
  builder.add(4, 1, output, at_1, last, true);
  builder.reduce(4, 0, output, {input}, {0}, true);
  Schedule schedule = builder.finish();
  // Rank 1 takes both of its messages in one round.
  RankRounds& rounds = schedule.ranks[1];
  rounds[4].insert(rounds[4].begin(), rounds[1].begin(), rounds[1].end());
  rounds[1].clear();
  return schedule;
}

TEST(ValidateLending, FindsAWriteThatWaitsForAReaderThatWaitsForIt) {
  EXPECT_THAT(
      refusal(lending(false)),
      AllOf(HasSubstr("rank 0, round 1"), HasSubstr("reduce work [0, 4)"),
            HasSubstr("rank 1 may still read work [0, 4) where it lies, in its round 4, which waits for this")));
  EXPECT_EQ(refusal(lending(true)), "accepted");
}

TEST(ValidateFacts, ListWhatEachPairExchanges) {
  const ScheduleFacts facts = validate(make("all_reduce", "ring", 3, 9));
  const std::vector<ScheduleFacts::Link> wanted = {{0, 1, 12, 4}, {1, 2, 12, 4}, {2, 0, 12, 4}};
  EXPECT_EQ(facts.links, wanted);
}

}  // namespace
}  // namespace convoy::spec
