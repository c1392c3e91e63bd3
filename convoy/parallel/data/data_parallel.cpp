#include "convoy/parallel/data/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/observe/memory_meter.h"
#include "convoy/params/random_scope.h"
#include "convoy/spec/blocks.h"

namespace convoy::parallel {
namespace {

spec::OrderedLayout make_layout(const DataParallelOptions& options, int ranks) {
  if (options.owners.empty()) return {options.replicas, spec::deal_replicas(options.replicas, ranks)};
  spec::check_owners(options.owners, options.replicas, ranks);
  return {options.replicas, options.owners};
}

int rank_of_replica(const spec::OrderedLayout& layout, int replica) {
  int rank = 0;
  while (layout.owners[static_cast<std::size_t>(rank)].end <= replica) ++rank;
  return rank;
}

// At most so many parameters are named in an error.
constexpr std::size_t kNamedParameters = 8;

}  // namespace

// What ranks tell each other at the end of a step: one vector of doubles in which every element has one rank that fills
// it (others leave 0) or is a small count, so that a sum is exact whatever its order.
struct DataParallel::Status {
  Status(std::size_t replicas, std::size_t ranks, std::size_t slots, std::size_t blocks_here)
      : values(2 * (replicas + ranks + slots) + blocks_here, 0.0) {
    std::span<double> rest(values);
    const auto take = [&rest](std::size_t size) {
      const std::span<double> part = rest.first(size);
      rest = rest.subspan(size);
      return part;
    };
    losses = take(replicas);
    counts = take(replicas);
    arrivals = take(ranks);
    own_work_ms = take(ranks);
    uses = take(slots);
    omissions = take(slots);
    blocks = take(blocks_here);
  }
  std::vector<double> values;
  std::span<double> losses;
  std::span<double> counts;
  std::span<double> arrivals;
  std::span<double> own_work_ms;
  // For each parameter, how many replicas used it; and how many had samples but did not.
  std::span<double> uses;
  std::span<double> omissions;
  // Divided exchange: the sums of squares of canonical blocks, each filled by the rank that has the whole block.
  std::span<double> blocks;
  // This rank's share of the omissions, as (replica, slot).
  std::vector<std::pair<int, std::size_t>> omitted_here;
};

UnusedParameters to_unused_parameters(const std::string& word) {
  if (word == "allow") return UnusedParameters::kAllow;
  if (word == "refuse") return UnusedParameters::kRefuse;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("unknown word for unused parameters '{}': allow or refuse", word));
}

DataParallel::DataParallel(params::Model& model, comm::Group& group, const DataParallelOptions& options)
    : model_(model),
      group_(group),
      options_(options),
      layout_(make_layout(options, group.size())),
      range_(layout_.owners[static_cast<std::size_t>(group.rank())]),
      space_(model, options.divide_update ? params::FlatMemory::of_host(group) : params::FlatMemory()),
      buffers_(model, layout_, group.rank(), options.buffer_merge),
      hooks_(space_),
      exchange_(space_, group, layout_, options.bucket_bytes, options.overlap),
      passes_(model, group, {options.replicas, range_, options.seed}, buffers_, hooks_, exchange_) {
  equalise();
}

void DataParallel::equalise() {
  // Names and shapes first: exchanging the values of different models would mix them up.
  Hasher hasher;
  for (const params::ParameterSlot& slot : space_.slots()) {
    hasher.update(fmt::format("{} [{}] {};", slot.name, fmt::join(slot.tensor.sizes(), ","),
                              torch::toString(slot.tensor.scalar_type())));
  }
  for (const params::NamedTensor& buffer : model_.buffers()) {
    hasher.update(fmt::format("{} [{}] {};", buffer.name, fmt::join(buffer.tensor.sizes(), ","),
                              torch::toString(buffer.tensor.scalar_type())));
  }
  for (const spec::ReplicaRange& owned : layout_.owners) hasher.update(fmt::format("{};", owned.end));
  // 52 bits of the hash survive as a double.
  const auto layout = static_cast<double>(hash64(hasher.hex()) >> 12);
  const double lowest = comm::all_reduce_number(group_, layout, ReduceOp::kMin);
  const double highest = comm::all_reduce_number(group_, layout, ReduceOp::kMax);
  if (lowest != highest) {
    throw Error(
        ErrorCode::kDesync,
        fmt::format("ranks have different models: rank {} has {} parameters from '{}' to '{}', and the replicas dealt "
                    "out as {}",
                    group_.rank(), space_.slots().size(), space_.slots().front().name, space_.slots().back().name,
                    spec::describe_owners(layout_.owners)));
  }
  space_.reclaim();
  // Of a host that shares its memory one rank writes; the others take what they are sent elsewhere.
  const torch::Tensor values = space_.memory().fills() ? space_.values() : torch::empty_like(space_.values());
  if (!exchange_.divided()) {
    comm::broadcast_async(group_,
                          comm::Buffer({comm::Extent{static_cast<std::byte*>(values.data_ptr()), values.numel()}}), 0,
                          space_.dtype())
        .wait();
  }
  space_.memory().meet();
  for (const params::NamedTensor& buffer : model_.buffers()) {
    if (buffer.tensor.numel() == 0) continue;
    comm::broadcast_async(
        group_, comm::Buffer({comm::Extent{static_cast<std::byte*>(buffer.tensor.data_ptr()), buffer.tensor.numel()}}),
        0, params::to_dtype(buffer.tensor.scalar_type()))
        .wait();
  }
  buffers_.reset_from_module();
  const auto mine = static_cast<double>(hash64(digest()) >> 12);
  if (comm::all_reduce_number(group_, mine, ReduceOp::kMin) != comm::all_reduce_number(group_, mine, ReduceOp::kMax)) {
    throw Error(ErrorCode::kInternal, "ranks start from different parameters although rank 0 has sent its own");
  }
}

