// The canonical tree: one order of summation for every number of ranks.
#include "convoy/spec/replica_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "convoy/base/error.h"

namespace convoy::spec {
namespace {

// The definition, word for word: a node of height h and index i covers leaves [i 2^h, (i+1) 2^h), cut at the number of
// leaves; an empty right child leaves the left child's value.
std::string node_text(int leaves, int height, int index) {
  const int begin = index << height;
  if (begin >= leaves) return "";
  if (height == 0) return std::to_string(begin);
  const std::string left = node_text(leaves, height - 1, 2 * index);
  const std::string right = node_text(leaves, height - 1, 2 * index + 1);
  return right.empty() ? left : "(" + left + "+" + right + ")";
}

int height_of(int leaves) { return std::bit_width(static_cast<unsigned>(leaves) - 1u); }

std::string whole_tree(int leaves) { return node_text(leaves, height_of(leaves), 0); }

// Whether a range is exactly the (cut) range of some node.
bool is_node(int leaves, ReplicaRange range) {
  for (int height = 0; height <= height_of(leaves); ++height) {
    if (range.begin % (1 << height) != 0) continue;
    if (std::min(range.begin + (1 << height), leaves) == range.end) return true;
  }
  return false;
}

std::string range_text(int leaves, ReplicaRange range) {
  for (int height = 0; height <= height_of(leaves); ++height) {
    if (range.begin % (1 << height) != 0) continue;
    if (std::min(range.begin + (1 << height), leaves) == range.end)
      return node_text(leaves, height, range.begin >> height);
  }
  return "not a node";
}

// Runs a program on a stack of expressions.
std::string evaluate(int leaves, std::span<const ReplicaRange> parts) {
  std::vector<std::string> stack;
  const std::vector<int> program = tree_program(leaves, parts);
  std::size_t deepest = 0;
  for (const int step : program) {
    if (step == kAdd) {
      const std::string top = stack.back();
      stack.pop_back();
      stack.back() = "(" + stack.back() + "+" + top + ")";
    } else {
      stack.push_back(range_text(leaves, parts[static_cast<std::size_t>(step)]));
    }
    deepest = std::max(deepest, stack.size());
  }
  EXPECT_EQ(stack.size(), 1u);
  EXPECT_EQ(stack_depth(program), static_cast<int>(deepest));
  return stack.empty() ? "" : stack.front();
}

std::vector<ReplicaRange> parts_of(int leaves, const std::vector<ReplicaRange>& shares) {
  std::vector<ReplicaRange> parts;
  for (const ReplicaRange share : shares) {
    for (const ReplicaRange part : maximal_subtrees(leaves, share)) parts.push_back(part);
  }
  return parts;
}

TEST(DealReplicas, GivesEarlierRanksOneMore) {
  EXPECT_EQ(deal_replicas(8, 3), (std::vector<ReplicaRange>{{0, 3}, {3, 6}, {6, 8}}));
  EXPECT_EQ(deal_replicas(1, 1), (std::vector<ReplicaRange>{{0, 1}}));
  EXPECT_EQ(deal_replicas(5, 4), (std::vector<ReplicaRange>{{0, 2}, {2, 3}, {3, 4}, {4, 5}}));
}

TEST(DealReplicas, LeavesNoReplicaOutAndNoRankIdle) {
  for (int replicas = 1; replicas <= 40; ++replicas) {
    for (int ranks = 1; ranks <= replicas; ++ranks) {
      int next = 0;
      for (const ReplicaRange share : deal_replicas(replicas, ranks)) {
        EXPECT_EQ(share.begin, next);
        EXPECT_GE(share.size(), replicas / ranks);
        EXPECT_LE(share.size(), (replicas + ranks - 1) / ranks);
        next = share.end;
      }
      EXPECT_EQ(next, replicas);
    }
  }
}

TEST(DealReplicas, RefusesWhatCannotBeDealt) {
  EXPECT_THROW(deal_replicas(0, 1), Error);
  EXPECT_THROW(deal_replicas(4, 0), Error);
  EXPECT_THROW(deal_replicas(4, -1), Error);
  try {
    deal_replicas(2, 3);
    FAIL() << "3 ranks shared 2 replicas";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("3 ranks cannot share 2 replicas"), std::string::npos) << error.what();
  }
}

// The longest time of a rank.
double longest_time(const std::vector<ReplicaRange>& shares, const std::vector<double>& speeds) {
  double longest = 0.0;
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    longest = std::max(longest, shares[rank].size() / speeds[rank]);
  }
  return longest;
}

// The shortest longest time of all ways to deal the replicas out to ranks from `rank` on.
double best_time(int replicas, const std::vector<double>& speeds, std::size_t rank = 0) {
  if (rank + 1 == speeds.size()) return replicas / speeds[rank];
  const int others = static_cast<int>(speeds.size() - rank) - 1;
  double best = std::numeric_limits<double>::infinity();
  for (int size = 1; size <= replicas - others; ++size) {
    best = std::min(best, std::max(size / speeds[rank], best_time(replicas - size, speeds, rank + 1)));
  }
  return best;
}

