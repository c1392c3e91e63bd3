// State for tests of whatever sees the world as Stateful: tensors whose elements follow from name, index and a salt.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "convoy/base/hash.h"
#include "convoy/spec/stateful.h"

namespace convoy::testing {

/// Returns the bytes of one element: another for each name, index and salt.
inline std::string element_bytes_of(const std::string& name, DType dtype, std::int64_t index, std::uint64_t salt) {
  const std::uint64_t bits = hash64(name + "#" + std::to_string(index), salt);
  return std::string(reinterpret_cast<const char*>(&bits), element_bytes(dtype));
}

/// Tensors in memory that a test lists one by one.
class FakeState final : public spec::Stateful {
 public:
  /// Adds elements [offset, offset + count) of a tensor, all zero.
  FakeState& add(const std::string& name, DType dtype, std::vector<std::int64_t> shape, spec::Placement placement,
                 std::int64_t offset, std::int64_t count, bool owner) {
    spec::StateEntry entry;
    entry.name = name;
    entry.dtype = dtype;
    entry.global_shape = std::move(shape);
    entry.placement = placement;
    entry.offset = offset;
    entry.count = count;
    entry.owner = owner;
    entries_.push_back(std::move(entry));
    memory_.emplace_back(static_cast<std::size_t>(count) * element_bytes(dtype), '\0');
    return *this;
  }
  /// Adds a whole float32 tensor that this rank saves.
  FakeState& whole(const std::string& name, std::vector<std::int64_t> shape) {
    const std::int64_t count = spec::element_count(shape);
    return add(name, DType::kFloat32, std::move(shape), spec::Placement::kReplicated, 0, count, true);
  }
  /// Gives every element the value that follows from name, global index and salt.
  FakeState& fill(std::uint64_t salt) {
    for (std::size_t i = 0; i < entries_.size(); ++i) memory_[i] = expected(entries_[i], salt);
    return *this;
  }
  /// Returns the name of the first tensor that fill(salt) would change; empty when there is none.
  std::string differs_from(std::uint64_t salt) const {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (memory_[i] != expected(entries_[i], salt)) return entries_[i].name;
    }
    return "";
  }
  /// Returns all bytes, for comparisons.
  std::string bytes() const {
    std::string joined;
    for (const std::string& piece : memory_) joined += piece;
    return joined;
  }
  std::vector<spec::StateEntry> state() override {
    std::vector<spec::StateEntry> listed = entries_;
    for (std::size_t i = 0; i < listed.size(); ++i) listed[i].data = reinterpret_cast<std::byte*>(memory_[i].data());
    return listed;
  }
  void loaded() override { ++times_loaded; }

  /// How often loaded() was called.
  int times_loaded = 0;

 private:
  static std::string expected(const spec::StateEntry& entry, std::uint64_t salt) {
    std::string bytes;
    for (std::int64_t i = 0; i < entry.count; ++i) {
      bytes += element_bytes_of(entry.name, entry.dtype, entry.offset + i, salt);
    }
    return bytes;
  }

  std::vector<spec::StateEntry> entries_;
  std::vector<std::string> memory_;
};

/// Makes the state of one of `ranks` ranks: a model cut into uneven shards (some of them empty), Adam's moments, a
/// counter that rank 0 saves, a tensor without elements, and the buffers of `replicas` replicas dealt over the ranks.
inline FakeState make_run_state(int rank, int ranks, int replicas = 8) {
  FakeState state;
  const auto shard = [&](const std::string& name, DType dtype, std::vector<std::int64_t> shape) {
    const std::int64_t elements = spec::element_count(shape);
    const std::int64_t begin = elements * rank / ranks;
    const std::int64_t end = elements * (rank + 1) / ranks;
    state.add(name, dtype, std::move(shape), spec::Placement::kShard, begin, end - begin, true);
  };
  shard("parameters/conv.weight", DType::kFloat32, {7, 3, 5});
  shard("parameters/bias", DType::kFloat32, {3});
  shard("optimizer/adam.m", DType::kFloat32, {16});
  shard("optimizer/adam.v", DType::kFloat64, {16});
  shard("bytes", DType::kUInt8, {11});
  state.add("optimizer/steps", DType::kInt64, {}, spec::Placement::kReplicated, 0, 1, rank == 0);
  state.add("parameters/nothing", DType::kFloat32, {2, 0, 3}, spec::Placement::kReplicated, 0, 0, rank == 0);
  for (int replica = replicas * rank / ranks; replica < replicas * (rank + 1) / ranks; ++replica) {
    const std::string prefix = "replica." + std::to_string(replica) + "/";
    state.add(prefix + "bn.running_mean", DType::kFloat32, {5}, spec::Placement::kOwned, 0, 5, true);
    state.add(prefix + "bn.batches", DType::kInt32, {}, spec::Placement::kOwned, 0, 1, true);
  }
  return state;
}

}  // namespace convoy::testing
