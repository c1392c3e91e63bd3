// Writes, reads and checks manifests, and joins what the ranks wrote to one.
#include "convoy/elastic/checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/elastic/checkpoint/json_text.h"

namespace convoy::elastic {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "convoy-checkpoint";
constexpr std::string_view kDigestBegin = ",\"xxh3\":\"";
constexpr std::string_view kDigestForm = ",\"xxh3\":\"{}\"}}\n";
constexpr std::array<DType, 7> kTypes = {DType::kFloat32, DType::kFloat64,  DType::kInt32,  DType::kInt64,
                                         DType::kUInt8,   DType::kBFloat16, DType::kFloat16};
constexpr std::array<spec::Placement, 3> kPlacements = {spec::Placement::kReplicated, spec::Placement::kShard,
                                                        spec::Placement::kOwned};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kCorrupt, fmt::format("{} is damaged: {}", path, why));
}

const json& field(const std::string& path, const json& object, const char* key) {
  if (!object.is_object()) refuse(path, fmt::format("'{}' was looked for in {}", key, shown(object)));
  const auto found = object.find(key);
  if (found == object.end()) refuse(path, fmt::format("'{}' is missing", key));
  return *found;
}

std::uint64_t number(const std::string& path, const json& object, const char* key, std::uint64_t most = UINT64_MAX) {
  const json& value = field(path, object, key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
    refuse(path, fmt::format("'{}' is {}, no number from 0 to {}", key, shown(value), most));
  }
  return value.get<std::uint64_t>();
}

std::string text(const std::string& path, const json& object, const char* key) {
  const json& value = field(path, object, key);
  if (!value.is_string()) refuse(path, fmt::format("'{}' is {}, no text", key, shown(value)));
  return value.get<std::string>();
}

// The value among `values` whose name is the text under the key.
template <typename T, std::size_t N>
T named(const std::string& path, const json& object, const char* key, const std::array<T, N>& values) {
  const std::string name = text(path, object, key);
  for (const T value : values) {
    if (to_string(value) == name) return value;
  }
  refuse(path, fmt::format("'{}' is {}, which is unknown", key, shorten(name)));
}

ordered_json meta_json(const CheckpointMeta& meta) {
  return {{"format", kFormat},
          {"format_version", meta.format_version},
          {"step", meta.step},
          {"epoch", meta.epoch},
          {"world", meta.world},
          {"replicas", meta.replicas},
          {"generation", meta.generation},
          {"recipe_digest", meta.recipe_digest},
          {"facts", meta.facts}};
}

CheckpointMeta parse_meta(const std::string& path, const json& object) {
  if (text(path, object, "format") != kFormat) refuse(path, "it is no part of a checkpoint");
  CheckpointMeta meta;
  const std::uint64_t version = number(path, object, "format_version", INT32_MAX);
  if (version > kCheckpointFormat || version == 0) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{} has format version {}; this version of Convoy reads up to version {}", path, version,
                            kCheckpointFormat));
  }
  meta.format_version = static_cast<int>(version);
  meta.step = number(path, object, "step");
  meta.epoch = number(path, object, "epoch");
  meta.world = number(path, object, "world");
  meta.replicas = number(path, object, "replicas");
  meta.generation = number(path, object, "generation");
  meta.recipe_digest = text(path, object, "recipe_digest");
  const json& facts = field(path, object, "facts");
  if (!facts.is_object()) refuse(path, "'facts' is no object");
  for (const auto& fact : facts.items()) {
    if (!fact.value().is_string()) refuse(path, fmt::format("the fact '{}' is no text", shorten(fact.key())));
    meta.facts[fact.key()] = fact.value().get<std::string>();
  }
  return meta;
}

ordered_json file_json(const ManifestFile& file) {
  return {{"name", file.name}, {"bytes", file.digest.bytes}, {"xxh3", file.digest.xxh3}};
}

ManifestFile parse_file(const std::string& path, const json& object) {
  ManifestFile file;
  file.name = text(path, object, "name");
  file.digest.bytes = number(path, object, "bytes");
  file.digest.xxh3 = text(path, object, "xxh3");
  // A name must not lead out of the checkpoint's folder.
  if (file.name.empty() || file.name.front() == '.' || file.name.find('/') != std::string::npos) {
    refuse(path, fmt::format("'{}' is no name of a file", shorten(file.name)));
  }
  return file;
}

