// The price of reproducible sums: what ranks send for them, beside what algorithms send whose sums depend on the ranks; and
// which numbers of ranks keep it low.
//
// Words: a split is *aligned* when the replicas of every rank are one subtree of the canonical tree, so that each rank brings
// one partial sum and the ordered exchange sends no more than any other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "convoy/spec/schedule/schedule.h"
#include "convoy/spec/topology.h"

namespace convoy::spec {

/// What ranks send when they exchange one whole gradient in one way.
struct ExchangePrice {
  /// The operation and its algorithm, as the registry names them.
  std::string collective, algorithm;
  /// Whether the bits of the sum are the same on any number of ranks that carry the same replicas.
  bool ordered = false;
  /// Whether the recipe's ranks exchange gradients in this way.
  bool used = false;
  /// What each rank sends, in elements.
  std::vector<std::int64_t> sent_elements;
  /// The elements of the gradient.
  std::int64_t elements = 0;

  /// Returns the number of gradients that the rank sends which sends most, and what all ranks send together.
  double most_gradients() const;
  double all_gradients() const;
};

/// Prices one way to exchange a gradient, bucket by bucket, in closed form.
/// Errors:     kInvalidArgument naming the nearest collective or algorithm
ExchangePrice price_exchange(const std::string& collective, const std::string& algorithm, const OrderedLayout& layout,
                             const HostOfRank& hosts, std::span<const std::int64_t> bucket_elements);

/// Returns whether an algorithm can run on ranks that are laid out so.
/// Errors:     as price_exchange
bool fits_exchange(const std::string& collective, const std::string& algorithm, const OrderedLayout& layout,
                   const HostOfRank& hosts);

/// Numbers of ranks whose splits are aligned.
struct AlignedSplits {
  /// Those that give each rank as many replicas.
  std::vector<int> even;
  /// Those that give some ranks more replicas than others.
  std::vector<int> uneven;
  /// The largest number that was looked at.
  int looked_at = 0;
};

/// The largest number of ranks that aligned_splits looks at.
inline constexpr int kMostAdvisedRanks = 256;

/// Returns which numbers of ranks, up to the number of replicas and to kMostAdvisedRanks, are aligned splits.
AlignedSplits aligned_splits(int replicas);

/// Returns how many partial sums a rank keeps at most from one replica to the next: at most 2 log2(replicas) + 1, and
/// log2(its replicas) + 1 when they are one subtree.
int most_kept_sums(int replicas, ReplicaRange range);

/// Returns numbers in words, three or more neighbours as a range: "1, 2, 4 to 8"; "none" when there are none.
std::string number_words(std::span<const int> numbers);

}  // namespace convoy::spec
