#include "convoy/parallel/data/sync_batch_norm.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::parallel {
namespace {

// Every replica's numbers in turn; of the caller alone where there is no team.
std::vector<double> gather(const std::vector<double>& own) {
  params::ReplicaTeam* const team = params::ReplicaTeam::current();
  return team == nullptr ? own : team->gather(own);
}

std::vector<double> to_doubles(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.to(torch::kFloat64).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// Count, mean and sum of squared distances from it, of one channel.
struct Moments {
  double count = 0.0;
  double mean = 0.0;
  double squares = 0.0;
};

Moments merge(const Moments& a, const Moments& b) {
  if (a.count == 0.0) return b;
  if (b.count == 0.0) return a;
  const double count = a.count + b.count;
  const double distance = b.mean - a.mean;
  return {count, a.mean + distance * (b.count / count), a.squares + b.squares + distance * distance * (a.count * b.count / count)};
}

// Merges along the canonical tree over the replicas; `of` gives a replica's value.
template <typename T, typename Of, typename Merge>
T merge_tree(int replicas, const Of& of, const Merge& merge_two) {
  std::vector<spec::ReplicaRange> leaves;
  for (int replica = 0; replica < replicas; ++replica) leaves.push_back({replica, replica + 1});
  std::vector<T> stack;
  for (const int step : spec::tree_program(replicas, leaves)) {
    if (step != spec::kAdd) {
      stack.push_back(of(step));
      continue;
    }
    const T right = stack.back();
    stack.pop_back();
    stack.back() = merge_two(stack.back(), right);
  }
  return stack.back();
}

// The statistics of a micro-batch over all replicas.
struct BatchMoments {
  double count = 0.0;
  // [C] in the input's type.
  torch::Tensor mean;
  torch::Tensor variance;
};

std::vector<std::int64_t> all_but_channels(const torch::Tensor& input) {
  std::vector<std::int64_t> dimensions = {0};
  for (std::int64_t dimension = 2; dimension < input.dim(); ++dimension) dimensions.push_back(dimension);
  return dimensions;
}

BatchMoments moments_of(const torch::Tensor& input) {
  const std::int64_t channels = input.size(1);
  const auto c = static_cast<std::size_t>(channels);
  const double count = static_cast<double>(input.numel()) / static_cast<double>(channels);
  // [count, means, sums of squared distances] of each replica.
  std::vector<double> own(1 + 2 * c, 0.0);
  if (count > 0) {
    const auto [variance, mean] = torch::var_mean(input, all_but_channels(input), /*unbiased=*/false);
    const std::vector<double> means = to_doubles(mean);
    const std::vector<double> variances = to_doubles(variance);
    own[0] = count;
    for (std::size_t i = 0; i < c; ++i) {
      own[1 + i] = means[i];
      own[1 + c + i] = variances[i] * count;
    }
  }
  const std::vector<double> all = gather(own);
  const int replicas = static_cast<int>(all.size() / own.size());
  BatchMoments moments;
  moments.mean = torch::empty({channels}, torch::kFloat64);
  moments.variance = torch::empty({channels}, torch::kFloat64);
  for (std::size_t i = 0; i < c; ++i) {
    const auto of = [&](int replica) {
      const double* const part = all.data() + static_cast<std::size_t>(replica) * own.size();
      return Moments{part[0], part[1 + i], part[1 + c + i]};
    };
    const auto whole = merge_tree<Moments>(replicas, of, merge);
    moments.count = whole.count;
    moments.mean.data_ptr<double>()[i] = whole.mean;
    moments.variance.data_ptr<double>()[i] = whole.count > 0 ? whole.squares / whole.count : 0.0;
  }
  moments.mean = moments.mean.to(input.scalar_type());
  moments.variance = moments.variance.to(input.scalar_type());
  return moments;
}

// [1, C, 1, ...] for arithmetic with [N, C, ...].
torch::Tensor along_channels(const torch::Tensor& values, const torch::Tensor& like) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, where mean and variance depend on every replica's x.
class Normalise final : public torch::autograd::Function<Normalise> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& input,
                               const torch::Tensor& weight, const torch::Tensor& bias, const torch::Tensor& mean,
                               const torch::Tensor& variance, double count, double epsilon) {
    const torch::Tensor inverse = (variance + epsilon).rsqrt();
    context->save_for_backward({input, weight, mean, inverse});
    context->saved_data["count"] = count;
    if (input.numel() == 0) return torch::empty_like(input);
    return torch::batch_norm(input, weight, bias, mean, variance, /*training=*/false, 0.0, epsilon, false);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor& input = saved[0];
    const torch::Tensor& weight = saved[1];
    const torch::Tensor& inverse = saved[3];
    const double count = context->saved_data["count"].toDouble();
    const torch::Tensor& gradient = outputs[0];
    const auto dimensions = all_but_channels(input);
    const torch::Tensor normal = (input - along_channels(saved[2], input)) * along_channels(inverse, input);
    // What this replica gives to bias and weight, and with that of the others to every x through mean and variance.
    const torch::Tensor to_bias = gradient.sum(dimensions);
    const torch::Tensor to_weight = (gradient * normal).sum(dimensions);
    std::vector<double> own = to_doubles(to_bias);
    const std::vector<double> second = to_doubles(to_weight);
    own.insert(own.end(), second.begin(), second.end());
    const std::vector<double> all = gather(own);
    const int replicas = static_cast<int>(all.size() / own.size());
    torch::Tensor sums = torch::empty({static_cast<std::int64_t>(own.size())}, torch::kFloat64);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto of = [&](int replica) { return all[static_cast<std::size_t>(replica) * own.size() + i]; };
      sums.data_ptr<double>()[i] = merge_tree<double>(replicas, of, [](double a, double b) { return a + b; });
    }
    const torch::Tensor means = (sums / std::max(count, 1.0)).to(input.scalar_type());
    const std::int64_t channels = weight.numel();
    const torch::Tensor to_input =
        along_channels(weight * inverse, input) *
        (gradient - along_channels(means.narrow(0, 0, channels), input) -
         normal * along_channels(means.narrow(0, channels, channels), input));
    return {to_input, to_weight, to_bias, {}, {}, {}, {}};
  }
};

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(const SyncBatchNormOptions& options) : options_(options) {
  if (options.channels < 1) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("batch norm over {} channels", options.channels));
  }
  weight_ = register_parameter("weight", torch::ones({options.channels}));
  bias_ = register_parameter("bias", torch::zeros({options.channels}));
  running_mean_ = register_buffer("running_mean", torch::zeros({options.channels}));
  running_var_ = register_buffer("running_var", torch::ones({options.channels}));
  num_batches_tracked_ = register_buffer("num_batches_tracked", torch::tensor(std::int64_t{0}));
}

torch::Tensor SyncBatchNormImpl::forward(const torch::Tensor& input) {
  if (input.dim() < 2 || input.size(1) != options_.channels) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("batch norm over {} channels of an input of shape [{}]",
                                                         options_.channels, fmt::join(input.sizes(), ", ")));
  }
  if (!is_training()) {
    return torch::batch_norm(input, weight_, bias_, running_mean_, running_var_, false, 0.0, options_.epsilon, false);
  }
  BatchMoments moments;
  {
    const torch::NoGradGuard no_grad;
    moments = moments_of(input);
    if (moments.count > 0) {
      const double correction = moments.count > 1 ? moments.count / (moments.count - 1) : 1.0;
      running_mean_.mul_(1.0 - options_.momentum).add_(moments.mean, options_.momentum);
      running_var_.mul_(1.0 - options_.momentum).add_(moments.variance * correction, options_.momentum);
      num_batches_tracked_.add_(1);
    }
  }
  return Normalise::apply(input, weight_, bias_, moments.mean, moments.variance, moments.count, options_.epsilon);
}

}  // namespace convoy::parallel
