// Evaluation on any number of ranks: each sample once, every value the same bit for bit, and what is wrong is named.
#include "convoy/train/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <mutex>

#include "convoy/base/error.h"
#include "tests/support/groups.h"

namespace convoy::train {
namespace {

using ::testing::HasSubstr;
using testing::with_groups;

// Samples that are their own logits.
class LogitRows final : public records::Dataset {
 public:
  LogitRows(std::vector<std::vector<float>> logits, std::vector<std::int64_t> labels, int classes)
      : logits_(std::move(logits)), labels_(std::move(labels)), classes_(classes) {}
  std::int64_t count() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::vector<std::int64_t> sample_shape() const override { return {static_cast<std::int64_t>(logits_[0].size())}; }
  int classes() const override { return classes_; }
  std::int64_t label(std::int64_t sample) const override { return labels_[static_cast<std::size_t>(sample)]; }
  std::string key_of(std::int64_t sample) const override { return "rows.csv line " + std::to_string(sample + 2); }
  std::string content_of(std::int64_t sample) const override { return key_of(sample); }
  void prepare(std::int64_t sample, const records::SampleUse&, std::span<float> out) const override {
    const std::vector<float>& row = logits_[static_cast<std::size_t>(sample)];
    std::copy(row.begin(), row.end(), out.begin());
  }
  std::vector<records::SliceColumn> slices(std::span<const std::string>, std::span<const std::int64_t>) const override {
    return {};
  }

 private:
  const std::vector<std::vector<float>> logits_;
  const std::vector<std::int64_t> labels_;
  const int classes_;
};

// Gives its input back as logits.
class Echo final : public params::Model {
 public:
  std::vector<params::NamedTensor> parameters() override { return {}; }
  std::vector<params::NamedTensor> buffers() override { return {}; }
  params::Loss forward(const params::Batch& batch) override { return params::cross_entropy(batch.input, batch); }
  void train(bool) override {}
};

records::DataPart part_of(std::vector<std::vector<float>> logits, std::vector<std::int64_t> labels, int classes) {
  records::DataPart part;
  part.dataset = std::make_shared<LogitRows>(std::move(logits), std::move(labels), classes);
  for (std::int64_t i = 0; i < part.dataset->count(); ++i) part.indexes.push_back(i);
  return part;
}

EvaluationOptions in_twos() {
  EvaluationOptions options;
  options.batch = 2;
  return options;
}

// What every rank found, by rank.
std::vector<Evaluation> evaluate_on(int ranks, const records::DataPart& part) {
  std::vector<Evaluation> found(static_cast<std::size_t>(ranks), Evaluation(part.dataset->classes()));
  with_groups(ranks, [&](comm::Group& group) {
    Echo model;
    found[static_cast<std::size_t>(group.rank())] = evaluate(model, part, in_twos(), group);
  });
  return found;
}

// Five samples, of which the last is wrong; two scores are equal, so that the ranking has a tie.
records::DataPart five_samples() {
  return part_of({{-0.3f, 1.1f}, {2.0f, 0.1f}, {-0.7f, 0.9f}, {0.35f, -0.15f}, {-0.3f, 1.1f}}, {1, 0, 1, 0, 0}, 2);
}

TEST(Evaluation, CountsEachSampleOnceAndIsTheSameOnOneToFourRanks) {
  const records::DataPart part = five_samples();
  const Evaluation alone = evaluate_on(1, part)[0];
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const Evaluation& found : evaluate_on(ranks, part)) {
      EXPECT_EQ(found.state.confusion.samples(), 5) << ranks << " ranks";
      EXPECT_EQ(found.state.confusion.accuracy(), 0.8) << "not 0.8333 over 6";
      EXPECT_EQ(found.outcomes.truth, (std::vector<std::int32_t>{1, 0, 1, 0, 0}));
      EXPECT_EQ(found.outcomes.predicted, (std::vector<std::int32_t>{1, 0, 1, 0, 1}));
      ASSERT_EQ(found.outcomes.score.size(), 5u);
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(std::bit_cast<std::uint64_t>(found.outcomes.score[i]),
                  std::bit_cast<std::uint64_t>(alone.outcomes.score[i]))
            << "score " << i << " on " << ranks << " ranks";
      }
      EXPECT_EQ(found.outcomes.score[0], found.outcomes.score[4]);
      ASSERT_EQ(found.outcomes.batch_losses.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(found.outcomes.batch_losses[i].sum, alone.outcomes.batch_losses[i].sum) << "batch " << i;
        EXPECT_EQ(found.outcomes.batch_losses[i].count, i == 2 ? 1 : 2);
      }
      EXPECT_EQ(found.state.loss.mean(), alone.state.loss.mean());
      ASSERT_TRUE(found.curve && found.curve->roc_auc() && found.curve->pr_auc());
      EXPECT_EQ(*found.curve->roc_auc(), 11.0 / 12.0) << "of six pairs five are won and one is a tie";
      EXPECT_EQ(*found.curve->pr_auc(), *alone.curve->pr_auc());
      EXPECT_EQ(found.to_json(0.5).dump(), alone.to_json(0.5).dump());
    }
  }
  const double probability = 1.0 / (1.0 + std::exp(double{-0.3f} - double{1.1f}));
  EXPECT_EQ(alone.outcomes.score[0], probability);
}