TEST(DealReplicasBySpeed, GivesAFasterRankMore) {
  EXPECT_EQ(deal_replicas_by_speed(12, std::vector<double>{2, 1}), (std::vector<ReplicaRange>{{0, 8}, {8, 12}}));
  EXPECT_EQ(deal_replicas_by_speed(12, std::vector<double>{1, 2}), (std::vector<ReplicaRange>{{0, 4}, {4, 12}}));
  EXPECT_EQ(deal_replicas_by_speed(12, std::vector<double>{1e6, 1, 1e6}),
            (std::vector<ReplicaRange>{{0, 6}, {6, 7}, {7, 12}}))
      << "every rank carries one, and of equal ranks the earlier one more";
  EXPECT_EQ(deal_replicas_by_speed(3, std::vector<double>{1, 100, 1}), deal_replicas(3, 3));
}

TEST(DealReplicasBySpeed, IsEvenForEqualSpeeds) {
  for (int replicas = 1; replicas <= 20; ++replicas) {
    for (int ranks = 1; ranks <= replicas; ++ranks) {
      const std::vector<double> speeds(static_cast<std::size_t>(ranks), 0.3);
      EXPECT_EQ(deal_replicas_by_speed(replicas, speeds), deal_replicas(replicas, ranks))
          << replicas << " on " << ranks;
    }
  }
}

TEST(DealReplicasBySpeed, TakesNoLongerThanAnyOtherWay) {
  const std::vector<std::vector<double>> cases = {{1, 1.7},        {3, 1, 1},      {0.2, 0.9, 1.3}, {5, 4, 3, 2},
                                                  {1, 10, 1, 0.1}, {2, 2, 1, 3.5}, {1e-9, 7e-9},    {1.01, 1, 0.99, 1}};
  for (const std::vector<double>& speeds : cases) {
    const int ranks = static_cast<int>(speeds.size());
    for (int replicas = ranks; replicas <= 14; ++replicas) {
      const auto shares = deal_replicas_by_speed(replicas, speeds);
      check_owners(shares, replicas, ranks);
      EXPECT_DOUBLE_EQ(longest_time(shares, speeds), best_time(replicas, speeds)) << replicas << " on " << ranks;
    }
  }
}

TEST(DealReplicasBySpeed, RefusesSpeedsThatAreNoneAndNamesTheRank) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double speed : {0.0, -1.0, infinity, -infinity, std::nan("")}) {
    try {
      deal_replicas_by_speed(4, std::vector<double>{1.0, speed});
      FAIL() << "speed " << speed << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find("the speed of rank 1 is "), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(deal_replicas_by_speed(0, std::vector<double>{1.0}), Error);
  EXPECT_THROW(deal_replicas_by_speed(4, std::vector<double>{}), Error);
  EXPECT_THROW(deal_replicas_by_speed(1, std::vector<double>{1.0, 1.0}), Error);
}

TEST(CheckOwners, TakesRangesThatCoverAllReplicasInOrder) {
  EXPECT_NO_THROW(check_owners(std::vector<ReplicaRange>{{0, 1}, {1, 12}}, 12, 2));
  EXPECT_NO_THROW(check_owners(std::vector<ReplicaRange>{{0, 3}}, 3, 1));
  EXPECT_EQ(describe_owners(std::vector<ReplicaRange>{{0, 8}, {8, 12}}), "8, 4");
}

TEST(CheckOwners, NamesTheRankThatDoesNotFit) {
  struct Case {
    std::vector<ReplicaRange> owners;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{{0, 4}}, "dealt out to 1 ranks, and there are 2"},
      {{{1, 2}, {2, 4}}, "rank 0 is dealt replicas [1, 2)"},
      {{{0, 2}, {3, 4}}, "rank 1 is dealt replicas [3, 4)"},
      {{{0, 3}, {2, 4}}, "rank 1 is dealt replicas [2, 4)"},
      {{{0, 4}, {4, 4}}, "rank 1 is dealt replicas [4, 4)"},
      {{{0, 2}, {2, 5}}, "rank 1 is dealt replicas [2, 5)"},
      {{{0, 2}, {2, 3}}, "rank 1 is the last one and ends at replica 3 of 4"},
  };
  for (const Case& one : cases) {
    try {
      check_owners(one.owners, 4, 2);
      FAIL() << one.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find(one.message), std::string::npos) << error.what();
    }
  }
}

TEST(MaximalSubtrees, AreWholeNodesThatCoverTheRange) {
  for (int leaves = 1; leaves <= 33; ++leaves) {
    for (int begin = 0; begin < leaves; ++begin) {
      for (int end = begin + 1; end <= leaves; ++end) {
        const auto found = maximal_subtrees(leaves, {begin, end});
        int next = begin;
        for (const ReplicaRange part : found) {
          EXPECT_EQ(part.begin, next);
          EXPECT_TRUE(is_node(leaves, part)) << leaves << " leaves, [" << part.begin << ", " << part.end << ")";
          next = part.end;
        }
        EXPECT_EQ(next, end);
        EXPECT_LE(static_cast<int>(found.size()), 2 * height_of(leaves) + 1);
      }
    }
  }
}

