// A probe: what a few steps of a run did, rank by rank, kept so that two runs can be laid side by side.
//
// A folder has for each rank `rank-N.jsonl`, a line for each step: which samples each micro-batch had, what it counted,
// and a fingerprint of its random numbers; and for each trained step `step-K.rank-N.safetensors`: on rank 0 "gradient/P"
// (the mean gradient, before clipping), "parameter/P" and "merged/B" (after the update), on every rank "replica.R/B" of
// its replicas; and from a reference "part.R.M/P", the gradient sum of one micro-batch. Step -1 is the initial state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convoy/base/dtype.h"
#include "convoy/base/files.h"

namespace convoy::elastic {

/// A tensor of a probe.
struct ProbeTensor {
  /// The type of its elements.
  DType dtype = DType::kFloat32;
  /// The shape; empty for a scalar.
  std::vector<std::int64_t> shape;
  /// The elements.
  std::vector<std::byte> bytes;

  /// Returns the number of elements.
  std::size_t elements() const { return bytes.size() / element_bytes(dtype); }
  /// Returns an element as a number.
  double at(std::size_t index) const;
  friend bool operator==(const ProbeTensor&, const ProbeTensor&) = default;
};

/// What one micro-batch of one replica was.
struct ProbePart {
  /// The replica.
  int replica = 0;
  /// The micro-batch of the replica in its step.
  int micro_batch = 0;
  /// Its samples, in order.
  std::vector<std::int64_t> samples;
  /// The sum of its loss, and what counted; 0 for a step that was not trained.
  double loss = 0.0;
  /// How many samples counted.
  std::int64_t counted = 0;
  /// A fingerprint of the random numbers that its layers drew; "" for a step that was not trained.
  std::string random;
  friend bool operator==(const ProbePart&, const ProbePart&) = default;
};

/// What one rank did in one step.
struct ProbeStep {
  /// The step, counted from 0 over the run; -1 for the state before the first one.
  std::int64_t step = -1;
  /// The epoch that it lies in.
  std::int64_t epoch = 0;
  /// Whether it was trained; otherwise only its samples are known.
  bool trained = false;
  /// The micro-batches of the rank's replicas.
  std::vector<ProbePart> parts;
  /// Digests of what every rank has whole ("gradient", "parameters", "merged").
  std::map<std::string, std::string> digests;
  /// The tensors.
  std::map<std::string, ProbeTensor> tensors;
};

/// Everything that a folder holds.
struct Probe {
  /// The steps of each rank, in order.
  std::vector<std::vector<ProbeStep>> ranks;

  /// Returns a rank's record of a step; null where there is none.
  const ProbeStep* find(int rank, std::int64_t step) const;
};

/// Writes one rank's part of a probe; the folder must exist.
class ProbeWriter {
 public:
  /// Ownership:  borrows the files
  ProbeWriter(Files& files, std::string folder, int rank) : files_(files), folder_(std::move(folder)), rank_(rank) {}
  /// Adds a step.
  /// Errors:     kIo
  void add(const ProbeStep& step);

 private:
  Files& files_;
  const std::string folder_;
  const int rank_;
};

/// Reads a probe of so many ranks.
/// Errors:     kCorrupt naming the file when it is damaged or missing
Probe read_probe(Files& files, const std::string& folder, int ranks);

}  // namespace convoy::elastic