void DataParallel::note_uses(std::span<const std::vector<params::Batch>> batches, Status& status) {
  for (int replica = range_.begin; replica < range_.end; ++replica) {
    const auto place = static_cast<std::size_t>(replica - range_.begin);
    const bool has_samples = std::any_of(batches[place].begin(), batches[place].end(),
                                         [](const params::Batch& batch) { return batch.input.defined(); });
    for (std::size_t slot = 0; slot < status.uses.size(); ++slot) {
      if (exchange_.taken(place, slot)) {
        status.uses[slot] += 1;
      } else if (hooks_.active(slot) && has_samples) {
        status.omissions[slot] += 1;
        status.omitted_here.emplace_back(replica, slot);
      }
    }
  }
}

StepResult DataParallel::step(std::int64_t step, std::span<const std::vector<params::Batch>> batches, Duration input) {
  CONVOY_CHECK(static_cast<int>(batches.size()) == range_.size(), "one list of micro-batches for each replica");
  space_.check_in_place();
  StepResult result;
  Status status(static_cast<std::size_t>(options_.replicas), static_cast<std::size_t>(group_.size()),
                space_.slots().size(), exchange_.divided() ? block_count() : 0);
  hooks_.begin_step();
  std::vector<bool> active;
  for (std::size_t slot = 0; slot < space_.slots().size(); ++slot) active.push_back(hooks_.active(slot));
  exchange_.begin_step(active);
  PassFacts passes{status.losses, status.counts, {}};
  passes_.run(step, batches, passes);
  exchange_.finish_launching();
  result.forward = passes.total(false);
  result.backward = passes.total(true);
  result.passes = std::move(passes.times);
  note_uses(batches, status);

  result.wait_begin = system_clock().now();
  exchange_.exchange_sparse();
  const double arrived = to_seconds(result.wait_begin.time_since_epoch() + clock_offset_);
  status.arrivals[static_cast<std::size_t>(group_.rank())] = arrived;
  const double even_share = static_cast<double>(options_.replicas) / (group_.size() * range_.size());
  status.own_work_ms[static_cast<std::size_t>(group_.rank())] =
      even_share * to_ms(input + result.forward + result.backward);
  const comm::Buffer shared{std::span<double>(status.values)};
  if (exchange_.divided()) {
    exchange_.wait_and_square(status.blocks);
    comm::all_reduce_async(group_, shared, shared, DType::kFloat64).wait();
  } else {
    exchange_.follow_with(comm::all_reduce_async(group_, shared, shared, DType::kFloat64));
    exchange_.wait();
  }
  result.wait_end = system_clock().now();

  for (int replica = 0; replica < options_.replicas; ++replica) {
    const double loss = status.losses[static_cast<std::size_t>(replica)];
    if (std::isfinite(loss)) continue;
    throw Error(ErrorCode::kFailed, fmt::format("the loss is not finite ({}) in step {}: replica {} on rank {}", loss,
                                                step, replica, rank_of_replica(layout_, replica)));
  }
  if (options_.unused == UnusedParameters::kRefuse) check_unused(step, status);
  const double count = spec::tree_sum(status.counts);
  if (count <= 0) throw Error(ErrorCode::kFailed, fmt::format("no sample counted in step {}", step));
  result.gradient_norm = exchange_.divided() ? divided_norm(status.blocks, count) : exchange_norm(count);
  if (!std::isfinite(result.gradient_norm)) fail_gradient(step);
  exchange_.learn_order();
  exchange_.release();

  result.count = static_cast<std::int64_t>(count);
  result.loss = spec::tree_sum(status.losses) / count;
  result.gradient.flat = exchange_.sums();
  result.gradient.shares = exchange_.shares();
  result.gradient.scale.count = count;
  for (const double uses : status.uses) result.gradient.used.push_back(uses > 0);
  result.own_work_ms.assign(status.own_work_ms.begin(), status.own_work_ms.end());
  result.exposed = system_clock().now() - result.wait_begin;
  const double slowest = *std::max_element(status.arrivals.begin(), status.arrivals.end());
  result.wait_slowest = std::min(
      result.exposed, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(slowest - arrived)));
  return result;
}

