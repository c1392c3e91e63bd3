// Slices show what a total hides, and do not report noise.
#include "convoy/eval/slices.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/base/random.h"

namespace convoy::eval {
namespace {

// Adds samples of which `right` are predicted right, all with the same slice value.
void add_samples(Outcomes& outcomes, SliceColumn& column, std::int32_t value, int samples, int right) {
  for (int i = 0; i < samples; ++i) {
    const std::int32_t truth = i % 2;
    outcomes.add(truth, i < right ? truth : 1 - truth);
    column.value_of.push_back(value);
  }
}

TEST(SliceReport, FindsTheShiftThatTheTotalHides) {
  Outcomes outcomes;
  SliceColumn month{"month", {"may", "june", "july"}, {}};
  add_samples(outcomes, month, 0, 400, 380);
  add_samples(outcomes, month, 1, 400, 381);
  add_samples(outcomes, month, 2, 100, 60);
  const SliceReport report = slice_report(outcomes, std::vector<SliceColumn>{month});
  ASSERT_EQ(report.slices.size(), 3u);
  EXPECT_EQ(report.slices[2].samples, 100);
  EXPECT_EQ(report.slices[2].accuracy, 0.6);
  ASSERT_FALSE(report.findings.empty());
  const auto july = std::find_if(report.findings.begin(), report.findings.end(),
                                 [](const SliceFinding& f) { return f.value == "july" && f.metric == "accuracy"; });
  ASSERT_NE(july, report.findings.end());
  EXPECT_EQ(july->slice, 0.6);
  EXPECT_EQ(july->rest, 761.0 / 800.0);
  EXPECT_EQ(july->total, 821.0 / 900.0);
  EXPECT_NE(july->text().find("accuracy is 0.6000 where month is july (100 samples)"), std::string::npos);
}

TEST(SliceReport, FewSamplesAreNoFinding) {
  Outcomes outcomes;
  SliceColumn column{"file", {"a", "b"}, {}};
  add_samples(outcomes, column, 0, 1000, 990);
  add_samples(outcomes, column, 1, 29, 0);
  EXPECT_TRUE(slice_report(outcomes, std::vector<SliceColumn>{column}).findings.empty());
  add_samples(outcomes, column, 1, 1, 0);
  EXPECT_FALSE(slice_report(outcomes, std::vector<SliceColumn>{column}).findings.empty());
}

// 100 reports of 40 slices each, of samples that do not depend on their slice: one report in 370 may err.
TEST(SliceReport, NoiseIsNotReported) {
  RandomStream stream(StreamPurpose::kSampleOrder, {17});
  int reports_with_findings = 0;
  for (int repeat = 0; repeat < 100; ++repeat) {
    Outcomes outcomes;
    SliceColumn column{"noise", std::vector<std::string>(40, "v"), {}};
    for (int i = 0; i < 4000; ++i) {
      const auto truth = static_cast<std::int32_t>(stream.below(2));
      outcomes.add(truth, stream.below(100) < 97 ? truth : 1 - truth);
      column.value_of.push_back(static_cast<std::int32_t>(stream.below(40)));
    }
    reports_with_findings += slice_report(outcomes, std::vector<SliceColumn>{column}).findings.empty() ? 0 : 1;
  }
  EXPECT_LE(reports_with_findings, 2);
}

TEST(SliceReport, MeasuresTwoClassesWithScores) {
  Outcomes outcomes;
  SliceColumn column{"source", {"one", "never", "other"}, {0, 0, 0, 2, 2, -1}};
  outcomes.add(1, 1, 0.9);
  outcomes.add(0, 1, 0.95);
  outcomes.add(0, 0, 0.1);
  outcomes.add(1, 1, 0.8);
  outcomes.add(1, 0, 0.2);
  outcomes.add(0, 0, 0.3);
  const SliceReport report = slice_report(outcomes, std::vector<SliceColumn>{column});
  ASSERT_EQ(report.slices.size(), 2u);  // a value without samples is left out
  EXPECT_EQ(*report.slices[0].roc_auc, 0.5);
  EXPECT_EQ(report.slices[0].positive->precision, 0.5);
  EXPECT_FALSE(report.slices[1].roc_auc.has_value());  // one class only
  EXPECT_EQ(*report.slices[1].pr_auc, 1.0);
  const auto json = to_json(report);
  EXPECT_TRUE(json["slices"][1]["roc_auc"].is_null());
  EXPECT_EQ(json["slices"][0]["positives"], 1);
  EXPECT_EQ(json["comparisons"], 0);
}

TEST(SliceReport, RefusesAColumnThatDoesNotFit) {
  Outcomes outcomes;
  outcomes.add(0, 0);
  outcomes.add(1, 1);
  const auto message = [&](SliceColumn column) {
    try {
      slice_report(outcomes, std::vector<SliceColumn>{std::move(column)});
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message({"job", {"a"}, {0}}), "slice column 'job' has 1 samples, the evaluation 2");
  EXPECT_EQ(message({"job", {"a"}, {0, 1}}), "slice column 'job': sample 1 has value number 1 of 1");
  EXPECT_EQ(message({"job", {"a"}, {0, -2}}), "slice column 'job': sample 1 has value number -2 of 1");
}

TEST(FisherPValue, EqualsHandCountedTables) {
  // 3 of 4 right in one group, 1 of 4 in the other: tables with 3 or 4 hits have 16 + 1 of 70 ways.
  EXPECT_NEAR(fisher_p_value(3, 4, 4, 8), 2.0 * 17.0 / 70.0, 1e-12);
  EXPECT_NEAR(fisher_p_value(4, 4, 4, 8), 2.0 / 70.0, 1e-12);
  EXPECT_NEAR(fisher_p_value(0, 4, 4, 8), 2.0 / 70.0, 1e-12);
  EXPECT_EQ(fisher_p_value(2, 4, 4, 8), 1.0);
  // Twice the smaller tail by scipy.stats.hypergeom of SciPy 1.10.1.
  EXPECT_NEAR(fisher_p_value(60, 100, 821, 900) / 1.1839019904982124e-20, 1.0, 1e-9);
  EXPECT_EQ(fisher_p_value(0, 0, 4, 8), 1.0);
  EXPECT_THROW(fisher_p_value(5, 4, 4, 8), Error);
  EXPECT_THROW(fisher_p_value(0, 5, 5, 8), Error);  // 5 drawn and 3 misses: at least 2 hits
}

RC_GTEST_PROP(FisherPValue, IsTheSameForHitsAndMisses, ()) {
  const auto all = *rc::gen::inRange<std::int64_t>(1, 60);
  const auto all_hits = *rc::gen::inRange<std::int64_t>(0, all + 1);
  const auto draws = *rc::gen::inRange<std::int64_t>(0, all + 1);
  const std::int64_t fewest = std::max<std::int64_t>(0, draws - (all - all_hits));
  const auto hits = *rc::gen::inRange<std::int64_t>(fewest, std::min(draws, all_hits) + 1);
  const double p = fisher_p_value(hits, draws, all_hits, all);
  RC_ASSERT(p > 0.0 && p <= 1.0);
  RC_ASSERT(std::abs(p - fisher_p_value(draws - hits, draws, all - all_hits, all)) < 1e-9);
  RC_ASSERT(std::abs(p - fisher_p_value(all_hits - hits, all - draws, all_hits, all)) < 1e-9);
}

}  // namespace
}  // namespace convoy::eval
