// Finds checkpoints in their folder and says which are whole, without reading tensors.
#include "convoy/elastic/checkpoint/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "convoy/base/error.h"
#include "convoy/base/log.h"
#include "convoy/elastic/checkpoint/checkpoint.h"

namespace convoy::elastic {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartEnd = ".part";
constexpr std::string_view kOldEnd = ".old";

bool newer(const FolderName& a, const FolderName& b) { return a.step > b.step; }

}  // namespace

std::string folder_name(const FolderName& name) {
  const std::string_view end = name.state == FolderState::kPart  ? kPartEnd
                               : name.state == FolderState::kOld ? kOldEnd
                                                                 : std::string_view();
  return fmt::format("{}{:010}{}", kPrefix, name.step, end);
}

std::optional<FolderName> parse_folder_name(const std::string& text) {
  FolderName name;
  if (text.ends_with(kPartEnd)) name.state = FolderState::kPart;
  if (text.ends_with(kOldEnd)) name.state = FolderState::kOld;
  if (!text.starts_with(kPrefix)) return std::nullopt;
  std::from_chars(text.data() + kPrefix.size(), text.data() + text.size(), name.step);
  if (folder_name(name) != text) return std::nullopt;
  return name;
}

std::string pointer_path(const std::string& folder) { return folder + "/latest"; }

std::vector<FolderName> finished_checkpoints(Files& files, const std::string& folder) {
  std::vector<FolderName> names;
  std::vector<FolderName> old;
  for (const std::string& text : files.list(folder)) {
    const auto name = parse_folder_name(text);
    if (!name || name->state == FolderState::kPart) continue;
    (name->state == FolderState::kOld ? old : names).push_back(*name);
  }
  for (const FolderName& name : old) {
    const bool replaced = std::any_of(names.begin(), names.end(), [&](const FolderName& other) {
      return other.state == FolderState::kFinished && other.step == name.step;
    });
    if (!replaced) names.push_back(name);
  }
  std::sort(names.begin(), names.end(), newer);
  return names;
}

Manifest check_sizes(Files& files, const std::string& checkpoint) {
  Manifest manifest = read_manifest(files, checkpoint);
  for (const ManifestFile& file : manifest.files) {
    const std::string path = checkpoint + "/" + file.name;
    if (!files.exists(path)) throw Error(ErrorCode::kCorrupt, path + " is missing");
    const std::uint64_t bytes = files.size(path);
    if (bytes == file.digest.bytes) continue;
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{} is damaged: it has {} bytes, its manifest says {}", path, bytes, file.digest.bytes));
  }
  return manifest;
}

void check_hash(Files& files, const std::string& checkpoint, const ManifestFile& file) {
  const std::string path = checkpoint + "/" + file.name;
  const FileDigest found = digest_file(files, path);
  if (found == file.digest) return;
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{} is damaged: its xxh3 is {} ({} bytes), its manifest says {} ({} bytes)", path, found.xxh3,
                          found.bytes, file.digest.xxh3, file.digest.bytes));
}

std::string problem_of(Files& files, const std::string& checkpoint) {
  try {
    check_sizes(files, checkpoint);
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

std::vector<std::string> load_order(Files& files, const std::string& folder) {
  std::vector<std::string> order;
  for (const FolderName& name : finished_checkpoints(files, folder)) order.push_back(folder + "/" + folder_name(name));
  if (order.empty()) return order;
  std::string problem = "is missing";
  if (files.exists(pointer_path(folder))) {
    std::string target = files.read(pointer_path(folder));
    if (!target.empty() && target.back() == '\n') target.pop_back();
    const auto name = parse_folder_name(target);
    const auto found = std::find_if(order.begin(), order.end(), [&](const std::string& path) {
      return path == folder + "/" + target || path == folder + "/" + target + std::string(kOldEnd);
    });
    if (name && found != order.end()) {
      std::rotate(order.begin(), found, found + 1);
      return order;
    }
    problem = name ? fmt::format("names {}, which is not there", target) : "is damaged";
  }
  log_warning("{} {}: going on from the newest checkpoint, {}", pointer_path(folder), problem, order.front());
  return order;
}

std::vector<CheckpointListing> list_checkpoints(Files& files, const std::string& folder) {
  std::vector<FolderName> names = finished_checkpoints(files, folder);
  for (const std::string& text : files.list(folder)) {
    const auto name = parse_folder_name(text);
    if (name && name->state == FolderState::kPart) names.push_back(*name);
  }
  std::stable_sort(names.begin(), names.end(), newer);
  std::vector<CheckpointListing> listings;
  for (const FolderName& name : names) {
    CheckpointListing listing;
    listing.path = folder + "/" + folder_name(name);
    listing.step = name.step;
    listing.problem =
        name.state == FolderState::kPart ? listing.path + " is incomplete" : problem_of(files, listing.path);
    listings.push_back(std::move(listing));
  }
  return listings;
}

std::optional<std::string> latest_checkpoint(Files& files, const std::string& folder) {
  const std::vector<std::string> order = load_order(files, folder);
  std::string first_problem;
  for (const std::string& path : order) {
    const std::string problem = problem_of(files, path);
    if (problem.empty()) {
      if (!first_problem.empty()) log_warning("{}: going on from {} instead", first_problem, path);
      return path;
    }
    if (first_problem.empty()) first_problem = problem;
  }
  if (order.empty()) return std::nullopt;
  throw Error(ErrorCode::kCorrupt, fmt::format("no checkpoint in {} is whole: {}", folder, first_problem));
}

CheckpointMeta read_meta(Files& files, const std::string& path) { return read_manifest(files, path).meta; }

}  // namespace convoy::elastic
