// The reduction kernels against a plain walk along the program, bit by bit, on every instruction set of this processor.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "convoy/base/half.h"
#include "convoy/base/random.h"
#include "convoy/comm/engine/reduce.h"
#include "convoy/comm/kernels/steps.h"
#include "convoy/comm/kernels/targets.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::comm {
namespace {

using spec::kAdd;
using Bytes = std::vector<std::byte>;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64,  DType::kInt32,
                            DType::kInt64,   DType::kBFloat16, DType::kFloat16};
constexpr ReduceOp kReductions[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax,
                                    ReduceOp::kProduct};

// Runs `body` once for each instruction set; what follows uses the best one again.
void on_every_target(const std::function<void(const std::string&)>& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// An element type as the reference sees it: what it computes in, and how that is read and stored.
template <typename T>
struct Plain {
  using Stored = T;
  using Lane = T;
  static Lane read(T value) { return value; }
  static T store(Lane value) { return value; }
};
struct BFloat {
  using Stored = std::uint16_t;
  using Lane = float;
  static float read(Stored bits) { return float_of_bfloat16(bits); }
  static Stored store(float value) { return bfloat16_of_float(value); }
};
struct Half {
  using Stored = std::uint16_t;
  using Lane = float;
  static float read(Stored bits) { return float_of_float16(bits); }
  static Stored store(float value) { return float16_of_float(value); }
};

template <typename T>
T two(ReduceOp reduce, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == T{0} && b == T{0} && reduce == ReduceOp::kMin) return std::signbit(a) ? a : b;
    if (a == T{0} && b == T{0} && reduce == ReduceOp::kMax) return std::signbit(a) ? b : a;
  }
  if (reduce == ReduceOp::kMin) return a < b || a != a ? a : b;
  if (reduce == ReduceOp::kMax) return a > b || a != a ? a : b;
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::uint64_t;
    const auto left = static_cast<Unsigned>(a), right = static_cast<Unsigned>(b);
    return static_cast<T>(reduce == ReduceOp::kProduct ? left * right : left + right);
  } else {
    volatile T result = reduce == ReduceOp::kProduct ? a * b : a + b;
    return result;
  }
}

template <typename E>
Bytes reference_of(ReduceOp reduce, const std::vector<int>& program, const std::vector<Bytes>& sources,
                   std::size_t count, int divisor) {
  using Stored = typename E::Stored;
  Bytes result(count * sizeof(Stored));
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<typename E::Lane> open;
    for (const int step : program) {
      if (step == kAdd) {
        const auto upper = open.back();
        open.pop_back();
        open.back() = two(reduce, open.back(), upper);
        continue;
      }
      Stored stored;
      std::memcpy(&stored, sources[static_cast<std::size_t>(step)].data() + i * sizeof(Stored), sizeof(Stored));
      open.push_back(E::read(stored));
    }
    if (divisor > 1) open[0] = static_cast<typename E::Lane>(open[0] / static_cast<typename E::Lane>(divisor));
    const Stored stored = E::store(open[0]);
    std::memcpy(result.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
  return result;
}

Bytes reference(DType dtype, ReduceOp reduce, const std::vector<int>& program, const std::vector<Bytes>& sources,
                std::size_t count, int divisor) {
  switch (dtype) {
    case DType::kFloat32: return reference_of<Plain<float>>(reduce, program, sources, count, divisor);
    case DType::kFloat64: return reference_of<Plain<double>>(reduce, program, sources, count, divisor);
    case DType::kInt32: return reference_of<Plain<std::int32_t>>(reduce, program, sources, count, divisor);
    case DType::kInt64: return reference_of<Plain<std::int64_t>>(reduce, program, sources, count, divisor);
    case DType::kBFloat16: return reference_of<BFloat>(reduce, program, sources, count, divisor);
    default: return reference_of<Half>(reduce, program, sources, count, divisor);
  }
}

template <typename T>
void append(Bytes& bytes, T value) {
  const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// Elements of mixed size; about one in eight is a special value: NaN, infinity, a zero, subnormal, largest or smallest.
Bytes values_of(DType dtype, std::uint64_t seed, std::size_t count) {
  RandomStream random(seed * 31 + static_cast<std::uint64_t>(dtype));
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::uint64_t>(random.uniform() * 0x1p53) * 2862933555777941757U;
    const bool special = random.below(8) == 0;
    const double numbers[] = {
        std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL, 0.0, -0.0, 1e-41, -6e-8, 7e4};
    const double usual = (random.uniform() - 0.5) * std::exp2(static_cast<double>(random.below(20)));
    const double number = special ? numbers[random.below(8)] : usual;
    if (dtype == DType::kFloat32) append(bytes, static_cast<float>(number));
    if (dtype == DType::kFloat64) append(bytes, number);
    if (dtype == DType::kInt32) append(bytes, static_cast<std::int32_t>(special ? bits >> 32 : bits >> 56));
    if (dtype == DType::kInt64) append(bytes, static_cast<std::int64_t>(special ? bits : bits >> 40));
    // Any bits: signalling NaNs with payloads among them.
    const auto any = static_cast<std::uint16_t>(bits >> 48);
    if (dtype == DType::kBFloat16) append(bytes, special ? any : bfloat16_of_float(static_cast<float>(number)));
    if (dtype == DType::kFloat16) append(bytes, special ? any : float16_of_float(static_cast<float>(number)));
  }
  return bytes;
}

double value_at(DType dtype, const std::byte* at) {
  const auto as = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (dtype) {
    case DType::kFloat32: return as(float{});
    case DType::kFloat64: return as(double{});
    case DType::kBFloat16: return float_of_bfloat16(as(std::uint16_t{}));
    case DType::kFloat16: return float_of_float16(as(std::uint16_t{}));
    default: return 0.0;
  }
}

// Says where two results differ, or nothing. NaNs that were computed are equal whatever their payload.
std::string difference(DType dtype, ReduceOp reduce, const std::byte* got, const std::byte* wanted, std::size_t count) {
  const std::size_t width = element_bytes(dtype);
  const bool computed = reduce != ReduceOp::kMin && reduce != ReduceOp::kMax;
  if (count == 0 || std::memcmp(got, wanted, count * width) == 0) return "";
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* const a = got + i * width;
    const std::byte* const b = wanted + i * width;
    if (std::memcmp(a, b, width) == 0) continue;
    if (computed && std::isnan(value_at(dtype, a)) && std::isnan(value_at(dtype, b))) continue;
    return fmt::format("element {} is {} ({:#x}) and not {}", i, value_at(dtype, a), static_cast<int>(a[0]),
                       value_at(dtype, b));
  }
  return "";
}

