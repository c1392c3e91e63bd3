// Tries each known mistake on the reference's own numbers and sees whether it gives what the ranks have.
#include "convoy/elastic/probe/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "convoy/base/error.h"

namespace convoy::elastic {
namespace {

// How far a hypothesis may be from what the ranks have, as a share of its length: rounding, not coincidence.
constexpr double kMatch = 1e-3;

using Vector = std::vector<double>;

void append(const ProbeTensor& tensor, Vector& all) {
  for (std::size_t i = 0; i < tensor.elements(); ++i) all.push_back(tensor.at(i));
}

// All tensors under a prefix, one after the other in the order of their names.
Vector joined(const ProbeStep& step, const std::string& prefix) {
  Vector all;
  for (auto at = step.tensors.lower_bound(prefix); at != step.tensors.end() && at->first.starts_with(prefix); ++at) {
    append(at->second, all);
  }
  return all;
}

// The gradient sum of one micro-batch, with zeros for parameters that it did not use.
Vector part_gradient(const ProbeStep& step, const ProbePart& part) {
  Vector all;
  const std::string prefix = fmt::format("part.{}.{}/", part.replica, part.micro_batch);
  const std::string whole = "gradient/";
  for (auto at = step.tensors.lower_bound(whole); at != step.tensors.end() && at->first.starts_with(whole); ++at) {
    const auto own = step.tensors.find(prefix + at->first.substr(whole.size()));
    if (own != step.tensors.end()) {
      append(own->second, all);
    } else {
      all.resize(all.size() + at->second.elements(), 0.0);
    }
  }
  return all;
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// |a - factor b| / |a|
double distance(const Vector& a, const Vector& b, double factor) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - factor * b[i]) * (a[i] - factor * b[i]);
  return std::sqrt(sum / std::max(dot(a, a), 1e-300));
}

// The mean over groups of parts of each group's own mean.
Vector mean_of_means(const ProbeStep& step, std::size_t size, const std::function<int(const ProbePart&)>& group_of) {
  std::map<int, std::pair<Vector, double>> groups;
  for (const ProbePart& part : step.parts) {
    if (part.counted == 0) continue;
    auto& [sum, counted] = groups[group_of(part)];
    sum.resize(size, 0.0);
    const Vector gradient = part_gradient(step, part);
    for (std::size_t i = 0; i < size; ++i) sum[i] += gradient[i];
    counted += static_cast<double>(part.counted);
  }
  Vector mean(size, 0.0);
  for (const auto& [number, group] : groups) {
    for (std::size_t i = 0; i < size; ++i) {
      mean[i] += group.first[i] / group.second / static_cast<double>(groups.size());
    }
  }
  return mean;
}

bool near(double value, double wanted) { return std::abs(value - wanted) <= kMatch * std::abs(wanted); }

std::optional<ProbeFinding> explain_scale(double factor, const CompareOptions& options) {
  const auto ranks = static_cast<double>(options.owners.size());
  const auto replicas = static_cast<double>(options.owners.back().end);
  const double accumulation = options.accumulation;
  if (ranks > 1 && near(factor, ranks)) {
    return ProbeFinding{"sum_instead_of_mean",
                        fmt::format("the gradient is {:.4g} times that of one process, as many times as there are ranks: "
                                    "ranks' means are summed where they should be averaged", factor)};
  }
  if (accumulation > 1 && (near(factor, accumulation) || near(factor, 1 / accumulation))) {
    return ProbeFinding{"loss_scale_under_accumulation",
                        fmt::format("the gradient is {:.4g} times that of one process with {} micro-batches: the loss is "
                                    "divided by the number of micro-batches once too {}", factor, options.accumulation,
                                    factor > 1 ? "seldom" : "often")};
  }
  if (replicas > 1 && near(factor, replicas)) {
    return ProbeFinding{"sum_instead_of_mean",
                        fmt::format("the gradient is {:.4g} times that of one process, as many times as there are "
                                    "replicas: replicas' means are summed where they should be averaged", factor)};
  }
  return ProbeFinding{"wrong_scale", fmt::format("the gradient is {:.6g} times that of one process", factor)};
}

std::set<std::int64_t> set_of(const ProbePart& part) { return {part.samples.begin(), part.samples.end()}; }

std::vector<std::int64_t> recorded_steps(const Probe& probe) {
  std::vector<std::int64_t> steps;
  for (const ProbeStep& step : probe.ranks.front()) {
    if (step.step >= 0) steps.push_back(step.step);
  }
  return steps;
}

const ProbePart* find_part(const Probe& probe, std::int64_t step, int replica, int micro_batch) {
  for (std::size_t rank = 0; rank < probe.ranks.size(); ++rank) {
    const ProbeStep* record = probe.find(static_cast<int>(rank), step);
    if (record == nullptr) continue;
    for (const ProbePart& part : record->parts) {
      if (part.replica == replica && part.micro_batch == micro_batch) return &part;
    }
  }
  return nullptr;
}

// A pair of parts of different ranks that are alike by some measure.
template <typename Alike>
std::optional<std::pair<const ProbePart*, const ProbePart*>> alike_across_ranks(const Probe& probe, std::int64_t step,
                                                                                Alike alike) {
  for (std::size_t a = 0; a < probe.ranks.size(); ++a) {
    for (std::size_t b = a + 1; b < probe.ranks.size(); ++b) {
      const ProbeStep* left = probe.find(static_cast<int>(a), step);
      const ProbeStep* right = probe.find(static_cast<int>(b), step);
      if (left == nullptr || right == nullptr) continue;
      for (const ProbePart& one : left->parts) {
        for (const ProbePart& other : right->parts) {
          if (alike(one, other)) return std::pair(&one, &other);
        }
      }
    }
  }
  return std::nullopt;
}

struct Mismatch {
  std::int64_t step = 0;
  const ProbePart* wanted = nullptr;
  const ProbePart* got = nullptr;
};

// The first micro-batch that differs by some measure, in the order of steps.
template <typename Same>
std::optional<Mismatch> first_mismatch(const Probe& reference, const Probe& ranks, Same same) {
  for (const std::int64_t step : recorded_steps(reference)) {
    for (const ProbePart& wanted : reference.find(0, step)->parts) {
      const ProbePart* got = find_part(ranks, step, wanted.replica, wanted.micro_batch);
      if (got == nullptr || !same(wanted, *got)) return Mismatch{step, &wanted, got};
    }
  }
  return std::nullopt;
}

// Whether the ranks' samples of a step are those that the reference had in the same place of epoch 0.
bool repeats_first_epoch(const Probe& reference, const Probe& ranks, std::int64_t step, const CompareOptions& options) {
  const std::int64_t first = step % options.steps_per_epoch;
  const ProbeStep* earlier = reference.find(0, first);
  if (first == step || earlier == nullptr) return false;
  return std::all_of(earlier->parts.begin(), earlier->parts.end(), [&](const ProbePart& part) {
    const ProbePart* now = find_part(ranks, step, part.replica, part.micro_batch);
    return now != nullptr && now->samples == part.samples;
  });
}

// How many of the samples that a rank used in one epoch it used before in the same epoch.
std::int64_t repeated_on(const Probe& probe, std::size_t rank, std::int64_t epoch) {
  std::int64_t used = 0;
  std::set<std::int64_t> different;
  for (const ProbeStep& step : probe.ranks[rank]) {
    if (step.step < 0 || step.epoch != epoch) continue;
    for (const ProbePart& part : step.parts) {
      used += static_cast<std::int64_t>(part.samples.size());
      different.insert(part.samples.begin(), part.samples.end());
    }
  }
  return used - static_cast<std::int64_t>(different.size());
}

}  // namespace

