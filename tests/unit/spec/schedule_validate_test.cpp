// Planted defects: validate refuses each, and names the rank and the round.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/spec/collectives/all_gather.h"
#include "convoy/spec/collectives/all_reduce.h"
#include "convoy/spec/collectives/barrier.h"
#include "convoy/spec/collectives/ordered.h"
#include "convoy/spec/collectives/rooted.h"
#include "convoy/spec/schedule/describe.h"
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

// Three ranks with one partial each; every shard has two blocks, the last one less an element.
Schedule three_ranks() { return ordered_all_reduce({3, deal_replicas(3, 3)}, 6 * 4096 - 1); }

Operation& find(Schedule& schedule, int rank, int round, OpKind kind, int nth = 0) {
  for (Operation& operation : schedule.ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(round)]) {
    if (operation.kind == kind && nth-- == 0) return operation;
  }
  throw std::logic_error("no such operation");
}

void drop(Schedule& schedule, int rank, int round, OpKind kind, int nth = 0) {
  Round& list = schedule.ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(round)];
  list.erase(list.begin() + (&find(schedule, rank, round, kind, nth) - list.data()));
}

TEST(ValidateSchedule, AcceptsTheSchedulesThatDefectsArePlantedIn) {
  EXPECT_EQ(validate(three_ranks()).rounds, 2);
  EXPECT_EQ(validate(ring_all_reduce(3, 7)).rounds, 4);
}

TEST(ValidateSchedule, NamesTheReceiverOfADroppedSend) {
  Schedule schedule = three_ranks();
  drop(schedule, 1, 1, OpKind::kSend, 0);  // to rank 2
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 2, round 1"), HasSubstr("rank 1 never sends it")));
}

TEST(ValidateSchedule, ADroppedSendLetsTheReceiverTakeTheNextMessage) {
  Schedule schedule = three_ranks();
  drop(schedule, 0, 0, OpKind::kSend, 0);  // to rank 1: the message of round 1 comes in its place
  EXPECT_THAT(refusal(schedule), HasSubstr("rank 1, round 0"));
}

TEST(ValidateSchedule, NamesTheSenderOfAMessageThatIsNeverReceived) {
  Schedule schedule = dissemination_barrier(3);
  drop(schedule, 2, 1, OpKind::kReceive);
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 0, round 1"), HasSubstr("to rank 2 is never received")));
}

TEST(ValidateSchedule, NamesBothSizesOfAMessage) {
  Schedule schedule = three_ranks();
  --find(schedule, 0, 0, OpKind::kSend, 1).target.count;  // to rank 2
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 2, round 0"), HasSubstr("takes 8191 elements"),
                                       HasSubstr("rank 0 sent 8190 in its round 0")));
}

TEST(ValidateSchedule, FindsSwappedReceivesOfUnequalParts) {
  Schedule schedule = direct_all_gather({3, 4, 5});
  std::swap(find(schedule, 0, 0, OpKind::kReceive, 0).peer, find(schedule, 0, 0, OpKind::kReceive, 1).peer);
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 0, round 0"), HasSubstr("takes 5 elements")));
}

TEST(ValidateSchedule, FindsSwappedReceivesOfEqualParts) {
  Schedule schedule = direct_all_gather({4, 4, 4});
  std::swap(find(schedule, 0, 0, OpKind::kReceive, 0).peer, find(schedule, 0, 0, OpKind::kReceive, 1).peer);
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 0"), HasSubstr("[4, 8) hold 2.0")));
}

TEST(ValidateSchedule, FindsAnOrderOfSumThatOnlyOneShardHas) {
  // Not an error, since any order is a sum: but the facts show it.
  Schedule schedule = three_ranks();
  std::swap(find(schedule, 1, 0, OpKind::kReduce).sources[0], find(schedule, 1, 0, OpKind::kReduce).sources[1]);
  const ScheduleFacts facts = validate(schedule);
  EXPECT_EQ(facts.value(facts.outputs[0]), "((0.0 + 1.0) + 2.0)");
  EXPECT_EQ(facts.value(facts.outputs[1]), "((1.0 + 0.0) + 2.0)");
}

