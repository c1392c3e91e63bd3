// The folder of a run's checkpoints: names, the pointer, and which checkpoints are whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/elastic/checkpoint/manifest.h"

namespace convoy::elastic {

/// What the end of a checkpoint's name says about it.
enum class FolderState { kFinished, kPart, kOld };

/// A checkpoint's name, taken apart.
struct FolderName {
  /// The step.
  std::uint64_t step = 0;
  /// Whether it is finished, being written or being replaced.
  FolderState state = FolderState::kFinished;
};

/// Returns the name of a step's folder: "step-0000000017", with ".part" or ".old" where the state asks for it.
std::string folder_name(const FolderName& name);

/// Returns a name taken apart; nothing when it is not exactly one that folder_name gives.
std::optional<FolderName> parse_folder_name(const std::string& text);

/// Returns the path of the pointer in a folder of checkpoints.
std::string pointer_path(const std::string& folder);

/// Returns the names of the checkpoints that count, newest step first: the finished ones, and an old one where a crash
/// came between moving it away and putting the new one in its place.
std::vector<FolderName> finished_checkpoints(Files& files, const std::string& folder);

/// Reads the manifest of a checkpoint and checks that its files have the sizes that it says.
/// Errors:     kCorrupt naming the file; kIo
Manifest check_sizes(Files& files, const std::string& checkpoint);

/// Checks a file of a checkpoint against its hash.
/// Errors:     kCorrupt naming the file; kIo
void check_hash(Files& files, const std::string& checkpoint, const ManifestFile& file);

/// Returns what is wrong with a checkpoint by check_sizes; empty when nothing is.
std::string problem_of(Files& files, const std::string& checkpoint);

/// Returns the checkpoints to go on from in the order in which they should be tried: the pointer's first, then by step.
/// A pointer that is missing or damaged, or names what is not there, is a warning in the log.
std::vector<std::string> load_order(Files& files, const std::string& folder);

}  // namespace convoy::elastic
