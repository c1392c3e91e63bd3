// The arithmetic of updates, to the last bit: as the formula is written, one element after another.
#include "convoy/params/update/update_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace convoy::params {
namespace {

template <typename T>
std::vector<T> awkward_sums() {
  std::vector<T> sums = {T(0), T(-0.0), std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::min(),
                         std::numeric_limits<T>::max() / 4, T(1) / T(3)};
  for (int i = 0; i < 200; ++i) sums.push_back(std::ldexp(static_cast<T>(i * 37 % 101) - T(50.3), i * 3 % 60 - 40));
  return sums;
}

// One element after another, with a division, as the formula is written.
template <typename T>
void expect_divided(double count) {
  const std::vector<T> sums = awkward_sums<T>();
  std::vector<T> values(sums.size(), T(0.25));
  std::vector<T> momentum(sums.size(), T(0));
  SgdCoefficients c;
  c.rate = 0.1;
  c.momentum = 0.9;
  c.weight_decay = 0.01;
  c.first = true;
  sgd_update<T>(values.data(), sums.data(), momentum.data(), static_cast<std::int64_t>(sums.size()), {count, 0.7}, c);
  std::vector<T> plain(sums.size(), T(0.25));
  sgd_update<T>(plain.data(), sums.data(), nullptr, static_cast<std::int64_t>(sums.size()), {count, 0.7}, [&] {
    SgdCoefficients other = c;
    other.momentum = 0.0;
    return other;
  }());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const T quotient = sums[i] / static_cast<T>(count);
    const T clipped = quotient * static_cast<T>(0.7);
    const T decay = static_cast<T>(0.01) * T(0.25);
    const T gradient = clipped + decay;
    const T step = static_cast<T>(0.1) * gradient;
    const T expected = T(0.25) - step;
    EXPECT_EQ(std::memcmp(&values[i], &expected, sizeof(T)), 0) << "sum " << sums[i] << " over " << count;
    EXPECT_EQ(std::memcmp(&plain[i], &expected, sizeof(T)), 0) << "sum " << sums[i] << " over " << count;
    EXPECT_EQ(std::memcmp(&momentum[i], &gradient, sizeof(T)), 0);
  }
}

TEST(UpdateKernels, FollowTheFormulaToTheLastBit) {
  for (const double count : {1.0, 2.0, 128.0, 1048576.0, 3.0, 100.0, 127.0, 0.5, 1e6}) {
    expect_divided<float>(count);
    expect_divided<double>(count);
  }
}

}  // namespace
}  // namespace convoy::params
