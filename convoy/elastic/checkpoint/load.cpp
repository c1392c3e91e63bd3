// Loads a checkpoint: first finds out what to read and that it is whole, then fills the memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "convoy/base/error.h"
#include "convoy/base/log.h"
#include "convoy/elastic/checkpoint/agree.h"
#include "convoy/elastic/checkpoint/checkpoint.h"
#include "convoy/elastic/checkpoint/folder.h"

namespace convoy::elastic {
namespace {

// Checks that a piece is in its file as the manifest says.
void check_piece(const SafetensorsReader& reader, const std::string& name, const ManifestTensor& tensor,
                 const StoredPiece& piece) {
  const auto found = reader.tensors().find(piece.key);
  if (found != reader.tensors().end() && found->second.dtype == tensor.dtype && found->second.elements == piece.count) {
    return;
  }
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{} does not hold '{}' as {} elements of {}, as its manifest says of '{}'", reader.path(),
                          piece.key, piece.count, to_string(tensor.dtype), name));
}

// What a load will do, once it is known that it can.
class LoadPlan {
 public:
  LoadPlan(Files& files, const std::string& path, std::span<spec::Stateful* const> parts, const LoadOptions& options)
      : files_(files), verify_(options.verify), manifest_(check_sizes(files, path)), parts_(parts) {
    result_.path = path;
    result_.meta = manifest_.meta;
    std::set<std::string> wanted;
    for (spec::Stateful* part : parts) {
      for (const spec::StateEntry& entry : part->state()) {
        add(entry);
        wanted.insert(entry.name);
      }
    }
    for (const auto& [name, tensor] : manifest_.tensors) {
      if (wanted.count(name) != 0 || (options.elsewhere && options.elsewhere(name))) continue;
      result_.unexpected.push_back(name);
    }
    if (options.strict) check_names();
  }

  // Fills the memory and lets the parts know.
  LoadedCheckpoint fill() {
    for (const Copy& copy : copies_) {
      readers_.at(copy.file).read(copy.key, copy.first, copy.count, copy.to);
    }
    for (spec::Stateful* part : parts_) part->loaded();
    return std::move(result_);
  }

 private:
  struct Copy {
    std::size_t file = 0;
    std::string key;
    std::int64_t first = 0;
    std::int64_t count = 0;
    std::span<std::byte> to;
  };

  void add(const spec::StateEntry& entry) {
    const auto found = manifest_.tensors.find(entry.name);
    if (found == manifest_.tensors.end()) {
      result_.missing.push_back(entry.name);
      return;
    }
    const ManifestTensor& tensor = found->second;
    check_fits(entry, tensor);
    const std::int64_t end = entry.offset + entry.count;
    const std::size_t width = element_bytes(entry.dtype);
    for (const StoredPiece& piece : tensor.pieces) {
      const std::int64_t from = std::max(piece.offset, entry.offset);
      const std::int64_t to = std::min(piece.offset + piece.count, end);
      if (from >= to) continue;
      check_piece(reader(piece.file), entry.name, tensor, piece);
      const auto count = static_cast<std::size_t>(to - from);
      std::byte* target = entry.data + static_cast<std::size_t>(from - entry.offset) * width;
      copies_.push_back(Copy{piece.file, piece.key, from - piece.offset, to - from, {target, count * width}});
    }
  }

  void check_fits(const spec::StateEntry& entry, const ManifestTensor& tensor) const {
    if (entry.global_shape != tensor.shape || entry.dtype != tensor.dtype) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} does not fit: tensor '{}' is [{}] of {} there and [{}] of {} here", result_.path,
                              entry.name, fmt::join(tensor.shape, ", "), to_string(tensor.dtype),
                              fmt::join(entry.global_shape, ", "), to_string(entry.dtype)));
    }
    const std::int64_t elements = spec::element_count(entry.global_shape);
    const bool inside =
        entry.offset >= 0 && entry.count >= 0 && entry.offset <= elements && entry.count <= elements - entry.offset;
    if (inside && (entry.count == 0 || entry.data != nullptr)) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("tensor '{}' cannot be loaded: {} elements from {} of {}, at {}", entry.name, entry.count,
                            entry.offset, elements, entry.data == nullptr ? "no address" : "an address"));
  }

  // Opens and checks a file on first use.
  const SafetensorsReader& reader(std::size_t file) {
    const auto found = readers_.find(file);
    if (found != readers_.end()) return found->second;
    if (verify_) check_hash(files_, result_.path, manifest_.files[file]);
    return readers_.try_emplace(file, files_, result_.path + "/" + manifest_.files[file].name).first->second;
  }

  void check_names() const {
    if (result_.missing.empty() && result_.unexpected.empty()) return;
    std::string text;
    if (!result_.missing.empty()) text += fmt::format("; missing there: {}", fmt::join(result_.missing, ", "));
    if (!result_.unexpected.empty()) text += fmt::format("; not asked for: {}", fmt::join(result_.unexpected, ", "));
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} does not fit{}", result_.path, text));
  }

  Files& files_;
  const bool verify_;
  const Manifest manifest_;
  const std::span<spec::Stateful* const> parts_;
  std::map<std::size_t, SafetensorsReader> readers_;
  std::vector<Copy> copies_;
  LoadedCheckpoint result_;
};

