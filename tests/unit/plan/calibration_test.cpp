// The calibration file and the fit of a link.
#include "convoy/plan/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "convoy/base/error.h"

namespace convoy::plan {
namespace {

using ::testing::HasSubstr;

std::vector<MessageTime> times_of(double alpha, double beta, double noise = 0) {
  std::vector<MessageTime> times;
  for (std::int64_t bytes = 4; bytes <= 64 << 20; bytes *= 4) {
    const double sign = times.size() % 2 == 0 ? 1 : -1;
    times.push_back({bytes, (alpha + beta * static_cast<double>(bytes)) * (1 + sign * noise)});
  }
  return times;
}

TEST(LinkFit, FindsAlphaAndBetaOfALine) {
  const LinkFit fit = fit_link(times_of(2e-6, 1e-10));
  EXPECT_NEAR(fit.cost.alpha_s, 2e-6, 1e-11);
  EXPECT_NEAR(fit.cost.beta_s, 1e-10, 1e-15);
  EXPECT_LT(fit.worst_error, 1e-9);
}

TEST(LinkFit, WeighsSmallMessagesAsMuchAsLargeOnesAndSaysItsError) {
  const LinkFit fit = fit_link(times_of(2e-6, 1e-10, 0.1));
  EXPECT_NEAR(fit.cost.alpha_s, 2e-6, 0.1e-6);
  EXPECT_NEAR(fit.cost.beta_s, 1e-10, 0.1e-10);
  EXPECT_NEAR(fit.relative_error, 0.1, 0.02);
  EXPECT_GE(fit.worst_error, fit.relative_error);
}

TEST(LinkFit, NeverGivesANegativeCost) {
  const std::vector<MessageTime> falling = {{4, 3e-6}, {1024, 2e-6}, {4096, 1e-6}};
  EXPECT_EQ(fit_link(falling).cost.beta_s, 0);
  EXPECT_GT(fit_link(falling).cost.alpha_s, 0);
  const std::vector<MessageTime> steep = {{1000, 1e-6}, {2000, 4e-6}};
  EXPECT_EQ(fit_link(steep).cost.alpha_s, 0);
  EXPECT_GT(fit_link(steep).cost.beta_s, 0);
}

TEST(LinkFit, RefusesOneSizeAndTimesThatAreNone) {
  const std::vector<MessageTime> one = {{4, 1e-6}, {4, 2e-6}};
  EXPECT_THROW(fit_link(one), Error);
  EXPECT_THROW(fit_link({}), Error);
  const std::vector<MessageTime> still = {{4, 0}, {8, 1e-6}};
  EXPECT_THROW(fit_link(still), Error);
}

Calibration some_calibration() {
  Calibration some = this_machine();
  some.gamma_s = 1.5e-11;
  some.kappa_s = 2.5e-11;
  some.put({"shared_memory", "shared", 2, {{2e-6, 1e-10}, 0.05, 0.11}, some.date});
  some.put({"gloo", "shared", 2, {{3e-5, 5e-10}, 0.07, 0.2}, some.date});
  some.put({"all_reduce", "ring", "shared_memory", "shared", 2, 4096, 1e-5, 2e-5});
  return some;
}

TEST(Calibration, ReadsBackWhatWasWritten) {
  MemoryFiles files;
  const Calibration some = some_calibration();
  write_calibration(files, "cache/convoy/calibration.json", some);
  const auto read = read_calibration(files, "cache/convoy/calibration.json");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->host, some.host);
  EXPECT_EQ(read->cpu, some.cpu);
  EXPECT_EQ(read->cores, some.cores);
  EXPECT_EQ(read->gamma_s, 1.5e-11);
  EXPECT_EQ(read->kappa_s, 2.5e-11);
  ASSERT_EQ(read->links.size(), 2u);
  EXPECT_EQ(read->links[1].transport, "gloo");
  EXPECT_EQ(read->links[1].fit.cost.alpha_s, 3e-5);
  EXPECT_EQ(read->links[1].fit.worst_error, 0.2);
  ASSERT_EQ(read->collectives.size(), 1u);
  EXPECT_EQ(read->collectives[0].bytes, 4096);
  EXPECT_EQ(read->collectives[0].p95_s, 2e-5);
}

TEST(Calibration, KeepsTheNewestOfEachLinkAndCollective) {
  Calibration some = some_calibration();
  some.put({"gloo", "shared", 2, {{1e-5, 1e-10}, 0.01, 0.02}, some.date});
  some.put({"gloo", "shared", 4, {{4e-5, 1e-10}, 0.01, 0.02}, some.date});
  some.put({"all_reduce", "ring", "shared_memory", "shared", 2, 4096, 7e-6, 8e-6});
  EXPECT_EQ(some.links.size(), 3u);
  EXPECT_EQ(some.link("gloo", "shared", 2)->fit.cost.alpha_s, 1e-5);
  EXPECT_EQ(some.link("gloo", "shared", 7)->fit.cost.alpha_s, 4e-5);
  EXPECT_EQ(some.link("gloo", "private", 2), nullptr);
  ASSERT_EQ(some.collectives.size(), 1u);
  EXPECT_EQ(some.collectives[0].median_s, 7e-6);
}

TEST(Calibration, BecomesTheMachineOfPrices) {
  const auto machine = machine_of(some_calibration(), "shared_memory", 4);
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(machine->inside.alpha_s, 2e-6);
  EXPECT_EQ(machine->between.beta_s, 5e-10);
  EXPECT_EQ(machine->gamma_s, 1.5e-11);
  EXPECT_FALSE(machine_of(some_calibration(), "carrier_pigeon", 4).has_value());
}

TEST(Calibration, YieldsToTheLinksThatARecipeWrites) {
  spec::CommRecipe comm;
  comm.between_latency_us = 70;
  comm.between_gbytes_per_s = 0.125;
  const auto mixed = machine_of(some_calibration(), comm, 4);
  ASSERT_TRUE(mixed.has_value());
  EXPECT_EQ(mixed->inside.alpha_s, 2e-6);
  EXPECT_DOUBLE_EQ(mixed->between.alpha_s, 70e-6);
  EXPECT_DOUBLE_EQ(mixed->between.beta_s, 8e-9);
  EXPECT_EQ(mixed->gamma_s, 1.5e-11);
  EXPECT_FALSE(machine_of(std::nullopt, comm, 4).has_value()) << "what links inside a host cost is not known";
  comm.inside_latency_us = 3;
  comm.inside_gbytes_per_s = 10;
  const auto written = machine_of(std::nullopt, comm, 4);
  ASSERT_TRUE(written.has_value());
  EXPECT_DOUBLE_EQ(written->inside.alpha_s, 3e-6);
  EXPECT_EQ(written->gamma_s, 0);
  comm.transport = "openmpi";
  const auto elsewhere = machine_of(some_calibration(), comm, 4);
  ASSERT_TRUE(elsewhere.has_value());
  EXPECT_DOUBLE_EQ(elsewhere->inside.beta_s, 1e-10);
  EXPECT_EQ(elsewhere->gamma_s, 1.5e-11) << "sums cost the same over any transport";
}

TEST(Calibration, OfAnotherMachineIsNotThisOnes) {
  MemoryFiles files;
  Calibration own = this_machine();
  write_calibration(files, "own.json", own);
  EXPECT_TRUE(read_own_calibration(files, "own.json").has_value());
  own.cpu += " of another kind";
  write_calibration(files, "other.json", own);
  EXPECT_FALSE(read_own_calibration(files, "other.json").has_value());
  EXPECT_FALSE(read_own_calibration(files, "none.json").has_value());
  EXPECT_FALSE(read_own_calibration(files, "").has_value());
}

TEST(Calibration, NamesAFileOfAnotherForm) {
  MemoryFiles files;
  EXPECT_FALSE(read_calibration(files, "none.json").has_value());
  for (const char* text : {"", "{}", "[1]", R"({"format": "convoy calibration", "version": 2})"}) {
    write_atomic(files, "bad.json", text);
    try {
      read_calibration(files, "bad.json");
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
      EXPECT_THAT(error.message(), HasSubstr("bad.json is no calibration"));
    }
  }
}

}  // namespace
}  // namespace convoy::plan
