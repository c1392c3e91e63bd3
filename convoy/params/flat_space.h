// The flat space: all parameters of a model as one stretch of memory in canonical order.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/base/dtype.h"
#include "convoy/params/flat_memory.h"
#include "convoy/params/model.h"

namespace convoy::params {

/// Returns Convoy's word for a libtorch type.
/// Errors:     kNotSupported for a type that Convoy does not exchange
DType to_dtype(torch::ScalarType type);

/// Returns libtorch's word for a type.
torch::ScalarType to_scalar_type(DType type);

/// One parameter in the flat space.
struct ParameterSlot {
  /// Its first name; further names of a tied parameter.
  std::string name;
  /// Further names of a tied parameter.
  std::vector<std::string> aliases;
  /// The user's tensor, whose memory now lies in the flat space.
  torch::Tensor tensor;
  /// Its shape.
  std::vector<std::int64_t> shape;
  /// Its first element in the flat space, a multiple of 16, and its number of elements.
  std::int64_t offset = 0;
  std::int64_t elements = 0;
};

/// All parameters of a model, one after the other: order of the model, tied ones once, each start on a cache line, the
/// elements between them zero.
/// Ownership:  parameters are moved into its memory and keep their identity; they outlive this object safely
/// Threads:    one caller at a time
class FlatSpace {
 public:
  /// Moves the model's parameters into the memory. Where ranks share it, they are those of the host's first rank.
  /// Collective: all ranks of the memory's group, where it is shared
  /// Errors:     kNotSupported when parameters differ in type or are not float32 or float64 (names one); kInvalidArgument
  ///             when there is none
  explicit FlatSpace(Model& model, const FlatMemory& memory = {});

  /// Returns the parameters in canonical order.
  const std::vector<ParameterSlot>& slots() const { return slots_; }
  /// Returns the number of elements with those between parameters.
  std::int64_t elements() const { return elements_; }
  /// Returns the number of elements of parameters alone.
  std::int64_t parameter_elements() const { return parameter_elements_; }
  /// Returns the type of all parameters.
  DType dtype() const { return dtype_; }
  /// Returns the values [elements()].
  const torch::Tensor& values() const { return values_; }
  /// Makes another stretch of the same layout in the same memory, all zero (a gradient, a moment).
  /// Collective: as the constructor
  torch::Tensor make_like() const { return memory_.make(elements_, values_.scalar_type()); }
  /// Returns the memory of all stretches.
  const FlatMemory& memory() const { return memory_; }
  /// Moves parameters back in that were given other memory since (torch::load gives each its own). Their values come
  /// along where this rank fills the memory (FlatMemory::fills).
  /// Errors:     kInvalidArgument naming one whose shape or type has changed
  void reclaim();
  /// Checks that every parameter still lies in this memory: one that does not would be trained nowhere.
  /// Errors:     kInvalidArgument naming the parameter
  void check_in_place() const;
  /// Returns a parameter's part of a stretch of this layout, in the parameter's shape.
  torch::Tensor view(const torch::Tensor& flat, const ParameterSlot& slot) const;

 private:
  bool in_place(const ParameterSlot& slot) const;

  const FlatMemory memory_;
  std::vector<ParameterSlot> slots_;
  std::int64_t elements_ = 0;
  std::int64_t parameter_elements_ = 0;
  DType dtype_ = DType::kFloat32;
  torch::Tensor values_;
};

}  // namespace convoy::params
