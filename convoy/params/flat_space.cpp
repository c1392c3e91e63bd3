#include "convoy/params/flat_space.h"

#include <fmt/format.h>

#include <unordered_map>

#include "convoy/base/error.h"
#include "convoy/observe/memory_meter.h"

namespace convoy::params {
namespace {

// Parameters start on a cache line of the widest registers, so that slices never share one.
constexpr std::int64_t kSlotAlignment = 16;

}  // namespace

DType to_dtype(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat32: return DType::kFloat32;
    case torch::kFloat64: return DType::kFloat64;
    case torch::kInt32: return DType::kInt32;
    case torch::kInt64: return DType::kInt64;
    case torch::kUInt8:
    case torch::kBool: return DType::kUInt8;
    case torch::kBFloat16: return DType::kBFloat16;
    case torch::kHalf: return DType::kFloat16;
    default: break;
  }
  throw Error(ErrorCode::kNotSupported, fmt::format("tensors of type {} are not exchanged", torch::toString(type)));
}

torch::ScalarType to_scalar_type(DType type) {
  switch (type) {
    case DType::kFloat32: return torch::kFloat32;
    case DType::kFloat64: return torch::kFloat64;
    case DType::kInt32: return torch::kInt32;
    case DType::kInt64: return torch::kInt64;
    case DType::kUInt8: return torch::kUInt8;
    case DType::kBFloat16: return torch::kBFloat16;
    case DType::kFloat16: return torch::kHalf;
  }
  throw Error(ErrorCode::kInternal, "unknown element type");
}

FlatSpace::FlatSpace(Model& model, const FlatMemory& memory) : memory_(memory) {
  std::unordered_map<const void*, std::size_t> seen;
  for (const NamedTensor& parameter : model.parameters()) {
    const torch::Tensor& tensor = parameter.tensor;
    const auto known = seen.find(tensor.unsafeGetTensorImpl());
    if (known != seen.end()) {
      slots_[known->second].aliases.push_back(parameter.name);
      continue;
    }
    const torch::ScalarType type = tensor.scalar_type();
    if (type != torch::kFloat32 && type != torch::kFloat64) {
      throw Error(ErrorCode::kNotSupported, fmt::format("parameter '{}' has type {}; float32 and float64 are trained",
                                                        parameter.name, torch::toString(type)));
    }
    if (slots_.empty()) dtype_ = to_dtype(type);
    if (to_dtype(type) != dtype_) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("parameter '{}' has type {} but '{}' has {}: one model has one type of parameters",
                              parameter.name, to_string(to_dtype(type)), slots_.front().name, to_string(dtype_)));
    }
    seen.emplace(tensor.unsafeGetTensorImpl(), slots_.size());
    slots_.push_back({parameter.name, {}, tensor, tensor.sizes().vec(), elements_, tensor.numel()});
    parameter_elements_ += tensor.numel();
    elements_ += (tensor.numel() + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  }
  if (slots_.empty()) throw Error(ErrorCode::kInvalidArgument, "the model has no parameters");

  const torch::NoGradGuard no_grad;
  values_ = observe::counted_as(observe::MemoryCategory::kParameters,
                                [&] { return memory_.make(elements_, to_scalar_type(dtype_)); });
  for (ParameterSlot& slot : slots_) {
    const torch::Tensor place = view(values_, slot);
    if (memory_.fills()) place.copy_(slot.tensor);
    slot.tensor.set_data(place);
  }
  memory_.meet();
}

bool FlatSpace::in_place(const ParameterSlot& slot) const {
  // Parameters without elements have no memory that could be elsewhere.
  const auto element = static_cast<std::int64_t>(element_bytes(dtype_));
  return slot.elements == 0 ||
         slot.tensor.data_ptr() == static_cast<std::byte*>(values_.data_ptr()) + slot.offset * element;
}

void FlatSpace::reclaim() {
  const torch::NoGradGuard no_grad;
  for (ParameterSlot& slot : slots_) {
    if (in_place(slot)) continue;
    if (slot.tensor.sizes() != slot.shape || slot.tensor.scalar_type() != values_.scalar_type()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("parameter '{}' has become [{}] of type {}, but it is [{}] of type {}", slot.name,
                              fmt::join(slot.tensor.sizes(), ","), torch::toString(slot.tensor.scalar_type()),
                              fmt::join(slot.shape, ","), to_string(dtype_)));
    }
    const torch::Tensor place = view(values_, slot);
    if (memory_.fills()) place.copy_(slot.tensor);
    slot.tensor.set_data(place);
  }
}

void FlatSpace::check_in_place() const {
  for (const ParameterSlot& slot : slots_) {
    if (in_place(slot)) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("parameter '{}' was given other memory after it was moved into the flat space (torch::load "
                            "does so): load before, or call equalise() afterwards",
                            slot.name));
  }
}

torch::Tensor FlatSpace::view(const torch::Tensor& flat, const ParameterSlot& slot) const {
  return flat.narrow(0, slot.offset, slot.elements).view(slot.shape);
}

}  // namespace convoy::params
