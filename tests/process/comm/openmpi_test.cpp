// Ranks that mpirun starts: every algorithm over Open MPI, its own collectives, and what survivors report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "convoy/comm/openmpi/mpi_link.h"
#include "tests/support/processes.h"

namespace convoy::comm {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::CommandResult;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string kRanks = std::string(CONVOY_BINARY_DIR) + "/tests/openmpi_ranks";

class OpenMpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_openmpi()) GTEST_SKIP() << "this build has no Open MPI";
    if (testing::run_command({"/bin/sh", "-c", "command -v mpirun"}).status != 0)
      GTEST_SKIP() << "there is no mpirun here";
  }

  CommandResult play(int ranks, const std::string& scene, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> command = {"/usr/bin/env", "mpirun", "--oversubscribe", "--bind-to", "none"};
    if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
    command.insert(command.end(), options.begin(), options.end());
    // No other host.
    command.insert(command.end(), {"--mca", "plm", "isolated", "-n", std::to_string(ranks), kRanks, scene});
    return testing::run_command(command, {}, std::chrono::seconds(60));
  }

  void expect_played(int ranks, const std::string& scene) const {
    const CommandResult result = play(ranks, scene);
    EXPECT_EQ(result.status, 0) << ranks << " ranks: " << result.errors;
  }

  // What each survivor of rank 1 prints, where mpirun does not end it together with rank 1.
  std::vector<std::string> reports(int ranks, const std::string& scene) const {
    const CommandResult result = play(ranks, scene, {"--enable-recovery"});
    std::vector<std::string> found;
    for (const std::string& line : testing::lines_of(result.output)) {
      if (line.find(" reports ") != std::string::npos) found.push_back(line);
    }
    EXPECT_THAT(found, SizeIs(static_cast<std::size_t>(ranks) - 1)) << result.errors;
    return found;
  }

  static double seconds_of(const std::string& report) { return std::stod(report.substr(report.find(" after ") + 7)); }
};

TEST_F(OpenMpi, RunsEveryAlgorithmAndItsOwnOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) expect_played(ranks, "collectives");
}

TEST_F(OpenMpi, KnowsItsTypesAndRefusesWhatItCannotDo) { expect_played(3, "details"); }

TEST_F(OpenMpi, MakesGroupsAnewAlsoAfterOneWasGivenUp) { expect_played(3, "groups"); }

TEST_F(OpenMpi, SurvivorsNameARankThatWasKilled) {
  for (const char* scene : {"kill", "kill_native"}) {
    const auto found = reports(4, scene);
    EXPECT_THAT(found, Each(AllOf(HasSubstr("all_reduce"), HasSubstr("rank 1 was lost: its process has ended"))));
    for (const std::string& report : found) EXPECT_LE(seconds_of(report), 4.0) << report;
  }
}

TEST_F(OpenMpi, SurvivorsNameARankThatStopped) {
  const auto found = reports(3, "silence");
  // Its last line may not have been told before it stopped.
  const auto blamed = AnyOf(HasSubstr("rank 1 has not entered"), HasSubstr("rank 1 is silent in"));
  EXPECT_THAT(found, Each(AllOf(HasSubstr("all_reduce"), blamed)));
  for (const std::string& report : found) EXPECT_LE(seconds_of(report), 4.0) << report;
}

TEST_F(OpenMpi, SaysInOneLineThatMpirunIsNeeded) {
  const CommandResult result = testing::run_command({kRanks, "collectives"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(testing::lines_of(result.errors), SizeIs(1)) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("mpirun -n 2 convoy-rank"));
}

}  // namespace
}  // namespace convoy::comm
