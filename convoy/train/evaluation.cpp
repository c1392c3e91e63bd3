#include "convoy/train/evaluation.h"

#include <vector>

#include "convoy/spec/sample_plan.h"

namespace convoy::train {

eval::ClassificationState evaluate(params::Model& model, const ImageTask& task, const EvaluationPart& part,
                                   std::int64_t batch, torch::ScalarType type, comm::Group& group) {
  const torch::NoGradGuard no_grad;
  const auto samples = static_cast<std::int64_t>(part.indexes.size());
  const std::int64_t batches = spec::evaluation_batches(samples, batch);
  const spec::BatchRange mine = spec::evaluation_share(batches, group.size(), group.rank());
  eval::ClassificationState state(static_cast<int>(std::max<std::int64_t>(task.classes(), part.images->classes())));
  // One loss for each batch, filled by the rank that worked through it: the sum over ranks is then exact.
  std::vector<double> losses(static_cast<std::size_t>(batches), 0.0);
  model.train(false);
  for (std::int64_t number = mine.begin; number < mine.end; ++number) {
    records::Batch plain = task.evaluation_batch(part, number, batch);
    const params::Loss loss = model.forward(to_tensors(plain, type));
    losses[static_cast<std::size_t>(number)] = loss.sum.item<double>();
    const torch::Tensor predicted = loss.output.argmax(1).contiguous();
    const auto* classes = predicted.data_ptr<std::int64_t>();
    for (std::size_t i = 0; i < plain.labels.size(); ++i) state.confusion.add(plain.labels[i], classes[i]);
  }
  model.train(true);

  const comm::Buffer shared_losses{std::span<double>(losses)};
  comm::all_reduce_async(group, shared_losses, shared_losses, DType::kFloat64).wait();
  const comm::Buffer shared_counts{state.confusion.counts()};
  comm::all_reduce_async(group, shared_counts, shared_counts, DType::kInt64).wait();
  for (const double loss : losses) state.loss.sum += loss;
  state.loss.count = samples;
  return state;
}

}  // namespace convoy::train
