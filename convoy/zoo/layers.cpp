#include "convoy/zoo/layers.h"

#include <fmt/format.h>

#include <optional>

#include "convoy/base/error.h"
#include "convoy/parallel/data/sync_batch_norm.h"
#include "convoy/params/random_scope.h"

namespace convoy::zoo {

PathDropoutImpl::PathDropoutImpl(double rate, std::string path) : rate_(rate), path_(std::move(path)) {
  if (!(rate >= 0.0 && rate < 1.0)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("dropout of layer '{}' is {}, not in [0, 1)", path_, rate));
  }
}

torch::Tensor PathDropoutImpl::forward(const torch::Tensor& input) {
  if (!is_training() || rate_ == 0.0) return input;
  std::optional<at::Generator> generator;
  if (const auto seed = params::layer_seed(path_)) generator = at::detail::createCPUGenerator(*seed);
  const torch::Tensor mask =
      at::bernoulli(torch::full_like(input, 1.0 - rate_), generator ? c10::optional<at::Generator>(*generator)
                                                                     : c10::optional<at::Generator>());
  return input * mask.div_(1.0 - rate_);
}

torch::nn::AnyModule make_batch_norm(std::int64_t channels, bool synchronised) {
  if (!synchronised) return torch::nn::AnyModule(torch::nn::BatchNorm2d(channels));
  parallel::SyncBatchNormOptions options;
  options.channels = channels;
  return torch::nn::AnyModule(parallel::SyncBatchNorm(options));
}

}  // namespace convoy::zoo