int rank_of_replica(const CompareOptions& options, int replica) {
  int rank = 0;
  while (options.owners[static_cast<std::size_t>(rank)].end <= replica) ++rank;
  return rank;
}

const ProbePart& part_at(const Probe& probe, int rank, std::int64_t step, int replica, int micro_batch) {
  const ProbeStep* record = probe.find(rank, step);
  if (record != nullptr) {
    for (const ProbePart& part : record->parts) {
      if (part.replica == replica && part.micro_batch == micro_batch) return part;
    }
  }
  throw Error(ErrorCode::kCorrupt, fmt::format("the probe lacks micro-batch {} of replica {} in step {} on rank {}",
                                               micro_batch, replica, step, rank));
}

ProbeFinding explain_gradient(const ProbeStep& reference, const ProbeStep& rank0, const CompareOptions& options) {
  const Vector wanted = joined(reference, "gradient/");
  const Vector got = joined(rank0, "gradient/");
  if (wanted.size() != got.size() || wanted.empty()) {
    throw Error(ErrorCode::kCorrupt, fmt::format("the probes hold different gradients in step {}", reference.step));
  }
  const double factor = dot(got, wanted) / std::max(dot(wanted, wanted), 1e-300);
  if (distance(got, wanted, factor) < kMatch && !near(factor, 1.0)) return *explain_scale(factor, options);

  const auto by_rank = [&](const ProbePart& part) { return rank_of_replica(options, part.replica); };
  const auto by_replica = [](const ProbePart& part) { return part.replica; };
  const auto by_part = [&](const ProbePart& part) { return part.replica * options.accumulation + part.micro_batch; };
  const std::pair<const char*, std::function<int(const ProbePart&)>> ways[] = {
      {"ranks", by_rank}, {"replicas", by_replica}, {"micro-batches", by_part}};
  // Only a hypothesis that fits far better than the right answer explains anything.
  const double apart = distance(got, wanted, 1.0);
  for (const auto& [who, group_of] : ways) {
    const double rest = distance(got, mean_of_means(reference, wanted.size(), group_of), 1.0);
    if (rest > kMatch || rest > apart / 10) continue;
    return {"unweighted_parts",
            fmt::format("in step {} the gradient is the mean of the {}' means, although they counted different numbers of "
                        "samples: weight each by what it counted", reference.step, who)};
  }
  return {"gradient_differs",
          fmt::format("the gradient of step {} differs by {:.3g} of its length, and no known mistake explains it",
                      reference.step, apart)};
}

