// A rank that loads data draws as the others do: random streams, and a loader beside libtorch's own threads.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <numeric>

#include "convoy/params/random_scope.h"
#include "convoy/records/images/image_dataset.h"
#include "convoy/records/loader.h"
#include "convoy/zoo/layers.h"
#include "tests/unit/records/test_images.h"

namespace convoy::train {
namespace {

constexpr Duration kLimit = std::chrono::seconds(20);

// What a rank's random layers do in a step, and where libtorch's default generator stands after it.
struct Drawn {
  torch::Tensor path_mask, plain_mask, generator;
};

std::vector<std::int64_t> first_samples(std::int64_t samples) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(samples));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Five steps of a replicated stream; a rank with a loader also varies images, on the loader's thread and by itself.
std::vector<Drawn> run_rank(bool with_loader) {
  const records::ImageDataset dataset(records::make_images(20, 6, 5), {records::Normalisation(128.0, 64.0)}, {2, true},
                                      7);
  const std::vector<std::int64_t> training = first_samples(20);
  const spec::SamplePlan plan(spec::SamplePlanOptions{20, 4, 1, 1, false, 3});
  std::unique_ptr<records::Loader> loader;
  if (with_loader) {
    const records::LoaderOptions options{{0, 1}, 0, 5, 2, {}, nullptr};
    loader = std::make_unique<records::Loader>(records::BatchSource{dataset, training}, plan, options);
  }
  zoo::PathDropout path_dropout(0.5, "dropout");
  torch::nn::Dropout plain_dropout(0.5);
  std::vector<Drawn> steps;
  for (int step = 0; step < 5; ++step) {
    if (loader) {
      loader->next(kLimit);
      torch::rand({7 + step});  // a user's own augmentation on the step loop's thread
    }
    const params::RandomScope scope({1, step, 0, 0});
    Drawn drawn;
    drawn.path_mask = path_dropout(torch::ones({1000}));
    drawn.plain_mask = plain_dropout(torch::ones({1000}));
    drawn.generator = at::detail::getDefaultCPUGenerator().get_state();
    steps.push_back(drawn);
  }
  return steps;
}

TEST(RandomStreams, StayEqualAfterEachStepWhenOnlyOneRankLoadsData) {
  torch::manual_seed(1);
  const std::vector<Drawn> with_loader = run_rank(true);
  torch::manual_seed(2);
  const std::vector<Drawn> without = run_rank(false);
  for (std::size_t step = 0; step < 5; ++step) {
    EXPECT_TRUE(torch::equal(with_loader[step].path_mask, without[step].path_mask)) << "step " << step;
    EXPECT_TRUE(torch::equal(with_loader[step].plain_mask, without[step].plain_mask)) << "step " << step;
    EXPECT_TRUE(torch::equal(with_loader[step].generator, without[step].generator)) << "step " << step;
  }
  EXPECT_FALSE(torch::equal(without[0].path_mask, without[1].path_mask));
  EXPECT_FALSE(torch::equal(without[0].plain_mask, without[1].plain_mask));
}

// A product large enough that libtorch splits it over its threads.
float parallel_product() {
  const torch::Tensor square = torch::full({192, 192}, 0.5f);
  return torch::mm(square, square)[3][5].item<float>();
}

// Samples whose preparation is such a product.
class Products final : public records::Dataset {
 public:
  std::int64_t count() const override { return 6; }
  std::vector<std::int64_t> sample_shape() const override { return {1}; }
  int classes() const override { return 2; }
  std::int64_t label(std::int64_t sample) const override { return sample % 2; }
  std::string key_of(std::int64_t sample) const override { return std::to_string(sample); }
  std::string content_of(std::int64_t sample) const override { return std::to_string(sample); }
  void prepare(std::int64_t, const records::SampleUse&, std::span<float> out) const override {
    out[0] = parallel_product();
  }
  std::vector<records::SliceColumn> slices(std::span<const std::string>, std::span<const std::int64_t>) const override {
    return {};
  }
};

TEST(Loader, StartsAndFinishesBesideLibtorchsThreadsEveryTime) {
  torch::set_num_threads(2);
  const Products dataset;
  const std::vector<std::int64_t> training = first_samples(6);
  const spec::SamplePlan plan(spec::SamplePlanOptions{6, 3, 2, 1, false, 1});
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(parallel_product(), 48.0f);
    records::Loader first({dataset, training}, plan, {{0, 1}, 0, 2, 2, {}, nullptr});
    records::Loader second({dataset, training}, plan, {{1, 2}, 0, 2, 2, {}, nullptr});
    for (records::Loader* loader : {&first, &second}) {
      while (!loader->done()) {
        for (const float value : loader->next(kLimit).replicas[0].micro_batches[0].values) EXPECT_EQ(value, 48.0f);
      }
    }
  }
  torch::set_num_threads(1);
}

}  // namespace
}  // namespace convoy::train
