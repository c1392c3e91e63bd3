#include "convoy/zoo/script_model.h"

#include <fmt/format.h>
#include <torch/script.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "convoy/base/error.h"

namespace convoy::zoo {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class ScriptModel final : public params::Model {
 public:
  ScriptModel(torch::jit::Module module, std::string path) : module_(std::move(module)), path_(std::move(path)) {}

  std::vector<params::NamedTensor> parameters() override {
    std::vector<params::NamedTensor> list;
    for (const auto& item : module_.named_parameters()) list.push_back({item.name, item.value});
    return list;
  }

  std::vector<params::NamedTensor> buffers() override {
    std::vector<params::NamedTensor> list;
    for (const auto& item : module_.named_buffers()) list.push_back({item.name, item.value});
    return list;
  }

  params::Loss forward(const params::Batch& batch) override {
    const torch::IValue output = module_.forward({batch.input});
    if (!output.isTensor()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: forward returns a {}, not a tensor of logits", path_, output.tagKind()));
    }
    return params::cross_entropy(output.toTensor(), batch);
  }

  void train(bool on) override { module_.train(on); }

 private:
  torch::jit::Module module_;
  const std::string path_;
};

}  // namespace

std::unique_ptr<params::Model> load_script(const ModelRequest& request) {
  const std::string& path = request.recipe.script;
  if (!std::filesystem::is_regular_file(path)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("[model] script: there is no file {}", path));
  }
  torch::jit::Module module;
  try {
    module = torch::jit::load(path, torch::kCPU);
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[model] script: {} is no TorchScript module: {}", path, first_line(error.what())));
  }
  if (!module.find_method("forward")) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("[model] script: the module in {} has no forward", path));
  }
  bool trains = false;
  for (const auto& item : module.named_parameters()) trains = trains || item.value.requires_grad();
  if (!trains) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[model] script: the module in {} has no parameter that asks for a gradient", path));
  }
  if (request.recipe.dtype == "float64") module.to(torch::kFloat64);
  return std::make_unique<ScriptModel>(std::move(module), path);
}

void run_scripts_alike() { torch::jit::setGraphExecutorOptimize(false); }

}  // namespace convoy::zoo
