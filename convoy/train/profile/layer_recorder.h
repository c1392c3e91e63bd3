// The layer recorder: what libtorch runs in forward and backward passes, operator by operator.
//
// libtorch's C++ modules cannot be hooked; every operator can be watched. An operator at the top level of a forward pass
// belongs to the module whose parameter or buffer goes into it, which its memory tells. Autograd numbers the nodes that an
// operator leaves for backward, and a node that runs tells its number: so it belongs to the operator that left it.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "convoy/params/flat_space.h"
#include "convoy/params/model.h"
#include "convoy/train/profile/device_timer.h"
#include "convoy/train/profile/layer_table.h"

namespace convoy::train {

/// Watches the operators of this thread.
/// Threads:    all calls and the passes on one thread; one recorder at a time on a thread
class LayerRecorder {
 public:
  /// Ownership:  borrows timer while it lives
  explicit LayerRecorder(DeviceTimer& timer);
  ~LayerRecorder();
  LayerRecorder(const LayerRecorder&) = delete;
  LayerRecorder& operator=(const LayerRecorder&) = delete;

  /// Starts to record passes of a model whose parameters lie in the space, which it borrows until stop(), and which has
  /// these buffers.
  void start(const params::FlatSpace& space, const std::vector<params::NamedTensor>& buffers);
  /// Returns whether it records passes of the calling thread: only those of the one that started it.
  bool listens() const { return space_ != nullptr && std::this_thread::get_id() == thread_; }
  /// Says that a forward pass begins; what follows its end until the next one is its backward pass.
  void begin_forward();
  /// Says that the forward pass has ended.
  void end_forward();
  /// Adds all passes since the last call to the table. The timer must be synchronised.
  void take_passes(LayerTable& table);
  /// Returns the time in the forward passes since the last take_passes(). The timer must be synchronised.
  Duration forward_time() const;
  /// Stops to record.
  void stop();

 private:
  struct Watched;
  struct Pass;
  friend struct RecorderCallbacks;

  DeviceTimer& timer_;
  const params::FlatSpace* space_ = nullptr;
  std::map<const void*, std::string> buffer_modules_;
  std::thread::id thread_;
  std::uint64_t callback_ = 0;
  std::vector<std::unique_ptr<Pass>> passes_;
  bool in_forward_ = false;
  int depth_ = 0;
};

/// Passes everything on to a model and tells a recorder where forward passes begin and end.
class RecordedModel final : public params::Model {
 public:
  /// Ownership:  owns the model; borrows the recorder while set
  explicit RecordedModel(std::unique_ptr<params::Model> model) : model_(std::move(model)) {}

  /// Tells this recorder from now on; null for none.
  void tell(LayerRecorder* recorder) { recorder_ = recorder; }

  std::vector<params::NamedTensor> parameters() override { return model_->parameters(); }
  std::vector<params::NamedTensor> buffers() override { return model_->buffers(); }
  void train(bool on) override { model_->train(on); }
  params::Loss forward(const params::Batch& batch) override;

 private:
  const std::unique_ptr<params::Model> model_;
  LayerRecorder* recorder_ = nullptr;
};

/// Returns the path of the module that a parameter belongs to: "block1.conv" for "block1.conv.weight", "" for one of the
/// model itself.
std::string module_path(const std::string& parameter);

}  // namespace convoy::train
