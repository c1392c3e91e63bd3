// Saves a checkpoint: every rank its file, then rank 0 the manifest, the folder's name and the pointer, in that order.
#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/error.h"
#include "convoy/base/log.h"
#include "convoy/elastic/checkpoint/agree.h"
#include "convoy/elastic/checkpoint/checkpoint.h"
#include "convoy/elastic/checkpoint/folder.h"

namespace convoy::elastic {
namespace {

std::string tensor_file(int rank) { return fmt::format("rank-{:04}.safetensors", rank); }

std::string part_list_path(const std::string& checkpoint, int rank) {
  return fmt::format("{}/rank-{:04}.json", checkpoint, rank);
}

// Removes what interrupted saves left, and puts a checkpoint back that one had moved away.
void clean_folder(Files& files, const std::string& folder) {
  const std::vector<std::string> there = files.list(folder);
  for (const std::string& text : there) {
    auto name = parse_folder_name(text);
    if (!name || name->state == FolderState::kFinished) continue;
    const bool lost = name->state == FolderState::kOld;
    name->state = FolderState::kFinished;
    const std::string finished = folder_name(*name);
    if (lost && std::find(there.begin(), there.end(), finished) == there.end()) {
      files.rename(folder + "/" + text, folder + "/" + finished);
    } else {
      files.remove(folder + "/" + text);
    }
  }
}

void check_entry(const spec::StateEntry& entry) {
  const std::int64_t elements = spec::element_count(entry.global_shape);
  const bool inside =
      entry.offset >= 0 && entry.count >= 0 && entry.offset <= elements && entry.count <= elements - entry.offset;
  if (inside && (entry.count == 0 || entry.data != nullptr)) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("tensor '{}' cannot be saved: {} elements from {} of {} are at {}", entry.name, entry.count,
                          entry.offset, elements, entry.data == nullptr ? "no address" : "an address"));
}

// What this rank saves: the tensors of its file, and the list of them for rank 0.
struct OwnPart {
  PartList list;
  std::vector<TensorBytes> tensors;

  void add(const spec::StateEntry& entry) {
    check_entry(entry);
    ManifestTensor described{entry.dtype, entry.global_shape, entry.placement, {}};
    const auto [at, added] = list.tensors.try_emplace(entry.name, described);
    if (!added && (at->second.shape != entry.global_shape || at->second.dtype != entry.dtype)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("tensor '{}' cannot be saved: it is listed with two shapes or types", entry.name));
    }
    if (!entry.owner) return;
    const std::int64_t elements = spec::element_count(entry.global_shape);
    const std::int64_t end = entry.offset + entry.count;
    const bool whole = entry.count == elements;
    if (entry.count == 0 && !whole) return;
    TensorBytes tensor;
    tensor.name = whole ? entry.name : fmt::format("{}[{}:{}]", entry.name, entry.offset, end);
    tensor.dtype = entry.dtype;
    tensor.shape = whole ? entry.global_shape : std::vector<std::int64_t>{entry.count};
    tensor.bytes = {entry.data, static_cast<std::size_t>(entry.count) * element_bytes(entry.dtype)};
    at->second.pieces.push_back(StoredPiece{0, tensor.name, entry.offset, entry.count});
    tensors.push_back(std::move(tensor));
  }
};

// Writes this rank's file, reads it back, and writes the list of what is in it.
void write_own(Files& files, const std::string& checkpoint, int rank, const CheckpointMeta& meta,
               std::span<spec::Stateful* const> parts) {
  OwnPart own;
  own.list.meta = meta;
  for (spec::Stateful* part : parts) {
    for (const spec::StateEntry& entry : part->state()) own.add(entry);
  }
  own.list.file.name = tensor_file(rank);
  own.list.file.digest =
      write_safetensors(files, checkpoint + "/" + own.list.file.name, own.tensors,
                        {{"convoy_rank", std::to_string(rank)}, {"convoy_step", std::to_string(meta.step)}});
  check_hash(files, checkpoint, own.list.file);
  const std::string path = part_list_path(checkpoint, rank);
  const std::string text = to_text(own.list, path);
  const std::string_view piece = text;
  files.write(path, std::span(&piece, 1));
}

