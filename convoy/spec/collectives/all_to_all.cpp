// Builds all-to-all schedules.
#include "convoy/spec/collectives/all_to_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convoy/base/error.h"
#include "convoy/spec/schedule/builder.h"

namespace convoy::spec {
namespace {

// Where the blocks lie in inputs and outputs.
struct Places {
  BlockCounts counts;
  BlockCounts in_input;   // [source][destination]
  BlockCounts in_output;  // [destination][source]

  explicit Places(const BlockCounts& sizes) : counts(sizes), in_input(sizes), in_output(sizes) {
    const std::size_t ranks = counts.size();
    for (std::size_t s = 0; s < ranks; ++s) {
      if (counts[s].size() != ranks || *std::min_element(counts[s].begin(), counts[s].end()) < 0) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the counts of rank {} are not {} numbers from 0 on", s, ranks));
      }
      std::exclusive_scan(counts[s].begin(), counts[s].end(), in_input[s].begin(), std::int64_t{0});
    }
    for (std::size_t d = 0; d < ranks; ++d) {
      std::int64_t begin = 0;
      for (std::size_t s = 0; s < ranks; ++s) {
        in_output[d][s] = begin;
        begin += counts[s][d];
      }
    }
  }

  int ranks() const { return static_cast<int>(counts.size()); }
  Chunk input(int source, int destination) const {
    const auto s = static_cast<std::size_t>(source);
    const auto d = static_cast<std::size_t>(destination);
    return {BufferKind::kInput, 0, in_input[s][d], counts[s][d]};
  }
  Chunk output(int destination, int source) const {
    const auto s = static_cast<std::size_t>(source);
    const auto d = static_cast<std::size_t>(destination);
    return {BufferKind::kOutput, 0, in_output[d][s], counts[s][d]};
  }
};

ScheduleBuilder start(const char* algorithm, const Places& places) {
  std::vector<std::int64_t> inputs;
  for (const auto& row : places.counts) inputs.push_back(std::accumulate(row.begin(), row.end(), std::int64_t{0}));
  ScheduleBuilder builder("all_to_all", algorithm, places.ranks(),
                          std::accumulate(inputs.begin(), inputs.end(), std::int64_t{0}));
  Schedule& sizes = builder.sizes();
  sizes.input_elements = inputs;
  for (int rank = 0; rank < places.ranks(); ++rank) {
    const Chunk last = places.output(rank, places.ranks() - 1);
    sizes.output_elements[static_cast<std::size_t>(rank)] = last.offset + last.count;
    builder.copy(0, rank, places.output(rank, rank), places.input(rank, rank));
  }
  sizes.counts = places.counts;
  return builder;
}

Schedule exchange(const char* algorithm, const BlockCounts& counts, bool at_once) {
  const Places places(counts);
  ScheduleBuilder builder = start(algorithm, places);
  const int ranks = places.ranks();
  for (int step = 1; step < ranks; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      const int to = wrap(rank + step, ranks);
      builder.transfer(at_once ? 0 : step - 1, rank, places.input(rank, to), to, places.output(to, rank));
    }
  }
  return builder.finish();
}

}  // namespace

BlockCounts equal_blocks(int ranks, std::int64_t block) {
  const auto count = static_cast<std::size_t>(std::max(0, ranks));
  return BlockCounts(count, std::vector<std::int64_t>(count, block));
}

Schedule direct_all_to_all(const BlockCounts& counts) { return exchange("direct", counts, true); }

Schedule pairwise_all_to_all(const BlockCounts& counts) { return exchange("pairwise", counts, false); }

Schedule bruck_all_to_all(int ranks, std::int64_t block) {
  const Places places(equal_blocks(ranks, block));
  ScheduleBuilder builder = start("bruck", places);
  for (int rank = 0; rank < ranks; ++rank) {
    // The block for distance j, that is for rank + j, lies in the input until it first travels; from then on a rank has
    // the block for distance j that its holder before passed on.
    std::vector<Chunk> held;
    for (int j = 0; j < ranks; ++j) held.push_back(places.input(rank, wrap(rank + j, ranks)));
    std::int64_t work = 0;
    for (int k = 0; (1 << k) < ranks; ++k) {
      std::vector<int> travelling;
      for (int j = 1; j < ranks; ++j) {
        if ((j >> k & 1) != 0) travelling.push_back(j);
      }
      const std::int64_t size = static_cast<std::int64_t>(travelling.size()) * block;
      Chunk packed{BufferKind::kWork, 0, work, size};
      Chunk taken{BufferKind::kWork, 0, work + size, size};
      work += 2 * size;
      builder.need_work(rank, work);
      std::int64_t at = 0;
      for (const int j : travelling) {
        Chunk& slot = held[static_cast<std::size_t>(j)];
        builder.copy(k, rank, {BufferKind::kWork, 0, packed.offset + at, block}, slot);
        slot = {BufferKind::kWork, 0, taken.offset + at, block};
        // A block that has travelled its last digit comes from rank - j.
        if (j >> (k + 1) == 0) builder.copy(k + 1, rank, places.output(rank, wrap(rank - j, ranks)), slot);
        at += block;
      }
      const int to = wrap(rank + (1 << k), ranks);
      // All ranks lay their packing out alike, so the places at the receiver are those here.
      builder.transfer(k + 1, rank, packed, to, taken);
    }
  }
  return builder.finish();
}

}  // namespace convoy::spec