std::size_t DataParallel::block_count() const {
  return static_cast<std::size_t>((space_.elements() + spec::kBlockElements - 1) / spec::kBlockElements);
}

double DataParallel::divided_norm(std::span<double> blocks, double count) {
  exchange_.square_mixed(blocks);
  return std::sqrt(spec::tree_sum(blocks)) / count;
}

double DataParallel::exchange_norm(double count) {
  // Each rank squares its shard of blocks; the sums of all blocks are then added in canonical order on every rank.
  const spec::ElementRange mine = spec::shard_range(space_.elements(), group_.size(), group_.rank());
  std::vector<double> blocks(block_count());
  if (mine.size() > 0) {
    params::block_square_sums(space_, exchange_.sums(), mine, blocks.data() + mine.begin / spec::kBlockElements);
  }
  const comm::Buffer shared{std::span<double>(blocks)};
  comm::all_reduce_async(group_, shared, shared, DType::kFloat64).wait();
  return std::sqrt(spec::tree_sum(blocks)) / count;
}

void DataParallel::check_unused(std::int64_t step, const Status& status) {
  // Every rank sees the same counts, so either all ranks go on or all of them tell each other who left out what.
  std::vector<std::size_t> unused;
  for (std::size_t slot = 0; slot < status.omissions.size() && unused.size() < kNamedParameters; ++slot) {
    if (status.omissions[slot] > 0) unused.push_back(slot);
  }
  if (unused.empty()) return;
  const auto replicas = static_cast<std::size_t>(options_.replicas);
  std::vector<double> omitted(unused.size() * replicas, 0.0);
  for (const auto& [replica, slot] : status.omitted_here) {
    const auto at = std::find(unused.begin(), unused.end(), slot);
    if (at == unused.end()) continue;
    omitted[static_cast<std::size_t>(at - unused.begin()) * replicas + static_cast<std::size_t>(replica)] = 1.0;
  }
  const comm::Buffer shared{std::span<double>(omitted)};
  comm::all_reduce_async(group_, shared, shared, DType::kFloat64).wait();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < unused.size(); ++i) {
    std::vector<std::string> places;
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      if (omitted[i * replicas + replica] == 0.0) continue;
      const int number = static_cast<int>(replica);
      places.push_back(fmt::format("replica {} on rank {}", number, rank_of_replica(layout_, number)));
    }
    names.push_back(fmt::format("'{}' by {}", space_.slots()[unused[i]].name, fmt::join(places, " and ")));
  }
  throw Error(ErrorCode::kFailed, fmt::format("parameters that ask for a gradient are not used in step {}: {}", step,
                                              fmt::join(names, ", ")));
}

void DataParallel::fail_gradient(std::int64_t step) {
  // Every rank looks through what it brought; the first rank that finds something names it for all.
  const double nobody = group_.size();
  double finder = nobody;
  double found = -1;
  for (std::size_t slot = 0; slot < space_.slots().size() && found < 0; ++slot) {
    for (const torch::Tensor& partial : exchange_.partials(slot)) {
      if (!torch::isfinite(partial).all().item<bool>()) found = static_cast<double>(slot);
    }
  }
  if (found >= 0) finder = group_.rank();
  const double culprit = comm::all_reduce_number(group_, finder, ReduceOp::kMin);
  const double slot = comm::all_reduce_number(group_, finder == culprit ? found : -1.0, ReduceOp::kMax);
  if (culprit == nobody) {
    throw Error(ErrorCode::kFailed, fmt::format("the gradient overflows in step {} although each rank's part is finite", step));
  }
  throw Error(ErrorCode::kFailed, fmt::format("the gradient of '{}' is not finite in step {}: rank {}",
                                              space_.slots()[static_cast<std::size_t>(slot)].name, step, culprit));
}

params::GradientSums DataParallel::sums() const {
  params::GradientSums sums;
  sums.flat = exchange_.sums();
  sums.shares = exchange_.shares();
  return sums;
}

std::string DataParallel::digest() {
  Hasher hasher;
  for (const params::ParameterSlot& slot : space_.slots()) {
    hasher.update(slot.name);
    hasher.update(slot.tensor.data_ptr(), slot.tensor.nbytes());
  }
  const std::vector<std::byte> buffers = buffers_.gather(group_);
  hasher.update(buffers.data(), buffers.size());
  return hasher.hex();
}

std::vector<spec::StateEntry> DataParallel::state() {
  std::vector<spec::StateEntry> entries;
  for (const params::ParameterSlot& slot : space_.slots()) {
    entries.push_back({"parameters/" + slot.name, slot.shape, space_.dtype(), spec::Placement::kReplicated, 0,
                       slot.elements, group_.rank() == 0, static_cast<std::byte*>(slot.tensor.data_ptr())});
  }
  for (spec::StateEntry& entry : buffers_.state()) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace convoy::parallel
