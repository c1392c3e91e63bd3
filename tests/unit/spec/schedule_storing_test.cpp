// Which results may be stored straight into a peer's output, and which may not.
#include <gtest/gtest.h>

#include <algorithm>

#include "convoy/spec/collectives/all_reduce.h"
#include "convoy/spec/collectives/ordered.h"
#include "convoy/spec/schedule/storing.h"

namespace convoy::spec {
namespace {

constexpr std::int64_t kElements = 6 * kBlockElements;

Operation* find(Schedule& schedule, int rank, OpKind kind, BufferKind target) {
  for (Round& round : schedule.ranks[static_cast<std::size_t>(rank)]) {
    for (Operation& operation : round) {
      if (operation.kind == kind && operation.target.kind == target) return &operation;
    }
  }
  return nullptr;
}

std::size_t count(const DirectStores& stores) {
  std::size_t all = 0;
  for (const auto& of_rank : stores) all += of_rank.size();
  return all;
}

TEST(DirectStores, OfAnOrderedExchangeAreAllResults) {
  for (const int ranks : {1, 2, 3, 5}) {
    const auto each = static_cast<std::size_t>(ranks * (ranks - 1));
    EXPECT_EQ(count(find_direct_stores(ordered_all_reduce(one_leaf_each(ranks), 6 * ranks * kBlockElements))), each);
    const std::int64_t segment = 2 * ranks * kBlockElements;
    EXPECT_EQ(count(find_direct_stores(ordered_all_reduce(one_leaf_each(ranks), 3 * segment, segment))), 3 * each);
  }
}

TEST(DirectStores, NameTheReductionThePeerAndTheSend) {
  const Schedule schedule = ordered_all_reduce(one_leaf_each(2), kElements);
  const DirectStores stores = find_direct_stores(schedule);
  ASSERT_EQ(stores[1].size(), 1U);
  const DirectStore& store = stores[1].front();
  EXPECT_EQ(store.peer, 0);
  EXPECT_EQ(store.offset, 3 * kBlockElements);
  EXPECT_EQ(schedule.ranks[1][store.round][store.operation].kind, OpKind::kReduce);
  const Operation& send = schedule.ranks[1][store.send_round][store.send_operation];
  EXPECT_EQ(send.kind, OpKind::kSend);
  EXPECT_EQ(send.peer, 0);
  EXPECT_EQ(send.target, schedule.ranks[1][store.round][store.operation].target);
}

TEST(DirectStores, AreNoneWhereTheReceiverReadsThePlaceBefore) {
  Schedule schedule = ordered_all_reduce(one_leaf_each(2), kElements);
  // Rank 0 also reads its own input where rank 1 would store.
  Operation copy;
  copy.kind = OpKind::kCopy;
  copy.target = {BufferKind::kWork, 0, 0, 1};
  copy.sources = {{BufferKind::kInput, 0, 5 * kBlockElements, 1}};
  schedule.ranks[0][0].push_back(copy);
  const DirectStores stores = find_direct_stores(schedule);
  EXPECT_EQ(stores[1].size(), 0U);
  EXPECT_EQ(stores[0].size(), 1U);
}

TEST(DirectStores, AreNoneWhereTheReceiversInputGoesElsewhereToo) {
  Schedule schedule = ordered_all_reduce(one_leaf_each(3), kElements);
  // Rank 0's part for rank 1 is sent to rank 2 as well.
  Operation* const send = find(schedule, 0, OpKind::kSend, BufferKind::kInput);
  ASSERT_NE(send, nullptr);
  ASSERT_EQ(send->peer, 1);
  Operation extra = *send;
  extra.peer = 2;
  schedule.ranks[0][0].push_back(extra);
  Operation receive;
  receive.kind = OpKind::kReceive;
  receive.peer = 0;
  receive.target = {BufferKind::kScratch, schedule.scratches[2]++, 0, extra.target.count};
  schedule.ranks[2][0].push_back(receive);
  const DirectStores stores = find_direct_stores(schedule);
  const auto into_0 = [](const DirectStore& store) { return store.peer == 0; };
  EXPECT_EQ(std::count_if(stores[1].begin(), stores[1].end(), into_0), 0);
  EXPECT_EQ(std::count_if(stores[2].begin(), stores[2].end(), into_0), 1);
}

TEST(DirectStores, AreNoneWhereTheResultChangesBeforeItIsSent) {
  Schedule schedule = ordered_all_reduce(one_leaf_each(2), kElements);
  Operation copy;
  copy.kind = OpKind::kCopy;
  copy.target = {BufferKind::kOutput, 0, 0, 1};
  copy.sources = {{BufferKind::kInput, 0, 0, 1}};
  schedule.ranks[0][0].push_back(copy);
  EXPECT_EQ(find_direct_stores(schedule)[0].size(), 0U);
}

TEST(DirectStores, AreNoneForPartialSums) {
  Schedule schedule = ordered_all_reduce(one_leaf_each(2), kElements);
  Operation* const reduction = find(schedule, 1, OpKind::kReduce, BufferKind::kOutput);
  ASSERT_NE(reduction, nullptr);
  reduction->final = false;
  EXPECT_EQ(find_direct_stores(schedule)[1].size(), 0U);
}

TEST(DirectStores, OfARingAreOnlyWhatNobodyNeedsUnderWay) {
  // Each rank's last sum goes to its right neighbour, whose own sum of that part has gone on to its right before: to
  // somebody else, where there are more than two ranks.
  EXPECT_EQ(count(find_direct_stores(ring_all_reduce(2, kElements, {}))), 2U);
  EXPECT_EQ(count(find_direct_stores(ring_all_reduce(4, kElements, {}))), 0U);
}

}  // namespace
}  // namespace convoy::spec
