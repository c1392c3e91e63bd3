#include "convoy/parallel/data/replica_buffers.h"

#include <fmt/format.h>

#include <cstring>

#include "convoy/base/error.h"
#include "convoy/params/flat_space.h"

namespace convoy::parallel {
namespace {

torch::Tensor wrap(const std::byte* data, const torch::Tensor& like) {
  return torch::from_blob(const_cast<std::byte*>(data), like.sizes(), like.options());
}

}  // namespace

BufferMerge to_buffer_merge(const std::string& word) {
  if (word == "mean") return BufferMerge::kMean;
  if (word == "first") return BufferMerge::kFirst;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("unknown buffer merge '{}': mean or first", word));
}

ReplicaBuffers::ReplicaBuffers(params::Model& model, const spec::OrderedLayout& layout, int group_rank,
                               BufferMerge merge)
    : replicas_(layout.leaves),
      owners_(layout.owners),
      range_(layout.owners[static_cast<std::size_t>(group_rank)]),
      merge_(merge) {
  for (const params::NamedTensor& buffer : model.buffers()) {
    params::to_dtype(buffer.tensor.scalar_type());  // refuses types that cannot be exchanged
    items_.push_back({buffer.name, buffer.tensor, bytes_});
    bytes_ += static_cast<std::int64_t>((buffer.tensor.nbytes() + 7) / 8 * 8);
  }
  values_.resize(static_cast<std::size_t>(bytes_ * range_.size()));
  reset_from_module();
}

void ReplicaBuffers::load(int replica) {
  const torch::NoGradGuard no_grad;
  for (const Item& item : items_) {
    const std::byte* const from = place(replica) + item.offset;
    if (item.tensor.is_contiguous()) {
      // Not as an operation of libtorch: replicas in lock-step take turns in the middle of a backward pass, and find their
      // own values again.
      std::memcpy(item.tensor.data_ptr(), from, item.tensor.nbytes());
    } else {
      item.tensor.copy_(wrap(from, item.tensor));
    }
  }
}

void ReplicaBuffers::store(int replica) {
  const torch::NoGradGuard no_grad;
  for (const Item& item : items_) wrap(place(replica) + item.offset, item.tensor).copy_(item.tensor);
}

void ReplicaBuffers::reset_from_module() {
  for (int replica = range_.begin; replica < range_.end; ++replica) store(replica);
}

std::vector<std::byte> ReplicaBuffers::gather(comm::Group& group) const {
  std::vector<std::byte> all(static_cast<std::size_t>(bytes_ * replicas_));
  if (bytes_ == 0) return all;
  std::vector<std::int64_t> parts;
  for (const spec::ReplicaRange& share : owners_) parts.push_back(share.size() * bytes_);
  comm::all_gather_async(group, comm::Buffer(std::span<const std::byte>(values_)),
                         comm::Buffer(std::span<std::byte>(all)), parts, DType::kUInt8)
      .wait();
  return all;
}

void ReplicaBuffers::load_merged(comm::Group& group) {
  const std::vector<std::byte> all = gather(group);
  const torch::NoGradGuard no_grad;
  const auto of_replica = [&](const Item& item, int replica) {
    return wrap(all.data() + replica * bytes_ + item.offset, item.tensor);
  };
  std::vector<spec::ReplicaRange> leaves;
  for (int replica = 0; replica < replicas_; ++replica) leaves.push_back({replica, replica + 1});
  const std::vector<int> program = spec::tree_program(replicas_, leaves);
  for (const Item& item : items_) {
    if (merge_ == BufferMerge::kFirst || !item.tensor.is_floating_point()) {
      item.tensor.copy_(of_replica(item, 0));
      continue;
    }
    std::vector<torch::Tensor> stack;
    for (const int step : program) {
      if (step != spec::kAdd) {
        stack.push_back(of_replica(item, step));
        continue;
      }
      const torch::Tensor right = stack.back();
      stack.pop_back();
      stack.back() = stack.back() + right;
    }
    item.tensor.copy_(stack.back() / replicas_);
  }
}

std::vector<spec::StateEntry> ReplicaBuffers::state() {
  std::vector<spec::StateEntry> entries;
  for (int replica = range_.begin; replica < range_.end; ++replica) {
    for (const Item& item : items_) {
      entries.push_back({fmt::format("replica.{}/{}", replica, item.name), item.tensor.sizes().vec(),
                         params::to_dtype(item.tensor.scalar_type()), spec::Placement::kOwned, 0, item.tensor.numel(),
                         true, place(replica) + item.offset});
    }
  }
  return entries;
}

}  // namespace convoy::parallel
