// Follows the lineage of a ledger and compares what it says with what the sample plan owes.
#include "convoy/records/ledger/ledger_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "convoy/base/error.h"
#include "convoy/records/ledger/ledger_file.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::records {
namespace {

// More samples than any run has: a header that names more was not written by Convoy.
constexpr std::int64_t kMaxSamples = std::int64_t{1} << 40;

// Collects problems; of each kind the first ones as text, the rest as a number.
class Findings {
 public:
  void add(const std::string& kind, const std::string& text) {
    if (++counts_[kind] <= kListed) texts_.push_back(text);
  }

  std::vector<std::string> take() {
    for (const auto& [kind, count] : counts_) {
      if (count > kListed) texts_.push_back(fmt::format("... and {} more: {}", count - kListed, kind));
    }
    return std::move(texts_);
  }

 private:
  static constexpr std::int64_t kListed = 10;
  std::map<std::string, std::int64_t> counts_;
  std::vector<std::string> texts_;
};

// All files of one generation.
struct Generation {
  int number = 0;
  std::optional<LedgerHeader> header;  // of the first rank that has a sound one
  std::vector<LedgerFile> files;       // by rank
};

// The steps [begin, end) that a generation contributes to the lineage.
struct Stretch {
  const Generation* generation = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// A line that counts: a replica's part of a step of the lineage.
struct Use {
  const Generation* generation = nullptr;
  const LedgerFile* file = nullptr;
  const LedgerEntry* entry = nullptr;
};

bool same_plan(const spec::SamplePlanOptions& a, const spec::SamplePlanOptions& b) {
  return a.samples == b.samples && a.global_batch == b.global_batch && a.replicas == b.replicas &&
         a.drop_last == b.drop_last && a.seed == b.seed;
}

std::string place(const Use& use) {
  return fmt::format("generation {}, rank {}, line {}", use.generation->number, use.file->name.rank, use.entry->line);
}

class Checker {
 public:
  Checker(Files& files, const std::string& run_dir) { read(files, run_dir); }

  LedgerReport check() {
    const Generation* newest = find_newest();
    if (newest != nullptr && usable(*newest)) {
      follow_lineage(*newest);
      collect();
      if (enough_lines()) check_epochs();
    }
    report_.problems = findings_.take();
    return std::move(report_);
  }

 private:
  void read(Files& files, const std::string& run_dir);
  void read_headers(Generation& generation);
  const Generation* find_newest();
  bool usable(const Generation& newest);
  std::int64_t end_of(const Generation& newest);
  std::int64_t open_end_of(const Generation& newest);
  void follow_lineage(const Generation& newest);
  void collect();
  void collect_stretch(const Stretch& stretch);
  void count_redone(const Generation& generation, std::int64_t from);
  bool enough_lines();
  void check_epochs();
  void check_step(std::int64_t step, std::int64_t epoch);
  void check_part(std::int64_t step, std::int64_t epoch, int replica, std::span<const Use> uses);
  void check_uses(std::int64_t epoch, std::int64_t begin, std::int64_t end);
  std::string owner_of(std::int64_t step, int replica) const;
  std::string places_of(std::int64_t sample, std::int64_t begin, std::int64_t end) const;
  std::span<const Use> uses_of(std::int64_t step) const;

