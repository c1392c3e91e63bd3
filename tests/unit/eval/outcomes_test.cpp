// Outcomes put together part by part give every rank the same metrics.
#include "convoy/eval/outcomes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"

namespace convoy::eval {
namespace {

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

Outcomes small() {
  Outcomes outcomes;
  outcomes.add(1, 1, 0.9);
  outcomes.add(0, 1, 0.8);
  outcomes.add(1, 0, 0.3);
  outcomes.add(0, 0, 0.2);
  outcomes.batch_losses = {{1.5, 3}, {0.5, 1}};
  return outcomes;
}

TEST(Outcomes, GiveCountsLossAndRanking) {
  const Outcomes outcomes = small();
  const ClassificationState state = classify(outcomes);
  EXPECT_EQ(state.confusion.count(0, 1), 1);
  EXPECT_EQ(state.confusion.count(1, 0), 1);
  EXPECT_EQ(state.loss, (LossSum{2.0, 4}));
  EXPECT_EQ(*rank_by_score(outcomes).curve().roc_auc(), 0.75);
}

TEST(Outcomes, PredictClassOneFromTheThresholdOn) {
  Outcomes outcomes = small();
  outcomes.predict_from(0.3);
  EXPECT_EQ(outcomes.predicted, (std::vector<std::int32_t>{1, 1, 1, 0}));
  EXPECT_EQ(rank_by_score(outcomes).curve().at(0.3).true_positives, classify(outcomes).confusion.count(1, 1));
}

RC_GTEST_PROP(Outcomes, AppendedInOrderAreTheWholeHoweverTheyWereCut, ()) {
  const auto samples = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 3), rc::gen::inRange(0, 3)));
  const auto cut = *rc::gen::inRange<std::size_t>(0, samples.size() + 1);
  Outcomes whole;
  Outcomes first;
  Outcomes second;
  whole.classes = first.classes = second.classes = 3;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const LossSum loss{0.1 * static_cast<double>(i), 1};
    whole.add(samples[i].first, samples[i].second);
    whole.batch_losses.push_back(loss);
    Outcomes& part = i < cut ? first : second;
    part.add(samples[i].first, samples[i].second);
    part.batch_losses.push_back(loss);
  }
  first.append(second);
  RC_ASSERT(first == whole);
  RC_ASSERT(classify(first).to_json() == classify(whole).to_json());
}

TEST(Outcomes, CanBeAppendedToThemselves) {
  Outcomes outcomes = small();
  outcomes.append(outcomes);
  EXPECT_EQ(outcomes.samples(), 8);
  EXPECT_EQ(outcomes.score[4], 0.9);
  EXPECT_EQ(outcomes.batch_losses.size(), 4u);
}

TEST(Outcomes, RefuseWhatDoesNotFit) {
  Outcomes three;
  three.classes = 3;
  three.add(2, 2);
  EXPECT_EQ(refusal([&] { small().append(three); }), "outcomes of 2 and 3 classes cannot be put together");
  EXPECT_EQ(refusal([&] { rank_by_score(three); }), "a ranking needs two classes, not 3");
  Outcomes no_scores;
  no_scores.add(1, 1);
  EXPECT_EQ(refusal([&] { small().append(no_scores); }), "only one of two parts of 4 and 1 samples has scores");
  EXPECT_EQ(refusal([&] { no_scores.predict_from(0.5); }), "a ranking needs a score for each sample");
  Outcomes wrong = small();
  wrong.truth[2] = 2;
  EXPECT_EQ(refusal([&] { classify(wrong); }), "sample 2: true class 2 is not among 0 to 1");
  wrong = small();
  wrong.score[1] = std::nan("");
  EXPECT_EQ(refusal([&] { rank_by_score(wrong); }), "the score of sample 1 is not finite (nan)");
  wrong = small();
  wrong.score.pop_back();
  EXPECT_EQ(refusal([&] { wrong.check(); }), "outcomes of 4 samples with 4 predictions and 3 scores");
}

TEST(Outcomes, EmptyPartsChangeNothing) {
  Outcomes outcomes;
  outcomes.append(small());
  outcomes.append(Outcomes{});
  EXPECT_EQ(outcomes, small());
  EXPECT_EQ(classify(Outcomes{}).confusion.samples(), 0);
  EXPECT_EQ(rank_by_score(Outcomes{}).samples(), 0);
}

}  // namespace
}  // namespace convoy::eval
