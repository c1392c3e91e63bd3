// Element types and reductions, the words that schedules, messages and checkpoints share.
#pragma once

#include <cstddef>
#include <string_view>

namespace convoy {

/// The type of an element. The numbers are part of the wire format: never renumber.
enum class DType : unsigned char {
  kFloat32 = 0,
  kFloat64 = 1,
  kInt32 = 2,
  kInt64 = 3,
  kUInt8 = 4,
  kBFloat16 = 5,
  kFloat16 = 6
};

/// The type with the highest number.
inline constexpr DType kLastDType = DType::kFloat16;

/// Returns the size of one element in bytes.
constexpr std::size_t element_bytes(DType type) {
  switch (type) {
    case DType::kFloat32:
    case DType::kInt32: return 4;
    case DType::kFloat64:
    case DType::kInt64: return 8;
    case DType::kUInt8: return 1;
    case DType::kBFloat16:
    case DType::kFloat16: return 2;
  }
  return 0;
}

/// Returns the type's name, for example "float32".
constexpr std::string_view to_string(DType type) {
  switch (type) {
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
    case DType::kInt32: return "int32";
    case DType::kInt64: return "int64";
    case DType::kUInt8: return "uint8";
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat16: return "float16";
  }
  return "unknown";
}

/// How contributions are combined. The numbers are part of the wire format: never renumber.
enum class ReduceOp : unsigned char { kSum = 0, kMean = 1, kMin = 2, kMax = 3, kProduct = 4 };

/// The reduction with the highest number.
inline constexpr ReduceOp kLastReduceOp = ReduceOp::kProduct;

/// Returns the reduction's name, for example "sum".
constexpr std::string_view to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return "sum";
    case ReduceOp::kMean: return "mean";
    case ReduceOp::kMin: return "min";
    case ReduceOp::kMax: return "max";
    case ReduceOp::kProduct: return "product";
  }
  return "unknown";
}

}  // namespace convoy
