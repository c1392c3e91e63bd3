// Random numbers of layers belong to (seed, step, replica, micro-batch, layer): nothing has to be saved or kept in step.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace convoy::params {

/// Where a forward pass stands in the run.
struct RandomPlace {
  /// The run's seed.
  std::uint64_t seed = 0;
  /// The optimizer step.
  std::int64_t step = 0;
  /// The logical replica.
  int replica = 0;
  /// The micro-batch of the replica in this step.
  int micro_batch = 0;
};

/// While it lives, layers of this thread draw the random numbers of one place. libtorch's default generator is started
/// afresh, so a user's torch::nn::Dropout belongs to the place too (by the order in which its layers draw); layers that
/// ask layer_seed belong to it by their path. A scope inside a scope takes its place until it ends.
/// Threads:    one at a time in each thread; the default generator is the process's, so one thread draws at a time
class RandomScope {
 public:
  /// Starts to draw from the place.
  explicit RandomScope(const RandomPlace& place);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  std::optional<std::uint64_t> outer_;
};

/// Returns the seed of a layer at the place of the running scope; nothing outside one.
std::optional<std::uint64_t> layer_seed(std::string_view layer_path);

}  // namespace convoy::params