  LedgerReport report_;
  Findings findings_;
  std::map<int, Generation> generations_;
  std::vector<Stretch> stretches_;  // newest first
  std::vector<Use> uses_;           // by step and replica
  std::unique_ptr<spec::SamplePlan> plan_;
  std::vector<std::uint32_t> used_;  // of the epoch at hand: how often each sample was used
  std::vector<bool> owed_;           // of the epoch at hand: which samples its committed steps owe
};

void Checker::read(Files& files, const std::string& run_dir) {
  const std::string folder = ledger_folder(run_dir);
  for (const std::string& file_name : files.list(folder)) {
    const auto name = try_ledger_name(file_name);
    if (!name) continue;
    Generation& generation = generations_[name->generation];
    generation.number = name->generation;
    generation.files.push_back(read_ledger_file(files, fmt::format("{}/{}", folder, file_name), *name));
  }
  if (generations_.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} has no ledger: there is no file like {}/{}", run_dir, folder, ledger_file_name(1, 0)));
  }
  report_.generations = static_cast<int>(generations_.size());
  for (auto& entry : generations_) read_headers(entry.second);
}

void Checker::read_headers(Generation& generation) {
  std::sort(generation.files.begin(), generation.files.end(),
            [](const LedgerFile& a, const LedgerFile& b) { return a.name.rank < b.name.rank; });
  for (const LedgerFile& file : generation.files) {
    const std::string who = fmt::format("generation {}, rank {}", generation.number, file.name.rank);
    for (const std::string& problem : file.problems) findings_.add("damaged lines", problem);
    if (file.torn && file.end_steps) {
      findings_.add("damaged lines", who + ": something follows the end line");
    } else if (file.torn) {
      report_.notes.push_back(who + ": the last line is cut off, since its writer was killed; it does not count");
    }
    if (!file.header) continue;
    if (!generation.header) {
      generation.header = file.header;
    } else if (!same_plan(file.header->plan, generation.header->plan) ||
               file.header->ranks != generation.header->ranks || file.header->parent != generation.header->parent ||
               file.header->owners != generation.header->owners) {
      findings_.add("headers that disagree", who + ": its header tells of another run than those of other ranks");
    }
  }
}

// Returns the newest generation that can be followed. One that was killed before a header was whole did nothing.
const Generation* Checker::find_newest() {
  for (auto at = generations_.rbegin(); at != generations_.rend(); ++at) {
    const Generation& generation = at->second;
    if (generation.header) return &generation;
    const bool did_nothing = std::all_of(generation.files.begin(), generation.files.end(), [](const LedgerFile& file) {
      return file.entries.empty() && !file.end_steps && file.problems.empty();
    });
    if (did_nothing) {
      report_.notes.push_back(fmt::format("generation {} was killed before it did anything", generation.number));
    } else {
      findings_.add("generations without a header",
                    fmt::format("generation {} has no sound header: it cannot be checked", generation.number));
    }
  }
  findings_.add("generations without a header", "no generation has a sound header: nothing can be checked");
  return nullptr;
}

// Makes the sample plan that everything is compared with.
bool Checker::usable(const Generation& newest) {
  try {
    if (newest.header->plan.samples > kMaxSamples) throw Error(ErrorCode::kCorrupt, "too many samples");
    plan_ = std::make_unique<spec::SamplePlan>(newest.header->plan);
    return true;
  } catch (const Error& error) {
    findings_.add("headers that disagree",
                  fmt::format("the header of generation {} makes no sense: {}", newest.number, error.message()));
    return false;
  }
}

// Returns one past the last committed step of the newest generation.
std::int64_t Checker::end_of(const Generation& newest) {
  std::optional<std::int64_t> end;
  for (const LedgerFile& file : newest.files) {
    if (!file.end_steps) continue;
    if (end && *end != *file.end_steps) {
      findings_.add("end lines that disagree",
                    fmt::format("generation {}, rank {}: the end line counts {} steps, another rank's {}",
                                newest.number, file.name.rank, *file.end_steps, *end));
    }
    end = std::max(end.value_or(0), *file.end_steps);
  }
  const auto ended = std::count_if(newest.files.begin(), newest.files.end(),
                                   [](const LedgerFile& file) { return file.end_steps.has_value(); });
  report_.open = ended < newest.header->ranks;
  return end ? *end : open_end_of(newest);
}

// Without an end line: the last step that a line tells of, if all replicas have it. Ranks go step by step together, so
// only that one may lack lines of ranks that were killed (or read) in the moment between.
std::int64_t Checker::open_end_of(const Generation& newest) {
  std::int64_t lines = 0;
  std::int64_t top = newest.header->parent.step - 1;
  for (const LedgerFile& file : newest.files) {
    lines += static_cast<std::int64_t>(file.entries.size());
    for (const LedgerEntry& entry : file.entries) top = entry.chained ? std::max(top, entry.step) : top;
  }
  // A line that was tampered with is not believed when it tells of a step far away.
  const std::int64_t believed = top + lines;
  std::set<int> replicas;
  for (const LedgerFile& file : newest.files) {
    for (const LedgerEntry& entry : file.entries) {
      if (entry.step > believed || entry.step < top) continue;
      if (entry.step > top) replicas.clear();
      top = std::max(top, entry.step);
      replicas.insert(entry.replica);
    }
  }
  if (top < newest.header->parent.step) return newest.header->parent.step;
  if (static_cast<int>(replicas.size()) >= newest.header->plan.replicas) return top + 1;
  report_.notes.push_back(
      fmt::format("generation {} ends while step {} is being noted ({} of {} replicas): it does not "
                  "count",
                  newest.number, top, replicas.size(), newest.header->plan.replicas));
  return top;
}

void Checker::follow_lineage(const Generation& newest) {
  std::int64_t end = end_of(newest);
  report_.end_step = end;
  const Generation* at = &newest;
  while (true) {
    const LedgerParent& parent = at->header->parent;
    // A generation may inherit fewer steps than its parent did: then the parent contributes nothing.
    const std::int64_t begin = std::min(parent.step, end);
    stretches_.push_back({at, begin, end});
    report_.lineage.insert(report_.lineage.begin(), at->number);
    report_.first_step = end = begin;
    if (parent.generation == 0) break;
    const auto found = generations_.find(parent.generation);
    if (parent.generation >= at->number || found == generations_.end() || !found->second.header) {
      findings_.add("parents that are missing",
                    fmt::format("generation {} goes on from step {} of generation {}, which has no sound file here",
                                at->number, parent.step, parent.generation));
      return;
    }
    if (!same_plan(found->second.header->plan, newest.header->plan)) {
      findings_.add("headers that disagree",
                    fmt::format("generation {} follows another sample plan than generation {}: earlier steps are not "
                                "checked",
                                found->first, newest.number));
      return;
    }
    at = &found->second;
  }
  if (report_.first_step > 0) {
    report_.notes.push_back(
        fmt::format("the run goes on from step {} of another directory: earlier steps are not "
                    "checked",
                    report_.first_step));
  }
}

// Sorts all lines into those of the lineage and redone work.
void Checker::collect() {
  for (const Stretch& stretch : stretches_) collect_stretch(stretch);
  std::stable_sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) {
    return a.entry->step != b.entry->step ? a.entry->step < b.entry->step : a.entry->replica < b.entry->replica;
  });
  for (const auto& [number, generation] : generations_) {
    const auto on_lineage = std::find_if(stretches_.begin(), stretches_.end(), [&, wanted = number](const Stretch& s) {
      return s.generation->number == wanted;
    });
    if (on_lineage == stretches_.end()) {
      count_redone(generation, INT64_MIN);
    } else if (on_lineage != stretches_.begin()) {
      count_redone(generation, on_lineage->end);
    }
  }
}