// Joins the ranks' lists to the manifest. Renaming it also brings the folder's other names to the disk.
void write_manifest(Files& files, const std::string& checkpoint, int ranks) {
  std::vector<PartList> lists;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string path = part_list_path(checkpoint, rank);
    lists.push_back(parse_part_list(files.read(path), path));
  }
  const std::string path = manifest_path(checkpoint);
  const std::string text = to_text(merge_part_lists(lists), path);
  for (int rank = 0; rank < ranks; ++rank) files.remove(part_list_path(checkpoint, rank));
  write_atomic(files, path, text);
  check_sizes(files, checkpoint);
}

// Gives the folder its final name. Between the two renames the old checkpoint of the step is found under ".old".
void put_in_place(Files& files, const std::string& folder, std::uint64_t step) {
  const std::string part = folder + "/" + folder_name({step, FolderState::kPart});
  const std::string finished = folder + "/" + folder_name({step, FolderState::kFinished});
  const std::string old = folder + "/" + folder_name({step, FolderState::kOld});
  if (files.exists(finished)) files.rename(finished, old);
  files.rename(part, finished);
  write_atomic(files, pointer_path(folder), base_name(finished) + "\n");
}

// Removes what was replaced, and all but `keep` checkpoints. Those of later steps than the one just saved are left from
// a continuation that was given up. A folder loses its finished name first, so that one half removed is never taken for
// a checkpoint.
void remove_older(Files& files, const std::string& folder, std::uint64_t saved, int keep) {
  const std::string replaced = folder + "/" + folder_name({saved, FolderState::kOld});
  if (files.exists(replaced)) files.remove(replaced);
  std::vector<FolderName> names = finished_checkpoints(files, folder);
  std::stable_partition(names.begin(), names.end(), [&](const FolderName& name) { return name.step <= saved; });
  for (std::size_t i = static_cast<std::size_t>(keep); i < names.size(); ++i) {
    const std::string part = folder + "/" + folder_name({names[i].step, FolderState::kPart});
    files.rename(folder + "/" + folder_name(names[i]), part);
    files.remove(part);
  }
}

void commit(Files& files, const std::string& folder, std::uint64_t step, int ranks, int keep) {
  write_manifest(files, folder + "/" + folder_name({step, FolderState::kPart}), ranks);
  put_in_place(files, folder, step);
  try {
    remove_older(files, folder, step, keep);
  } catch (const Error& error) {
    // The checkpoint counts; the next save removes what was left.
    log_warning("an older checkpoint was not removed: {}", error.message());
  }
}

}  // namespace

std::string save_checkpoint(Files& files, comm::Group& group, const std::string& folder, const CheckpointMeta& meta,
                            std::span<spec::Stateful* const> parts, int keep) {
  const std::string part = folder + "/" + folder_name({meta.step, FolderState::kPart});
  const std::string what = fmt::format("saving step {} to {}", meta.step, folder);
  together(group, what, [&] {
    if (keep < 1) throw Error(ErrorCode::kInvalidArgument, fmt::format("keep = {}: at least 1 checkpoint stays", keep));
    if (group.rank() != 0) return;
    clean_folder(files, folder);
    files.make_directories(part);
  });
  together(group, what, [&] {
    CheckpointMeta own = meta;
    own.format_version = kCheckpointFormat;
    own.world = static_cast<std::uint64_t>(group.size());
    write_own(files, part, group.rank(), own, parts);
  });
  together(group, what, [&] {
    if (group.rank() == 0) commit(files, folder, meta.step, group.size(), keep);
  });
  return folder + "/" + folder_name({meta.step, FolderState::kFinished});
}

}  // namespace convoy::elastic
