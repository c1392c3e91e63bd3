#include "convoy/elastic/probe/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/base/error.h"
#include "convoy/elastic/probe/explain.h"

namespace convoy::elastic {
namespace {

constexpr std::int64_t kInitial = -1;

// How one set of tensors compares with another.
struct Differences {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t differing = 0;
  double largest = 0.0;
  bool within = true;  // the tolerance of its type
  std::string worst;   // the tensor with the largest difference
  std::string first;   // the first tensor beyond the tolerance
};

void compare_tensor(const std::string& name, const ProbeTensor& wanted, const ProbeTensor& got, bool exact,
                    Differences& all) {
  if (wanted.dtype != got.dtype || wanted.shape != got.shape) {
    throw Error(ErrorCode::kCorrupt, fmt::format("the probes hold '{}' with different types or shapes", name));
  }
  ++all.tensors;
  all.elements += static_cast<std::int64_t>(wanted.elements());
  if (wanted.bytes == got.bytes) return;
  double largest = 0.0;
  double magnitude = 0.0;
  for (std::size_t i = 0; i < wanted.elements(); ++i) {
    const double a = wanted.at(i);
    const double b = got.at(i);
    magnitude = std::max(magnitude, std::abs(a));
    // The bytes decide: 0 and -0, and two NaNs, are told apart by them.
    const std::size_t size = element_bytes(wanted.dtype);
    if (std::equal(wanted.bytes.begin() + static_cast<std::ptrdiff_t>(i * size),
                   wanted.bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * size),
                   got.bytes.begin() + static_cast<std::ptrdiff_t>(i * size))) {
      continue;
    }
    ++all.differing;
    largest = std::max(largest, std::isfinite(a - b) ? std::abs(a - b) : std::numeric_limits<double>::infinity());
  }
  const double tolerance = wanted.dtype == DType::kFloat64   ? kFloat64Tolerance
                           : wanted.dtype == DType::kFloat32 ? kFloat32Tolerance
                                                             : 0.0;
  const bool within = !exact && largest <= tolerance * magnitude;
  if (!within && all.within) {
    all.within = false;
    all.first = name;
  }
  if (largest >= all.largest) {
    all.largest = largest;
    all.worst = name;
  }
}

// Compares the tensors under a prefix that the reference's step and a rank's step both should hold.
void compare_under(const std::string& prefix, const ProbeStep& wanted, const ProbeStep& got, bool exact,
                   Differences& all) {
  for (auto at = wanted.tensors.lower_bound(prefix); at != wanted.tensors.end() && at->first.starts_with(prefix); ++at) {
    const auto other = got.tensors.find(at->first);
    if (other == got.tensors.end()) {
      throw Error(ErrorCode::kCorrupt, fmt::format("the probe of the ranks lacks '{}' in step {}", at->first, got.step));
    }
    compare_tensor(at->first, at->second, other->second, exact, all);
  }
}

class Comparison {
 public:
  Comparison(const Probe& reference, const Probe& ranks, const CompareOptions& options)
      : reference_(reference), ranks_(ranks), options_(options) {
    for (const ProbeStep& step : reference.ranks.front()) {
      if (step.trained) trained_.push_back(step.step);
    }
    if (trained_.empty()) throw Error(ErrorCode::kCorrupt, "the reference probe has no trained step");
  }

  ProbeReport run() {
    const bool initial = check_tensors("initial state", kInitial, {"parameter/", "replica."}, "parameters", "initial_state_differs");
    const bool samples = check_samples();
    const bool random = check_random();
    check_gradients(initial && samples && random);
    check_buffers(initial && samples && random);
    check_tensors("parameters after 1 update", trained_.front(), {"parameter/"}, "parameters", "update_differs");
    if (trained_.size() > 1) {
      check_tensors(fmt::format("parameters after {} updates", trained_.size()), trained_.back(), {"parameter/"},
                    "parameters", "update_differs");
      check_tensors(fmt::format("buffers after {} updates", trained_.size()), trained_.back(), {"replica.", "merged/"},
                    "merged", "unsynchronised_buffer");
    }
    return std::move(report_);
  }

 private:
  const ProbeStep& reference_at(std::int64_t step) const { return record(reference_, 0, step); }

  static const ProbeStep& record(const Probe& probe, int rank, std::int64_t step) {
    const ProbeStep* found = probe.find(rank, step);
    if (found != nullptr) return *found;
    throw Error(ErrorCode::kCorrupt, fmt::format("rank {} has no record of step {}", rank, step));
  }

  // All tensors of a step under the prefixes; those of a replica lie on the rank that carries it.
  Differences differences(std::int64_t step, const std::vector<std::string>& prefixes) {
    Differences all;
    for (const std::string& prefix : prefixes) {
      if (prefix != "replica.") {
        compare_under(prefix, reference_at(step), record(ranks_, 0, step), options_.exact, all);
        continue;
      }
      for (std::size_t rank = 0; rank < options_.owners.size(); ++rank) {
        const spec::ReplicaRange range = options_.owners[rank];
        for (int replica = range.begin; replica < range.end; ++replica) {
          compare_under(fmt::format("replica.{}/", replica), reference_at(step),
                        record(ranks_, static_cast<int>(rank), step), options_.exact, all);
        }
      }
    }
    report_.elements += all.elements;
    report_.differing += all.differing;
    report_.largest = std::max(report_.largest, all.largest);
    return all;
  }

