#include "convoy/comm/engine/small_reduce.h"

#include <thread>

#include "convoy/base/processor.h"
#include "convoy/comm/engine/reduce.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::comm {
namespace {

// About 30 microseconds: longer waits are for the scheduler. With fewer processors than ranks each spin gives way.
constexpr int kSpins = 1000;
constexpr int kYields = 20;

}  // namespace

std::uint64_t small_fingerprint(DType dtype, ReduceOp reduce, std::int64_t elements) {
  // Distinct for all that differ: the two bytes lie beside the count.
  return (static_cast<std::uint64_t>(elements) << 16) | (static_cast<std::uint64_t>(dtype) << 8) |
         static_cast<std::uint64_t>(reduce);
}

SmallReducer::SmallReducer(Transport& transport)
    : transport_(transport),
      capacity_(transport.size() > 1 ? transport.publish_capacity() : 0),
      spins_(usable_processors() >= transport.size() ? kSpins : 0),
      sources_(static_cast<std::size_t>(transport.size())) {
  std::vector<spec::ReplicaRange> leaves;
  for (int rank = 0; rank < transport.size(); ++rank) leaves.push_back({rank, rank + 1});
  program_ = spec::tree_program(transport.size(), leaves);
}

void SmallReducer::publish(const SmallReduce& operation, const std::byte* input) {
  transport_.publish({operation.sequence, small_fingerprint(operation.dtype, operation.reduce, operation.elements),
                      input, static_cast<std::size_t>(operation.elements) * element_bytes(operation.dtype)});
}

int SmallReducer::missing(const SmallReduce& operation) {
  const std::uint64_t fingerprint = small_fingerprint(operation.dtype, operation.reduce, operation.elements);
  for (int rank = 0; rank < transport_.size(); ++rank) {
    const auto found = transport_.published(rank, operation.sequence);
    if (!found || found->fingerprint != fingerprint) return rank;
    sources_[static_cast<std::size_t>(rank)] = found->data;
  }
  return -1;
}

bool SmallReducer::spin(const SmallReduce& operation) {
  for (int i = 0; i < spins_; ++i) {
    if (missing(operation) < 0) return true;
    relax_processor();
  }
  for (int i = 0; i < kYields; ++i) {
    if (missing(operation) < 0) return true;
    std::this_thread::yield();
  }
  return false;
}

void SmallReducer::combine_all(const SmallReduce& operation, std::byte* output) {
  const int divisor = operation.reduce == ReduceOp::kMean ? transport_.size() : 1;
  combine(operation.dtype, operation.reduce, program_, sources_, output, operation.elements, divisor);
}

}  // namespace convoy::comm