TEST(Evaluation, HasNoScoresForThreeClasses) {
  const records::DataPart part = part_of({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0}, {1, 0, 0}}, {0, 1, 2, 0, 1}, 3);
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const Evaluation& found : evaluate_on(ranks, part)) {
      EXPECT_EQ(found.state.confusion.accuracy(), 0.8);
      EXPECT_TRUE(found.outcomes.score.empty());
      EXPECT_FALSE(found.curve);
    }
  }
}

TEST(Evaluation, NamesTheFirstSampleWhoseOutputIsNotFiniteOnEveryRank) {
  const float nan = std::nanf("");
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<records::DataPart> parts{
      part_of({{1, 0}, {0, 1}, {1, 0}, {0, nan}, {nan, 0}}, {0, 1, 0, 1, 0}, 2),
      part_of({{1, 0, 0}, {0, 1, 0}, {1, 0, 0}, {nan, 1, 0}, {0, 0, nan}}, {0, 1, 0, 1, 2}, 3),
      part_of({{1, 0, 0}, {0, 1, 0}, {1, 0, 0}, {-infinite, 1, 0}, {0, 0, 1}}, {0, 1, 0, 1, 2}, 3)};
  for (const records::DataPart& part : parts) {
    for (const int ranks : {1, 2, 4}) {
      with_groups(ranks, [&](comm::Group& group) {
        Echo model;
        const Error error = testing::error_of([&] { evaluate(model, part, in_twos(), group); });
        EXPECT_EQ(error.code(), ErrorCode::kFailed) << "rank " << group.rank() << " of " << ranks;
        EXPECT_THAT(error.message(), HasSubstr("rows.csv line 5 is not finite"));
      });
    }
  }
}

// A model whose output is whatever a test says.
class Fixed final : public params::Model {
 public:
  explicit Fixed(torch::Tensor output) : output_(std::move(output)) {}
  std::vector<params::NamedTensor> parameters() override { return {}; }
  std::vector<params::NamedTensor> buffers() override { return {}; }
  params::Loss forward(const params::Batch& batch) override { return {torch::zeros({}), batch.input.size(0), output_}; }
  void train(bool) override {}

 private:
  torch::Tensor output_;
};

// An Echo whose loss comes in two sums.
class Halves final : public params::Model {
 public:
  std::vector<params::NamedTensor> parameters() override { return {}; }
  std::vector<params::NamedTensor> buffers() override { return {}; }
  params::Loss forward(const params::Batch& batch) override {
    params::Loss loss = params::cross_entropy(batch.input, batch);
    loss.further_sums = {loss.sum / 2};
    loss.sum = loss.sum / 2;
    return loss;
  }
  void train(bool) override {}
};

