// The arithmetic of reductions against plain loops.
#include "convoy/comm/engine/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/random.h"
#include "convoy/spec/replica_tree.h"
#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

using spec::kAdd;

template <typename T>
const std::byte* raw(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

std::vector<float> random_floats(std::uint64_t seed, std::size_t count) {
  RandomStream random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>((random.uniform() - 0.5) * std::pow(2.0, random.below(30)));
  return values;
}

TEST(Combine, FollowsTheProgramAndNotTheOrderOfSources) {
  const std::vector<float> a{1e8f}, b{-1e8f}, c{1.0f};
  const std::vector<const std::byte*> sources{raw(a), raw(b), raw(c)};
  std::vector<float> out(1);
  auto* const target = reinterpret_cast<std::byte*>(out.data());
  combine(DType::kFloat32, ReduceOp::kSum, std::vector<int>{0, 1, kAdd, 2, kAdd}, sources, target, 1, 1);
  EXPECT_EQ(out[0], 1.0f);
  combine(DType::kFloat32, ReduceOp::kSum, std::vector<int>{0, 1, 2, kAdd, kAdd}, sources, target, 1, 1);
  EXPECT_EQ(out[0], 0.0f) << "1 is lost beside 1e8";
}

TEST(Combine, GivesTheSameBitsAtAnyAlignmentAndLength) {
  const std::vector<int> program{0, 1, kAdd, 2, 3, kAdd, kAdd, 4, kAdd};
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{7}, std::size_t{1023}, std::size_t{1025}, std::size_t{5000}}) {
    std::vector<std::vector<float>> values;
    for (std::uint64_t i = 0; i < 5; ++i) values.push_back(random_floats(i + 1, count));
    std::vector<float> expected(count);
    for (std::size_t i = 0; i < count; ++i) {
      volatile float left = values[0][i] + values[1][i];
      volatile float right = values[2][i] + values[3][i];
      volatile float sum = left + right;
      sum = sum + values[4][i];
      expected[i] = sum / 5.0f;
    }
    for (std::size_t skew = 0; skew < 4; ++skew) {
      std::vector<std::vector<std::byte>> moved;
      std::vector<const std::byte*> sources;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t shift = i % 2 == 0 ? skew : 0;
        moved.emplace_back(count * 4 + 4);
        std::memcpy(moved.back().data() + shift, values[i].data(), count * 4);
        sources.push_back(moved.back().data() + shift);
      }
      std::vector<std::byte> out(count * 4 + 4);
      combine(DType::kFloat32, ReduceOp::kMean, program, sources, out.data() + skew, static_cast<std::int64_t>(count),
              5);
      EXPECT_EQ(std::memcmp(out.data() + skew, expected.data(), count * 4), 0) << count << " at " << skew;
    }
  }
}

TEST(Combine, MayWriteOverOneOfItsSources) {
  std::vector<double> a(3000), b(3000), c(3000);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<double>(i);
    b[i] = 2.0 * static_cast<double>(i);
    c[i] = 0.5;
  }
  auto* const target = reinterpret_cast<std::byte*>(b.data());
  combine(DType::kFloat64, ReduceOp::kSum, std::vector<int>{0, 1, kAdd, 2, kAdd},
          std::vector<const std::byte*>{raw(a), raw(b), raw(c)}, target, 3000, 1);
  for (std::size_t i = 0; i < b.size(); ++i) ASSERT_EQ(b[i], 3.0 * static_cast<double>(i) + 0.5);
}

TEST(Combine, HandsOnNaNInMinAndMaxFromEitherSide) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{nan, 1, 2, -3}, b{1, nan, -2, 3};
  std::vector<float> out(4);
  auto* const target = reinterpret_cast<std::byte*>(out.data());
  const std::vector<const std::byte*> sources{raw(a), raw(b)};
  combine(DType::kFloat32, ReduceOp::kMin, std::vector<int>{0, 1, kAdd}, sources, target, 4, 1);
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  EXPECT_EQ(out[2], -2.0f);
  EXPECT_EQ(out[3], -3.0f);
  combine(DType::kFloat32, ReduceOp::kMax, std::vector<int>{0, 1, kAdd}, sources, target, 4, 1);
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  EXPECT_EQ(out[2], 2.0f);
  EXPECT_EQ(out[3], 3.0f);
}

TEST(Combine, LetsIntegersWrapRound) {
  const std::vector<std::int32_t> a{std::numeric_limits<std::int32_t>::max()}, b{1};
  std::vector<std::int32_t> out(1);
  combine(DType::kInt32, ReduceOp::kSum, std::vector<int>{0, 1, kAdd}, std::vector<const std::byte*>{raw(a), raw(b)},
          reinterpret_cast<std::byte*>(out.data()), 1, 1);
  EXPECT_EQ(out[0], std::numeric_limits<std::int32_t>::min());
}

TEST(Combine, RefusesWhatHasNoMeaning) {
  EXPECT_TRUE(can_reduce(DType::kFloat32, ReduceOp::kMean));
  EXPECT_FALSE(can_reduce(DType::kInt64, ReduceOp::kMean));
  EXPECT_FALSE(can_reduce(DType::kUInt8, ReduceOp::kMax));
  std::byte byte{};
  const std::vector<const std::byte*> sources{&byte, &byte};
  const Error error = testing::error_of([&] {
    combine(DType::kUInt8, ReduceOp::kSum, std::vector<int>{0, 1, kAdd}, sources, &byte, 1, 1);
  });
  EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
  EXPECT_THROW(combine(DType::kUInt8, ReduceOp::kSum, std::vector<int>{0, 2, kAdd}, sources, &byte, 1, 1), Error);
  EXPECT_THROW(combine(DType::kUInt8, ReduceOp::kSum, std::vector<int>{0, 1}, sources, &byte, 1, 1), Error);
}

TEST(Combine, TakesTheCanonicalTreeOfManyLeaves) {
  const int leaves = 1000;
  std::vector<spec::ReplicaRange> parts;
  std::vector<std::vector<double>> values;
  std::vector<const std::byte*> sources;
  std::vector<double> plain;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    parts.push_back({leaf, leaf + 1});
    plain.push_back(1.0 / (leaf + 1));
    values.push_back({plain.back()});
  }
  for (const auto& value : values) sources.push_back(raw(value));
  double out = 0.0;
  combine(DType::kFloat64, ReduceOp::kSum, spec::tree_program(leaves, parts), sources,
          reinterpret_cast<std::byte*>(&out), 1, 1);
  EXPECT_EQ(out, spec::tree_sum(plain));
}

}  // namespace
}  // namespace convoy::comm