TEST(ValidateSchedule, FindsASummandThatIsUsedTwice) {
  Schedule schedule = three_ranks();
  Operation& reduce = find(schedule, 1, 0, OpKind::kReduce);
  reduce.sources[2] = reduce.sources[0];
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 1, round 0"), HasSubstr("scratch 0 is read a second time")));
}

TEST(ValidateSchedule, FindsAScratchThatIsReceivedTwice) {
  Schedule schedule = three_ranks();
  find(schedule, 1, 0, OpKind::kReceive, 1).target.index = find(schedule, 1, 0, OpKind::kReceive, 0).target.index;
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 1, round 0"), HasSubstr("is written a second time")));
}

TEST(ValidateSchedule, FindsAScratchThatIsNeverReceived) {
  Schedule schedule = three_ranks();
  drop(schedule, 1, 0, OpKind::kReceive, 1);
  drop(schedule, 2, 0, OpKind::kSend, 1);
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 1, round 0"), HasSubstr("was never received")));
}

TEST(ValidateSchedule, FindsAScratchThatIsNeverRead) {
  Schedule schedule = three_ranks();
  Operation& reduce = find(schedule, 1, 0, OpKind::kReduce);
  reduce.sources.pop_back();
  reduce.program = {0, 1, kAdd};
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 1"), HasSubstr("scratch 1 is received and never read")));
}

TEST(ValidateSchedule, FindsASummandThatIsLeftOut) {
  Schedule schedule = ordered_all_reduce({3, {{0, 3}}}, 5);
  schedule.inputs[0] = 2;  // brings one more than the reduction takes
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 0"), HasSubstr("hold 0.0"), HasSubstr("all_reduce")));
}

TEST(ValidateSchedule, NamesEveryRankOfACycle) {
  // Each rank sends only after it has received.
  Schedule schedule = dissemination_barrier(3);
  for (RankRounds& rounds : schedule.ranks) {
    rounds.resize(1);
    rounds.push_back({rounds[0][0]});
    rounds[0].erase(rounds[0].begin());
  }
  EXPECT_THAT(refusal(schedule),
              AllOf(HasSubstr("rank 0, round 0"), HasSubstr("a cycle of waits: rank 0 (round 0) waits for 2 (round 0) "
                                                            "waits for 1 (round 0) waits for 0")));
}

TEST(ValidateSchedule, NamesTheRankAtTheRootOfAStandstill) {
  // Rank 2 waits for rank 0 for ever; rank 1 waits for rank 2 and is not to blame.
  Schedule schedule = binomial_broadcast(4, 0, 8);
  drop(schedule, 0, 1, OpKind::kSend);
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 2, round 1"), HasSubstr("rank 0 never sends it")));
  Schedule ring = ring_all_gather({2, 2, 2});
  drop(ring, 1, 1, OpKind::kSend);
  EXPECT_THAT(refusal(ring), AllOf(HasSubstr("rank 2, round 1"), HasSubstr("rank 1 never sends it")));
}

TEST(ValidateSchedule, FindsAMissingOutput) {
  Schedule schedule = three_ranks();
  drop(schedule, 2, 1, OpKind::kSend, 0);  // to rank 0
  drop(schedule, 0, 1, OpKind::kReceive, 0);
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 0"), HasSubstr("output element 16384 is never written")));
}

TEST(ValidateSchedule, FindsAnOutputThatIsNotFinal) {
  Schedule schedule = three_ranks();
  find(schedule, 1, 0, OpKind::kReduce).final = false;
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 0"), HasSubstr("[8192, 16384) end without a final value")));
}

TEST(ValidateSchedule, FindsASecondFinalValue) {
  Schedule schedule = three_ranks();
  find(schedule, 0, 1, OpKind::kReceive, 0).target.offset = 0;  // its own shard
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 0, round 1"), HasSubstr("output element 0 is final already")));
}

TEST(ValidateSchedule, FindsAFinalValueThatIsSummedOn) {
  Schedule schedule = ring_all_reduce(3, 9);
  for (int rank = 0; rank < 3; ++rank) find(schedule, rank, 0, OpKind::kReduce).final = true;
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("round 1"), HasSubstr("is final already")));
}

