// The registry: model names of recipes and what they build. A user's own module is added in one line.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convoy/params/model.h"
#include "convoy/spec/recipe.h"

namespace convoy::zoo {

/// What a model is to fit.
struct ModelRequest {
  /// The recipe's table.
  spec::ModelRecipe recipe;
  /// The shape of one sample, for example [1, 28, 28].
  std::vector<std::int64_t> sample_shape;
  /// The number of classes.
  std::int64_t classes = 10;
};

/// Builds a model with freshly initialised parameters; libtorch's default generator has been seeded by the caller.
using ModelFactory = std::function<std::unique_ptr<params::Model>(const ModelRequest&)>;

/// Names and factories.
/// Threads:    one caller at a time
class Registry {
 public:
  /// Adds a model; a second one of the same name replaces the first.
  void add(const std::string& name, ModelFactory factory) { factories_[name] = std::move(factory); }
  /// Adds a user's module in one line: add_module<Net>("net") for a Net with a default constructor and
  /// forward(input) -> logits.
  template <typename M>
  void add_module(const std::string& name) {
    add(name, [](const ModelRequest& request) {
      auto module = std::make_shared<M>();
      if (request.recipe.dtype == "float64") module->to(torch::kFloat64);
      return params::make_classifier(module);
    });
  }
  /// Builds a model: the one in the recipe's `script` file where there is one, else the one of its name.
  /// Errors:     kInvalidArgument for an unknown name (lists the known ones) or a request that does not fit the model
  std::unique_ptr<params::Model> make(const ModelRequest& request) const;
  /// Returns the names, sorted.
  std::vector<std::string> names() const;

 private:
  std::map<std::string, ModelFactory> factories_;
};

/// Returns the registry of the reference models: "softmax", "mlp", "cnn", "resnet20".
Registry reference_models();

}  // namespace convoy::zoo
