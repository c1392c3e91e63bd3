// Probes: kept and read back whole, and compared so that each kind of difference is found and explained.
#include "convoy/elastic/probe/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "convoy/base/error.h"
#include "convoy/elastic/probe/compare.h"
#include "tests/support/ranks.h"

namespace convoy::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::error_of;

ProbeTensor floats(const std::vector<float>& values) {
  ProbeTensor tensor{DType::kFloat32, {static_cast<std::int64_t>(values.size())}, {}};
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

// Two replicas on two ranks, one micro-batch each, of 3 and 1 samples; two steps are trained, two epochs foreseen.
struct Sides {
  Probe reference;
  Probe ranks;
  CompareOptions options;

  Sides() {
    options.owners = {{0, 1}, {1, 2}};
    options.steps_per_epoch = 2;
    reference.ranks.resize(1);
    ranks.ranks.resize(2);
    add(-1, false);
    for (const std::int64_t step : {0, 1}) add(step, true);
    for (const std::int64_t step : {2, 3}) add(step, false);
  }

  static ProbePart part(std::int64_t step, int replica) {
    ProbePart made{replica, 0, {}, 1.5, replica == 0 ? 3 : 1, ""};
    for (std::int64_t i = 0; i < made.counted; ++i) made.samples.push_back(10 * step + 3 * replica + i);
    made.random = "r" + std::to_string(step) + "." + std::to_string(replica);
    return made;
  }

  void add(std::int64_t step, bool trained) {
    ProbeStep whole;
    whole.step = step;
    whole.epoch = step < 0 ? 0 : step / 2;
    whole.trained = trained;
    std::vector<ProbeStep> of_rank(2, whole);
    for (int replica = 0; replica < 2; ++replica) {
      if (step < 0) continue;
      whole.parts.push_back(part(step, replica));
      if (!trained) whole.parts.back().random.clear();
      of_rank[static_cast<std::size_t>(replica)].parts.push_back(whole.parts.back());
    }
    if (trained || step < 0) {
      const auto shift = static_cast<float>(step);
      whole.tensors["parameter/w"] = floats({1.0F + shift, 2.0F, -3.0F});
      for (int replica = 0; replica < 2; ++replica) {
        const std::string name = "replica." + std::to_string(replica) + "/bn.running_mean";
        whole.tensors[name] = of_rank[static_cast<std::size_t>(replica)].tensors[name] = floats({0.5F, shift});
      }
      of_rank[0].tensors["parameter/w"] = whole.tensors["parameter/w"];
      for (ProbeStep& step_of : of_rank) step_of.digests = {{"parameters", "p"}, {"merged", "m"}};
    }
    if (trained) {
      // Sums of 3 and 1 samples: the mean is (6 + 2, 3 - 1, 0 + 4) / 4.
      whole.tensors["part.0.0/w"] = floats({6, 3, 0});
      whole.tensors["part.1.0/w"] = floats({2, -1, 4});
      whole.tensors["gradient/w"] = of_rank[0].tensors["gradient/w"] = floats({2, 0.5F, 1});
      for (ProbeStep& step_of : of_rank) step_of.digests["gradient"] = "g";
    }
    reference.ranks[0].push_back(whole);
    for (std::size_t rank = 0; rank < 2; ++rank) ranks.ranks[rank].push_back(of_rank[rank]);
  }

  // The ranks' record of a step; step -1 is the first.
  ProbeStep& record(int rank, std::int64_t step) {
    return ranks.ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(step + 1)];
  }
  ProbeReport compare() const { return compare_probes(reference, ranks, options); }
  std::vector<std::string> faults() const {
    std::vector<std::string> names;
    for (const ProbeFinding& finding : compare().findings) names.push_back(finding.fault);
    return names;
  }
};

TEST(Probe, ComesBackFromFilesAsItWasWritten) {
  MemoryFiles files;
  files.make_directories("probe");
  const Sides sides;
  for (int rank = 0; rank < 2; ++rank) {
    ProbeWriter writer(files, "probe", rank);
    for (const ProbeStep& step : sides.ranks.ranks[static_cast<std::size_t>(rank)]) writer.add(step);
  }
  const Probe read = read_probe(files, "probe", 2);
  ASSERT_EQ(read.ranks.size(), 2U);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(read.ranks[rank].size(), sides.ranks.ranks[rank].size());
    for (std::size_t i = 0; i < read.ranks[rank].size(); ++i) {
      const ProbeStep& wanted = sides.ranks.ranks[rank][i];
      EXPECT_EQ(read.ranks[rank][i].step, wanted.step);
      EXPECT_EQ(read.ranks[rank][i].trained, wanted.trained);
      EXPECT_EQ(read.ranks[rank][i].parts, wanted.parts);
      EXPECT_EQ(read.ranks[rank][i].digests, wanted.digests);
      EXPECT_EQ(read.ranks[rank][i].tensors, wanted.tensors);
    }
  }
  EXPECT_THAT(error_of([&] { read_probe(files, "probe", 3); }).message(), HasSubstr("rank-2.jsonl"));
  files.append("probe/rank-1.jsonl", "{\"step\":");
  const Error damaged = error_of([&] { read_probe(files, "probe", 2); });
  EXPECT_EQ(damaged.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(damaged.message(), HasSubstr("rank-1.jsonl line 6"));
}

