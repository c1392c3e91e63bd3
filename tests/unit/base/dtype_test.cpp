// Element types and reductions: their numbers, sizes and names are part of the wire format.
#include "convoy/base/dtype.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace convoy {
namespace {

static_assert(element_bytes(DType::kFloat32) == sizeof(float));
static_assert(element_bytes(DType::kFloat64) == sizeof(double));
static_assert(element_bytes(DType::kInt32) == sizeof(std::int32_t));
static_assert(element_bytes(DType::kInt64) == sizeof(std::int64_t));
static_assert(element_bytes(DType::kUInt8) == sizeof(std::uint8_t));
static_assert(element_bytes(DType::kBFloat16) == sizeof(std::uint16_t));
static_assert(element_bytes(DType::kFloat16) == sizeof(std::uint16_t));

TEST(DType, KeepsItsNumbers) {
  EXPECT_EQ(static_cast<int>(DType::kFloat32), 0);
  EXPECT_EQ(static_cast<int>(DType::kFloat64), 1);
  EXPECT_EQ(static_cast<int>(DType::kInt32), 2);
  EXPECT_EQ(static_cast<int>(DType::kInt64), 3);
  EXPECT_EQ(static_cast<int>(DType::kUInt8), 4);
  EXPECT_EQ(static_cast<int>(DType::kBFloat16), 5);
  EXPECT_EQ(static_cast<int>(DType::kFloat16), 6);
  EXPECT_EQ(kLastDType, DType::kFloat16);
}

TEST(DType, HasTheFieldsUsualNames) {
  EXPECT_EQ(to_string(DType::kFloat32), "float32");
  EXPECT_EQ(to_string(DType::kFloat64), "float64");
  EXPECT_EQ(to_string(DType::kInt32), "int32");
  EXPECT_EQ(to_string(DType::kInt64), "int64");
  EXPECT_EQ(to_string(DType::kUInt8), "uint8");
  EXPECT_EQ(to_string(DType::kBFloat16), "bfloat16");
  EXPECT_EQ(to_string(DType::kFloat16), "float16");
}

TEST(DType, FromABrokenMessageIsUnknownAndHasNoSize) {
  const auto broken = static_cast<DType>(99);
  EXPECT_EQ(to_string(broken), "unknown");
  EXPECT_EQ(element_bytes(broken), 0u);
}

TEST(ReduceOp, KeepsItsNumbersAndNames) {
  EXPECT_EQ(static_cast<int>(ReduceOp::kSum), 0);
  EXPECT_EQ(static_cast<int>(ReduceOp::kMean), 1);
  EXPECT_EQ(static_cast<int>(ReduceOp::kMin), 2);
  EXPECT_EQ(static_cast<int>(ReduceOp::kMax), 3);
  EXPECT_EQ(static_cast<int>(ReduceOp::kProduct), 4);
  EXPECT_EQ(kLastReduceOp, ReduceOp::kProduct);
  EXPECT_EQ(to_string(ReduceOp::kSum), "sum");
  EXPECT_EQ(to_string(ReduceOp::kMean), "mean");
  EXPECT_EQ(to_string(ReduceOp::kMin), "min");
  EXPECT_EQ(to_string(ReduceOp::kMax), "max");
  EXPECT_EQ(to_string(ReduceOp::kProduct), "product");
  EXPECT_EQ(to_string(static_cast<ReduceOp>(99)), "unknown");
}

}  // namespace
}  // namespace convoy
