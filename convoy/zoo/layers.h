// Layers whose random numbers belong to a place in the run and to their own path in the model.
#pragma once

#include <torch/torch.h>

#include <string>

namespace convoy::zoo {

/// Dropout whose mask is a function of (seed, step, replica, micro-batch, path): the same for any number of ranks and any
/// order of layers. Outside a params::RandomScope it draws from libtorch's default generator.
/// Shapes:     any; returns the same shape
class PathDropoutImpl final : public torch::nn::Module {
 public:
  /// Removes the share `rate` of activations while training; `path` is the layer's path in the model.
  PathDropoutImpl(double rate, std::string path);
  /// Applies the mask.
  torch::Tensor forward(const torch::Tensor& input);

 private:
  const double rate_;
  const std::string path_;
};

/// Returns batch norm over `channels` channels of [N, C, H, W]: over the samples of a replica, or, when `synchronised`,
/// of all replicas. Parameters and buffers have the same names.
torch::nn::AnyModule make_batch_norm(std::int64_t channels, bool synchronised);

/// Holds a PathDropoutImpl, as libtorch's own modules are held.
TORCH_MODULE(PathDropout);

}  // namespace convoy::zoo
