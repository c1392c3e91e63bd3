#include "convoy/plan/bucket_size.h"

#include <algorithm>
#include <set>

namespace convoy::plan {
namespace {

// The share of an exchange's time that may be spent on anything but bytes.
constexpr double kFixedShare = 0.05;
// What a rank spends on an operation besides its messages: launching it, handing it to the progress thread and back.
constexpr double kOperationSeconds = 20e-6;
constexpr double kLeast = 64 << 10;
constexpr double kMost = 32 << 20;
// Sizes are whole multiples of this.
constexpr std::int64_t kUnit = 16 << 10;

}  // namespace

BucketChoice choose_bucket_bytes(const spec::Recipe& recipe, const std::optional<law::Machine>& machine) {
  if (recipe.parallel.bucket_bytes > 0) return {recipe.parallel.bucket_bytes, "recipe"};
  if (!machine) return {spec::kBuiltInBucketBytes, "built in"};
  const std::set<int> hosts(machine->host_of_rank.begin(), machine->host_of_rank.end());
  const law::LinkCost& link = hosts.size() > 1 ? machine->between : machine->inside;
  if (link.beta_s <= 0) return {spec::kBuiltInBucketBytes, "built in"};
  const double fixed = link.alpha_s + kOperationSeconds;
  const double bytes = std::clamp(fixed * (1 - kFixedShare) / (kFixedShare * link.beta_s), kLeast, kMost);
  return {static_cast<std::int64_t>(bytes) / kUnit * kUnit, "calibration"};
}

}  // namespace convoy::plan
