// Parts of a run that are slow or clumsy on purpose: what a diagnosis has to name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/comm/group.h"
#include "convoy/params/model.h"
#include "convoy/records/dataset.h"

namespace convoy::train {

/// A model that sleeps in each forward pass, as if it had a slow layer.
/// Ownership:  owns the model
class SlowModel final : public params::Model {
 public:
  /// Sleeps so long in each pass.
  SlowModel(std::unique_ptr<params::Model> inner, Duration slowness) : inner_(std::move(inner)), slowness_(slowness) {}
  std::vector<params::NamedTensor> parameters() override { return inner_->parameters(); }
  std::vector<params::NamedTensor> buffers() override { return inner_->buffers(); }
  params::Loss forward(const params::Batch& batch) override {
    system_clock().sleep_for(slowness_);
    return inner_->forward(batch);
  }
  void train(bool on) override { inner_->train(on); }
  bool across_replicas() override { return inner_->across_replicas(); }

 private:
  std::unique_ptr<params::Model> inner_;
  const Duration slowness_;
};

/// A dataset that sleeps for each training sample, as if it were read from slow storage.
/// Ownership:  borrows the dataset
class SlowDataset final : public records::Dataset {
 public:
  /// Sleeps so long for each sample.
  SlowDataset(const records::Dataset& inner, Duration slowness) : inner_(inner), slowness_(slowness) {}
  std::int64_t count() const override { return inner_.count(); }
  std::vector<std::int64_t> sample_shape() const override { return inner_.sample_shape(); }
  int classes() const override { return inner_.classes(); }
  std::int64_t label(std::int64_t sample) const override { return inner_.label(sample); }
  std::string key_of(std::int64_t sample) const override { return inner_.key_of(sample); }
  std::string content_of(std::int64_t sample) const override { return inner_.content_of(sample); }
  void prepare(std::int64_t sample, const records::SampleUse& use, std::span<float> out) const override {
    system_clock().sleep_for(slowness_);
    inner_.prepare(sample, use, out);
  }
  std::vector<std::string> class_names() const override { return inner_.class_names(); }
  int positive_class() const override { return inner_.positive_class(); }
  std::vector<std::string> feature_names() const override { return inner_.feature_names(); }
  std::vector<records::SliceColumn> slices(std::span<const std::string> names,
                                           std::span<const std::int64_t> part) const override {
    return inner_.slices(names, part);
  }

 private:
  const records::Dataset& inner_;
  const Duration slowness_;
};

/// A group whose operations are waited for straight after their launch, so that none goes on beside anything.
/// Ownership:  borrows the group
class ImpatientGroup final : public comm::Group {
 public:
  /// Passes everything on to this group.
  explicit ImpatientGroup(comm::Group& inner) : inner_(inner) {}
  const std::string& name() const override { return inner_.name(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::uint64_t generation() const override { return inner_.generation(); }
  Duration timeout() const override { return inner_.timeout(); }
  [[nodiscard]] comm::Work submit(comm::Collective collective) override {
    comm::Work work = inner_.submit(std::move(collective));
    work.wait();
    return work;
  }
  void run(comm::Collective collective) override { inner_.run(std::move(collective)); }
  void abort(const Error& error) override { inner_.abort(error); }
  std::uint64_t sent_bytes() const override { return inner_.sent_bytes(); }
  std::size_t small_bytes() const override { return inner_.small_bytes(); }
  bool try_all_reduce(const std::byte* input, std::byte* output, std::int64_t elements, DType dtype,
                      ReduceOp reduce) override {
    return inner_.try_all_reduce(input, output, elements, dtype, reduce);
  }
  spec::HostOfRank hosts() const override { return inner_.hosts(); }
  comm::Selection* selection() override { return inner_.selection(); }
  std::shared_ptr<const spec::Schedule> schedule(const std::string& key,
                                                 const std::function<spec::Schedule()>& build) override {
    return inner_.schedule(key, build);
  }

 private:
  comm::Group& inner_;
};

}  // namespace convoy::train
