#include "convoy/train/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "convoy/base/error.h"
#include "convoy/eval/imbalance.h"
#include "convoy/observe/memory_meter.h"
#include "convoy/records/batch.h"
#include "convoy/records/table/csv.h"
#include "convoy/spec/sample_plan.h"

namespace convoy::train {
namespace {

// What this rank found in its batches, and where it lies among all samples.
struct OwnPart {
  std::vector<std::int32_t> predicted;
  std::vector<double> score;
  std::vector<double> losses;
  // The place in the part of the first sample whose output is not finite; infinite when all are.
  double not_finite = std::numeric_limits<double>::infinity();
};

// One row of numbers for each sample, one number for each class.
void check_shape(const torch::Tensor& output, std::int64_t samples, std::int64_t classes) {
  if (output.defined() && output.dim() == 2 && output.size(0) == samples && output.size(1) == classes) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the data has {} classes, so the model must give [{}, {}] logits for {} samples; it gives {}",
                          classes, samples, classes, samples,
                          output.defined() ? fmt::format("[{}]", fmt::join(output.sizes(), ", ")) : "none"));
}

// The probability of the positive class of two, from a row of logits: in double, so that close scores stay apart.
double probability(const double* logits, int positive) {
  return 1.0 / (1.0 + std::exp(logits[1 - positive] - logits[positive]));
}

OwnPart work_through(params::Model& model, const records::DataPart& part, const EvaluationOptions& options,
                     spec::BatchRange mine) {
  const torch::NoGradGuard no_grad;
  const int positive = part.dataset->positive_class();
  OwnPart own;
  observe::process_memory().enter(observe::MemoryPhase::kForward);
  model.train(false);
  for (std::int64_t number = mine.begin; number < mine.end; ++number) {
    records::Batch plain = records::evaluation_batch({*part.dataset, part.indexes}, number, options.batch);
    const observe::CountedMemory counted(observe::MemoryCategory::kBatch, plain.memory_bytes());
    const params::Loss loss = model.forward(to_tensors(plain, options.type));
    own.losses.push_back(loss.value());
    check_shape(loss.output, plain.count(), part.dataset->classes());
    const torch::Tensor logits = loss.output.to(torch::kFloat64).contiguous();
    const torch::Tensor predicted = loss.output.argmax(1).contiguous();
    const torch::Tensor finite = torch::isfinite(logits).all(1).contiguous();
    for (std::int64_t row = 0; row < plain.count(); ++row) {
      if (!finite.data_ptr<bool>()[row]) {
        own.not_finite = std::min(own.not_finite, static_cast<double>(number * options.batch + row));
      }
      own.predicted.push_back(static_cast<std::int32_t>(predicted.data_ptr<std::int64_t>()[row]));
      if (positive >= 0) own.score.push_back(probability(logits.data_ptr<double>() + 2 * row, positive));
    }
  }
  model.train(true);
  return own;
}

template <typename T>
std::vector<T> gather(comm::Group& group, const std::vector<T>& own, const std::vector<std::int64_t>& parts,
                      DType dtype) {
  std::int64_t total = 0;
  for (const std::int64_t part : parts) total += part;
  std::vector<T> all(static_cast<std::size_t>(total));
  comm::all_gather_async(group, comm::Buffer(std::span<const T>(own)), comm::Buffer(std::span<T>(all)), parts, dtype)
      .wait();
  return all;
}

// For two classes, the outcomes with the positive class as class 1, as rankings and slices name it.
eval::Outcomes with_positive_last(const eval::Outcomes& outcomes, int positive) {
  eval::Outcomes turned = outcomes;
  if (positive != 0) return turned;
  for (std::int32_t& truth : turned.truth) truth = 1 - truth;
  for (std::int32_t& predicted : turned.predicted) predicted = 1 - predicted;
  return turned;
}

// Every rank names the same sample: the first one of all.
void check_finite(comm::Group& group, const OwnPart& own, const records::DataPart& part) {
  const double first = comm::all_reduce_number(group, own.not_finite, ReduceOp::kMin);
  if (std::isinf(first)) return;
  const std::int64_t sample = part.indexes[static_cast<std::size_t>(first)];
  throw Error(ErrorCode::kFailed, fmt::format("the model's output for {} is not finite", part.dataset->key_of(sample)));
}

}  // namespace

nlohmann::ordered_json Evaluation::to_json(double threshold) const {
  nlohmann::ordered_json json = state.to_json();
  if (curve) json["binary"] = eval::to_json(*curve, threshold);
  if (!slices.slices.empty()) json["slices"] = eval::to_json(slices);
  if (!warnings.empty()) json["warnings"] = warnings;
  return json;
}

Evaluation evaluate(params::Model& model, const records::DataPart& part, const EvaluationOptions& options,
                    comm::Group& group) {
  const auto samples = static_cast<std::int64_t>(part.indexes.size());
  const std::int64_t batches = spec::evaluation_batches(samples, options.batch);
  std::vector<std::int64_t> batches_of;
  std::vector<std::int64_t> samples_of;
  for (int rank = 0; rank < group.size(); ++rank) {
    const spec::BatchRange share = spec::evaluation_share(batches, group.size(), rank);
    batches_of.push_back(share.end - share.begin);
    samples_of.push_back(std::min(samples, share.end * options.batch) - std::min(samples, share.begin * options.batch));
  }
  const OwnPart own =
      work_through(model, part, options, spec::evaluation_share(batches, group.size(), group.rank()));
  check_finite(group, own, part);

  Evaluation found(part.dataset->classes());
  for (const std::int64_t sample : part.indexes) {
    found.outcomes.truth.push_back(static_cast<std::int32_t>(part.dataset->label(sample)));
  }
  found.outcomes.predicted = gather(group, own.predicted, samples_of, DType::kInt32);
  const int positive = part.dataset->positive_class();
  if (positive >= 0) found.outcomes.score = gather(group, own.score, samples_of, DType::kFloat64);
  const std::vector<double> losses = gather(group, own.losses, batches_of, DType::kFloat64);
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    found.outcomes.batch_losses.push_back({losses[static_cast<std::size_t>(batch)],
                                           std::min(options.batch, samples - batch * options.batch)});
  }
  found.state = eval::classify(found.outcomes);
  const eval::Outcomes turned = with_positive_last(found.outcomes, positive);
  if (positive >= 0) found.curve = eval::rank_by_score(turned).curve();
  found.slices = eval::slice_report(turned, part.dataset->slices(options.slices, part.indexes));
  found.warnings = eval::imbalance_warnings(found.state.confusion, part.dataset->class_names());
  return found;
}

void write_predictions(Files& files, const std::string& path, const records::DataPart& part,
                       const eval::Outcomes& outcomes) {
  const std::vector<std::string> names = part.dataset->class_names();
  std::string text = outcomes.score.empty() ? "sample,truth,predicted\n" : "sample,truth,predicted,score\n";
  for (std::size_t i = 0; i < outcomes.truth.size(); ++i) {
    text += fmt::format("{},{},{}", records::csv_field(part.dataset->key_of(part.indexes[i]), ','),
                        records::csv_field(names[static_cast<std::size_t>(outcomes.truth[i])], ','),
                        records::csv_field(names[static_cast<std::size_t>(outcomes.predicted[i])], ','));
    text += outcomes.score.empty() ? "\n" : fmt::format(",{}\n", outcomes.score[i]);
  }
  write_atomic(files, path, text);
}

}  // namespace convoy::train