// How far all ranks got with planning a checkpoint: the worst of them decides.
enum class Verdict { kWhole = 0, kDamaged = 1, kFailed = 2 };

// One checkpoint that load_newest tries.
class Trial {
 public:
  Trial(comm::Group& group, const std::string& path) : group_(group), path_(path) {}

  // Plans the load; returns null when this or another rank found damage, which is in the log then.
  std::unique_ptr<LoadPlan> plan(Files& files, std::span<spec::Stateful* const> parts, const LoadOptions& options) {
    std::unique_ptr<LoadPlan> plan;
    Verdict own = Verdict::kWhole;
    std::exception_ptr error;
    try {
      plan = std::make_unique<LoadPlan>(files, path_, parts, options);
    } catch (const Error& caught) {
      own = caught.code() == ErrorCode::kCorrupt || caught.code() == ErrorCode::kIo ? Verdict::kDamaged
                                                                                    : Verdict::kFailed;
      error = std::current_exception();
      problem_ = caught.message();
    } catch (...) {
      own = Verdict::kFailed;
      error = std::current_exception();
    }
    // The verdict's weight is above every rank, so that the maximum is the worst verdict and a rank that has it.
    const int ranks = group_.size();
    const double code = static_cast<int>(own) * ranks + group_.rank();
    const int worst = static_cast<int>(reduce_or_throw(group_, code, ReduceOp::kMax, error));
    if (worst / ranks == static_cast<int>(Verdict::kWhole)) return plan;
    if (own == Verdict::kFailed) std::rethrow_exception(error);
    const int culprit = worst % ranks;
    if (worst / ranks == static_cast<int>(Verdict::kFailed)) {
      throw Error(ErrorCode::kAborted, fmt::format("rank {} failed while loading {}", culprit, path_));
    }
    if (own == Verdict::kWhole) problem_ = fmt::format("rank {} found {} damaged", culprit, path_);
    return nullptr;
  }

  // Returns why the checkpoint cannot be used.
  const std::string& problem() const { return problem_; }

 private:
  comm::Group& group_;
  const std::string& path_;
  std::string problem_;
};

// Makes sure that all ranks try the same step next; -1 stands for none.
void check_same_step(comm::Group& group, const std::string& folder, double step) {
  const double lowest = comm::all_reduce_number(group, step, ReduceOp::kMin);
  const double highest = comm::all_reduce_number(group, step, ReduceOp::kMax);
  if (lowest == highest) return;
  throw Error(ErrorCode::kDesync, fmt::format("ranks see different checkpoints in {}: one would load step {}, another "
                                              "step {} (-1: none), this one step {}",
                                              folder, lowest, highest, step));
}

// The step of a path that load_order gave.
double step_of(const std::string& path) { return static_cast<double>(parse_folder_name(base_name(path))->step); }

}  // namespace

bool belongs_to_replica(const std::string& name) { return name.starts_with("replica."); }

void verify_checkpoint(Files& files, const std::string& path) {
  const Manifest manifest = check_sizes(files, path);
  std::vector<SafetensorsReader> readers;
  for (const ManifestFile& file : manifest.files) {
    check_hash(files, path, file);
    readers.emplace_back(files, path + "/" + file.name);
  }
  for (const auto& [name, tensor] : manifest.tensors) {
    for (const StoredPiece& piece : tensor.pieces) check_piece(readers[piece.file], name, tensor, piece);
  }
}

LoadedCheckpoint load_checkpoint(Files& files, const std::string& path, std::span<spec::Stateful* const> parts,
                                 const LoadOptions& options) {
  return LoadPlan(files, path, parts, options).fill();
}

std::optional<LoadedCheckpoint> load_newest(Files& files, comm::Group& group, const std::string& folder,
                                            std::span<spec::Stateful* const> parts, const LoadOptions& options) {
  std::vector<std::string> order;
  together(group, "listing the checkpoints in " + folder, [&] { order = load_order(files, folder); });
  std::string first_problem;
  for (const std::string& path : order) {
    check_same_step(group, folder, step_of(path));
    Trial trial(group, path);
    if (const auto plan = trial.plan(files, parts, options)) {
      std::optional<LoadedCheckpoint> loaded;
      together(group, "loading " + path, [&] { loaded = plan->fill(); });
      return loaded;
    }
    log_warning("{}: going back to an older checkpoint", trial.problem());
    if (first_problem.empty()) first_problem = trial.problem();
  }
  check_same_step(group, folder, -1);
  if (order.empty()) return std::nullopt;
  throw Error(ErrorCode::kCorrupt, fmt::format("no checkpoint in {} is whole: {}", folder, first_problem));
}

}  // namespace convoy::elastic
