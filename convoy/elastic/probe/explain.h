// Explanations: which known mistake turns the reference's step into the one that the ranks made.
#pragma once

#include <optional>
#include <string>

#include "convoy/elastic/probe/compare.h"

namespace convoy::elastic {

/// Explains a mean gradient that differs although samples and random numbers are equal: a sum, a wrong scale, or means
/// of parts that were not weighted by what they counted.
/// Errors:     kCorrupt when tensors are missing
ProbeFinding explain_gradient(const ProbeStep& reference, const ProbeStep& rank0, const CompareOptions& options);

/// Explains the first step whose samples differ; nothing when none does.
std::optional<ProbeFinding> explain_samples(const Probe& reference, const Probe& ranks, const CompareOptions& options);

/// Explains the first step whose random numbers differ; nothing when none does.
std::optional<ProbeFinding> explain_random(const Probe& reference, const Probe& ranks);

/// Returns the rank that carries a replica.
int rank_of_replica(const CompareOptions& options, int replica);

/// Returns a rank's record of one micro-batch.
/// Errors:     kCorrupt when it is not there
const ProbePart& part_at(const Probe& probe, int rank, std::int64_t step, int replica, int micro_batch);

}  // namespace convoy::elastic