  // The first rank whose digest is not rank 0's; -1 when all have the same.
  int odd_rank(std::int64_t step, const std::string& digest) const {
    const auto& wanted = record(ranks_, 0, step).digests;
    for (std::size_t rank = 1; rank < ranks_.ranks.size(); ++rank) {
      const auto& got = record(ranks_, static_cast<int>(rank), step).digests;
      const auto a = wanted.find(digest);
      const auto b = got.find(digest);
      if (a == wanted.end() && b == got.end()) continue;
      if (a == wanted.end() || b == got.end() || a->second != b->second) return static_cast<int>(rank);
    }
    return -1;
  }

  static std::string words_for(const Differences& all) {
    if (all.differing == 0) return fmt::format("{} elements in {} tensors, 0 differences", all.elements, all.tensors);
    return fmt::format("{} of {} elements differ, by at most {:.3g} (in '{}'){}", all.differing, all.elements, all.largest,
                       all.worst, all.within ? ", within the tolerance" : "");
  }

  bool check_tensors(const std::string& name, std::int64_t step, const std::vector<std::string>& prefixes,
                     const std::string& digest, const std::string& fault) {
    const Differences all = differences(step, prefixes);
    const int odd = odd_rank(step, digest);
    std::string words = words_for(all);
    if (odd >= 0) words += fmt::format("; rank {} has others than rank 0", odd);
    const bool ok = all.within && odd < 0;
    report_.checks.push_back({name, ok, words});
    if (!ok && report_.findings.empty()) {
      report_.findings.push_back({fault, fmt::format("{}: '{}' is the first that differs", name,
                                                     all.first.empty() ? fmt::format("{} of rank {}", digest, odd) : all.first)});
    }
    return ok;
  }

  bool check_samples() {
    const auto finding = explain_samples(reference_, ranks_, options_);
    std::int64_t samples = 0;
    std::int64_t steps = 0;
    for (const ProbeStep& step : reference_.ranks.front()) {
      if (step.step < 0) continue;
      ++steps;
      for (const ProbePart& part : step.parts) samples += static_cast<std::int64_t>(part.samples.size());
    }
    report_.checks.push_back({"samples", !finding, fmt::format("{} samples in {} steps of {} replicas{}", samples, steps,
                                                               options_.owners.back().end,
                                                               finding ? ": not those of one process" : "")});
    if (finding) report_.findings.push_back(*finding);
    return !finding;
  }

  bool check_random() {
    const auto finding = explain_random(reference_, ranks_);
    report_.checks.push_back({"random layers", !finding, finding ? "not the numbers of one process"
                                                                 : "each replica and micro-batch draws its own, as in one process"});
    if (finding) report_.findings.push_back(*finding);
    return !finding;
  }

  void check_gradients(bool causes_clear) {
    bool ok = true;
    std::int64_t first_bad = -1;
    std::string words;
    for (const std::int64_t step : trained_) {
      const Differences all = differences(step, {"gradient/"});
      const bool same_on_ranks = odd_rank(step, "gradient") < 0;
      if (words.empty() || (ok && !all.within)) words = fmt::format("step {}: {}", step, words_for(all));
      if (all.within && same_on_ranks) continue;
      if (first_bad < 0) first_bad = step;
      ok = false;
    }
    if (ok) words = fmt::format("{} steps, {}", trained_.size(), words.substr(words.find(": ") + 2));
    report_.checks.push_back({"gradient", ok, words});
    if (ok || !causes_clear) return;
    report_.findings.push_back(explain_gradient(reference_at(first_bad), record(ranks_, 0, first_bad), options_));
  }

  // After the first update buffers depend on samples and initial state alone, so that a difference is their own.
  void check_buffers(bool causes_clear) {
    const std::int64_t step = trained_.front();
    const Differences all = differences(step, {"replica.", "merged/"});
    const int odd = odd_rank(step, "merged");
    const bool ok = all.within && odd < 0;
    std::string words = all.tensors == 0 ? "the model has none" : words_for(all);
    if (odd >= 0) words += fmt::format("; rank {} merges them to others than rank 0", odd);
    report_.checks.push_back({"buffers after 1 update", ok, words});
    if (ok || !causes_clear) return;
    report_.findings.push_back({"unsynchronised_buffer", fmt::format("{} after the first update is not as in one process: it "
                                                                     "is changed outside the replicas' own forward passes",
                                                                     all.first.empty() ? "a merged buffer" : "'" + all.first + "'")});
  }

  const Probe& reference_;
  const Probe& ranks_;
  const CompareOptions& options_;
  std::vector<std::int64_t> trained_;
  ProbeReport report_;
};

}  // namespace

bool ProbeReport::ok() const {
  return std::all_of(checks.begin(), checks.end(), [](const ProbeCheck& check) { return check.ok; });
}

ProbeReport compare_probes(const Probe& reference, const Probe& ranks, const CompareOptions& options) {
  return Comparison(reference, ranks, options).run();
}

std::vector<std::string> batch_dependent_layers(const Probe& probe) {
  std::vector<std::string> layers;
  const ProbeStep* initial = probe.find(0, kInitial);
  if (initial == nullptr) return layers;
  const std::string prefix = "replica.0/";
  const std::string suffix = "running_mean";
  for (const auto& [name, tensor] : initial->tensors) {
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    std::string layer = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    if (layer.ends_with('.')) layer.pop_back();
    layers.push_back(layer.empty() ? "the model itself" : layer);
  }
  return layers;
}

}  // namespace convoy::elastic
