#include "convoy/comm/native_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "convoy/base/error.h"

namespace convoy::comm {
namespace {

using Counts = std::vector<std::int64_t>;

std::int64_t total(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

// Elements at the root alone.
Counts at_root(const spec::CollectiveShape& shape, std::int64_t elements) {
  Counts counts(static_cast<std::size_t>(shape.ranks), 0);
  counts[static_cast<std::size_t>(shape.root)] = elements;
  return counts;
}

void size_blocks(spec::Schedule& schedule, const spec::CollectiveShape& shape) {
  schedule.counts = shape.counts;
  for (std::size_t rank = 0; rank < shape.counts.size(); ++rank) {
    schedule.input_elements.push_back(total(shape.counts[rank]));
    std::int64_t comes = 0;
    for (const Counts& row : shape.counts) comes += row[rank];
    schedule.output_elements.push_back(comes);
  }
  schedule.elements = total(schedule.input_elements);
}

void size_parts(spec::Schedule& schedule, const spec::CollectiveShape& shape) {
  const Counts whole(static_cast<std::size_t>(shape.ranks), schedule.elements);
  if (schedule.collective == "reduce_scatter") {
    spec::CollectiveShape even;
    even.ranks = shape.ranks;
    even.elements = shape.elements;
    schedule.input_elements = whole;
    schedule.output_elements = spec::with_defaults(even).parts;
    return;
  }
  schedule.elements = total(shape.parts);
  const bool scatters = schedule.collective == "scatter";
  Counts& parts = scatters ? schedule.output_elements : schedule.input_elements;
  Counts& put_together = scatters ? schedule.input_elements : schedule.output_elements;
  parts = shape.parts;
  put_together = at_root(shape, schedule.elements);
  if (schedule.collective == "all_gather") put_together.assign(parts.size(), schedule.elements);
}

void size_buffers(spec::Schedule& schedule, const spec::CollectiveShape& shape) {
  const Counts whole(static_cast<std::size_t>(shape.ranks), schedule.elements);
  const std::string& name = schedule.collective;
  if (name == "all_reduce") {
    schedule.input_elements = schedule.output_elements = whole;
  } else if (name == "reduce") {
    schedule.input_elements = whole;
    schedule.output_elements = at_root(shape, schedule.elements);
  } else if (name == "broadcast") {
    schedule.input_elements = at_root(shape, schedule.elements);
    schedule.output_elements = whole;
  } else if (name == "all_to_all") {
    size_blocks(schedule, shape);
  } else if (name == "barrier") {
    schedule.elements = 0;
    schedule.input_elements = schedule.output_elements = at_root(shape, 0);
  } else {
    size_parts(schedule, shape);
  }
}

bool has_root(const std::string& collective) {
  return collective == "broadcast" || collective == "reduce" || collective == "gather" || collective == "scatter";
}

bool root_alone_brings(const std::string& collective) { return collective == "broadcast" || collective == "scatter"; }

}  // namespace

spec::Schedule native_schedule(const std::string& collective, const spec::CollectiveShape& shape) {
  const std::vector<std::string> known = spec::collectives();
  if (std::find(known.begin(), known.end(), collective) == known.end()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("no collective '{}'", collective));
  }
  const spec::CollectiveShape full = spec::with_defaults(shape);
  const auto ranks = static_cast<std::size_t>(full.ranks);
  spec::Schedule schedule;
  schedule.algorithm = kNative;
  schedule.collective = collective;
  schedule.elements = full.elements;
  if (has_root(collective)) schedule.root = full.root;
  const bool reduces = collective.find("reduce") != std::string::npos;
  schedule.contributions = reduces ? full.ranks : 1;
  size_buffers(schedule, full);
  schedule.inputs.assign(ranks, root_alone_brings(collective) || collective == "barrier" ? 0 : 1);
  if (root_alone_brings(collective)) schedule.inputs[static_cast<std::size_t>(full.root)] = 1;
  schedule.scratches.assign(ranks, 0);
  schedule.ranks.resize(ranks);
  if (ranks > 1 || schedule.output_elements.front() == 0) return schedule;
  spec::Operation copy;
  copy.kind = spec::OpKind::kCopy;
  copy.target = {spec::BufferKind::kOutput, 0, 0, schedule.output_elements.front()};
  copy.sources = {{spec::BufferKind::kInput, 0, 0, schedule.output_elements.front()}};
  copy.final = true;
  schedule.ranks.front().push_back({copy});
  return schedule;
}

}  // namespace convoy::comm