TEST(ValidateSchedule, FindsASumOfDifferentElements) {
  Schedule schedule = ring_all_reduce(3, 9);
  find(schedule, 1, 0, OpKind::kSend).target.offset = 0;
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 2, round 0"), HasSubstr("adds element 3")));
}

TEST(ValidateSchedule, FindsAWrongShardOfAReduceScatter) {
  Schedule schedule = ordered_reduce_scatter({2, deal_replicas(2, 2)}, 4 * 4096);
  // Both ranks agree to hand rank 0's elements to rank 1, and the other way round.
  for (int rank = 0; rank < 2; ++rank) {
    find(schedule, rank, 0, OpKind::kSend).target.offset = rank * 8192;
    for (Chunk& source : find(schedule, rank, 0, OpKind::kReduce).sources) {
      if (source.kind == BufferKind::kInput) source.offset = (1 - rank) * 8192;
    }
  }
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 0"), HasSubstr("from element 8192 on")));
}

TEST(ValidateSchedule, ReadsOutputsAsTheyWereBeforeTheRound) {
  Schedule schedule = three_ranks();
  for (RankRounds& rounds : schedule.ranks) {
    rounds[0].insert(rounds[0].end(), rounds[1].begin(), rounds[1].end());
    rounds.pop_back();
  }
  EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 0, round 0"), HasSubstr("output element 0 was never written")));
}

TEST(ValidateSchedule, RefusesWhatNoRankCanDo) {
  const std::vector<std::pair<std::string, std::function<void(Schedule&)>>> defects = {
      {"there is no such peer", [](Schedule& s) { find(s, 1, 0, OpKind::kSend).peer = 1; }},
      {"there is no such peer", [](Schedule& s) { find(s, 1, 0, OpKind::kSend).peer = 3; }},
      {"does not lie in", [](Schedule& s) { find(s, 1, 0, OpKind::kSend).target.offset = 6 * 4096; }},
      {"does not lie in", [](Schedule& s) { find(s, 1, 0, OpKind::kSend).target.index = 1; }},
      {"does not lie in", [](Schedule& s) { s.scratches[1] = 1; }},
      {"a scratch cannot be sent",
       [](Schedule& s) {
         find(s, 1, 0, OpKind::kSend).target = {BufferKind::kScratch, 0, 0, 8192};
       }},
      {"an input is read only", [](Schedule& s) { find(s, 1, 0, OpKind::kReduce).target.kind = BufferKind::kInput; }},
      {"is not as long as the target", [](Schedule& s) { --find(s, 1, 0, OpKind::kReduce).sources[1].count; }},
      {"does not use each source once",
       [](Schedule& s) {
         find(s, 1, 0, OpKind::kReduce).program = {0, 1, kAdd, 1, kAdd};
       }},
      {"adds what it has not",
       [](Schedule& s) {
         find(s, 1, 0, OpKind::kReduce).program = {0, kAdd, 1, 2};
       }},
      {"does not end with one value",
       [](Schedule& s) {
         find(s, 1, 0, OpKind::kReduce).program = {0, 1, kAdd, 2};
       }},
      {"names source 3",
       [](Schedule& s) {
         find(s, 1, 0, OpKind::kReduce).program = {0, 3, kAdd};
       }},
      {"only communication", [](Schedule& s) { find(s, 1, 0, OpKind::kReduce).kind = OpKind::kForward; }},
  };
  for (const auto& defect : defects) {
    Schedule schedule = three_ranks();
    defect.second(schedule);
    EXPECT_THAT(refusal(schedule), AllOf(HasSubstr("rank 1, round 0"), HasSubstr(defect.first)));
  }
  Schedule schedule = three_ranks();
  schedule.inputs.pop_back();
  EXPECT_THAT(refusal(schedule), HasSubstr("3 ranks, but sizes for 2"));
  EXPECT_THAT(refusal(Schedule{}), HasSubstr("at least one rank"));
}

}  // namespace
}  // namespace convoy::spec
