// A ranking's metrics are exact, equal to scikit-learn's, and the same however the samples were dealt out.
#include "convoy/eval/ranked.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::eval {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::pair<double, bool>;

RankedOutcomes ranked(const std::vector<Row>& rows) {
  RankedOutcomes outcomes;
  for (const Row& row : rows) outcomes.add(row.first, row.second);
  return outcomes;
}

// How many doubles lie between two positive ones.
std::int64_t steps_between(double a, double b) {
  return std::abs(std::bit_cast<std::int64_t>(a) - std::bit_cast<std::int64_t>(b));
}

// The stored cases: rows, scikit-learn's values and the same definitions as fractions rounded once.
class AgainstScikitLearn : public ::testing::Test {
 protected:
  static const Json& cases() {
    static const Json all =
        Json::parse(local_files().read(std::string(CONVOY_SOURCE_DIR) + "/tests/data/sklearn/ranked.json"));
    return all["cases"];
  }

  static RankedCurve curve_of(const Json& one) {
    RankedOutcomes outcomes;
    const auto labels = one["labels"].get<std::string>();
    for (std::size_t i = 0; i < labels.size(); ++i) outcomes.add(one["scores"][i].get<double>(), labels[i] == '1');
    return outcomes.curve();
  }

  static void expect_points(const std::vector<CurvePoint>& points, const Json& expected) {
    ASSERT_EQ(points.size(), expected.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(points[i].x, expected[i][0].get<double>()) << "point " << i;
      EXPECT_EQ(points[i].y, expected[i][1].get<double>()) << "point " << i;
    }
  }
};

TEST_F(AgainstScikitLearn, EveryValueIsTheFractionRoundedOnce) {
  ASSERT_GE(cases().size(), 15u);
  for (const Json& one : cases()) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const RankedCurve curve = curve_of(one);
    const Json& exact = one["exact"];
    const Json values = to_json(curve, one["threshold"].get<double>());
    for (const char* name : {"roc_auc", "pr_auc", "precision", "recall", "f1"}) {
      EXPECT_EQ(values[name], exact[name]) << name;
    }
    const auto best = curve.best_f1_threshold();
    EXPECT_EQ(best ? Json(*best) : Json(nullptr), exact["best_f1_threshold"]);
  }
}

// scikit-learn rounds after every operation (F1 from rounded precision and recall, areas as sums of rounded products), so
// its last digit is not the exact one's: two units in the last place are the most that these cases show.
TEST_F(AgainstScikitLearn, ItsOwnRoundingIsTheOnlyDifference) {
  int equal = 0;
  int compared = 0;
  for (const Json& one : cases()) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const Json values = to_json(curve_of(one), one["threshold"].get<double>());
    for (const auto& expected : one["sklearn"].items()) {
      const std::string& name = expected.key();
      if (expected.value().is_null()) {
        EXPECT_TRUE(values[name].is_null()) << name;
        continue;
      }
      const std::int64_t apart = steps_between(values[name].get<double>(), expected.value().get<double>());
      EXPECT_LE(apart, name == "precision" || name == "recall" ? 0 : 2) << name;
      equal += apart == 0 ? 1 : 0;
      ++compared;
    }
  }
  EXPECT_GE(equal * 10, compared * 8);
}

