// The manifest of a checkpoint: what was saved, at which point of the run, and which file holds which elements.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "convoy/base/dtype.h"
#include "convoy/base/files.h"
#include "convoy/elastic/checkpoint/safetensors.h"
#include "convoy/spec/stateful.h"

namespace convoy::elastic {

/// The format that this version writes, and the newest that it reads.
inline constexpr int kCheckpointFormat = 1;

/// The point of the run at which a checkpoint was taken. All ranks hold the same; what differs by rank is a tensor.
struct CheckpointMeta {
  /// The format of the checkpoint; saving sets it to kCheckpointFormat.
  int format_version = kCheckpointFormat;
  /// Optimizer steps that are done.
  std::uint64_t step = 0;
  /// Epochs that are done.
  std::uint64_t epoch = 0;
  /// The generation that saved.
  std::uint64_t generation = 0;
  /// The ranks that saved; saving sets it to the size of the group.
  std::uint64_t world = 0;
  /// The logical replicas of the run.
  std::uint64_t replicas = 0;
  /// What decides the result of the run (spec::recipe_digest).
  std::string recipe_digest;
  /// Whatever else a resumed run needs that is no tensor: data position, ledger position, mesh, scaler ...
  std::map<std::string, std::string> facts;
  friend bool operator==(const CheckpointMeta&, const CheckpointMeta&) = default;
};

/// Elements [offset, offset + count) of a flattened tensor, and where they are stored.
struct StoredPiece {
  /// The number of the file in Manifest::files.
  std::size_t file = 0;
  /// The tensor's name in that file.
  std::string key;
  /// The first element.
  std::int64_t offset = 0;
  /// How many elements.
  std::int64_t count = 0;
  friend bool operator==(const StoredPiece&, const StoredPiece&) = default;
};

/// A tensor of a checkpoint.
struct ManifestTensor {
  /// The type of its elements.
  DType dtype = DType::kFloat32;
  /// The shape of the whole tensor.
  std::vector<std::int64_t> shape;
  /// How it lay over the ranks that saved.
  spec::Placement placement = spec::Placement::kReplicated;
  /// Its pieces in order of elements; each element is in exactly one. A tensor without elements has one empty piece.
  std::vector<StoredPiece> pieces;
  friend bool operator==(const ManifestTensor&, const ManifestTensor&) = default;
};

/// A file of a checkpoint.
struct ManifestFile {
  /// The name in the checkpoint's folder.
  std::string name;
  /// Its size and hash.
  FileDigest digest;
  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

/// What a checkpoint holds.
struct Manifest {
  /// The point of the run.
  CheckpointMeta meta;
  /// The files, in the order of the ranks that wrote them.
  std::vector<ManifestFile> files;
  /// The tensors by name.
  std::map<std::string, ManifestTensor> tensors;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// Returns the manifest as JSON with a hash of itself, so that a flipped bit in it is found; `path` is for messages.
/// Errors:     kInvalidArgument when a name or fact is no UTF-8
std::string to_text(const Manifest& manifest, const std::string& path);

/// Reads a manifest; keys that this version does not know are passed over.
/// Errors:     kCorrupt naming the file: another format (both versions named), damage, numbers that contradict each
///             other
Manifest parse_manifest(const std::string& text, const std::string& path);

/// Returns the path of the manifest in a checkpoint's folder.
std::string manifest_path(const std::string& checkpoint);

/// Reads the manifest of a checkpoint's folder.
/// Errors:     as parse_manifest; kIo when it cannot be read
Manifest read_manifest(Files& files, const std::string& checkpoint);

/// What one rank wrote, for the rank that writes the manifest.
struct PartList {
  /// What the rank takes the point of the run to be.
  CheckpointMeta meta;
  /// The file that it wrote.
  ManifestFile file;
  /// The tensors of which it holds anything, each with the pieces that it saved (StoredPiece::file is not used).
  std::map<std::string, ManifestTensor> tensors;
};

/// Returns a rank's part list as JSON; `path` is for messages.
/// Errors:     kInvalidArgument when a name or fact is no UTF-8
std::string to_text(const PartList& list, const std::string& path);

/// Reads a part list.
/// Errors:     kCorrupt naming the file
PartList parse_part_list(const std::string& text, const std::string& path);

/// Joins the part lists of all ranks, in rank order, to a manifest.
/// Errors:     kDesync naming the ranks when they disagree on the point of the run, a shape or a type; kInvalidArgument
///             naming tensor and elements when some are saved by no rank or by two
Manifest merge_part_lists(std::span<const PartList> lists);

}  // namespace convoy::elastic
