// Checkpoints: saves the state of all ranks so that a crash at any moment leaves the old or the new one whole, and
// loads it on any number of ranks.
//
// Words: a *checkpoint* is a folder step-NNNNNNNNNN with one safetensors file per rank and a *manifest*, which says who
// holds which elements and is written last. The *pointer* is the file `latest` beside the checkpoints. While a
// checkpoint is written its folder is called step-NNNNNNNNNN.part; one that is being replaced is called
// step-NNNNNNNNNN.old. See: docs/checkpoints.md
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/comm/group.h"
#include "convoy/elastic/checkpoint/manifest.h"
#include "convoy/spec/stateful.h"

namespace convoy::elastic {

/// A folder that looks like a checkpoint, whole or not.
struct CheckpointListing {
  /// The folder's path.
  std::string path;
  /// The step by its name.
  std::uint64_t step = 0;
  /// Empty when the manifest can be read and all files have the sizes that it says; otherwise what is wrong.
  std::string problem;
};

/// Returns what lies in the folder of a run's checkpoints, newest step first, unfinished ones included. Contents of
/// tensor files are not read: see verify_checkpoint.
std::vector<CheckpointListing> list_checkpoints(Files& files, const std::string& folder);

/// Returns the path of the checkpoint to go on from: the one that the pointer names or, where pointer or checkpoint are
/// missing or damaged, the newest whole one, with a warning in the log. Nothing when no save has ever finished here.
/// Errors:     kCorrupt naming the newest one's problem when there are finished ones but none is whole; kIo
std::optional<std::string> latest_checkpoint(Files& files, const std::string& folder);

/// Returns the point of the run at which a checkpoint was taken.
/// Errors:     kCorrupt naming the file (a newer format: both versions); kIo
CheckpointMeta read_meta(Files& files, const std::string& path);

/// Reads all of a checkpoint and checks every file against size, hash and manifest.
/// Errors:     kCorrupt naming the file, and the tensor where it is about one; kIo
void verify_checkpoint(Files& files, const std::string& path);

/// Saves the pieces that each rank owns as checkpoint meta.step of the folder and returns its path. An older one of the
/// same step is replaced; what an interrupted save left is removed. Each rank reads its file back before the checkpoint
/// counts. Then all but the `keep` newest are removed, those of later steps (of an abandoned continuation) first, never
/// the one just saved; where that fails the log says so.
/// Collective: all ranks of the group, with equal meta, folder and keep; the folder is the same place on all of them
/// Errors:     what failed on this rank (kIo, kCorrupt when a file reads back differently, kInvalidArgument naming a
///             tensor that no rank or more than one saves, kDesync when ranks disagree on meta, shapes or types); on
///             all other ranks kAborted naming the rank. The older checkpoints stay as they were, the group can go on
/// Cost:       3 reductions of one number; each rank writes its bytes once and reads them once
std::string save_checkpoint(Files& files, comm::Group& group, const std::string& folder, const CheckpointMeta& meta,
                            std::span<spec::Stateful* const> parts, int keep);

/// Returns whether a tensor belongs to a replica ("replica.3/..."), so that only the rank which carries it asks for it.
bool belongs_to_replica(const std::string& name);

/// How a checkpoint is loaded.
struct LoadOptions {
  /// Whether a tensor that is missing in the checkpoint or not asked for by anybody is an error (or only reported).
  bool strict = true;
  /// Whether the hashes of the files that are read are checked; skipping it saves one pass over them.
  bool verify = true;
  /// Tells which tensors another rank may ask for, so that it is no mistake if this one does not. Empty: none.
  std::function<bool(const std::string&)> elsewhere = belongs_to_replica;
};

/// What was loaded.
struct LoadedCheckpoint {
  /// The checkpoint's folder.
  std::string path;
  /// The point of the run at which it was taken.
  CheckpointMeta meta;
  /// Tensors that were asked for and are not there; left as they were. Only when not strict.
  std::vector<std::string> missing;
  /// Tensors that are there and that neither this rank nor `elsewhere` asks for. Only when not strict.
  std::vector<std::string> unexpected;
};

/// Fills every entry of the parts' state() from the checkpoint, then calls loaded() on each part. Nothing is changed
/// before all that is needed was found whole.
/// Collective: Local; any number of ranks, each for its own entries, whatever number saved
/// Errors:     kInvalidArgument naming the tensors that are missing or unexpected (strict), or of another shape or
///             type; kCorrupt naming the file; kIo
/// Cost:       reads the files that hold the needed elements once for the hash, and the needed elements once
LoadedCheckpoint load_checkpoint(Files& files, const std::string& path, std::span<spec::Stateful* const> parts,
                                 const LoadOptions& options = {});

/// Loads the checkpoint that latest_checkpoint names; when any rank finds it damaged, all ranks go back to the next
/// older one, each with one warning in the log. Nothing when no save has ever finished here.
/// Collective: all ranks of the group, with equal folder and options
/// Errors:     kCorrupt when none is whole; kDesync when ranks see different checkpoints; what load_checkpoint throws
///             for other reasons than damage, on the other ranks then kAborted naming the rank
/// Cost:       as load_checkpoint, and 2 reductions of one number, and 3 for each checkpoint that is tried
std::optional<LoadedCheckpoint> load_newest(Files& files, comm::Group& group, const std::string& folder,
                                            std::span<spec::Stateful* const> parts, const LoadOptions& options = {});

}  // namespace convoy::elastic
