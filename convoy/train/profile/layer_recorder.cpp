#include "convoy/train/profile/layer_recorder.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "convoy/base/error.h"

namespace convoy::train {
namespace {

thread_local LayerRecorder* active = nullptr;

TensorFacts facts_of(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), static_cast<std::int64_t>(tensor.element_size()), tensor.requires_grad()};
}

void add_tensors(const c10::IValue& value, std::vector<TensorFacts>& facts) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined()) facts.push_back(facts_of(tensor));
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) facts.push_back(facts_of(tensor));
  }
}

std::string short_name(std::string_view name) {
  const std::size_t colons = name.rfind("::");
  return std::string(colons == std::string_view::npos ? name : name.substr(colons + 2));
}

}  // namespace

// An operator or a backward node between two marks.
struct LayerRecorder::Watched {
  std::string name;
  std::size_t begin = 0;
  std::size_t end = 0;
  // Forward: the numbers of the nodes that it left are [first_node, end_node). Backward: the node's own number.
  std::uint64_t first_node = 0;
  std::uint64_t end_node = 0;
  std::string module;
  OperatorCall call;
};

struct LayerRecorder::Pass {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<Watched> forward;
  std::vector<Watched> backward;
};

// What libtorch calls; it knows functions only, so they find the recorder by the thread.
struct RecorderCallbacks {
  struct Context final : at::ObserverContext {
    bool forward = true;
    bool counted = false;  // whether it is watched, not only nested in one that is
    std::size_t index = 0;
  };

  static std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& function) {
    LayerRecorder* recorder = active;
    if (recorder == nullptr || recorder->passes_.empty()) return nullptr;
    const bool node = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
    if (node == recorder->in_forward_) return nullptr;
    auto context = std::make_unique<Context>();
    context->forward = !node;
    if (recorder->depth_++ > 0) return context;
    LayerRecorder::Pass& pass = *recorder->passes_.back();
    auto& list = node ? pass.backward : pass.forward;
    context->counted = true;
    context->index = list.size();
    LayerRecorder::Watched& watched = list.emplace_back();
    watched.name = node ? function.name() : short_name(function.name());
    watched.first_node = node ? static_cast<std::uint64_t>(function.seqNr()) : at::sequence_number::peek();
    if (!node) take_inputs(function, *recorder, watched);
    watched.begin = recorder->timer_.mark();
    return context;
  }

  static void end(const at::RecordFunction& function, at::ObserverContext* context) {
    LayerRecorder* recorder = active;
    if (context == nullptr || recorder == nullptr) return;
    const auto& mine = *static_cast<Context*>(context);
    --recorder->depth_;
    if (!mine.counted) return;
    LayerRecorder::Pass& pass = *recorder->passes_.back();
    LayerRecorder::Watched& watched = (mine.forward ? pass.forward : pass.backward)[mine.index];
    watched.end = recorder->timer_.mark();
    if (!mine.forward) return;
    watched.end_node = at::sequence_number::peek();
    for (const c10::IValue& value : function.outputs()) add_tensors(value, watched.call.outputs);
  }

  static void take_inputs(const at::RecordFunction& function, const LayerRecorder& recorder,
                          LayerRecorder::Watched& watched) {
    watched.call.name = watched.name;
    try {
      for (const c10::IValue& value : function.inputs()) {
        add_tensors(value, watched.call.inputs);
        if (value.isIntList() && watched.call.numbers.empty()) watched.call.numbers = value.toIntVector();
        if (watched.module.empty() && value.isTensor()) watched.module = module_of(value.toTensor(), recorder);
      }
    } catch (const c10::Error&) {
      // Some operators are announced without their inputs: they have times, and belong to no module.
    }
  }

  // The module of the parameter or buffer in whose memory a tensor lies; "" for none.
  static std::string module_of(const at::Tensor& tensor, const LayerRecorder& recorder) {
    if (!tensor.defined() || !tensor.has_storage()) return "";
    const params::FlatSpace& space = *recorder.space_;
    const auto* memory = static_cast<const std::byte*>(tensor.data_ptr());
    const auto buffer = recorder.buffer_modules_.find(memory);
    if (buffer != recorder.buffer_modules_.end()) return buffer->second;
    const auto* first = static_cast<const std::byte*>(space.values().data_ptr());
    if (memory < first || memory >= first + space.values().nbytes()) return "";
    const auto element = (memory - first) / static_cast<std::ptrdiff_t>(space.values().element_size());
    const auto& slots = space.slots();
    const auto after =
        std::upper_bound(slots.begin(), slots.end(), element,
                         [](std::ptrdiff_t at, const params::ParameterSlot& slot) { return at < slot.offset; });
    return module_path(std::prev(after)->name);
  }
};

LayerRecorder::LayerRecorder(DeviceTimer& timer) : timer_(timer) {}

LayerRecorder::~LayerRecorder() { stop(); }

void LayerRecorder::start(const params::FlatSpace& space, const std::vector<params::NamedTensor>& buffers) {
  CONVOY_CHECK(active == nullptr, "one recorder at a time");
  space_ = &space;
  thread_ = std::this_thread::get_id();
  buffer_modules_.clear();
  for (const params::NamedTensor& buffer : buffers) {
    if (buffer.tensor.numel() > 0) buffer_modules_.emplace(buffer.tensor.data_ptr(), module_path(buffer.name));
  }
  active = this;
  callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&RecorderCallbacks::start, &RecorderCallbacks::end)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

void LayerRecorder::stop() {
  if (active != this) return;
  at::removeCallback(callback_);
  active = nullptr;
  space_ = nullptr;
}

void LayerRecorder::begin_forward() {
  passes_.push_back(std::make_unique<Pass>());
  depth_ = 0;
  in_forward_ = true;
  passes_.back()->begin = timer_.mark();
}

void LayerRecorder::end_forward() {
  passes_.back()->end = timer_.mark();
  in_forward_ = false;
}

Duration LayerRecorder::forward_time() const {
  Duration sum{};
  for (const auto& pass : passes_) sum += timer_.between(pass->begin, pass->end);
  return sum;
}

void LayerRecorder::take_passes(LayerTable& table) {
  for (const auto& pass : passes_) {
    std::vector<OperatorRun> runs;
    for (const Watched& watched : pass->forward) {
      OperatorRun& run = runs.emplace_back();
      run.name = watched.name;
      run.module = watched.module;
      run.forward_ms = to_ms(timer_.between(watched.begin, watched.end));
      run.cost = operator_cost(watched.call);
      for (const TensorFacts& output : watched.call.outputs) run.output_bytes += static_cast<double>(output.bytes());
    }
    for (const Watched& node : pass->backward) {
      // Operators left their nodes in order.
      const auto after = std::upper_bound(pass->forward.begin(), pass->forward.end(), node.first_node,
                                          [](std::uint64_t at, const Watched& op) { return at < op.end_node; });
      if (after == pass->forward.end() || node.first_node < after->first_node) continue;
      runs[static_cast<std::size_t>(after - pass->forward.begin())].backward_ms +=
          to_ms(timer_.between(node.begin, node.end));
    }
    table.add_pass(runs);
  }
  passes_.clear();
}

params::Loss RecordedModel::forward(const params::Batch& batch) {
  if (recorder_ == nullptr || !recorder_->listens()) return model_->forward(batch);
  recorder_->begin_forward();
  params::Loss loss = model_->forward(batch);
  recorder_->end_forward();
  return loss;
}

std::string module_path(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

}  // namespace convoy::train