void Checker::collect_stretch(const Stretch& stretch) {
  const bool newest = stretch.generation == stretches_.front().generation;
  for (const LedgerFile& file : stretch.generation->files) {
    for (const LedgerEntry& entry : file.entries) {
      const Use use{stretch.generation, &file, &entry};
      const std::int64_t start = stretch.generation->header->parent.step;
      if (entry.step < start) {
        findings_.add(
            "lines of steps outside their generation",
            fmt::format("{}: tells of step {}, but the generation starts at step {}", place(use), entry.step, start));
      } else if (entry.step >= stretch.begin && entry.step < stretch.end) {
        uses_.push_back(use);
      } else if (newest && !(report_.open && entry.step == stretch.end)) {
        findings_.add(
            "lines of steps outside their generation",
            fmt::format("{}: tells of step {}, but the run ends after {} steps", place(use), entry.step, stretch.end));
      }
    }
  }
}

void Checker::count_redone(const Generation& generation, std::int64_t from) {
  std::set<std::int64_t> steps;
  for (const LedgerFile& file : generation.files) {
    for (const LedgerEntry& entry : file.entries) {
      if (entry.step < from) continue;
      steps.insert(entry.step);
      report_.redone_samples += static_cast<std::int64_t>(entry.samples.size());
    }
  }
  report_.redone_steps += static_cast<std::int64_t>(steps.size());
}

