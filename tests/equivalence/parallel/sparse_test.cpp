// Sparse gradients of embeddings: the bits of dense ones, on any number of ranks, with fewer bytes.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "convoy/base/hash.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/params/optimizer.h"
#include "tests/support/groups.h"

namespace convoy::parallel {
namespace {

using params::Batch;
using testing::with_groups;

constexpr std::int64_t kRows = 3000;

struct WordsImpl : torch::nn::Module {
  explicit WordsImpl(bool sparse) {
    const auto options = [&](std::int64_t rows, std::int64_t width) {
      return torch::nn::EmbeddingOptions(rows, width).sparse(sparse);
    };
    words = register_module("words", torch::nn::Embedding(options(kRows, 7)));
    places = register_module("places", torch::nn::Embedding(options(40, 7)));
    output = register_module("output", torch::nn::Linear(7, 4));
  }
  torch::Tensor forward(const torch::Tensor& ids) {
    return output(torch::tanh(words(ids) + places(ids.remainder(40))).mean(1));
  }
  torch::nn::Embedding words{nullptr}, places{nullptr};
  torch::nn::Linear output{nullptr};
};

// Texts of three different words, so that no row is met twice in a micro-batch of one text.
Batch text(std::int64_t step, int replica, int micro) {
  const auto seed = static_cast<std::int64_t>(hash64(std::to_string(step * 100 + replica * 10 + micro)) % 100000);
  const torch::Tensor ids = torch::tensor({seed % kRows, (seed * 7 + 1) % kRows, (seed * 13 + 5) % 60}).view({1, 3});
  return {ids, torch::tensor({seed % 4})};
}

struct Outcome {
  std::string digest;
  std::uint64_t sent = 0;
};

Outcome train(int ranks, bool sparse, bool divide, const std::string& kind) {
  torch::manual_seed(3);
  const WordsImpl start(false);
  Outcome outcome;
  with_groups(ranks, [&](comm::Group& group) {
    auto net = std::make_shared<WordsImpl>(sparse);
    {
      const torch::NoGradGuard no_grad;
      for (std::size_t i = 0; i < net->parameters().size(); ++i) net->parameters()[i].copy_(start.parameters()[i]);
    }
    const auto model = params::make_classifier(net);
    DataParallelOptions options;
    options.replicas = 8;
    options.divide_update = divide;
    options.bucket_bytes = 1 << 12;
    DataParallel parallel(*model, group, options);
    params::OptimizerOptions optimizer_options;
    optimizer_options.kind = kind;
    optimizer_options.momentum = kind == "sgd" ? 0.9 : 0.0;
    optimizer_options.weight_decay = 0.01;
    params::Optimizer optimizer(parallel.space(), optimizer_options);
    std::uint64_t before = 0;
    for (int step = 0; step < 6; ++step) {
      if (step == 2) before = group.sent_bytes();
      std::vector<std::vector<Batch>> mine;
      for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
        mine.push_back({text(step, replica, 0), text(step, replica, 1)});
        if (step == 4 && replica == 7) mine.back() = {Batch{}, Batch{}};
      }
      StepResult result = parallel.step(step, mine);
      result.gradient.scale.clip = std::min(1.0, 0.5 / (result.gradient_norm + 1e-6));
      optimizer.update(result.gradient, 0.05);
    }
    const std::uint64_t sent = group.sent_bytes() - before;
    const std::string mine = parallel.digest();
    if (group.rank() == 0) outcome = {mine, sent};
  });
  return outcome;
}

TEST(SparseGradients, GiveTheBitsOfDenseOnesOnAnyNumberOfRanks) {
  torch::set_num_threads(1);
  for (const std::string kind : {"sgd", "adam"}) {
    const std::string dense = train(1, false, false, kind).digest;
    for (int ranks = 1; ranks <= 8; ++ranks) {
      EXPECT_EQ(train(ranks, true, false, kind).digest, dense) << kind << " on " << ranks << " ranks";
      EXPECT_EQ(train(ranks, true, true, kind).digest, dense) << kind << " on " << ranks << " ranks, divided";
    }
  }
}

TEST(SparseGradients, SendOnlyTheRowsThatWereTouched) {
  const std::uint64_t dense = train(4, false, false, "sgd").sent;
  const std::uint64_t sparse = train(4, true, false, "sgd").sent;
  EXPECT_GT(dense, 4 * kRows * 7 * sizeof(float)) << "four steps of dense gradients";
  EXPECT_LT(sparse, dense / 10);
}

TEST(SparseGradients, NameAParameterThatIsNotFinite) {
  with_groups(2, [&](comm::Group& group) {
    auto net = std::make_shared<WordsImpl>(true);
    const auto model = params::make_model(net, [&](WordsImpl& module, const Batch& batch) {
      params::Loss loss = params::cross_entropy(module.forward(batch.input), batch);
      const bool spoilt = batch.input[0][0].item<std::int64_t>() == 17;
      // A finite loss with a gradient that is not: the root's slope at 0.
      if (spoilt) loss.sum = loss.sum + (module.words(batch.input) * 0.0).abs().sqrt().sum();
      return loss;
    });
    DataParallelOptions options;
    options.replicas = 2;
    DataParallel parallel(*model, group, options);
    const auto step = [&](std::int64_t number, std::int64_t first) {
      const torch::Tensor ids = torch::tensor({group.rank() == 1 ? first : std::int64_t{3}, std::int64_t{5}}).view({1, 2});
      return parallel.step(number, std::vector<std::vector<Batch>>{{Batch{ids, torch::tensor({std::int64_t{1}})}}});
    };
    step(0, 9);
    const Error error = testing::error_of([&] { step(1, 17); });
    EXPECT_EQ(error.code(), ErrorCode::kFailed);
    EXPECT_NE(error.message().find("'words.weight' is not finite in step 1: rank 1"), std::string::npos) << error.message();
  });
}

}  // namespace
}  // namespace convoy::parallel
