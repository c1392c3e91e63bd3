#include "convoy/train/share/measured_share.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <mutex>

namespace convoy::train {
namespace {

constexpr int kWarmupPasses = 2;
constexpr std::size_t kTimedPasses = 5;
constexpr Duration kTimedAtLeast = std::chrono::milliseconds(50);

// Puts a model's buffers and the default generator back when it ends, and throws gradients away.
class Untouched {
 public:
  explicit Untouched(params::Model& model) : model_(model), buffers_(model.buffers()) {
    for (const params::NamedTensor& buffer : buffers_) values_.push_back(buffer.tensor.detach().clone());
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    random_ = generator.get_state();
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;
  ~Untouched() {
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].tensor.copy_(values_[i]);
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(random_);
    drop_gradients();
  }

  void drop_gradients() {
    for (params::NamedTensor& parameter : model_.parameters()) parameter.tensor.mutable_grad().reset();
  }

 private:
  params::Model& model_;
  std::vector<params::NamedTensor> buffers_;
  std::vector<torch::Tensor> values_;
  torch::Tensor random_;
};

void pass(params::Model& model, const params::Batch& batch, const params::RandomPlace& place) {
  const params::RandomScope random(place);
  model.forward(batch).backward();
}

}  // namespace

Duration time_micro_batch(params::Model& model, const params::Batch& batch, const params::RandomPlace& place,
                          comm::Group& group) {
  Untouched untouched(model);
  const auto timed_pass = [&] {
    const TimePoint begin = system_clock().now();
    pass(model, batch, place);
    const Duration took = system_clock().now() - begin;
    untouched.drop_gradients();
    return took;
  };
  for (int i = 0; i < kWarmupPasses; ++i) timed_pass();
  comm::barrier(group);
  std::vector<Duration> times;
  for (Duration sum{}; times.size() < kTimedPasses || sum < kTimedAtLeast; sum += times.back()) {
    times.push_back(timed_pass());
  }
  // A rank that is through goes on, so that slower ones have as busy a machine as they will have in a step.
  double ended = 1.0;
  const comm::Buffer shared{std::span<double>(&ended, 1)};
  comm::Work all_ended = comm::all_reduce_async(group, shared, shared, DType::kFloat64);
  while (!all_ended.done()) timed_pass();
  all_ended.wait();
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

MeasuredShares measure_shares(params::Model& model, const params::Batch& batch, const params::RandomPlace& place,
                              int replicas, comm::Group& group) {
  MeasuredShares shares;
  const Duration took = time_micro_batch(model, batch, place, group);
  shares.micro_batch_ms.assign(static_cast<std::size_t>(group.size()), 0.0);
  // Even a clock that did not move says that a rank is fast.
  shares.micro_batch_ms[static_cast<std::size_t>(group.rank())] = std::max(to_ms(took), 1e-6);
  const comm::Buffer shared{std::span<double>(shares.micro_batch_ms)};
  comm::all_reduce_async(group, shared, shared, DType::kFloat64).wait();
  std::vector<double> speeds;
  for (const double ms : shares.micro_batch_ms) speeds.push_back(1.0 / ms);
  shares.owners = spec::deal_replicas_by_speed(replicas, speeds);
  return shares;
}

}  // namespace convoy::train
