#include "convoy/train/verify/step_fault.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "convoy/base/error.h"
#include "convoy/base/random.h"
#include "convoy/params/random_scope.h"

namespace convoy::train {
namespace {

constexpr std::string_view kPrefix = "verify:";
constexpr std::array<std::string_view, 8> kKinds = {"sum",   "unweighted", "scale",   "samples",
                                                    "order", "resample",   "dropout", "buffer"};

// A model whose forward pass has a mistake in it.
class FaultyModel final : public params::Model {
 public:
  FaultyModel(std::unique_ptr<params::Model> model, bool same_dropout, bool own_buffer)
      : model_(std::move(model)), same_dropout_(same_dropout), own_buffer_(own_buffer) {}

  std::vector<params::NamedTensor> parameters() override { return model_->parameters(); }
  std::vector<params::NamedTensor> buffers() override { return model_->buffers(); }
  void train(bool on) override { model_->train(on); }
  bool across_replicas() override { return model_->across_replicas(); }

  params::Loss forward(const params::Batch& batch) override {
    if (own_buffer_) {
      const torch::NoGradGuard no_grad;
      for (const params::NamedTensor& buffer : model_->buffers()) {
        if (buffer.tensor.is_floating_point()) buffer.tensor.add_(0.5);
      }
    }
    if (!same_dropout_) return model_->forward(batch);
    const params::RandomScope scope({1, 0, 0, 0});
    return model_->forward(batch);
  }

 private:
  const std::unique_ptr<params::Model> model_;
  const bool same_dropout_;
  const bool own_buffer_;
};

void replace_samples(records::Batch& batch, const std::vector<std::int64_t>& ids, const records::BatchSource& source,
                     records::SampleUse use) {
  records::begin_batch(source, ids, ids, batch);
  for (std::size_t place = 0; place < ids.size(); ++place) {
    use.draw = ids[place];
    records::prepare_sample(source, place, ids, use, batch);
  }
}

void scale_weights(records::Batch& batch, float factor) {
  if (batch.weights.empty()) batch.weights.assign(static_cast<std::size_t>(batch.count()), 1.0F);
  for (float& weight : batch.weights) weight *= factor;
}

}  // namespace

StepFault::StepFault(int rank, std::vector<spec::ReplicaRange> owners) : rank_(rank), owners_(std::move(owners)) {
  const char* const value = std::getenv("CONVOY_PLANT");
  const std::string_view text = value == nullptr ? "" : value;
  if (!text.starts_with(kPrefix)) return;
  kind_ = text.substr(kPrefix.size());
  if (std::find(kKinds.begin(), kKinds.end(), kind_) == kKinds.end()) {
    throw Error(ErrorCode::kInvalidArgument, "CONVOY_PLANT names no mistake that verify knows: " + kind_);
  }
}

std::unique_ptr<params::Model> StepFault::wrap(std::unique_ptr<params::Model> model) const {
  const bool own_buffer = is("buffer") && rank_ > 0;
  if (!is("dropout") && !own_buffer) return model;
  return std::make_unique<FaultyModel>(std::move(model), is("dropout"), own_buffer);
}

std::vector<std::int64_t> StepFault::samples_for(const spec::SamplePlan& plan, std::int64_t step, int replica,
                                                 std::size_t micro_batch) const {
  const std::int64_t per_epoch = plan.steps_per_epoch();
  if (is("order")) return plan.micro_batches(step % per_epoch, replica)[micro_batch];
  if (is("samples")) {
    const int place = replica - owners_[static_cast<std::size_t>(rank_)].begin;
    return plan.micro_batches(step, std::min(place, owners_.front().size() - 1))[micro_batch];
  }
  // Draws with a stream of the rank's own from a share of the samples that is the rank's own, small enough that samples
  // come again within a few steps.
  std::vector<std::int64_t> ids = plan.micro_batches(step, replica)[micro_batch];
  RandomStream random(StreamPurpose::kSampleOrder, {static_cast<std::uint64_t>(rank_), static_cast<std::uint64_t>(step),
                                                    static_cast<std::uint64_t>(replica), micro_batch});
  const auto ranks = static_cast<std::uint64_t>(owners_.size());
  const std::uint64_t share = std::max<std::uint64_t>(static_cast<std::uint64_t>(plan.options().samples) / ranks / 16, 1);
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random.below(share) * ranks) % plan.options().samples;
  return ids;
}

void StepFault::scale(records::StepBatch& input, const spec::SamplePlan& plan) const {
  for (records::ReplicaBatches& replica : input.replicas) {
    float factor = 1.0F;
    if (is("sum")) factor = static_cast<float>(owners_.size());
    if (is("scale")) factor = static_cast<float>(plan.options().accumulation);
    if (is("unweighted")) {
      const auto own = static_cast<double>(plan.replica_samples(input.step, replica.replica).size());
      const auto all = static_cast<double>(plan.step_samples(input.step).size());
      if (own > 0) factor = static_cast<float>(all / (own * plan.options().replicas));
    }
    if (factor == 1.0F) continue;
    for (records::Batch& batch : replica.micro_batches) scale_weights(batch, factor);
  }
}

void StepFault::spoil(records::StepBatch& input, const spec::SamplePlan& plan, const records::BatchSource& source) const {
  if (is("sum") || is("scale") || is("unweighted")) scale(input, plan);
  if (!is("samples") && !is("order") && !is("resample")) return;
  const records::SampleUse use{true, plan.options().seed, input.epoch, 0};
  for (records::ReplicaBatches& replica : input.replicas) {
    for (std::size_t micro_batch = 0; micro_batch < replica.micro_batches.size(); ++micro_batch) {
      replace_samples(replica.micro_batches[micro_batch], samples_for(plan, input.step, replica.replica, micro_batch),
                      source, use);
    }
  }
}

}  // namespace convoy::train
