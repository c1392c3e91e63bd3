#include "convoy/zoo/registry.h"

#include <fmt/format.h>

#include "convoy/base/error.h"
#include "convoy/base/text.h"
#include "convoy/zoo/models.h"
#include "convoy/zoo/resnet.h"
#include "convoy/zoo/script_model.h"

namespace convoy::zoo {
namespace {

template <typename M, typename... More>
ModelFactory factory_of(More... more) {
  return [more...](const ModelRequest& request) {
    auto module = std::make_shared<M>(request, more...);
    if (request.recipe.dtype == "float64") module->to(torch::kFloat64);
    return params::make_classifier(module);
  };
}

}  // namespace

std::unique_ptr<params::Model> Registry::make(const ModelRequest& request) const {
  if (!request.recipe.script.empty()) return load_script(request);
  const auto found = factories_.find(request.recipe.name);
  if (found != factories_.end()) return found->second(request);
  const std::vector<std::string> known = names();
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[model] name: there is no model '{}'{}; known are {}", request.recipe.name,
                          did_you_mean(request.recipe.name, known), fmt::join(known, ", ")));
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  for (const auto& factory : factories_) names.push_back(factory.first);
  return names;
}

Registry reference_models() {
  Registry registry;
  registry.add("softmax", factory_of<SoftmaxRegressionImpl>());
  registry.add("mlp", factory_of<MlpImpl>());
  registry.add("cnn", factory_of<CnnImpl>());
  registry.add("resnet20", factory_of<ResNetImpl>(3));
  return registry;
}

}  // namespace convoy::zoo