ordered_json tensors_json(const std::map<std::string, ManifestTensor>& tensors) {
  ordered_json object = ordered_json::object();
  auto& entries = object.get_ref<ordered_json::object_t&>();
  for (const auto& [name, tensor] : tensors) {
    ordered_json pieces = ordered_json::array();
    for (const StoredPiece& piece : tensor.pieces) {
      pieces.push_back({{"file", piece.file}, {"key", piece.key}, {"offset", piece.offset}, {"count", piece.count}});
    }
    // Past ordered_json's own look-up, which goes through all other keys.
    entries.emplace_back(name, ordered_json{{"dtype", to_string(tensor.dtype)},
                                            {"shape", tensor.shape},
                                            {"placement", spec::to_string(tensor.placement)},
                                            {"pieces", std::move(pieces)}});
  }
  return object;
}

// Returns a tensor whose pieces lie inside it; whether they cover it is another question.
ManifestTensor parse_tensor(const std::string& path, const std::string& name, const json& object) {
  const std::string where = fmt::format("{} (tensor '{}')", path, shorten(name));
  ManifestTensor tensor;
  tensor.dtype = named(where, object, "dtype", kTypes);
  tensor.placement = named(where, object, "placement", kPlacements);
  const json& shape = field(where, object, "shape");
  if (!shape.is_array()) refuse(where, "'shape' is no list");
  for (const json& size : shape) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > INT64_MAX) {
      refuse(where, fmt::format("'shape' holds {}", shown(size)));
    }
    tensor.shape.push_back(size.get<std::int64_t>());
  }
  std::int64_t elements = 0;
  try {
    elements = spec::element_count(tensor.shape);
  } catch (const Error& error) {
    refuse(where, error.message());
  }
  const json& pieces = field(where, object, "pieces");
  if (!pieces.is_array()) refuse(where, "'pieces' is no list");
  for (const json& item : pieces) {
    StoredPiece piece;
    piece.file = number(where, item, "file");
    piece.key = text(where, item, "key");
    piece.offset = static_cast<std::int64_t>(number(where, item, "offset", static_cast<std::uint64_t>(elements)));
    piece.count =
        static_cast<std::int64_t>(number(where, item, "count", static_cast<std::uint64_t>(elements - piece.offset)));
    tensor.pieces.push_back(std::move(piece));
  }
  return tensor;
}

std::map<std::string, ManifestTensor> parse_tensors(const std::string& path, const json& object) {
  const json& entries = field(path, object, "tensors");
  if (!entries.is_object()) refuse(path, "'tensors' is no object");
  std::map<std::string, ManifestTensor> tensors;
  for (const auto& entry : entries.items()) tensors[entry.key()] = parse_tensor(path, entry.key(), entry.value());
  return tensors;
}

// Sorts the pieces and returns what is wrong with them: elements in none or in two of them.
std::optional<std::string> check_covered(ManifestTensor& tensor, std::span<const ManifestFile> files) {
  std::sort(tensor.pieces.begin(), tensor.pieces.end(), [](const StoredPiece& a, const StoredPiece& b) {
    return std::tie(a.offset, a.count, a.file) < std::tie(b.offset, b.count, b.file);
  });
  const std::int64_t elements = spec::element_count(tensor.shape);
  if (tensor.pieces.empty()) return fmt::format("its {} elements are in no file", elements);
  std::int64_t at = 0;
  const StoredPiece* previous = nullptr;
  for (const StoredPiece& piece : tensor.pieces) {
    if (piece.offset > at) return fmt::format("elements [{}, {}) are in no file", at, piece.offset);
    if (piece.offset < at) {
      return fmt::format("elements [{}, {}) are in {} and in {}", piece.offset,
                         std::min(at, piece.offset + piece.count), files[previous->file].name, files[piece.file].name);
    }
    at = piece.offset + piece.count;
    previous = &piece;
  }
  if (at != elements) return fmt::format("elements [{}, {}) are in no file", at, elements);
  return std::nullopt;
}

// Closes the object with a hash of all that stands before its last key.
std::string with_digest(const std::string& path, const ordered_json& object) {
  std::string text = dump_json(path, object);
  text.pop_back();
  return text + fmt::format(kDigestForm, hash128_hex(text));
}

void check_digest(const std::string& path, const std::string& text) {
  const std::size_t at = text.rfind(kDigestBegin);
  if (at == std::string::npos) refuse(path, "it does not end with its hash");
  const std::string_view before(text.data(), at);
  if (text.substr(at) != fmt::format(kDigestForm, hash128_hex(before))) {
    refuse(path, "its content does not fit its hash");
  }
}

