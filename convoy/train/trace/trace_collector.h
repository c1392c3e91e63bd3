// The trace collector: takes down what one rank does in the steps that a recipe wants traced, and brings all ranks'
// spans together at the end.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/base/files.h"
#include "convoy/comm/clock_offsets.h"
#include "convoy/comm/group.h"
#include "convoy/observe/trace/trace.h"
#include "convoy/observe/trace/trace_recorder.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/records/loader.h"
#include "convoy/spec/recipe.h"
#include "convoy/train/trace/operator_counter.h"

namespace convoy::train {

/// Records one rank's part of a run.
/// Threads:    one, the driver's
/// Cost:       copies of some numbers a step; in every eighth step the operators are counted
class TraceCollector {
 public:
  /// Traces `recipe.measure.trace_steps` steps after the warm-up that follows `first_step`; `clock` is this rank's, as the
  /// ranks have just compared theirs. A trace that lies in the run directory from before is removed.
  /// Ownership:  borrows group and files
  TraceCollector(const spec::Recipe& recipe, std::int64_t first_step, int replicas, const comm::ClockOffset& clock,
                 comm::Group& group, Files& files, std::string directory);

  /// Says that a step began and that its input is there.
  void begin_step(std::int64_t step, TimePoint begin, const records::StepBatch& input);
  /// Says that the whole gradient is there.
  void after_gradient(const parallel::StepResult& result, const std::vector<parallel::BucketTimes>& buckets);
  /// Says that the parameters are updated.
  void after_update();
  /// Says that the step is over.
  void end_step();
  /// Takes down something outside of steps that began then and ends now.
  void outside(observe::SpanKind kind, TimePoint begin);

  /// Returns all ranks' traces on the clock of rank 0, at rank 0; nothing elsewhere.
  /// Collective: all ranks
  /// Errors:     what the group throws
  std::optional<observe::Trace> gather();
  /// Writes what this rank has to trace.rank-N.json, for when the run fails and cannot be gathered; a failure is logged.
  void write_own() noexcept;

 private:
  bool tracing() const { return step_ >= 0; }
  void record(observe::SpanKind kind, TimePoint begin, TimePoint end);
  void record_bucket(std::size_t number, const parallel::BucketTimes& times);
  observe::RankTrace own_trace() const;
  std::string own_path() const;

  const spec::Recipe& recipe_;
  comm::Group& group_;
  Files& files_;
  const std::string directory_;
  const std::int64_t begin_;
  const std::int64_t end_;
  observe::RankTrace about_;
  observe::TraceRecorder recorder_;
  OperatorCounter counter_;
  OperatorCount counted_;
  bool counting_ = false;
  // The step that is traced now; -1 when none is.
  std::int64_t step_ = -1;
  TimePoint step_begin_;
  TimePoint gradient_end_;
  // This rank's clock at the beginning, and at the end.
  std::vector<comm::ClockOffset> clocks_;
};

/// Returns the trace's numbers and findings as the field `trace` of summary.json, and puts a line for each finding into
/// `notes`.
nlohmann::ordered_json judge_trace(const observe::Trace& trace, std::vector<std::string>& notes);

}  // namespace convoy::train