// Maximal: no two neighbours are the two children of one node.
TEST(MaximalSubtrees, CannotBeJoined) {
  for (int leaves = 1; leaves <= 33; ++leaves) {
    for (int begin = 0; begin < leaves; ++begin) {
      for (int end = begin + 1; end <= leaves; ++end) {
        const auto found = maximal_subtrees(leaves, {begin, end});
        for (std::size_t i = 1; i < found.size(); ++i) {
          EXPECT_FALSE(is_node(leaves, {found[i - 1].begin, found[i].end})) << leaves << ": " << begin << ", " << end;
        }
      }
    }
  }
}

TEST(MaximalSubtrees, OfNothingAreNone) {
  EXPECT_TRUE(maximal_subtrees(8, {3, 3}).empty());
  EXPECT_TRUE(maximal_subtrees(0, {0, 0}).empty());
}

TEST(TreeProgram, SumsTheSameTreeForEveryNumberOfRanks) {
  for (int replicas = 1; replicas <= 20; ++replicas) {
    for (int ranks = 1; ranks <= replicas; ++ranks) {
      const auto parts = parts_of(replicas, deal_replicas(replicas, ranks));
      EXPECT_EQ(evaluate(replicas, parts), whole_tree(replicas)) << replicas << " replicas on " << ranks << " ranks";
    }
  }
}

RC_GTEST_PROP(TreeProgram, SumsTheSameTreeForEverySplit, ()) {
  const int replicas = *rc::gen::inRange(1, 200);
  std::vector<ReplicaRange> shares;
  for (int begin = 0; begin < replicas;) {
    const int end = *rc::gen::inRange(begin + 1, replicas + 1);
    shares.push_back({begin, end});
    begin = end;
  }
  RC_ASSERT(evaluate(replicas, parts_of(replicas, shares)) == whole_tree(replicas));
}

TEST(TreeProgram, RefusesPartsThatDoNotCoverTheTreeByNodes) {
  const auto refused = [](int leaves, std::vector<ReplicaRange> parts) {
    try {
      tree_program(leaves, parts);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidArgument;
    }
    return false;
  };
  EXPECT_TRUE(refused(4, {}));
  EXPECT_TRUE(refused(0, {}));
  EXPECT_TRUE(refused(4, {{0, 2}})) << "a part is missing at the end";
  EXPECT_TRUE(refused(4, {{2, 4}})) << "a part is missing at the beginning";
  EXPECT_TRUE(refused(4, {{0, 3}, {3, 4}})) << "three leaves are no node";
  EXPECT_TRUE(refused(4, {{0, 2}, {2, 4}, {2, 4}})) << "a part comes twice";
  EXPECT_TRUE(refused(4, {{2, 4}, {0, 2}})) << "parts in the wrong order";
  EXPECT_TRUE(refused(2, {{0, 0}, {0, 2}})) << "an empty part";
  EXPECT_TRUE(refused(1, {{0, 2}})) << "a part beyond the tree";
  EXPECT_FALSE(refused(3, {{0, 2}, {2, 3}}));
}

// 1e16 swallows a 1 that is added to it alone, so this sum tells the tree from a running sum.
TEST(TreeSum, AddsAlongTheTreeAndNotInARow) {
  const std::vector<double> leaves = {1e16, 1.0, 1.0, 1.0, -1e16};
  EXPECT_EQ(tree_sum(leaves), ((1e16 + 1.0) + (1.0 + 1.0)) + -1e16);
  EXPECT_NE(tree_sum(leaves), (((1e16 + 1.0) + 1.0) + 1.0) + -1e16);
  EXPECT_EQ(tree_sum({}), 0.0);
  EXPECT_EQ(tree_sum(std::vector<double>{-0.5}), -0.5);
}

RC_GTEST_PROP(TreeSum, EqualsTheSumOfPartialsOfAnyRanks, ()) {
  const int replicas = *rc::gen::inRange(1, 40);
  const int ranks = *rc::gen::inRange(1, replicas + 1);
  std::vector<double> leaves;
  for (int i = 0; i < replicas; ++i) leaves.push_back(1.0 / *rc::gen::inRange(1, 1000000));
  const auto parts = parts_of(replicas, deal_replicas(replicas, ranks));
  std::vector<double> stack;
  for (const int step : tree_program(replicas, parts)) {
    if (step == kAdd) {
      const double top = stack.back();
      stack.pop_back();
      stack.back() += top;
      continue;
    }
    const ReplicaRange part = parts[static_cast<std::size_t>(step)];
    stack.push_back(tree_sum(std::span<const double>(leaves).subspan(static_cast<std::size_t>(part.begin),
                                                                     static_cast<std::size_t>(part.size()))));
  }
  RC_ASSERT(stack.size() == 1u);
  RC_ASSERT(stack.front() == tree_sum(leaves));
}

}  // namespace
}  // namespace convoy::spec
