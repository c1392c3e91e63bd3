#include "convoy/eval/outcomes.h"

#include <fmt/format.h>

#include <cmath>

#include "convoy/base/error.h"

namespace convoy::eval {
namespace {

template <typename T>
void append_all(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

void check_ranked(const Outcomes& outcomes) {
  if (outcomes.classes != 2) refuse(fmt::format("a ranking needs two classes, not {}", outcomes.classes));
  if (outcomes.score.empty() && outcomes.samples() > 0) refuse("a ranking needs a score for each sample");
}

}  // namespace

void Outcomes::add(std::int32_t of_truth, std::int32_t of_prediction, std::optional<double> of_score) {
  truth.push_back(of_truth);
  predicted.push_back(of_prediction);
  if (of_score) score.push_back(*of_score);
}

void Outcomes::append(const Outcomes& next) {
  if (next.classes != classes) {
    refuse(fmt::format("outcomes of {} and {} classes cannot be put together", classes, next.classes));
  }
  if (samples() > 0 && next.samples() > 0 && score.empty() != next.score.empty()) {
    refuse(fmt::format("only one of two parts of {} and {} samples has scores", samples(), next.samples()));
  }
  const Outcomes copy = &next == this ? next : Outcomes{};
  const Outcomes& from = &next == this ? copy : next;
  append_all(truth, from.truth);
  append_all(predicted, from.predicted);
  append_all(score, from.score);
  append_all(batch_losses, from.batch_losses);
}

void Outcomes::check() const {
  if (predicted.size() != truth.size() || (!score.empty() && score.size() != truth.size())) {
    refuse(fmt::format("outcomes of {} samples with {} predictions and {} scores", truth.size(), predicted.size(),
                       score.size()));
  }
  const auto known = [this](std::int32_t number) { return number >= 0 && number < classes; };
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!known(truth[i]))
      refuse(fmt::format("sample {}: true class {} is not among 0 to {}", i, truth[i], classes - 1));
    if (!known(predicted[i])) {
      refuse(fmt::format("sample {}: predicted class {} is not among 0 to {}", i, predicted[i], classes - 1));
    }
    if (!score.empty() && !std::isfinite(score[i])) {
      refuse(fmt::format("the score of sample {} is not finite ({})", i, score[i]));
    }
  }
}

void Outcomes::predict_from(double threshold) {
  check();
  check_ranked(*this);
  for (std::size_t i = 0; i < score.size(); ++i) predicted[i] = score[i] >= threshold ? 1 : 0;
}

ClassificationState classify(const Outcomes& outcomes) {
  outcomes.check();
  ClassificationState state(outcomes.classes);
  for (std::size_t i = 0; i < outcomes.truth.size(); ++i) {
    state.confusion.add(outcomes.truth[i], outcomes.predicted[i]);
  }
  state.loss = in_batch_order(outcomes.batch_losses);
  return state;
}

RankedOutcomes rank_by_score(const Outcomes& outcomes) {
  outcomes.check();
  check_ranked(outcomes);
  RankedOutcomes ranked;
  for (std::size_t i = 0; i < outcomes.score.size(); ++i) {
    ranked.add(outcomes.score[i], outcomes.truth[i] == 1, static_cast<std::int64_t>(i));
  }
  return ranked;
}

}  // namespace convoy::eval
