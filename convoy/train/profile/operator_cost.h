// What an operator costs by its shapes: arithmetic and bytes moved, forward and backward.
//
// Counted are multiplications and additions, each as one: a product of [M, K] and [K, N] is 2 M N K. Bytes are those of
// each tensor that goes in or comes out, once: what a kernel moves at least. Backward of a product is one product of the
// same size for each input that wants a gradient; elementwise operators cost in backward what they cost in forward.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::train {

/// A tensor that goes into an operator or comes out of it.
struct TensorFacts {
  /// Its shape; empty for a single element.
  std::vector<std::int64_t> shape;
  /// Bytes of one element.
  std::int64_t element_bytes = 4;
  /// Whether backward makes a gradient for it.
  bool wants_gradient = false;

  /// Returns the number of elements.
  std::int64_t elements() const;
  /// Returns the bytes.
  std::int64_t bytes() const { return elements() * element_bytes; }
};

/// One call of an operator.
struct OperatorCall {
  /// Its name without the library's prefix, for example "conv2d".
  std::string name;
  /// Tensors in the order of its arguments.
  std::vector<TensorFacts> inputs;
  /// Tensors that it returns.
  std::vector<TensorFacts> outputs;
  /// The first list of whole numbers among its arguments: for pooling, the window.
  std::vector<std::int64_t> numbers;
};

/// Arithmetic and bytes.
struct OperatorCost {
  /// Multiplications and additions in forward.
  double forward_flop = 0.0;
  /// The same in backward.
  double backward_flop = 0.0;
  /// Bytes in and out in forward.
  double forward_bytes = 0.0;
  /// The same in backward.
  double backward_bytes = 0.0;
  /// Whether the arithmetic of this operator is known; what is not known counts as none.
  bool known = true;

  /// Adds another operator's.
  OperatorCost& operator+=(const OperatorCost& other);
};

/// Returns the cost of a call.
OperatorCost operator_cost(const OperatorCall& call);

}  // namespace convoy::train
