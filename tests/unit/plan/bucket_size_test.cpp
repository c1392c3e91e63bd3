// The size of buckets follows from what a link costs.
#include "convoy/plan/bucket_size.h"

#include <gtest/gtest.h>

namespace convoy::plan {
namespace {

law::Machine machine_of(double alpha_us, double gbytes_per_s) {
  law::Machine machine;
  machine.inside = {alpha_us * 1e-6, 1e-9 / gbytes_per_s};
  machine.between = machine.inside;
  return machine;
}

TEST(BucketSize, IsTheRecipesWhereItSaysOne) {
  spec::Recipe recipe;
  recipe.parallel.bucket_bytes = 12345;
  const BucketChoice choice = choose_bucket_bytes(recipe, machine_of(1, 10));
  EXPECT_EQ(choice.bytes, 12345);
  EXPECT_EQ(choice.source, "recipe");
}

TEST(BucketSize, IsBuiltInWithoutACalibration) {
  const BucketChoice choice = choose_bucket_bytes({}, std::nullopt);
  EXPECT_EQ(choice.bytes, spec::kBuiltInBucketBytes);
  EXPECT_EQ(choice.source, "built in");
  EXPECT_EQ(choose_bucket_bytes({}, law::Machine{}).source, "built in") << "a link without a rate says nothing";
}

TEST(BucketSize, MakesFixedCostsATwentieth) {
  // 1 us and 20 us besides, at 10 GB/s: 21 us are 5% of 420 us, of which 399 us carry 3.99 MB.
  const BucketChoice fast = choose_bucket_bytes({}, machine_of(1, 10));
  EXPECT_EQ(fast.source, "calibration");
  EXPECT_NEAR(static_cast<double>(fast.bytes), 3.99e6, 16384.0);
  // 1 Gbit/s: buckets are small, so that they can be hidden.
  EXPECT_NEAR(static_cast<double>(choose_bucket_bytes({}, machine_of(30, 0.117)).bytes), 0.117e3 * 50 * 19, 16384.0);
  EXPECT_EQ(choose_bucket_bytes({}, machine_of(30, 0.0117)).bytes, 64 << 10) << "but not smaller than this";
  EXPECT_EQ(choose_bucket_bytes({}, machine_of(500, 50)).bytes, 32 << 20) << "nor larger than this";
}

TEST(BucketSize, LooksAtTheLinkBetweenHosts) {
  law::Machine machine = machine_of(1, 10);
  machine.between = {30e-6, 1e-9 / 0.117};
  machine.host_of_rank = {0, 0, 1, 1};
  EXPECT_LT(choose_bucket_bytes({}, machine).bytes, 200 << 10);
  machine.host_of_rank = {0, 0, 0, 0};
  EXPECT_GT(choose_bucket_bytes({}, machine).bytes, 3 << 20);
}

}  // namespace
}  // namespace convoy::plan
