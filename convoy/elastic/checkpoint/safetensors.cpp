// Writes and reads safetensors files. A header is checked as a whole before any of its numbers is used.
#include "convoy/elastic/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/elastic/checkpoint/json_text.h"
#include "convoy/spec/stateful.h"

namespace convoy::elastic {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are stored lowest byte first, as they lie in memory");

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;
constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;
constexpr const char* kMetadata = "__metadata__";
constexpr std::array<DType, 7> kTypes = {DType::kFloat32, DType::kFloat64,  DType::kInt32,  DType::kInt64,
                                         DType::kUInt8,   DType::kBFloat16, DType::kFloat16};

std::optional<DType> dtype_of(std::string_view name) {
  for (const DType type : kTypes) {
    if (safetensors_dtype(type) == name) return type;
  }
  return std::nullopt;
}

void check_tensor(const std::string& path, const TensorBytes& tensor) {
  const auto elements = static_cast<std::uint64_t>(spec::element_count(tensor.shape));
  if (tensor.bytes.size() != elements * element_bytes(tensor.dtype)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: tensor '{}' has {} elements of {}, but {} bytes", path, tensor.name, elements,
                            to_string(tensor.dtype), tensor.bytes.size()));
  }
}

std::string header_text(const std::string& path, std::span<const TensorBytes* const> tensors,
                        const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::set<std::string_view> names = {kMetadata};
  std::uint64_t end = 0;
  for (const TensorBytes* tensor : tensors) {
    check_tensor(path, *tensor);
    if (!names.insert(tensor->name).second) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: the name '{}' is taken", path, tensor->name));
    }
    const std::uint64_t begin = end;
    end += tensor->bytes.size();
    // ordered_json looks a key up by going through all others; names are known to be new.
    header.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(
        tensor->name,
        nlohmann::ordered_json{
            {"dtype", safetensors_dtype(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {begin, end}}});
  }
  std::string text = dump_json(path, header);
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

// One tensor's entry in a header, checked against the bytes that there are.
class EntryParser {
 public:
  EntryParser(const std::string& path, const std::string& name, const nlohmann::json& entry, std::uint64_t data_bytes)
      : path_(path), name_(name), entry_(entry), data_bytes_(data_bytes) {}

  StoredTensor parse(std::uint64_t data_begin) const {
    if (!entry_.is_object()) refuse("its entry is no object");
    StoredTensor tensor;
    const auto& type = field("dtype");
    if (!type.is_string()) refuse("its dtype is no text");
    const auto known = dtype_of(type.get_ref<const std::string&>());
    if (!known) refuse(fmt::format("its dtype {} is unknown", shown(type)));
    tensor.dtype = *known;
    const auto& shape = field("shape");
    if (!shape.is_array()) refuse("its shape is no list");
    for (const auto& size : shape) tensor.shape.push_back(static_cast<std::int64_t>(number(size, INT64_MAX)));
    try {
      tensor.elements = spec::element_count(tensor.shape);
    } catch (const Error&) {
      refuse(fmt::format("its shape {} has too many elements", shorten(shape.dump())));
    }
    const auto& offsets = field("data_offsets");
    if (!offsets.is_array() || offsets.size() != 2) refuse("its data_offsets are not two numbers");
    const std::uint64_t begin = number(offsets[0], data_bytes_);
    const std::uint64_t end = number(offsets[1], data_bytes_);
    const auto width = static_cast<std::uint64_t>(element_bytes(tensor.dtype));
    if (begin > end || (end - begin) % width != 0 ||
        (end - begin) / width != static_cast<std::uint64_t>(tensor.elements)) {
      refuse(
          fmt::format("data_offsets {} do not fit shape {} of {}", offsets.dump(), shorten(shape.dump()), type.dump()));
    }
    tensor.offset = data_begin + begin;
    return tensor;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::kCorrupt, fmt::format("{} is damaged: tensor '{}': {}", path_, shorten(name_), why));
  }

  const nlohmann::json& field(const char* key) const {
    const auto found = entry_.find(key);
    if (found == entry_.end()) refuse(fmt::format("it has no {}", key));
    return *found;
  }

  std::uint64_t number(const nlohmann::json& value, std::uint64_t most) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
      refuse(fmt::format("{} is no number from 0 to {}", shown(value), most));
    }
    return value.get<std::uint64_t>();
  }

  const std::string& path_;
  const std::string& name_;
  const nlohmann::json& entry_;
  const std::uint64_t data_bytes_;
};

// Tensors must follow each other from the first data byte to the last.
void check_filled(const std::string& path, const std::map<std::string, StoredTensor>& tensors, std::uint64_t begin,
                  std::uint64_t end) {
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    const std::string* name = nullptr;
  };
  std::vector<Place> places;
  for (const auto& [name, tensor] : tensors) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(tensor.elements) * element_bytes(tensor.dtype);
    places.push_back(Place{tensor.offset, tensor.offset + bytes, &name});
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  std::uint64_t at = begin;
  for (const Place& place : places) {
    if (place.begin != at) {
      throw Error(ErrorCode::kCorrupt, fmt::format("{} is damaged: tensor '{}' begins at byte {}, where byte {} is due",
                                                   path, *place.name, place.begin, at));
    }
    at = place.end;
  }
  if (at != end) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{} is damaged: its tensors end at byte {}, the file at byte {}", path, at, end));
  }
}

}  // namespace

