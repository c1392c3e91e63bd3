#include "convoy/params/flat_memory.h"

#include <memory>

#include "convoy/base/error.h"
#include "convoy/comm/shared_memory/host_memory.h"
#include "convoy/observe/memory_meter.h"

namespace convoy::params {

FlatMemory FlatMemory::of_host(comm::Group& group) {
  FlatMemory memory;
  const auto together = static_cast<double>(comm::ranks_of_host(group).size());
  if (comm::all_reduce_number(group, together, ReduceOp::kMax) < 2) return memory;
  // Whether processes can map each other's memory shows by trying.
  if (comm::HostMemory::join(group, 1) == nullptr) return memory;
  memory.group_ = &group;
  memory.fills_ = comm::ranks_of_host(group).front() == group.rank();
  memory.sharers_ = static_cast<int>(together);
  return memory;
}

torch::Tensor FlatMemory::make(std::int64_t elements, torch::ScalarType type) const {
  if (group_ == nullptr) return torch::zeros({elements}, torch::dtype(type));
  const std::size_t bytes = static_cast<std::size_t>(elements) * torch::elementSize(type);
  auto memory = comm::HostMemory::join(*group_, bytes);
  if (memory == nullptr) throw Error(ErrorCode::kInternal, "a host's memory could be shared once and cannot be any more");
  void* const data = memory->data();
  // Each rank counts its share of what the host has once.
  auto counted = std::make_shared<observe::CountedMemory>(
      observe::MemoryScope::current(), static_cast<std::int64_t>(bytes) / sharers_);
  return torch::from_blob(data, {elements}, [memory, counted = std::move(counted)](void*) mutable {
    memory.reset();
    counted.reset();
  }, torch::dtype(type));
}

void FlatMemory::meet() const {
  if (group_ != nullptr) comm::barrier(*group_);
}

}  // namespace convoy::params
