#include "convoy/spec/replica_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/base/error.h"

namespace convoy::spec {
namespace {

// The largest power of two below n leaves is where a node of n leaves is split.
int left_leaves(int n) {
  int half = 1;
  while (half * 2 < n) half *= 2;
  return half;
}

void collect_subtrees(ReplicaRange node, ReplicaRange wanted, std::vector<ReplicaRange>& found) {
  if (node.end <= wanted.begin || node.begin >= wanted.end) return;
  if (wanted.begin <= node.begin && node.end <= wanted.end) {
    found.push_back(node);
    return;
  }
  const int middle = node.begin + left_leaves(node.size());
  collect_subtrees({node.begin, middle}, wanted, found);
  collect_subtrees({middle, node.end}, wanted, found);
}

void write_program(ReplicaRange node, std::span<const ReplicaRange> parts, std::size_t& next, std::vector<int>& program) {
  if (next >= parts.size() || parts[next].begin != node.begin || parts[next].end > node.end) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the parts do not cover replicas {} to {} by whole subtrees", node.begin, node.end - 1));
  }
  if (parts[next] == node) {
    program.push_back(static_cast<int>(next++));
    return;
  }
  if (node.size() == 1) throw Error(ErrorCode::kInvalidArgument, fmt::format("replica {} has an empty part", node.begin));
  const int middle = node.begin + left_leaves(node.size());
  write_program({node.begin, middle}, parts, next, program);
  write_program({middle, node.end}, parts, next, program);
  program.push_back(kAdd);
}

double sum_node(std::span<const double> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const auto middle = static_cast<std::size_t>(left_leaves(static_cast<int>(leaves.size())));
  return sum_node(leaves.first(middle)) + sum_node(leaves.subspan(middle));
}

void check_numbers(int replicas, int ranks) {
  if (replicas < 1 || ranks < 1) throw Error(ErrorCode::kInvalidArgument, "replicas and ranks start at 1");
  if (ranks > replicas) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} ranks cannot share {} replicas: use at most {} ranks, or raise [replicas] count", ranks,
                            replicas, replicas));
  }
}

std::vector<ReplicaRange> ranges_of(std::span<const int> sizes) {
  std::vector<ReplicaRange> shares;
  int begin = 0;
  for (const int size : sizes) {
    shares.push_back({begin, begin + size});
    begin += size;
  }
  return shares;
}

}  // namespace

std::vector<ReplicaRange> deal_replicas(int replicas, int ranks) {
  check_numbers(replicas, ranks);
  std::vector<int> sizes;
  for (int rank = 0; rank < ranks; ++rank) sizes.push_back(replicas / ranks + (rank < replicas % ranks ? 1 : 0));
  return ranges_of(sizes);
}

std::vector<ReplicaRange> deal_replicas_by_speed(int replicas, std::span<const double> speeds) {
  check_numbers(replicas, static_cast<int>(speeds.size()));
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    if (std::isfinite(speeds[rank]) && speeds[rank] > 0) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the speed of rank {} is {}: a positive number is needed", rank, speeds[rank]));
  }
  // Each further replica goes where it is done first: no other choice ends earlier.
  std::vector<int> sizes(speeds.size(), 1);
  for (int dealt = static_cast<int>(speeds.size()); dealt < replicas; ++dealt) {
    const auto time_with_one_more = [&](std::size_t rank) { return (sizes[rank] + 1) / speeds[rank]; };
    std::size_t first = 0;
    for (std::size_t rank = 1; rank < speeds.size(); ++rank) {
      if (time_with_one_more(rank) < time_with_one_more(first)) first = rank;
    }
    ++sizes[first];
  }
  return ranges_of(sizes);
}

void check_owners(std::span<const ReplicaRange> owners, int replicas, int ranks) {
  if (static_cast<int>(owners.size()) != ranks) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("replicas are dealt out to {} ranks, and there are {}", owners.size(), ranks));
  }
  int next = 0;
  for (std::size_t rank = 0; rank < owners.size(); ++rank) {
    const ReplicaRange& owned = owners[rank];
    if (owned.begin != next || owned.size() < 1 || owned.end > replicas) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("rank {} is dealt replicas [{}, {}): ranges must follow each other and hold at least one of "
                      "the {} replicas",
                      rank, owned.begin, owned.end, replicas));
    }
    next = owned.end;
  }
  if (next == replicas) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("rank {} is the last one and ends at replica {} of {}", owners.size() - 1, next, replicas));
}

std::string describe_owners(std::span<const ReplicaRange> owners) {
  std::vector<int> sizes;
  for (const ReplicaRange& owned : owners) sizes.push_back(owned.size());
  return fmt::format("{}", fmt::join(sizes, ", "));
}

std::vector<ReplicaRange> maximal_subtrees(int leaves, ReplicaRange range) {
  std::vector<ReplicaRange> found;
  if (leaves > 0 && range.size() > 0) collect_subtrees({0, leaves}, range, found);
  return found;
}

std::vector<int> tree_program(int leaves, std::span<const ReplicaRange> parts) {
  std::vector<int> program;
  std::size_t next = 0;
  if (leaves < 1) throw Error(ErrorCode::kInvalidArgument, "a tree has at least one leaf");
  write_program({0, leaves}, parts, next, program);
  if (next != parts.size()) throw Error(ErrorCode::kInvalidArgument, "more parts than the tree has leaves");
  return program;
}

int stack_depth(std::span<const int> program) {
  int depth = 0;
  int deepest = 0;
  for (const int step : program) {
    depth += step == kAdd ? -1 : 1;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

double tree_sum(std::span<const double> leaves) { return leaves.empty() ? 0.0 : sum_node(leaves); }

}  // namespace convoy::spec