void check_same_point(const CheckpointMeta& first, const CheckpointMeta& other, std::size_t rank) {
  if (first == other) return;
  const json ours = meta_json(first);
  const json theirs = meta_json(other);
  for (const auto& item : ours.items()) {
    if (theirs.at(item.key()) == item.value()) continue;
    throw Error(ErrorCode::kDesync,
                fmt::format("ranks save different points of the run: {} is {} on rank 0 and {} on "
                            "rank {}",
                            item.key(), shorten(item.value().dump()), shorten(theirs.at(item.key()).dump()), rank));
  }
}

void add_part(Manifest& manifest, const PartList& list, std::size_t rank) {
  for (const auto& [name, tensor] : list.tensors) {
    auto [at, added] = manifest.tensors.try_emplace(name, tensor);
    ManifestTensor& whole = at->second;
    if (added) whole.pieces.clear();
    if (whole.shape != tensor.shape || whole.dtype != tensor.dtype) {
      throw Error(ErrorCode::kDesync, fmt::format("tensor '{}' has another shape or type on rank {} than on the ranks "
                                                  "before it: [{}] of {} and [{}] of {}",
                                                  name, rank, fmt::join(tensor.shape, ", "), to_string(tensor.dtype),
                                                  fmt::join(whole.shape, ", "), to_string(whole.dtype)));
    }
    for (StoredPiece piece : tensor.pieces) {
      piece.file = rank;
      // One empty piece keeps the shape of a tensor without elements; other empty pieces say nothing.
      const bool useful = piece.count > 0 || (spec::element_count(tensor.shape) == 0 && whole.pieces.empty());
      if (useful) whole.pieces.push_back(std::move(piece));
    }
  }
}

}  // namespace

std::string manifest_path(const std::string& checkpoint) { return checkpoint + "/manifest.json"; }

std::string to_text(const Manifest& manifest, const std::string& path) {
  ordered_json object = meta_json(manifest.meta);
  object["files"] = ordered_json::array();
  for (const ManifestFile& file : manifest.files) object["files"].push_back(file_json(file));
  object["tensors"] = tensors_json(manifest.tensors);
  return with_digest(path, object);
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  const json object = parse_object(path, text);
  Manifest manifest;
  manifest.meta = parse_meta(path, object);
  check_digest(path, text);
  const json& list = field(path, object, "files");
  if (!list.is_array()) refuse(path, "'files' is no list");
  for (const json& file : list) manifest.files.push_back(parse_file(path, file));
  manifest.tensors = parse_tensors(path, object);
  for (auto& [name, tensor] : manifest.tensors) {
    for (const StoredPiece& piece : tensor.pieces) {
      if (piece.file < manifest.files.size()) continue;
      refuse(path, fmt::format("tensor '{}' is said to be in file {} of {}", shorten(name), piece.file,
                               manifest.files.size()));
    }
    if (const auto wrong = check_covered(tensor, manifest.files)) {
      refuse(path, fmt::format("tensor '{}': {}", shorten(name), *wrong));
    }
  }
  return manifest;
}

Manifest read_manifest(Files& files, const std::string& checkpoint) {
  const std::string path = manifest_path(checkpoint);
  return parse_manifest(files.read(path), path);
}

std::string to_text(const PartList& list, const std::string& path) {
  ordered_json object = meta_json(list.meta);
  object["file"] = file_json(list.file);
  object["tensors"] = tensors_json(list.tensors);
  return with_digest(path, object);
}

PartList parse_part_list(const std::string& text, const std::string& path) {
  const json object = parse_object(path, text);
  PartList list;
  list.meta = parse_meta(path, object);
  check_digest(path, text);
  list.file = parse_file(path, field(path, object, "file"));
  list.tensors = parse_tensors(path, object);
  return list;
}

Manifest merge_part_lists(std::span<const PartList> lists) {
  CONVOY_CHECK(!lists.empty(), "a checkpoint needs a rank that saves");
  Manifest manifest;
  manifest.meta = lists.front().meta;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    check_same_point(manifest.meta, lists[rank].meta, rank);
    manifest.files.push_back(lists[rank].file);
    add_part(manifest, lists[rank], rank);
  }
  for (auto& [name, tensor] : manifest.tensors) {
    if (const auto wrong = check_covered(tensor, manifest.files)) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("tensor '{}' cannot be saved: {}", name, *wrong));
    }
  }
  return manifest;
}

}  // namespace convoy::elastic
