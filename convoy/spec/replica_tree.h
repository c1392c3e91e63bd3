// The canonical tree over replicas: the one order in which contributions are summed, whatever ranks carry them.
//
// Words: *leaf* r is replica r's contribution. A *node* of height h and index i covers leaves [i 2^h, (i+1) 2^h), cut
// at the number of leaves; its value is left child + right child, or its left child's when the right one is empty. A
// rank that carries leaves [begin, end) sums each *maximal subtree* inside them and sends one *partial* for each.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace convoy::spec {

/// A range of replicas [begin, end).
struct ReplicaRange {
  int begin = 0;
  int end = 0;
  /// Returns the number of replicas.
  int size() const { return end - begin; }
  friend bool operator==(const ReplicaRange&, const ReplicaRange&) = default;
};

/// Returns which replicas each rank carries: consecutive, as even as they divide, earlier ranks one more (8 on 3 ranks:
/// 3, 3, 2).
/// Errors:     kInvalidArgument when a number is below 1 or there are more ranks than replicas
std::vector<ReplicaRange> deal_replicas(int replicas, int ranks);

/// The same for ranks of different speeds (replicas in any unit of time): the longest time of a rank is as short as it can
/// be, and every rank carries at least one. Of ranks that would need the same time the earlier one carries more.
/// Errors:     kInvalidArgument like deal_replicas, and for a speed that is not a positive number (names the rank)
std::vector<ReplicaRange> deal_replicas_by_speed(int replicas, std::span<const double> speeds);

/// Checks that owners are what each rank of a run may carry: ranges in order of ranks that cover all replicas, none empty.
/// Errors:     kInvalidArgument naming the first rank that does not fit
void check_owners(std::span<const ReplicaRange> owners, int replicas, int ranks);

/// Returns how many replicas each rank carries, as words: "8, 4".
std::string describe_owners(std::span<const ReplicaRange> owners);

/// Returns the maximal subtrees inside leaves [range.begin, range.end) of a tree over `leaves` leaves, from left to
/// right. Their number is at most 2 log2(leaves) + 1.
std::vector<ReplicaRange> maximal_subtrees(int leaves, ReplicaRange range);

/// One step of the evaluation of a tree on a stack: push an input, or replace the two values on top by their sum.
inline constexpr int kAdd = -1;

/// Returns the program, in postfix order, that sums the given parts along the canonical tree: number k >= 0 pushes part
/// k, kAdd adds the two values on top (the lower one first).
/// Errors:     kInvalidArgument when the parts are not maximal subtrees that cover all leaves from left to right
std::vector<int> tree_program(int leaves, std::span<const ReplicaRange> parts);

/// Returns how many values the program's stack holds at most.
int stack_depth(std::span<const int> program);

/// Sums values along the canonical tree: the order in which losses and gradients of replicas are added.
double tree_sum(std::span<const double> leaves);

}  // namespace convoy::spec
