// The reduction kernels beside a copy and a plain loop of additions over the same memory. Bytes per second count what a
// kernel has to read and write, (k + 1) times the buffer, as STREAM does: caches that fetch what is written count more.
#include "convoy/comm/engine/reduce.h"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "convoy/base/dtype.h"
#include "convoy/base/simd.h"
#include "convoy/spec/replica_tree.h"

namespace convoy {
namespace {

// Bytes as any element type: a small positive number in each.
std::vector<std::vector<std::byte>> buffers_of(std::size_t count, std::size_t bytes) {
  return std::vector<std::vector<std::byte>>(count, std::vector<std::byte>(bytes, std::byte{0x3c}));
}

std::vector<const std::byte*> places_of(const std::vector<std::vector<std::byte>>& buffers) {
  std::vector<const std::byte*> places;
  for (const auto& buffer : buffers) places.push_back(buffer.data());
  return places;
}

void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  auto buffers = buffers_of(2, bytes);
  for (auto _ : state) {
    std::memcpy(buffers[1].data(), buffers[0].data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 2);
}

CONVOY_SIMD_CLONES void add(const float* a, const float* b, float* c, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
}

void plain_add(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  auto buffers = buffers_of(3, bytes);
  for (auto _ : state) {
    add(reinterpret_cast<const float*>(buffers[0].data()), reinterpret_cast<const float*>(buffers[1].data()),
        reinterpret_cast<float*>(buffers[2].data()), bytes / sizeof(float));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 3);
}

// Arguments: bytes of each buffer, sources, element type, reduction.
void tree(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto count = static_cast<int>(state.range(1));
  const auto dtype = static_cast<DType>(state.range(2));
  const auto reduce = static_cast<ReduceOp>(state.range(3));
  const auto sources = buffers_of(static_cast<std::size_t>(count), bytes);
  const std::vector<const std::byte*> places = places_of(sources);
  std::vector<std::byte> target(bytes);
  std::vector<spec::ReplicaRange> parts;
  for (int leaf = 0; leaf < count; ++leaf) parts.push_back({leaf, leaf + 1});
  const std::vector<int> program = spec::tree_program(count, parts);
  const auto elements = static_cast<std::int64_t>(bytes / element_bytes(dtype));
  for (auto _ : state) {
    comm::combine(dtype, reduce, program, places, target.data(), elements, reduce == ReduceOp::kMean ? count : 1);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * (count + 1));
  state.SetLabel(std::string(to_string(reduce)) + " of " + std::string(to_string(dtype)));
}

constexpr std::int64_t kSizes[] = {64 << 10, 1 << 20, 16 << 20};

void sizes(benchmark::internal::Benchmark* it) {
  for (const std::int64_t size : kSizes) it->Arg(size);
}

void trees(benchmark::internal::Benchmark* it) {
  it->ArgNames({"bytes", "k", "type", "reduction"});
  const auto args = [&](std::int64_t size, std::int64_t k, DType dtype, ReduceOp reduce) {
    it->Args({size, k, static_cast<std::int64_t>(dtype), static_cast<std::int64_t>(reduce)});
  };
  for (const std::int64_t size : kSizes) {
    for (const std::int64_t k : {2, 4, 8}) args(size, k, DType::kFloat32, ReduceOp::kSum);
  }
  for (const DType dtype : {DType::kFloat64, DType::kInt32, DType::kInt64, DType::kBFloat16, DType::kFloat16}) {
    args(1 << 20, 4, dtype, ReduceOp::kSum);
  }
  for (const ReduceOp reduce : {ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kProduct}) {
    args(1 << 20, 4, DType::kFloat32, reduce);
  }
  for (const std::int64_t k : {3, 16, 64}) args(1 << 20, k, DType::kFloat32, ReduceOp::kSum);
}

BENCHMARK(copy)->Apply(sizes);
BENCHMARK(plain_add)->Apply(sizes);
BENCHMARK(tree)->Apply(trees);

}  // namespace
}  // namespace convoy
