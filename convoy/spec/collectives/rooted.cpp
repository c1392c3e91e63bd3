// Builds the schedules of collectives with a root.
#include "convoy/spec/collectives/rooted.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/spec/phases/phases.h"

namespace convoy::spec {
namespace {

void check_root(int ranks, int root) {
  if (root >= 0 && root < ranks) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("rank {} cannot be the root of {} ranks", root, ranks));
}

// The ranks by their number from the root.
std::vector<int> from_root(int root, std::vector<int> order) {
  std::rotate(order.begin(), std::find(order.begin(), order.end(), root), order.end());
  return order;
}

// Takes a buffer away from every rank but the root.
void only_at_root(std::vector<std::int64_t>& elements, int root) {
  for (std::size_t rank = 0; rank < elements.size(); ++rank) {
    if (static_cast<int>(rank) != root) elements[rank] = 0;
  }
}

ScheduleBuilder start_broadcast(const char* algorithm, int ranks, int root, std::int64_t elements) {
  ScheduleBuilder builder("broadcast", algorithm, ranks, elements);
  check_root(ranks, root);
  Schedule& sizes = builder.sizes();
  sizes.root = root;
  only_at_root(sizes.input_elements, root);
  std::fill(sizes.inputs.begin(), sizes.inputs.end(), 0);
  sizes.inputs[static_cast<std::size_t>(root)] = 1;
  return builder;
}

ScheduleBuilder start_reduce(const char* algorithm, int ranks, int root, std::int64_t elements) {
  ScheduleBuilder builder("reduce", algorithm, ranks, elements);
  check_root(ranks, root);
  builder.sizes().root = root;
  builder.sizes().contributions = ranks;
  only_at_root(builder.sizes().output_elements, root);
  return builder;
}

// A view of one buffer at the root and of another elsewhere.
View view_at_root(int root, const View& there, const View& elsewhere) {
  return [root, there, elsewhere](int rank, ElementRange range) {
    return rank == root ? there(rank, range) : elsewhere(rank, range);
  };
}

// A gather or scatter. The vector is all parts by number; the buffer of the whole at the root holds them by rank, so
// that the vector's element `seam`, the first of rank 0, is the buffer's first.
struct Parts {
  Team team;
  std::int64_t elements = 0;
  std::int64_t seam = 0;
  std::vector<std::int64_t> begins;  // of each rank's part in the vector
  int root = 0;

  Parts(int root_rank, const std::vector<std::int64_t>& parts) : root(root_rank) {
    const int ranks = static_cast<int>(parts.size());
    check_root(ranks, root);
    team.ranks = from_root(root, ranks_in_order(ranks, {}));
    begins.resize(parts.size());
    for (const int rank : team.ranks) {
      const std::int64_t part = parts[static_cast<std::size_t>(rank)];
      if (part < 0) throw Error(ErrorCode::kInvalidArgument, "a part has a negative number of elements");
      if (rank == 0) seam = elements;
      begins[static_cast<std::size_t>(rank)] = elements;
      team.parts.push_back({elements, elements + part});
      elements += part;
    }
  }

  // The whole at the root in `kind`; what ranks pass on lies in work memory.
  View whole(BufferKind kind) const {
    const auto root_view = [kind, seam = seam, elements = elements](int, ElementRange range) {
      const std::int64_t begin = range.begin < seam ? range.begin + elements - seam : range.begin - seam;
      return Chunk{kind, 0, begin, range.size()};
    };
    return view_at_root(root, root_view, buffer_view(BufferKind::kWork, begins));
  }