TEST(Evaluation, CountsAllSumsOfALoss) {
  const records::DataPart part = five_samples();
  with_groups(1, [&](comm::Group& group) {
    Echo whole;
    Halves halves;
    EXPECT_EQ(evaluate(halves, part, in_twos(), group).state.loss.mean(),
              evaluate(whole, part, in_twos(), group).state.loss.mean());
  });
}

TEST(Evaluation, RefusesAModelThatDoesNotGiveOneLogitForEachClass) {
  const records::DataPart two = part_of({{1, 0}, {0, 1}}, {0, 1}, 2);
  const records::DataPart three = part_of({{1, 0, 0}, {0, 1, 0}}, {0, 1}, 3);
  const auto refusal = [](const records::DataPart& part, const torch::Tensor& output) {
    Error error(ErrorCode::kInternal, "");
    with_groups(1, [&](comm::Group& group) {
      Fixed model(output);
      error = testing::error_of([&] { evaluate(model, part, in_twos(), group); });
    });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  };
  EXPECT_THAT(refusal(two, torch::zeros({2, 3})), HasSubstr("2 classes, so the model must give [2, 2] logits"));
  EXPECT_THAT(refusal(two, torch::zeros({2, 3})), HasSubstr("it gives [2, 3]"));
  EXPECT_THAT(refusal(two, torch::zeros({2})), HasSubstr("it gives [2]"));
  EXPECT_THAT(refusal(three, torch::zeros({2, 2})), HasSubstr("must give [2, 3] logits"));
  EXPECT_THAT(refusal(three, torch::zeros({2, 5})), HasSubstr("it gives [2, 5]"));
  EXPECT_THAT(refusal(three, torch::zeros({1, 3})), HasSubstr("it gives [1, 3]"));
  EXPECT_THAT(refusal(three, torch::Tensor()), HasSubstr("it gives none"));
}

// Keys and classes with everything that has a meaning in CSV.
class Awkward final : public records::Dataset {
 public:
  std::int64_t count() const override { return 3; }
  std::vector<std::int64_t> sample_shape() const override { return {1}; }
  int classes() const override { return 3; }
  std::int64_t label(std::int64_t sample) const override { return sample; }
  std::string key_of(std::int64_t sample) const override {
    return std::vector<std::string>{"a.csv line 2", "a,b.csv line 3",
                                    "\"a\".csv line 4"}[static_cast<std::size_t>(sample)];
  }
  std::string content_of(std::int64_t) const override { return ""; }
  void prepare(std::int64_t, const records::SampleUse&, std::span<float> out) const override { out[0] = 0.0f; }
  std::vector<std::string> class_names() const override { return {"no", "yes, sir", "two\nlines"}; }
  std::vector<records::SliceColumn> slices(std::span<const std::string>, std::span<const std::int64_t>) const override {
    return {};
  }
};

TEST(Predictions, AreQuotedWhereAFieldNeedsIt) {
  records::DataPart part{std::make_shared<Awkward>(), {2, 0, 1}};
  eval::Outcomes outcomes;
  outcomes.classes = 3;
  outcomes.truth = {2, 0, 1};
  outcomes.predicted = {0, 1, 2};
  MemoryFiles files;
  write_predictions(files, "predictions.csv", part, outcomes);
  EXPECT_EQ(files.read("predictions.csv"),
            "sample,truth,predicted\n"
            "\"\"\"a\"\".csv line 4\",\"two\nlines\",no\n"
            "a.csv line 2,no,\"yes, sir\"\n"
            "\"a,b.csv line 3\",\"yes, sir\",\"two\nlines\"\n");
}

TEST(Predictions, HaveScoresThatReadBackToTheSameBits) {
  const records::DataPart part = five_samples();
  const Evaluation found = evaluate_on(1, part)[0];
  MemoryFiles files;
  write_predictions(files, "predictions.csv", part, found.outcomes);
  const std::string text = files.read("predictions.csv");
  EXPECT_THAT(text, ::testing::StartsWith("sample,truth,predicted,score\nrows.csv line 2,1,1,"));
  const std::size_t at = text.find(",1,1,") + 5;
  EXPECT_EQ(std::stod(text.substr(at)), found.outcomes.score[0]);
}

}  // namespace
}  // namespace convoy::train