TEST_F(AgainstScikitLearn, CurvesHaveTheSamePoints) {
  int compared = 0;
  for (const Json& one : cases()) {
    if (!one.contains("curves")) continue;
    SCOPED_TRACE(one["name"].get<std::string>());
    const RankedCurve curve = curve_of(one);
    expect_points(curve.roc_points(), one["curves"]["roc"]);
    expect_points(curve.pr_points(), one["curves"]["pr"]);
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

TEST(RankedOutcomes, AucComesFromMergedScoresNotFromAMeanOfRanks) {
  RankedOutcomes rank0 = ranked({{0.9, true}, {0.8, false}});
  const RankedOutcomes rank1 = ranked({{0.3, true}, {0.2, false}});
  EXPECT_EQ(*rank0.curve().roc_auc(), 1.0);
  EXPECT_EQ(*rank1.curve().roc_auc(), 1.0);
  rank0.merge(rank1);
  EXPECT_EQ(*rank0.curve().roc_auc(), 0.75);
}

TEST(RankedOutcomes, TiesCountHalf) {
  EXPECT_EQ(*ranked({{0.5, true}, {0.5, false}}).curve().roc_auc(), 0.5);
  EXPECT_EQ(*ranked({{0.5, true}, {0.5, false}, {0.1, false}}).curve().roc_auc(), 0.75);
  EXPECT_EQ(*ranked({{-0.0, true}, {0.0, false}}).curve().roc_auc(), 0.5);
  // Which zero came last must not show in the threshold.
  EXPECT_FALSE(std::signbit(ranked({{-0.0, true}, {0.0, false}}).curve().steps()[0].threshold));
  EXPECT_FALSE(std::signbit(ranked({{0.0, true}, {-0.0, false}}).curve().steps()[0].threshold));
}

TEST(RankedOutcomes, OneClassHasNoRocAucAndIsNoError) {
  const RankedCurve positive = ranked({{0.1, true}, {0.7, true}}).curve();
  EXPECT_FALSE(positive.roc_auc().has_value());
  EXPECT_EQ(*positive.pr_auc(), 1.0);
  EXPECT_TRUE(positive.roc_points().empty());
  const RankedCurve negative = ranked({{0.1, false}, {0.7, false}}).curve();
  EXPECT_FALSE(negative.roc_auc().has_value());
  EXPECT_EQ(*negative.pr_auc(), 0.0);
  EXPECT_TRUE(negative.pr_points().empty());
  EXPECT_FALSE(negative.best_f1_threshold().has_value());
  const Json json = to_json(negative, 0.5);
  EXPECT_TRUE(json["roc_auc"].is_null());
  EXPECT_EQ(json["recall"], 0.0);
  EXPECT_EQ(json["false_positives"], 1);
}

TEST(RankedOutcomes, NothingAtAllIsNullEverywhere) {
  const Json json = to_json(RankedOutcomes().curve(), 0.5);
  EXPECT_EQ(json["samples"], 0);
  EXPECT_TRUE(json["roc_auc"].is_null());
  EXPECT_TRUE(json["pr_auc"].is_null());
  EXPECT_EQ(json["f1"], 0.0);
  EXPECT_EQ(json.dump().find("nan"), std::string::npos);
}

TEST(RankedOutcomes, NamesTheSampleWhoseScoreIsNotFinite) {
  RankedOutcomes outcomes;
  outcomes.add(0.5, true, 6);
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    try {
      outcomes.add(bad, false, 7);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(error.message().find("score of sample 7 is not finite"), std::string::npos) << error.message();
    }
  }
  EXPECT_EQ(outcomes.samples(), 1);
}

TEST(RankedCurve, PredictsPositiveFromTheThresholdOn) {
  const RankedCurve curve = ranked({{0.9, true}, {0.6, false}, {0.6, true}, {0.2, true}, {0.1, false}}).curve();
  EXPECT_EQ(curve.at(0.6), (BinaryRates{2, 1, 1, 1}));
  EXPECT_EQ(curve.at(0.61), (BinaryRates{1, 0, 2, 2}));
  EXPECT_EQ(curve.at(0.91), (BinaryRates{0, 0, 3, 2}));
  EXPECT_EQ(curve.at(-5.0), (BinaryRates{3, 2, 0, 0}));
  EXPECT_EQ(curve.at(0.6).accuracy(), 0.6);
}

TEST(RankedCurve, OfThresholdsWithEqualF1TheHighestIsTaken) {
  // From 0.9: 2 * 1 / (1 + 2); from 0.5: 2 * 2 / (4 + 2). Both are 2/3.
  const RankedCurve curve = ranked({{0.9, true}, {0.5, true}, {0.5, false}, {0.5, false}, {0.1, false}}).curve();
  EXPECT_EQ(curve.at(0.9).f1(), curve.at(0.5).f1());
  EXPECT_EQ(*curve.best_f1_threshold(), 0.9);
}

RC_GTEST_PROP(RankedOutcomes, AnyPartsMergedInAnyOrderGiveTheSameBits, ()) {
  const auto rows = *rc::gen::container<std::vector<std::pair<int, bool>>>(
      rc::gen::pair(rc::gen::inRange(-20, 20), rc::gen::arbitrary<bool>()));
  const int parts = *rc::gen::inRange(1, 6);
  const auto owners = *rc::gen::container<std::vector<int>>(rows.size(), rc::gen::inRange(0, parts));
  std::vector<int> order(static_cast<std::size_t>(parts));
  for (int i = 0; i < parts; ++i) order[static_cast<std::size_t>(i)] = i;
  const auto shift = *rc::gen::inRange(0, parts);
  std::rotate(order.begin(), order.begin() + shift, order.end());
  if (*rc::gen::arbitrary<bool>()) std::reverse(order.begin(), order.end());

  RankedOutcomes whole;
  std::vector<RankedOutcomes> held(static_cast<std::size_t>(parts));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double score = rows[i].first / 7.0;
    whole.add(score, rows[i].second);
    held[static_cast<std::size_t>(owners[i])].add(score, rows[i].second);
  }
  RankedOutcomes merged;
  for (const int part : order) merged.merge(held[static_cast<std::size_t>(part)]);
  RC_ASSERT(merged.curve().steps() == whole.curve().steps());
  RC_ASSERT(to_json(merged.curve(), 0.25).dump() == to_json(whole.curve(), 0.25).dump());
  RC_ASSERT(merged.curve().best_f1_threshold() == whole.curve().best_f1_threshold());
}

RC_GTEST_PROP(RankedCurve, RocAucCountsPairs, ()) {
  const auto rows = *rc::gen::container<std::vector<std::pair<int, bool>>>(
      rc::gen::pair(rc::gen::inRange(0, 6), rc::gen::arbitrary<bool>()));
  RankedOutcomes outcomes;
  std::int64_t halves = 0;
  std::int64_t pairs = 0;
  for (const auto& one : rows) {
    outcomes.add(one.first, one.second);
    for (const auto& other : rows) {
      if (!one.second || other.second) continue;
      ++pairs;
      halves += one.first > other.first ? 2 : one.first == other.first ? 1 : 0;
    }
  }
  const auto area = outcomes.curve().roc_auc();
  RC_ASSERT(area.has_value() == (pairs > 0));
  if (area) RC_ASSERT(*area == static_cast<double>(halves) / static_cast<double>(2 * pairs));
}

}  // namespace
}  // namespace convoy::eval
