// What collectives are compared with: values of each rank, and their serial combination along the canonical tree.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "convoy/base/dtype.h"
#include "convoy/base/half.h"
#include "convoy/base/random.h"

namespace convoy::comm {

/// Elements of any type.
using Bytes = std::vector<std::byte>;

/// The bytes of values.
template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Values that differ by source and element, of mixed size, with rounding in every sum.
template <typename T>
std::vector<T> values_of(int source, std::int64_t elements) {
  RandomStream random(static_cast<std::uint64_t>(source) * 7919 + 1);
  std::vector<T> values(static_cast<std::size_t>(elements));
  for (T& value : values) {
    const double number = (random.uniform() - 0.5) * std::pow(2.0, static_cast<double>(random.below(40)));
    value = static_cast<T>(std::is_integral_v<T> ? std::floor(number / 1024.0) : number);
  }
  return values;
}

/// Whether a is smaller than b, with -0 smaller than 0.
template <typename T>
bool comes_before(T a, T b) {
  return a < b || (a == b && std::signbit(static_cast<double>(a)) && !std::signbit(static_cast<double>(b)));
}

/// Two values combined.
template <typename T>
T combine_two(ReduceOp reduce, T a, T b) {
  switch (reduce) {
    case ReduceOp::kMin: return comes_before(a, b) ? a : b;
    case ReduceOp::kMax: return comes_before(a, b) ? b : a;
    case ReduceOp::kProduct:
      // Products of signed numbers that do not fit are not defined in C++; those of unsigned ones wrap round.
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      return static_cast<T>(a * b);
    default: return static_cast<T>(a + b);
  }
}

/// Combines leaves [begin, end) of a tree over all `values`, in the canonical order.
template <typename T>
std::vector<T> tree_reference(const std::vector<std::vector<T>>& values, ReduceOp reduce, std::size_t begin,
                              std::size_t end) {
  if (end - begin == 1) return values[begin];
  std::size_t half = 1;
  while (half * 2 < end - begin) half *= 2;
  std::vector<T> left = tree_reference(values, reduce, begin, begin + half);
  const std::vector<T> right = tree_reference(values, reduce, begin + half, end);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = combine_two(reduce, left[i], right[i]);
  return left;
}

/// Combines values of many sources.
template <typename T>
std::vector<T> reference_of(const std::vector<std::vector<T>>& values, ReduceOp reduce) {
  std::vector<T> result = tree_reference(values, reduce, 0, values.size());
  if (reduce == ReduceOp::kMean) {
    for (T& value : result) value = static_cast<T>(value / static_cast<T>(values.size()));
  }
  return result;
}

/// Combines the values of sources 0 to leaves - 1.
template <typename T>
std::vector<T> reference(int leaves, std::int64_t elements, ReduceOp reduce) {
  std::vector<std::vector<T>> values;
  for (int leaf = 0; leaf < leaves; ++leaf) values.push_back(values_of<T>(leaf, elements));
  return reference_of(values, reduce);
}

/// How float32 becomes a 16-bit type.
using Narrow = std::uint16_t (*)(float);
/// The way back.
using Widen = float (*)(std::uint16_t);

/// Values as elements of a 16-bit type.
inline Bytes narrowed(const std::vector<float>& values, Narrow narrow) {
  std::vector<std::uint16_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(narrow(value));
  return bytes_of(bits);
}

/// Values within the range of float16.
inline std::vector<float> small_values_of(int source, std::int64_t elements) {
  std::vector<float> values = values_of<float>(source, elements);
  for (float& value : values) value *= 0x1p-30F;
  return values;
}

/// The values of a source as elements of a type.
inline Bytes values_as(DType dtype, int source, std::int64_t elements) {
  switch (dtype) {
    case DType::kFloat32: return bytes_of(values_of<float>(source, elements));
    case DType::kFloat64: return bytes_of(values_of<double>(source, elements));
    case DType::kInt32: return bytes_of(values_of<std::int32_t>(source, elements));
    case DType::kInt64: return bytes_of(values_of<std::int64_t>(source, elements));
    case DType::kBFloat16: return narrowed(small_values_of(source, elements), bfloat16_of_float);
    case DType::kFloat16: return narrowed(small_values_of(source, elements), float16_of_float);
    case DType::kUInt8: break;
  }
  Bytes bytes = bytes_of(values_of<std::int32_t>(source, elements));
  bytes.resize(static_cast<std::size_t>(elements));
  return bytes;
}

/// Widened, combined in float32, rounded once.
inline Bytes half_reference(int leaves, std::int64_t elements, ReduceOp reduce, Widen widen, Narrow narrow) {
  std::vector<std::vector<float>> values;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    values.push_back(small_values_of(leaf, elements));
    for (float& value : values.back()) value = widen(narrow(value));
  }
  return narrowed(reference_of(values, reduce), narrow);
}

/// All sources combined along the canonical tree over them.
inline Bytes reference_as(DType dtype, int leaves, std::int64_t elements, ReduceOp reduce) {
  switch (dtype) {
    case DType::kFloat32: return bytes_of(reference<float>(leaves, elements, reduce));
    case DType::kFloat64: return bytes_of(reference<double>(leaves, elements, reduce));
    case DType::kInt32: return bytes_of(reference<std::int32_t>(leaves, elements, reduce));
    case DType::kBFloat16: return half_reference(leaves, elements, reduce, float_of_bfloat16, bfloat16_of_float);
    case DType::kFloat16: return half_reference(leaves, elements, reduce, float_of_float16, float16_of_float);
    default: return bytes_of(reference<std::int64_t>(leaves, elements, reduce));
  }
}

}  // namespace convoy::comm