std::optional<ProbeFinding> explain_samples(const Probe& reference, const Probe& ranks, const CompareOptions& options) {
  const auto mismatch = first_mismatch(reference, ranks, [](const ProbePart& wanted, const ProbePart& got) {
    return wanted.samples == got.samples;
  });
  if (!mismatch) return std::nullopt;
  const std::int64_t step = mismatch->step;
  const std::int64_t epoch = step / options.steps_per_epoch;
  const auto same_set = [](const ProbePart& a, const ProbePart& b) {
    return !a.samples.empty() && set_of(a) == set_of(b);
  };
  if (const auto pair = alike_across_ranks(ranks, step, same_set)) {
    return ProbeFinding{"same_samples_on_ranks",
                        fmt::format("in step {} replica {} (rank {}) and replica {} (rank {}) work on the same samples: "
                                    "ranks do not share the batch out", step, pair->first->replica,
                                    rank_of_replica(options, pair->first->replica), pair->second->replica,
                                    rank_of_replica(options, pair->second->replica))};
  }
  if (repeats_first_epoch(reference, ranks, step, options)) {
    return ProbeFinding{"order_not_renewed",
                        fmt::format("step {} (epoch {}) has the samples of step {} (epoch 0) in the same order: the order "
                                    "is not drawn afresh for each epoch", step, epoch, step % options.steps_per_epoch)};
  }
  for (std::size_t rank = 0; rank < ranks.ranks.size(); ++rank) {
    const std::int64_t repeated = repeated_on(ranks, rank, epoch);
    if (repeated == 0) continue;
    return ProbeFinding{"resampled_by_rank",
                        fmt::format("rank {} uses {} samples twice within epoch {}, which the plan does not: each rank draws "
                                    "its own samples", rank, repeated, epoch)};
  }
  return ProbeFinding{"other_samples",
                      fmt::format("in step {} replica {} (rank {}) has other samples than the plan gives it", step,
                                  mismatch->wanted->replica, rank_of_replica(options, mismatch->wanted->replica))};
}

std::optional<ProbeFinding> explain_random(const Probe& reference, const Probe& ranks) {
  const auto mismatch = first_mismatch(reference, ranks, [](const ProbePart& wanted, const ProbePart& got) {
    return wanted.random == got.random;
  });
  if (!mismatch) return std::nullopt;
  const auto same_random = [](const ProbePart& a, const ProbePart& b) {
    return a.replica != b.replica && !a.random.empty() && a.random == b.random;
  };
  if (const auto pair = alike_across_ranks(ranks, mismatch->step, same_random)) {
    return ProbeFinding{"same_random_numbers_on_ranks",
                        fmt::format("in step {} random layers draw the same numbers on replica {} and replica {}: dropout "
                                    "must belong to the replica", mismatch->step, pair->first->replica,
                                    pair->second->replica)};
  }
  return ProbeFinding{"other_random_numbers",
                      fmt::format("in step {} the random layers of replica {} draw other numbers than in one process",
                                  mismatch->step, mismatch->wanted->replica)};
}

}  // namespace convoy::elastic