  // Work memory for every rank inside the binomial tree.
  void need_work(ScheduleBuilder& builder) const {
    for (int p = 1; p < team.size(); ++p) {
      const int end = subtree_end(p, team.size());
      if (end > p + 1) builder.need_work(team.rank(p), team.span(p, end).size());
    }
  }
};

ScheduleBuilder start_gather(const char* algorithm, const Parts& parts) {
  ScheduleBuilder builder("gather", algorithm, parts.team.size(), parts.elements);
  builder.sizes().root = parts.root;
  only_at_root(builder.sizes().output_elements, parts.root);
  return builder;
}

ScheduleBuilder start_scatter(const char* algorithm, const Parts& parts, const std::vector<std::int64_t>& sizes) {
  ScheduleBuilder builder("scatter", algorithm, parts.team.size(), parts.elements);
  Schedule& schedule = builder.sizes();
  schedule.root = parts.root;
  only_at_root(schedule.input_elements, parts.root);
  std::fill(schedule.inputs.begin(), schedule.inputs.end(), 0);
  schedule.inputs[static_cast<std::size_t>(parts.root)] = 1;
  schedule.output_elements = sizes;
  return builder;
}

}  // namespace

Schedule binomial_broadcast(int ranks, int root, std::int64_t elements) {
  ScheduleBuilder builder = start_broadcast("binomial", ranks, root, elements);
  const Chunk input{BufferKind::kInput, 0, 0, elements};
  const Chunk output{BufferKind::kOutput, 0, 0, elements};
  // Numbers below 2^k have the values before round k and give them to those below 2^(k+1).
  for (int k = 0; (1 << k) < ranks; ++k) {
    for (int number = 0; number < (1 << k) && number + (1 << k) < ranks; ++number) {
      builder.transfer(k, wrap(root + number, ranks), k == 0 ? input : output, wrap(root + number + (1 << k), ranks),
                       output);
    }
  }
  builder.copy(0, root, output, input);
  return builder.finish();
}

Schedule scatter_all_gather_broadcast(int ranks, int root, std::int64_t elements) {
  ScheduleBuilder builder = start_broadcast("scatter_all_gather", ranks, root, elements);
  const View output = buffer_view(BufferKind::kOutput);
  const View whole = view_at_root(root, buffer_view(BufferKind::kInput), output);
  const Team team = even_team(from_root(root, ranks_in_order(ranks, {})), {0, elements});
  int round = ranks == 1 ? 0 : binomial_scatter(builder, 0, team, whole, whole);
  for (int step = 0; step + 1 < ranks; ++step, ++round) {
    for (int p = 0; p < ranks; ++p) {
      const int next = wrap(p + 1, ranks);
      const int travelling = wrap(p - step, ranks);
      if (travelling >= next && travelling < subtree_end(next, ranks)) continue;  // it came with the scatter
      const ElementRange part = team.part(travelling);
      builder.transfer(round, team.rank(p), whole(team.rank(p), part), team.rank(next), output(team.rank(next), part));
    }
  }
  // Last, so that the output may lie over the input.
  builder.copy(std::max(0, round - 1), root, output(root, {0, elements}), whole(root, {0, elements}));
  return builder.finish();
}

Schedule chain_broadcast(int ranks, int root, std::int64_t elements, const CollectiveOptions& options) {
  ScheduleBuilder builder = start_broadcast("chain", ranks, root, elements);
  const std::vector<int> chain = from_root(root, ranks_in_order(ranks, options.order));
  const std::int64_t length = options.chunk_elements > 0 ? options.chunk_elements : std::max<std::int64_t>(1, elements);
  int first = 0;
  for (std::int64_t begin = 0; begin < elements; begin += length, ++first) {
    const std::int64_t count = std::min(length, elements - begin);
    for (std::size_t p = 0; p + 1 < chain.size(); ++p) {
      const BufferKind source = p == 0 ? BufferKind::kInput : BufferKind::kOutput;
      builder.transfer(first + static_cast<int>(p), chain[p], {source, 0, begin, count}, chain[p + 1],
                       {BufferKind::kOutput, 0, begin, count});
    }
  }
  // Last, so that the output may lie over the input.
  builder.copy(std::max(0, first - 1), root, {BufferKind::kOutput, 0, 0, elements},
               {BufferKind::kInput, 0, 0, elements});
  return builder.finish();
}

