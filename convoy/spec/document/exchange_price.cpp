#include "convoy/spec/document/exchange_price.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "convoy/spec/collectives/registry.h"

namespace convoy::spec {
namespace {

// Of a shape only what sums over ranks look at: with_defaults would fill in a number for each pair of ranks.
CollectiveShape shape_of(const OrderedLayout& layout, const HostOfRank& hosts, std::int64_t elements) {
  CollectiveShape shape;
  shape.ranks = static_cast<int>(layout.owners.size());
  shape.elements = elements;
  shape.layout = layout;
  shape.hosts = hosts;
  return shape;
}

}  // namespace

double ExchangePrice::most_gradients() const {
  const std::int64_t most = *std::max_element(sent_elements.begin(), sent_elements.end());
  return elements == 0 ? 0.0 : static_cast<double>(most) / static_cast<double>(elements);
}

double ExchangePrice::all_gradients() const {
  const std::int64_t all = std::accumulate(sent_elements.begin(), sent_elements.end(), std::int64_t{0});
  return elements == 0 ? 0.0 : static_cast<double>(all) / static_cast<double>(elements);
}

ExchangePrice price_exchange(const std::string& collective, const std::string& algorithm, const OrderedLayout& layout,
                             const HostOfRank& hosts, std::span<const std::int64_t> bucket_elements) {
  const Algorithm& row = find_algorithm(collective, algorithm);
  ExchangePrice price;
  price.collective = collective;
  price.algorithm = row.name;
  price.ordered = row.ordered;
  price.sent_elements.assign(layout.owners.size(), 0);
  for (const std::int64_t elements : bucket_elements) {
    price.elements += elements;
    const std::vector<std::int64_t> sent = row.sent(shape_of(layout, hosts, elements));
    for (std::size_t rank = 0; rank < sent.size(); ++rank) price.sent_elements[rank] += sent[rank];
  }
  return price;
}

bool fits_exchange(const std::string& collective, const std::string& algorithm, const OrderedLayout& layout,
                   const HostOfRank& hosts) {
  const Algorithm& row = find_algorithm(collective, algorithm);
  return !row.fits || row.fits(shape_of(layout, hosts, 1));
}

AlignedSplits aligned_splits(int replicas) {
  AlignedSplits splits;
  splits.looked_at = std::min(replicas, kMostAdvisedRanks);
  for (int ranks = 1; ranks <= splits.looked_at; ++ranks) {
    const std::vector<ReplicaRange> owners = deal_replicas(replicas, ranks);
    const bool aligned = std::all_of(owners.begin(), owners.end(), [replicas](ReplicaRange range) {
      return maximal_subtrees(replicas, range).size() == 1;
    });
    if (aligned) (replicas % ranks == 0 ? splits.even : splits.uneven).push_back(ranks);
  }
  return splits;
}

int most_kept_sums(int replicas, ReplicaRange range) {
  std::size_t most = 0;
  for (int end = range.begin + 1; end <= range.end; ++end) {
    most = std::max(most, maximal_subtrees(replicas, {range.begin, end}).size());
  }
  return static_cast<int>(most);
}

std::string number_words(std::span<const int> numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    parts.push_back(end - i == 1 ? fmt::to_string(numbers[i]) : fmt::format("{} to {}", numbers[i], numbers[end - 1]));
    i = end;
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace convoy::spec
