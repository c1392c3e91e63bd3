// TorchScript modules as models: trained as they are, alike in every execution, refused by name when they do not fit.
#include "convoy/zoo/script_model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

#include "convoy/base/error.h"
#include "convoy/params/random_scope.h"
#include "tests/support/ranks.h"
#include "tests/support/script_file.h"
#include "tests/support/temporary_folder.h"

namespace convoy::zoo {
namespace {

ModelRequest script_at(const std::string& path) {
  ModelRequest request;
  request.recipe.script = path;
  request.sample_shape = {1, 6, 6};
  return request;
}

class ScriptModel : public ::testing::Test {
 protected:
  ScriptModel() {
    run_scripts_alike();
    testing::save_script_net(path(), 6, 6);
  }
  std::string path() const { return folder_.path() + "/net.pt"; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() + "/" + name) << text;
    return folder_.path() + "/" + name;
  }

 private:
  testing::TemporaryFolder folder_;
};

TEST_F(ScriptModel, HasTheFilesParametersAndBuffers) {
  const auto model = reference_models().make(script_at(path()));
  std::vector<std::string> names;
  for (const params::NamedTensor& parameter : model->parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"filter", "gain", "shift", "weight", "bias"}));
  ASSERT_EQ(model->buffers().size(), 2U);
  EXPECT_EQ(model->buffers()[0].name, "running_mean");
}

// The optimising executor gives other bits from the second or third execution on.
TEST_F(ScriptModel, EveryExecutionGivesTheSameBits) {
  const auto model = reference_models().make(script_at(path()));
  torch::manual_seed(3);
  const params::Batch batch{torch::randn({5, 1, 6, 6}), torch::tensor({1, 0, 9, 4, 4})};
  std::vector<std::vector<torch::Tensor>> gradients;
  for (int execution = 0; execution < 6; ++execution) {
    const params::RandomScope scope({1, 0, 0, 0});
    for (const params::NamedTensor& parameter : model->parameters()) parameter.tensor.mutable_grad() = torch::Tensor();
    model->forward(batch).sum.backward();
    gradients.emplace_back();
    for (const params::NamedTensor& parameter : model->parameters()) gradients.back().push_back(parameter.tensor.grad().clone());
  }
  for (std::size_t execution = 1; execution < gradients.size(); ++execution) {
    for (std::size_t i = 0; i < gradients[0].size(); ++i) {
      EXPECT_TRUE(torch::equal(gradients[execution][i], gradients[0][i])) << "execution " << execution << ", parameter " << i;
    }
  }
}

TEST_F(ScriptModel, DropoutBelongsToThePlaceAndTrainingCanBeSwitchedOff) {
  const auto model = reference_models().make(script_at(path()));
  const params::Batch batch{torch::ones({2, 1, 6, 6}), torch::tensor({1, 2})};
  const auto output_at = [&](int replica) {
    const params::RandomScope scope({1, 0, replica, 0});
    return model->forward(batch).output.clone();
  };
  EXPECT_TRUE(torch::equal(output_at(0), output_at(0)));
  EXPECT_FALSE(torch::equal(output_at(0), output_at(1)));
  model->train(false);
  EXPECT_TRUE(torch::equal(output_at(0), output_at(1)));
}

TEST_F(ScriptModel, RefusesWhatIsNoModuleNamingTheFile) {
  for (const std::string& bad : {path() + ".none", write("text.pt", "no module"), write("empty.pt", "")}) {
    const Error error = testing::error_of([&] { load_script(script_at(bad)); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find(bad), std::string::npos) << error.message();
    EXPECT_EQ(error.message().find('\n'), std::string::npos) << error.message();
  }
  torch::jit::Module nothing("Nothing");
  nothing.define("def forward(self, x):\n    return x\n");
  nothing.save(path());
  EXPECT_NE(testing::error_of([&] { load_script(script_at(path())); }).message().find("has no parameter that asks"),
            std::string::npos);
}

}  // namespace
}  // namespace convoy::zoo