Schedule binomial_reduce(int ranks, int root, std::int64_t elements) {
  ScheduleBuilder builder = start_reduce("binomial", ranks, root, elements);
  const Chunk input{BufferKind::kInput, 0, 0, elements};
  if (ranks == 1) builder.reduce(0, root, {BufferKind::kOutput, 0, 0, elements}, {input}, {0}, true);
  for (int k = 0; (1 << k) < ranks; ++k) {
    for (int number = 0; number + (1 << k) < ranks; number += 2 << k) {
      const int rank = wrap(root + number, ranks);
      const int child = wrap(rank + (1 << k), ranks);
      const bool child_is_leaf = subtree_end(number + (1 << k), ranks) == number + (1 << k) + 1;
      const Chunk sum{rank == root ? BufferKind::kOutput : BufferKind::kWork, 0, 0, elements};
      const Chunk of_child = child_is_leaf ? input : Chunk{BufferKind::kWork, 0, 0, elements};
      if (rank != root) builder.need_work(rank, elements);
      const Chunk taken = builder.take(k, child, of_child, rank);
      builder.add(k, rank, sum, k == 0 ? input : sum, taken, number == 0 && (2 << k) >= ranks);
    }
  }
  return builder.finish();
}

Schedule halving_gather_reduce(int ranks, int root, std::int64_t elements) {
  ScheduleBuilder builder = start_reduce("halving_gather", ranks, root, elements);
  const ElementRange range{0, elements};
  const View input = buffer_view(BufferKind::kInput);
  const View sums = view_at_root(root, buffer_view(BufferKind::kOutput), buffer_view(BufferKind::kWork));
  Folded folded = fold(even_team(from_root(root, ranks_in_order(ranks, {})), range));
  folded.core = even_team(folded.core.ranks, range);
  for (const int rank : folded.core.ranks) {
    if (rank != root) builder.need_work(rank, elements);
  }
  int round = fold_in(builder, 0, folded, range, input, sums);
  round = halving_reduce_scatter(builder, round, folded.core, view_of_core(folded, sums, input), sums, sums, true);
  if (ranks > 1) binomial_gather(builder, round, folded.core, sums, sums);
  return builder.finish();
}

Schedule direct_gather(int root, const std::vector<std::int64_t>& parts) {
  const Parts all(root, parts);
  ScheduleBuilder builder = start_gather("direct", all);
  builder.sizes().input_elements = parts;
  const View own = buffer_view(BufferKind::kInput, all.begins);
  const View whole = all.whole(BufferKind::kOutput);
  for (int p = 1; p < all.team.size(); ++p) {
    const int rank = all.team.rank(p);
    builder.transfer(0, rank, own(rank, all.team.part(p)), root, whole(root, all.team.part(p)));
  }
  builder.copy(0, root, whole(root, all.team.part(0)), own(root, all.team.part(0)));
  return builder.finish();
}

Schedule binomial_gather(int root, const std::vector<std::int64_t>& parts) {
  const Parts all(root, parts);
  ScheduleBuilder builder = start_gather("binomial", all);
  builder.sizes().input_elements = parts;
  all.need_work(builder);
  binomial_gather(builder, 0, all.team, buffer_view(BufferKind::kInput, all.begins), all.whole(BufferKind::kOutput),
                  all.seam);
  return builder.finish();
}

Schedule direct_scatter(int root, const std::vector<std::int64_t>& parts) {
  const Parts all(root, parts);
  ScheduleBuilder builder = start_scatter("direct", all, parts);
  const View results = buffer_view(BufferKind::kOutput, all.begins);
  const View whole = all.whole(BufferKind::kInput);
  for (int p = 1; p < all.team.size(); ++p) {
    const int rank = all.team.rank(p);
    builder.transfer(0, root, whole(root, all.team.part(p)), rank, results(rank, all.team.part(p)));
  }
  builder.copy(0, root, results(root, all.team.part(0)), whole(root, all.team.part(0)));
  return builder.finish();
}

Schedule binomial_scatter(int root, const std::vector<std::int64_t>& parts) {
  const Parts all(root, parts);
  ScheduleBuilder builder = start_scatter("binomial", all, parts);
  all.need_work(builder);
  binomial_scatter(builder, 0, all.team, all.whole(BufferKind::kInput), buffer_view(BufferKind::kOutput, all.begins),
                   all.seam);
  return builder.finish();
}

}  // namespace convoy::spec
