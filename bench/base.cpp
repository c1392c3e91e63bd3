// What the foundations cost: digests of parameters and files, and random streams.
#include <benchmark/benchmark.h>

#include <string>

#include "convoy/base/hash.h"
#include "convoy/base/random.h"

namespace convoy {
namespace {

void digest_of_bytes(benchmark::State& state) {
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) benchmark::DoNotOptimize(hash128_hex(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(digest_of_bytes)->Arg(4096 * sizeof(float))->Arg(16 << 20);

void seed_of_a_stream(benchmark::State& state) {
  std::uint64_t step = 0;
  for (auto _ : state) benchmark::DoNotOptimize(stream_seed(StreamPurpose::kAugmentation, {1, ++step, 2, 3}));
}
BENCHMARK(seed_of_a_stream);

void random_numbers_below_a_bound(benchmark::State& state) {
  RandomStream stream(1);
  for (auto _ : state) benchmark::DoNotOptimize(stream.below(60000));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(random_numbers_below_a_bound);

}  // namespace
}  // namespace convoy