// Combines `count` elements with every source and the target that many bytes off an aligned address, and watches the
// bytes around the target.
std::string try_combine(DType dtype, ReduceOp reduce, const std::vector<int>& program,
                        const std::vector<Bytes>& sources, const Bytes& expected, std::size_t count, std::size_t skew,
                        std::size_t target_skew, int divisor, bool stream = false) {
  const std::size_t width = element_bytes(dtype);
  std::vector<Bytes> moved;
  std::vector<const std::byte*> at;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::size_t shift = i % 2 == 0 ? skew : 0;
    moved.emplace_back(count * width + shift);
    if (count > 0) std::memcpy(moved.back().data() + shift, sources[i].data(), count * width);
    at.push_back(moved.back().data() + shift);
  }
  constexpr std::size_t kMargin = 80;
  Bytes target(count * width + 2 * kMargin, std::byte{0x5a});
  std::byte* const out = target.data() + kMargin - 16 + target_skew;
  combine(dtype, reduce, program, at, out, static_cast<std::int64_t>(count), divisor, stream);
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool inside = target.data() + i >= out && target.data() + i < out + count * width;
    if (!inside && target[i] != std::byte{0x5a}) return fmt::format("byte {} beside the target was written", i);
  }
  return difference(dtype, reduce, out, expected.data(), count);
}

const std::vector<std::vector<int>>& shapes() {
  static const std::vector<std::vector<int>> programs{
      {0},
      {0, 1, kAdd},
      {1, 0, kAdd},
      {0, 1, kAdd, 2, kAdd},
      {0, 1, 2, kAdd, kAdd},
      {0, 1, kAdd, 2, 3, kAdd, kAdd},
      {0, 1, 2, kAdd, 3, kAdd, kAdd},
      {0, 1, 2, 3, 4, kAdd, kAdd, kAdd, kAdd},
      {0, 1, kAdd, 2, 3, kAdd, kAdd, 4, 5, kAdd, kAdd, 6, kAdd},
      {0, 1, kAdd, 2, 3, kAdd, kAdd, 4, 5, kAdd, 6, 7, kAdd, kAdd, kAdd},
      {0, 0, kAdd, 1, 0, kAdd, kAdd},
  };
  return programs;
}

