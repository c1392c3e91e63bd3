#include "convoy/train/profile/ceilings.h"

#include <algorithm>

#include "convoy/base/clock.h"

namespace convoy::train {
namespace {

constexpr std::int64_t kMatrix = 512;
constexpr std::int64_t kCopiedBytes = 64 << 20;
constexpr Duration kEach = std::chrono::milliseconds(200);

// The shortest of the repeats within the time, after one that does not count; in seconds.
template <typename F>
double shortest(F&& work) {
  work();
  double best = 0.0;
  const TimePoint begin = system_clock().now();
  do {
    const TimePoint at = system_clock().now();
    work();
    const double seconds = to_seconds(system_clock().now() - at);
    best = best == 0.0 ? seconds : std::min(best, seconds);
  } while (system_clock().now() - begin < kEach);
  return best;
}

}  // namespace

Ceilings measure_ceilings(torch::ScalarType type) {
  const torch::NoGradGuard no_grad;
  Ceilings ceilings;
  {
    const torch::Tensor left = torch::ones({kMatrix, kMatrix}, torch::dtype(type));
    const torch::Tensor right = torch::ones({kMatrix, kMatrix}, torch::dtype(type));
    torch::Tensor product = torch::empty({kMatrix, kMatrix}, torch::dtype(type));
    const double seconds = shortest([&] { torch::mm_out(product, left, right); });
    ceilings.matrix_gflop_per_s = 2.0 * kMatrix * kMatrix * kMatrix / seconds / 1e9;
  }
  const std::int64_t elements = kCopiedBytes / static_cast<std::int64_t>(torch::elementSize(type));
  const torch::Tensor from = torch::ones({elements}, torch::dtype(type));
  torch::Tensor to = torch::empty({elements}, torch::dtype(type));
  const double seconds = shortest([&] { to.copy_(from); });
  ceilings.memory_gb_per_s = 2.0 * static_cast<double>(kCopiedBytes) / seconds / 1e9;
  return ceilings;
}

}  // namespace convoy::train
