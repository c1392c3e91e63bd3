// Planted mistakes for `convoy verify`: lets tests see that each is found by name. Never set outside tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convoy/params/model.h"
#include "convoy/records/batch.h"
#include "convoy/records/loader.h"
#include "convoy/spec/replica_tree.h"
#include "convoy/spec/sample_plan.h"

namespace convoy::train {

/// A mistake that people make when they write a distributed training step by hand, put into the ranks' step through its
/// input: the library's own code is the same with and without it. CONVOY_PLANT=verify:KIND with one of
///   sum         gradients of ranks summed instead of averaged
///   unweighted  every replica weighs the same, however many samples it has
///   scale       the loss is not divided by the number of micro-batches
///   samples     every rank works on rank 0's samples
///   order       later epochs repeat the order of the first
///   resample    every rank draws samples of its own
///   dropout     every rank seeds its random layers alike
///   buffer      ranks other than 0 change a buffer by themselves
class StepFault {
 public:
  /// Reads CONVOY_PLANT for this rank of a layout.
  /// Errors:     kInvalidArgument for an unknown kind
  StepFault(int rank, std::vector<spec::ReplicaRange> owners);

  /// Returns the model with the mistakes that live in the forward pass.
  std::unique_ptr<params::Model> wrap(std::unique_ptr<params::Model> model) const;
  /// Puts the mistakes of sampling and weighting into a step's input.
  void spoil(records::StepBatch& input, const spec::SamplePlan& plan, const records::BatchSource& source) const;

 private:
  bool is(const char* kind) const { return kind_ == kind; }
  std::vector<std::int64_t> samples_for(const spec::SamplePlan& plan, std::int64_t step, int replica,
                                        std::size_t micro_batch) const;
  void scale(records::StepBatch& input, const spec::SamplePlan& plan) const;

  const int rank_;
  const std::vector<spec::ReplicaRange> owners_;
  std::string kind_;
};

}  // namespace convoy::train