class Kernels : public ::testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(All, Kernels, ::testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_P(Kernels, GiveTheProgramsBitsAtAnyLengthAndAlignmentOnEveryInstructionSet) {
  const DType dtype = GetParam();
  std::vector<Bytes> sources;
  for (std::uint64_t i = 0; i < 8; ++i) sources.push_back(values_of(dtype, i + 1, 4099));
  std::vector<std::size_t> counts{4099};
  for (std::size_t count = 0; count < 68; ++count) counts.push_back(count);
  for (const ReduceOp reduce : kReductions) {
    if (!can_reduce(dtype, reduce)) continue;
    for (const std::vector<int>& program : shapes()) {
      const int divisor = reduce == ReduceOp::kMean ? static_cast<int>(program.size() / 2) + 1 : 1;
      if (program.size() == 1 && divisor == 1) continue;  // a copy
      const Bytes expected = reference(dtype, reduce, program, sources, 4099, divisor);
      on_every_target([&](const std::string& target) {
        for (const std::size_t count : counts) {
          const bool stream = count % 2 == 1;
          for (const auto& [skew, target_skew] : {std::pair{0, 0}, {1, 0}, {0, 3}, {7, 5}, {0, 8}}) {
            const std::string wrong =
                try_combine(dtype, reduce, program, sources, expected, count, static_cast<std::size_t>(skew),
                            static_cast<std::size_t>(target_skew), divisor, stream);
            ASSERT_EQ(wrong, "") << to_string(reduce) << " of " << count << " elements by program "
                                 << fmt::format("{}", fmt::join(program, " ")) << " at " << skew << ", " << target_skew
                                 << " on " << target;
          }
        }
      });
    }
  }
}

TEST_P(Kernels, MayWriteOverAnyOfTheirSources) {
  const DType dtype = GetParam();
  const std::vector<int> program{0, 1, kAdd, 2, kAdd};
  for (std::size_t over = 0; over < 3; ++over) {
    std::vector<Bytes> sources;
    for (std::uint64_t i = 0; i < 3; ++i) sources.push_back(values_of(dtype, i + 1, 1003));
    const Bytes expected = reference(dtype, ReduceOp::kSum, program, sources, 1003, 1);
    const std::vector<const std::byte*> at{sources[0].data(), sources[1].data(), sources[2].data()};
    combine(dtype, ReduceOp::kSum, program, at, sources[over].data(), 1003, 1);
    EXPECT_EQ(difference(dtype, ReduceOp::kSum, sources[over].data(), expected.data(), 1003), "") << over;
  }
}

TEST(CopyPastCaches, CopiesEveryByteAtAnyLengthAndAlignmentAndNoOther) {
  RandomStream random(3);
  Bytes source(3000);
  for (std::byte& byte : source) byte = static_cast<std::byte>(random.below(256));
  on_every_target([&](const std::string& target) {
    for (std::size_t bytes = 0; bytes < 2500; bytes += bytes < 300 ? 1 : 97) {
      for (const std::size_t skew : {0U, 1U, 13U, 64U}) {
        Bytes copy(3000, std::byte{0x5a});
        kernels::copy_past_caches(copy.data() + skew, source.data() + 3 * skew, bytes);
        Bytes expected(3000, std::byte{0x5a});
        std::memcpy(expected.data() + skew, source.data() + 3 * skew, bytes);
        ASSERT_EQ(copy, expected) << bytes << " at " << skew << " on " << target;
      }
    }
  });
}

// Any binary tree over any sources, each as often as the tree likes.
std::vector<int> any_program(int values, int sources) {
  if (values == 1) return {*rc::gen::inRange(0, sources)};
  const int lower = *rc::gen::inRange(1, values);
  std::vector<int> program = any_program(lower, sources);
  const std::vector<int> upper = any_program(values - lower, sources);
  program.insert(program.end(), upper.begin(), upper.end());
  program.push_back(kAdd);
  return program;
}

RC_GTEST_PROP(KernelsProperty, AnyProgramGivesTheBitsOfItsOrder, ()) {
  const DType dtype = *rc::gen::elementOf(std::vector<DType>(std::begin(kTypes), std::end(kTypes)));
  const ReduceOp reduce =
      *rc::gen::elementOf(std::vector<ReduceOp>{ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct});
  const std::vector<int> program = any_program(*rc::gen::inRange(1, kernels::kMaxDepth + 1), 9);
  if (program.size() == 1) return;
  const auto count = static_cast<std::size_t>(*rc::gen::inRange(0, 300));
  const auto skew = static_cast<std::size_t>(*rc::gen::inRange(0, 8));
  std::vector<Bytes> sources;
  for (std::uint64_t i = 0; i < 9; ++i) sources.push_back(values_of(dtype, i + 100, count));
  const Bytes expected = reference(dtype, reduce, program, sources, count, 1);
  on_every_target([&](const std::string&) {
    RC_ASSERT(try_combine(dtype, reduce, program, sources, expected, count, skew, skew / 2, 1) == "");
  });
}

template <typename T>
std::vector<T> combined(DType dtype, ReduceOp reduce, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> out(a.size());
  const std::vector<const std::byte*> sources{reinterpret_cast<const std::byte*>(a.data()),
                                              reinterpret_cast<const std::byte*>(b.data())};
  combine(dtype, reduce, std::vector<int>{0, 1, kAdd}, sources, reinterpret_cast<std::byte*>(out.data()),
          static_cast<std::int64_t>(a.size()), 1);
  return out;
}

TEST(MinAndMax, HandOnNaNAndTakeMinusZeroToBeSmallerThanZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{nan, 1.0F, -0.0F, 0.0F, HUGE_VALF, nan}, b{1.0F, nan, 0.0F, -0.0F, -HUGE_VALF, nan};
  on_every_target([&](const std::string& target) {
    for (const ReduceOp reduce : {ReduceOp::kMin, ReduceOp::kMax}) {
      const std::vector<float> found = combined(DType::kFloat32, reduce, a, b);
      for (const std::size_t i : {0U, 1U, 5U}) EXPECT_TRUE(std::isnan(found[i])) << target;
      EXPECT_EQ(std::signbit(found[2]), reduce == ReduceOp::kMin) << target;
      EXPECT_EQ(std::signbit(found[3]), reduce == ReduceOp::kMin) << target;
      EXPECT_EQ(found[4], reduce == ReduceOp::kMin ? -HUGE_VALF : HUGE_VALF) << target;
    }
  });
}

TEST(Integers, WrapRoundInSumsAndProducts) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> a{kMost, kMost, -3}, b{1, 2, 5};
  using Numbers = std::vector<std::int64_t>;
  on_every_target([&](const std::string& target) {
    EXPECT_EQ(combined(DType::kInt64, ReduceOp::kSum, a, b), (Numbers{-kMost - 1, -kMost, 2})) << target;
    EXPECT_EQ(combined(DType::kInt64, ReduceOp::kProduct, a, b), (Numbers{kMost, -2, -15})) << target;
  });
}

