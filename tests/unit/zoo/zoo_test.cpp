// The reference models, the registry, and dropout that belongs to its place.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convoy/base/error.h"
#include "convoy/params/random_scope.h"
#include "convoy/zoo/layers.h"
#include "convoy/zoo/models.h"
#include "convoy/zoo/registry.h"
#include "tests/support/ranks.h"

namespace convoy::zoo {
namespace {

ModelRequest request_for(const std::string& name, const std::string& dtype = "float32") {
  ModelRequest request;
  request.recipe.name = name;
  request.recipe.dtype = dtype;
  request.recipe.dropout = 0.25;
  request.sample_shape = {1, 28, 28};
  return request;
}

TEST(Zoo, EveryReferenceModelTrainsOnABatchInBothTypes) {
  const Registry registry = reference_models();
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"cnn", "mlp", "resnet20", "softmax"}));
  for (const std::string& name : registry.names()) {
    for (const auto type : {torch::kFloat32, torch::kFloat64}) {
      const auto model = registry.make(request_for(name, type == torch::kFloat32 ? "float32" : "float64"));
      const params::Loss loss = model->forward({torch::randn({3, 1, 28, 28}, type), torch::tensor({1, 0, 9})});
      EXPECT_EQ(loss.count, 3);
      EXPECT_EQ(loss.output.sizes().vec(), (std::vector<std::int64_t>{3, 10})) << name;
      loss.sum.backward();
      for (const params::NamedTensor& parameter : model->parameters()) {
        EXPECT_TRUE(parameter.tensor.grad().defined()) << name << ": " << parameter.name;
      }
    }
  }
}

TEST(Zoo, TheCnnHasRunningStatisticsAsBuffers) {
  const auto model = reference_models().make(request_for("cnn"));
  std::vector<std::string> names;
  for (const params::NamedTensor& buffer : model->buffers()) names.push_back(buffer.name);
  EXPECT_NE(std::find(names.begin(), names.end(), "norm1.running_mean"), names.end());
}

TEST(Zoo, RefusesWhatDoesNotFit) {
  const Registry registry = reference_models();
  const Error unknown = testing::error_of([&] { registry.make(request_for("cmn")); });
  EXPECT_EQ(unknown.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(unknown.message().find("did you mean 'cnn'"), std::string::npos) << unknown.message();
  ModelRequest flat = request_for("cnn");
  flat.sample_shape = {784};
  EXPECT_EQ(testing::error_of([&] { registry.make(flat); }).code(), ErrorCode::kInvalidArgument);
  ModelRequest deep = request_for("cnn");
  deep.recipe.channels.assign(12, 4);
  EXPECT_EQ(testing::error_of([&] { registry.make(deep); }).code(), ErrorCode::kInvalidArgument);
}

struct OwnImpl : torch::nn::Module {
  OwnImpl() { linear = register_module("linear", torch::nn::Linear(784, 10)); }
  torch::Tensor forward(const torch::Tensor& x) { return linear(x.flatten(1)); }
  torch::nn::Linear linear{nullptr};
};

TEST(Registry, TakesAUsersModuleInOneLine) {
  Registry registry = reference_models();
  registry.add_module<OwnImpl>("own");
  const auto model = registry.make(request_for("own"));
  EXPECT_EQ(model->parameters()[0].name, "linear.weight");
}

TEST(PathDropout, BelongsToReplicaMicroBatchStepAndPath) {
  PathDropout dropout(0.5, "dropout1");
  const torch::Tensor ones = torch::ones({1000});
  const auto mask = [&](const params::RandomPlace& place, PathDropout layer) {
    const params::RandomScope scope(place);
    torch::rand({3});  // other layers may draw before it
    return layer(ones);
  };
  const torch::Tensor first = mask({1, 2, 0, 0}, dropout);
  EXPECT_TRUE(torch::equal(first, mask({1, 2, 0, 0}, dropout))) << "replayed by recomputation";
  for (const params::RandomPlace& other : {params::RandomPlace{1, 2, 1, 0}, params::RandomPlace{1, 2, 0, 1},
                                           params::RandomPlace{1, 3, 0, 0}}) {
    const auto agreeing = first.eq(mask(other, dropout)).sum().item<std::int64_t>();
    EXPECT_GT(agreeing, 400);
    EXPECT_LT(agreeing, 600);
  }
  const auto agreeing = first.eq(mask({1, 2, 0, 0}, PathDropout(0.5, "dropout2"))).sum().item<std::int64_t>();
  EXPECT_GT(agreeing, 400);
  EXPECT_LT(agreeing, 600);
  EXPECT_NEAR(first.mean().item<double>(), 1.0, 0.1) << "what is kept is scaled up";
}

TEST(PathDropout, DoesNothingInEvaluation) {
  PathDropout dropout(0.5, "dropout1");
  dropout->eval();
  const torch::Tensor input = torch::randn({10});
  EXPECT_TRUE(torch::equal(dropout(input), input));
  EXPECT_EQ(testing::error_of([] { PathDropout(1.0, "all"); }).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace convoy::zoo