// Refuses to walk through more steps than files that were lost could explain: the check has to end.
bool Checker::enough_lines() {
  constexpr std::int64_t kLostSteps = 10'000'000;
  const std::int64_t steps = report_.end_step - report_.first_step;
  if (steps <= static_cast<std::int64_t>(uses_.size()) + kLostSteps) return true;
  findings_.add(
      "parts without a line",
      fmt::format("the lineage counts {} steps, but has {} lines: nothing more was checked", steps, uses_.size()));
  return false;
}

void Checker::check_epochs() {
  const std::int64_t length = plan_->steps_per_epoch();
  std::int64_t step = report_.first_step;
  while (step < report_.end_step) {
    const std::int64_t epoch = plan_->epoch_of(step);
    const std::int64_t begin = step;
    const std::int64_t end = std::min(report_.end_step, (epoch + 1) * length);
    used_.assign(static_cast<std::size_t>(plan_->options().samples), 0);
    owed_.assign(static_cast<std::size_t>(plan_->options().samples), false);
    for (; step < end; ++step) check_step(step, epoch);
    check_uses(epoch, begin, end);
    if (begin == epoch * length && end == (epoch + 1) * length) ++report_.epochs;
  }
}

// Returns the lines of a step.
std::span<const Use> Checker::uses_of(std::int64_t step) const {
  const auto first =
      std::partition_point(uses_.begin(), uses_.end(), [&](const Use& use) { return use.entry->step < step; });
  const auto last = std::partition_point(first, uses_.end(), [&](const Use& use) { return use.entry->step == step; });
  return std::span(uses_).subspan(static_cast<std::size_t>(first - uses_.begin()),
                                  static_cast<std::size_t>(last - first));
}

void Checker::check_step(std::int64_t step, std::int64_t epoch) {
  for (const std::int64_t sample : plan_->step_samples(step)) owed_[static_cast<std::size_t>(sample)] = true;
  std::span<const Use> rest = uses_of(step);
  for (int replica = 0; replica < plan_->options().replicas; ++replica) {
    while (!rest.empty() && rest.front().entry->replica < replica) {
      check_part(step, epoch, rest.front().entry->replica, rest.first(1));  // a negative replica
      rest = rest.subspan(1);
    }
    std::size_t mine = 0;
    while (mine < rest.size() && rest[mine].entry->replica == replica) ++mine;
    check_part(step, epoch, replica, rest.first(mine));
    rest = rest.subspan(mine);
  }
  for (; !rest.empty(); rest = rest.subspan(1)) check_part(step, epoch, rest.front().entry->replica, rest.first(1));
}

// Checks the lines of one replica's part of a step, of which there should be one.
void Checker::check_part(std::int64_t step, std::int64_t epoch, int replica, std::span<const Use> uses) {
  if (uses.empty()) {
    findings_.add("parts without a line",
                  fmt::format("step {}, replica {}: no line of {}", step, replica, owner_of(step, replica)));
  }
  for (const Use& use : uses.subspan(std::min<std::size_t>(1, uses.size()))) {
    findings_.add("parts noted twice", fmt::format("step {}, replica {}: noted twice ({}; {})", step, replica,
                                                   place(uses.front()), place(use)));
  }
  std::vector<std::int64_t> planned;
  const bool known = replica >= 0 && replica < plan_->options().replicas;
  if (known) planned = plan_->replica_samples(step, replica);
  for (const Use& use : uses) {
    const std::vector<std::int64_t>& samples = use.entry->samples;
    report_.samples += static_cast<std::int64_t>(samples.size());
    for (const std::int64_t sample : samples) {
      if (sample >= 0 && sample < plan_->options().samples) ++used_[static_cast<std::size_t>(sample)];
    }
    const std::string where = fmt::format("step {}, replica {} ({})", step, replica, place(use));
    if (!known) {
      findings_.add("replicas that do not exist",
                    fmt::format("{}: there are {} replicas", where, plan_->options().replicas));
    } else if (use.entry->epoch != epoch) {
      findings_.add("wrong epochs",
                    fmt::format("{}: names epoch {}, the step lies in {}", where, use.entry->epoch, epoch));
    } else if (samples != planned) {
      const auto differ = std::mismatch(samples.begin(), samples.end(), planned.begin(), planned.end());
      const std::string found = differ.first == samples.end() ? "nothing" : fmt::format("sample {}", *differ.first);
      const std::string due = differ.second == planned.end() ? "nothing" : fmt::format("sample {}", *differ.second);
      findings_.add("parts that differ from the sample plan",
                    fmt::format("{}: {} samples, the plan has {}; at place {} {} in place of {}", where, samples.size(),
                                planned.size(), differ.first - samples.begin(), found, due));
    }
  }
}