std::string_view safetensors_dtype(DType type) {
  switch (type) {
    case DType::kFloat32: return "F32";
    case DType::kFloat64: return "F64";
    case DType::kInt32: return "I32";
    case DType::kInt64: return "I64";
    case DType::kUInt8: return "U8";
    case DType::kBFloat16: return "BF16";
    case DType::kFloat16: return "F16";
  }
  throw Error(ErrorCode::kInternal, fmt::format("there is no element type {}", static_cast<int>(type)));
}

FileDigest digest_file(Files& files, const std::string& path) {
  FileDigest digest;
  digest.bytes = files.size(path);
  Hasher hasher;
  for (std::uint64_t at = 0; at < digest.bytes; at += kPieceBytes) {
    hasher.update(files.read_range(path, at, std::min(kPieceBytes, digest.bytes - at)));
  }
  digest.xxh3 = hasher.hex();
  return digest;
}

FileDigest write_safetensors(Files& files, const std::string& path, std::span<const TensorBytes> tensors,
                             const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorBytes*> order;
  for (const TensorBytes& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorBytes* a, const TensorBytes* b) {
    return element_bytes(a->dtype) > element_bytes(b->dtype);
  });
  const std::string header = header_text(path, order, metadata);
  if (header.size() > kMaxSafetensorsHeader) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {} tensors need a header of {} bytes, {} are allowed",
                                                         path, tensors.size(), header.size(), kMaxSafetensorsHeader));
  }
  const std::uint64_t length = header.size();
  std::vector<std::string_view> pieces = {{reinterpret_cast<const char*>(&length), kLengthBytes}, header};
  for (const TensorBytes* tensor : order) {
    pieces.emplace_back(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size());
  }
  FileDigest digest;
  Hasher hasher;
  for (const std::string_view piece : pieces) {
    digest.bytes += piece.size();
    hasher.update(piece);
  }
  digest.xxh3 = hasher.hex();
  files.write(path, pieces);
  return digest;
}

SafetensorsReader::SafetensorsReader(Files& files, std::string path) : files_(files), path_(std::move(path)) {
  const std::uint64_t size = files_.size(path_);
  if (size < kLengthBytes) {
    throw Error(ErrorCode::kCorrupt, fmt::format("{} is damaged: {} bytes are too few for a header", path_, size));
  }
  const std::string length_bytes = files_.read_range(path_, 0, kLengthBytes);
  std::uint64_t length = 0;
  std::memcpy(&length, length_bytes.data(), kLengthBytes);
  if (length > kMaxSafetensorsHeader || length > size - kLengthBytes) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{} is damaged: it claims a header of {} bytes and has {}", path_, length, size));
  }
  const nlohmann::json header = parse_object(path_, files_.read_range(path_, kLengthBytes, length));
  const std::uint64_t data_begin = kLengthBytes + length;
  for (const auto& [name, entry] : header.items()) {
    if (name != kMetadata) {
      tensors_.emplace(name, EntryParser(path_, name, entry, size - data_begin).parse(data_begin));
      continue;
    }
    if (!entry.is_object()) throw Error(ErrorCode::kCorrupt, path_ + " is damaged: __metadata__ is no object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) {
        throw Error(ErrorCode::kCorrupt, fmt::format("{} is damaged: '{}' in __metadata__ is no text", path_, key));
      }
      metadata_.emplace(key, value.get<std::string>());
    }
  }
  check_filled(path_, tensors_, data_begin, size);
}

void SafetensorsReader::read(const std::string& name, std::int64_t first, std::int64_t count,
                             std::span<std::byte> out) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} holds no tensor '{}'", path_, name));
  }
  const StoredTensor& tensor = found->second;
  const auto width = static_cast<std::uint64_t>(element_bytes(tensor.dtype));
  const bool inside = first >= 0 && count >= 0 && first <= tensor.elements && count <= tensor.elements - first;
  if (!inside || out.size() != static_cast<std::uint64_t>(count) * width) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: elements [{}, {} + {}) of tensor '{}' do not fit its {} elements or {} bytes", path_,
                            first, first, count, name, tensor.elements, out.size()));
  }
  const std::uint64_t begin = tensor.offset + static_cast<std::uint64_t>(first) * width;
  for (std::uint64_t at = 0; at < out.size(); at += kPieceBytes) {
    const std::string piece =
        files_.read_range(path_, begin + at, std::min<std::uint64_t>(kPieceBytes, out.size() - at));
    std::memcpy(out.data() + at, piece.data(), piece.size());
  }
}

}  // namespace convoy::elastic
