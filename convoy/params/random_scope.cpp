#include "convoy/params/random_scope.h"

#include <torch/torch.h>

#include "convoy/base/random.h"

namespace convoy::params {
namespace {

thread_local std::optional<std::uint64_t> place_seed;

}  // namespace

RandomScope::RandomScope(const RandomPlace& place) : outer_(place_seed) {
  place_seed = stream_seed(StreamPurpose::kLayer,
                           {place.seed, static_cast<std::uint64_t>(place.step), static_cast<std::uint64_t>(place.replica),
                            static_cast<std::uint64_t>(place.micro_batch)});
  torch::manual_seed(*place_seed);
}

RandomScope::~RandomScope() { place_seed = outer_; }

std::optional<std::uint64_t> layer_seed(std::string_view layer_path) {
  if (!place_seed) return std::nullopt;
  return stream_seed(*place_seed, layer_path);
}

}  // namespace convoy::params