TEST(HalfTypes, RoundOnceAndNotAtEveryAddition) {
  // 256 + 1 is 256 in bfloat16, and 2048 + 1 is 2048 in float16: sums that are stored between get stuck there.
  for (const auto& [dtype, leaves, one, wanted] :
       {std::tuple{DType::kBFloat16, 512, bfloat16_of_float(1.0F), bfloat16_of_float(512.0F)},
        std::tuple{DType::kFloat16, 4096, float16_of_float(1.0F), float16_of_float(4096.0F)}}) {
    const std::vector<const std::byte*> sources(static_cast<std::size_t>(leaves),
                                                reinterpret_cast<const std::byte*>(&one));
    std::vector<int> chain{0};
    for (int leaf = 1; leaf < leaves; ++leaf) chain.insert(chain.end(), {leaf, kAdd});
    std::uint16_t sum = 0;
    combine(dtype, ReduceOp::kSum, chain, sources, reinterpret_cast<std::byte*>(&sum), 1, 1);
    EXPECT_EQ(sum, wanted) << to_string(dtype);
    combine(dtype, ReduceOp::kMean, chain, sources, reinterpret_cast<std::byte*>(&sum), 1, leaves);
    EXPECT_EQ(sum, one) << to_string(dtype);
  }
}

TEST(HalfTypes, RoundToNearestEvenOnEveryInstructionSet) {
  // Each of the 65536 values with one far from it: sums and products that round, overflow or are subnormal.
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    std::vector<std::uint16_t> a(65536), b(65536);
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<std::uint16_t>(i);
      b[i] = static_cast<std::uint16_t>(i * 40503U);
    }
    const auto bytes = [](const std::vector<std::uint16_t>& values) {
      const auto* const begin = reinterpret_cast<const std::byte*>(values.data());
      return Bytes(begin, begin + values.size() * 2);
    };
    for (const ReduceOp reduce : {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin}) {
      const Bytes expected = reference(dtype, reduce, {0, 1, kAdd}, {bytes(a), bytes(b)}, a.size(), 1);
      on_every_target([&](const std::string& target) {
        const Bytes found = bytes(combined(dtype, reduce, a, b));
        EXPECT_EQ(difference(dtype, reduce, found.data(), expected.data(), a.size()), "")
            << to_string(dtype) << " " << to_string(reduce) << " on " << target;
      });
    }
  }
}

}  // namespace
}  // namespace convoy::comm