TEST(ProbeComparison, IsSilentWhenEveryBitIsEqual) {
  const ProbeReport report = Sides().compare();
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(report.differing, 0);
  EXPECT_GT(report.elements, 20);
}

TEST(ProbeComparison, FindsOneBitAndNamesTheTensor) {
  Sides sides;
  sides.record(0, 0).tensors["parameter/w"] = floats({std::nextafter(1.0F, 2.0F), 2, -3});
  const ProbeReport report = sides.compare();
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.differing, 1);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].fault, "update_differs");
  EXPECT_THAT(report.findings[0].words, HasSubstr("parameter/w"));
  sides.options.exact = false;
  EXPECT_TRUE(sides.compare().ok()) << "one unit in the last place lies within the tolerance";
}

TEST(ProbeComparison, TellsMinusZeroFromZero) {
  Sides sides;
  sides.reference.ranks[0][1].tensors["parameter/w"] = floats({0.0F, 2, -3});
  sides.record(0, 0).tensors["parameter/w"] = floats({-0.0F, 2, -3});
  EXPECT_FALSE(sides.compare().ok());
}

TEST(ProbeComparison, ExplainsScalesAndMeans) {
  const auto with_gradient = [](const std::vector<float>& gradient, int accumulation = 1) {
    Sides sides;
    sides.options.accumulation = accumulation;
    sides.record(0, 0).tensors["gradient/w"] = floats(gradient);
    return sides.faults();
  };
  EXPECT_THAT(with_gradient({4, 1, 2}), ElementsAre("sum_instead_of_mean"));
  EXPECT_THAT(with_gradient({6, 1.5F, 3}, 3), ElementsAre("loss_scale_under_accumulation"));
  EXPECT_THAT(with_gradient({2.0F / 3, 0.5F / 3, 1.0F / 3}, 3), ElementsAre("loss_scale_under_accumulation"));
  EXPECT_THAT(with_gradient({20, 5, 10}), ElementsAre("wrong_scale"));
  // (6, 3, 0) / 3 and (2, -1, 4) / 1, halved
  EXPECT_THAT(with_gradient({2, 0, 2}), ElementsAre("unweighted_parts"));
  EXPECT_THAT(with_gradient({2, 0.5F, -1}), ElementsAre("gradient_differs"));
}

TEST(ProbeComparison, ExplainsSamplesBeforeWhatFollowsFromThem) {
  Sides same;
  same.record(1, 0).parts[0].samples = {0, 1, 2};
  same.record(0, 0).tensors["gradient/w"] = floats({9, 9, 9});
  EXPECT_THAT(same.faults(), ElementsAre("same_samples_on_ranks"));

  Sides order;
  for (const int rank : {0, 1}) order.record(rank, 2).parts[0].samples = Sides::part(0, rank).samples;
  EXPECT_THAT(order.faults(), ElementsAre("order_not_renewed"));

  Sides drawn;
  drawn.record(0, 0).parts[0].samples = {5, 5, 1};
  EXPECT_THAT(drawn.faults(), ElementsAre("resampled_by_rank"));

  Sides other;
  other.record(1, 1).parts[0].samples = {77};
  EXPECT_THAT(other.faults(), ElementsAre("other_samples"));
}

TEST(ProbeComparison, ExplainsRandomNumbersAndBuffers) {
  Sides same;
  same.record(1, 0).parts[0].random = "r0.0";
  EXPECT_THAT(same.faults(), ElementsAre("same_random_numbers_on_ranks"));
  Sides other;
  other.record(1, 0).parts[0].random = "elsewhere";
  EXPECT_THAT(other.faults(), ElementsAre("other_random_numbers"));

  Sides buffer;
  buffer.record(1, 0).tensors["replica.1/bn.running_mean"] = floats({0.5F, 7});
  EXPECT_THAT(buffer.faults(), ElementsAre("unsynchronised_buffer"));
  Sides merged;
  merged.record(1, 0).digests["merged"] = "others";
  EXPECT_THAT(merged.faults(), ElementsAre("unsynchronised_buffer"));
  Sides parted;
  parted.record(1, 1).digests["parameters"] = "others";
  EXPECT_THAT(parted.faults(), ElementsAre("update_differs")) << "ranks that part from each other";
}

TEST(ProbeComparison, RefusesProbesThatDoNotFit) {
  Sides missing;
  missing.record(0, 0).tensors.erase("gradient/w");
  EXPECT_THAT(error_of([&] { missing.compare(); }).message(), HasSubstr("gradient/w"));
  Sides shape;
  shape.record(0, 0).tensors["parameter/w"] = floats({1, 2});
  EXPECT_EQ(error_of([&] { shape.compare(); }).code(), ErrorCode::kCorrupt);
  Sides step;
  step.ranks.ranks[0].resize(2);
  EXPECT_EQ(error_of([&] { step.compare(); }).code(), ErrorCode::kCorrupt);
}

TEST(ProbeComparison, NamesLayersWithRunningStatistics) {
  EXPECT_THAT(batch_dependent_layers(Sides().reference), ElementsAre("bn"));
}

}  // namespace
}  // namespace convoy::elastic