// Returns who should have noted a replica's part of a step.
std::string Checker::owner_of(std::int64_t step, int replica) const {
  for (const Stretch& stretch : stretches_) {
    if (step < stretch.begin || step >= stretch.end) continue;
    const LedgerHeader& header = *stretch.generation->header;
    if (header.ranks > header.plan.replicas) break;
    const auto dealt = header.owners.empty() ? spec::deal_replicas(header.plan.replicas, header.ranks) : header.owners;
    for (int rank = 0; rank < header.ranks; ++rank) {
      const spec::ReplicaRange& range = dealt[static_cast<std::size_t>(rank)];
      if (replica < range.begin || replica >= range.end) continue;
      return fmt::format("generation {}, rank {}", stretch.generation->number, rank);
    }
  }
  return "any rank";
}

// Returns where a sample was used in steps [begin, end).
std::string Checker::places_of(std::int64_t sample, std::int64_t begin, std::int64_t end) const {
  std::string places;
  for (std::int64_t step = begin; step < end; ++step) {
    for (const Use& use : uses_of(step)) {
      const auto uses = std::count(use.entry->samples.begin(), use.entry->samples.end(), sample);
      for (auto i = uses; i > 0; --i) {
        places +=
            fmt::format("{}step {}, replica {} ({})", places.empty() ? "" : "; ", step, use.entry->replica, place(use));
      }
    }
  }
  return places;
}

// Counts what the epoch's committed steps [begin, end) repeated and left out.
void Checker::check_uses(std::int64_t epoch, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kNamed = 10;  // finding the places of a sample walks the epoch, so not for thousands
  for (std::int64_t sample = 0; sample < plan_->options().samples; ++sample) {
    const std::uint32_t uses = used_[static_cast<std::size_t>(sample)];
    if (uses > 1) {
      const std::string places = report_.repeated < kNamed ? places_of(sample, begin, end) : "";
      report_.repeated += uses - 1;
      findings_.add("samples that were repeated",
                    fmt::format("epoch {}: sample {} was used {} times: {}", epoch, sample, uses, places));
    }
    if (uses == 0 && owed_[static_cast<std::size_t>(sample)]) {
      ++report_.missing;
      findings_.add("samples that are missing", fmt::format("epoch {}: sample {} was not used", epoch, sample));
    }
  }
}

}  // namespace

LedgerReport check_ledger(Files& files, const std::string& run_dir) { return Checker(files, run_dir).check(); }

std::string to_json(const LedgerReport& report) {
  nlohmann::ordered_json json;
  json["ok"] = report.ok();
  json["samples"] = report.samples;
  json["repeated"] = report.repeated;
  json["missing"] = report.missing;
  json["first_step"] = report.first_step;
  json["end_step"] = report.end_step;
  json["epochs"] = report.epochs;
  json["generations"] = report.generations;
  json["lineage"] = report.lineage;
  json["open"] = report.open;
  json["redone_steps"] = report.redone_steps;
  json["redone_samples"] = report.redone_samples;
  json["problems"] = report.problems;
  json["notes"] = report.notes;
  return json.dump();
}

}  // namespace convoy::records
