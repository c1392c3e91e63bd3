// A model that notes each forward pass: its loss, what it counted, and which random numbers it drew.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convoy/params/model.h"

namespace convoy::train {

/// What one forward pass was.
struct ForwardNote {
  /// The sum of the loss.
  double loss = 0.0;
  /// What counted.
  std::int64_t counted = 0;
  /// A fingerprint of the place that its layers drew from and of the state in which it left libtorch's generator.
  std::string random;
};

/// Passes everything on to a model and notes the forward passes.
class ProbedModel final : public params::Model {
 public:
  /// Ownership:  owns the model
  explicit ProbedModel(std::unique_ptr<params::Model> model) : model_(std::move(model)) {}

  std::vector<params::NamedTensor> parameters() override { return model_->parameters(); }
  std::vector<params::NamedTensor> buffers() override { return model_->buffers(); }
  void train(bool on) override { model_->train(on); }
  bool across_replicas() override { return model_->across_replicas(); }
  params::Loss forward(const params::Batch& batch) override;

  /// Returns the notes since the last call, in the order of the passes.
  std::vector<ForwardNote> take_notes() { return std::exchange(notes_, {}); }

 private:
  const std::unique_ptr<params::Model> model_;
  std::vector<ForwardNote> notes_;
};

}  // namespace convoy::train
