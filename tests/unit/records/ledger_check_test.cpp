// The ledger's check: clean runs are proved, and whatever was lost, doubled, changed or redone is found and named.
#include "convoy/records/ledger/ledger_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/records/ledger/ledger_file.h"
#include "tests/unit/records/ledger_runs.h"
#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kRank1 = "run/ledger/g0001-rank-0001.jsonl";  // replica 2 of 4: one line a step
constexpr std::int64_t kThreeEpochs = 21;

MemoryFiles& three_epochs(MemoryFiles& files) {
  write_generation(files, "run", odd_plan(), {1, 3, {}, kThreeEpochs, true});
  return files;
}

TEST(LedgerCheck, ProvesThreeEpochsOfASizeThatDividesByNothing) {
  MemoryFiles files;
  const LedgerReport report = check_ledger(three_epochs(files), "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_EQ(report.samples, 3 * 53);
  EXPECT_EQ(report.repeated, 0);
  EXPECT_EQ(report.missing, 0);
  EXPECT_EQ(report.epochs, 3);
  EXPECT_EQ(report.end_step, kThreeEpochs);
  EXPECT_EQ(report.generations, 1);
  EXPECT_FALSE(report.open);
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST(LedgerCheck, ProvesAnEpochThatIsNotComplete) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 2, {}, 9, true});
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_EQ(report.epochs, 1);
  EXPECT_EQ(report.samples, 53 + 16);
}

TEST(LedgerCheck, ProvesARunThatDropsTheShortLastBatch) {
  MemoryFiles files;
  spec::SamplePlanOptions options = odd_plan();
  options.drop_last = true;  // 6 steps an epoch, 48 samples
  write_generation(files, "run", options, {1, 3, {}, 12, true});
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_EQ(report.epochs, 2);
  EXPECT_EQ(report.samples, 96);
}

TEST(LedgerCheck, FindsALineThatWasRemoved) {
  MemoryFiles files;
  auto lines = read_lines(three_epochs(files), kRank1);
  lines.erase(lines.begin() + 1 + 10);  // step 10
  write_lines(files, kRank1, lines);
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.missing, 2);
  EXPECT_EQ(report.repeated, 0);
  EXPECT_THAT(report.problems, Contains("step 10, replica 2: no line of generation 1, rank 1"));
  EXPECT_THAT(report.problems,
              Contains(StartsWith("generation 1, rank 1: line 12 does not follow the line before it")));
  EXPECT_THAT(report.problems, Contains(AllOf(StartsWith("epoch 1: sample "), HasSubstr("was not used"))));
  EXPECT_EQ(report.problems.size(), 4u) << "nothing else is blamed";
}

TEST(LedgerCheck, KnowsWhoCarriesWhatWhereSharesAreNotEven) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 2, {}, kThreeEpochs, true, {{0, 1}, {1, 4}}});
  EXPECT_THAT(read_lines(files, kRank1).front(), HasSubstr(R"("seed":21,"shares":[1,3],"parent")"));
  LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_EQ(report.samples, 3 * 53);
  auto lines = read_lines(files, kRank1);
  lines.erase(lines.begin() + 1 + 3 * 10);  // step 10, replica 1: evenly dealt out it would be rank 0's
  write_lines(files, kRank1, lines);
  report = check_ledger(files, "run");
  EXPECT_THAT(report.problems, Contains("step 10, replica 1: no line of generation 1, rank 1"));
}

TEST(LedgerCheck, FollowsARunFromOneDivisionToAnother) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 2, {}, 9, false, {{0, 1}, {1, 4}}});
  write_generation(files, "run", odd_plan(), {2, 3, {1, 5}, 12, false, {{0, 2}, {2, 3}, {3, 4}}});
  write_generation(files, "run", odd_plan(), {3, 2, {2, 12}, 14, true, {{0, 3}, {3, 4}}});
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_EQ(report.samples, 2 * 53);
  EXPECT_EQ(report.redone_steps, 4);
}

TEST(LedgerCheck, FindsHeadersThatDisagreeAboutShares) {
  MemoryFiles files;
  MemoryFiles others;
  write_generation(files, "run", odd_plan(), {1, 2, {}, 7, true, {{0, 1}, {1, 4}}});
  write_generation(others, "run", odd_plan(), {1, 2, {}, 7, true, {{0, 3}, {3, 4}}});
  write_lines(files, kRank1, read_lines(others, kRank1));
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_THAT(report.problems,
              Contains("generation 1, rank 1: its header tells of another run than those of other ranks"));
}

TEST(LedgerCheck, RefusesSharesThatAreNotThoseOfTheReplicas) {
  const std::string contradicts = "line 1 is a header whose numbers contradict each other";
  for (const auto& [shares, problem] : std::vector<std::pair<std::string, std::string>>{
           {"[1,4]", contradicts},
           {"[4,0]", contradicts},
           {"[1,2]", contradicts},
           {"[2,1,1]", contradicts},
           {"[5,-1]", contradicts},
           {"[2147483647,2147483647]", contradicts},
           {"[1,\"3\"]", "line 1 cannot be read"},
           {"[]", "its header tells of another run than those of other ranks"}}) {
    MemoryFiles files;
    write_generation(files, "run", odd_plan(), {1, 2, {}, 7, true, {{0, 1}, {1, 4}}});
    auto lines = read_lines(files, kRank1);
    std::string body = lines.front().substr(0, lines.front().find(",\"hash\":"));
    body.replace(body.find("[1,3]"), 5, shares);
    lines.front() = seal_line(body, chain_hash("", body));
    write_lines(files, kRank1, lines);
    const LedgerReport report = check_ledger(files, "run");
    EXPECT_THAT(report.problems, Contains(StartsWith("generation 1, rank 1: " + problem))) << shares;
  }
}

TEST(LedgerCheck, FindsALineThatWasDoubled) {
  MemoryFiles files;
  auto lines = read_lines(three_epochs(files), kRank1);
  const std::string copy = lines[11];
  lines.insert(lines.begin() + 11, copy);
  write_lines(files, kRank1, lines);
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.repeated, 2);
  EXPECT_EQ(report.missing, 0);
  EXPECT_EQ(report.samples, 3 * 53 + 2);
  EXPECT_THAT(report.problems, Contains("generation 1, rank 1: line 13 repeats an earlier line"));
  EXPECT_THAT(report.problems, Contains("step 10, replica 2: noted twice (generation 1, rank 1, line 12; generation 1, "
                                        "rank 1, line 13)"));
  EXPECT_EQ(report.problems.size(), 4u) << "nothing else is blamed";
}

// Puts other samples into the line of step 10 on rank 1 and returns the line; the hash stays unless it is made anew.
std::string change_samples(Files& files, bool seal_again) {
  auto lines = read_lines(files, kRank1);
  const spec::SamplePlan plan(odd_plan());
  const std::vector<std::int64_t> changed = {plan.replica_samples(10, 2).at(0), plan.replica_samples(9, 0).at(0)};
  const auto hash_of = [](const std::string& line) { return line.substr(line.size() - 19, 16); };
  const std::string body = entry_body(10, 1, 2, changed);
  lines[11] = seal_line(body, hash_of(lines[11]));
  for (std::size_t i = 11; seal_again && i < lines.size(); ++i) {
    const std::string text = i == 11 ? body : lines[i].substr(0, lines[i].size() - 28);
    lines[i] = seal_line(text, chain_hash(hash_of(lines[i - 1]), text));
  }
  write_lines(files, kRank1, lines);
  return lines[11];
}

TEST(LedgerCheck, FindsALineThatWasEdited) {
  MemoryFiles files;
  change_samples(three_epochs(files), false);
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_EQ(report.repeated, 1);
  EXPECT_EQ(report.missing, 1);
  EXPECT_THAT(report.problems,
              Contains(StartsWith("generation 1, rank 1: line 12 does not follow the line before it")));
  EXPECT_THAT(report.problems,
              Contains(StartsWith(
                  "step 10, replica 2 (generation 1, rank 1, line 12): 2 samples, the plan has 2; at place 1")));
  EXPECT_THAT(report.problems, Contains(AllOf(HasSubstr("was used 2 times"), HasSubstr("step 9, replica 0"),
                                              HasSubstr("step 10, replica 2"))));
  EXPECT_EQ(report.problems.size(), 4u) << to_json(report);
}

TEST(LedgerCheck, FindsSamplesThatWereReallyConsumedAgainstThePlanThoughTheChainIsWhole) {
  MemoryFiles files;
  change_samples(three_epochs(files), true);
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_EQ(report.repeated, 1);
  EXPECT_EQ(report.missing, 1);
  EXPECT_THAT(report.problems, testing::Not(Contains(HasSubstr("does not follow"))));
  EXPECT_EQ(report.problems.size(), 3u) << to_json(report);
}

TEST(LedgerCheck, FindsEverySingleLineThatIsRemovedOrDoubled) {
  for (std::size_t line = 0; line < 1 + kThreeEpochs + 1; ++line) {
    for (const bool removed : {true, false}) {
      MemoryFiles files;
      auto lines = read_lines(three_epochs(files), kRank1);
      if (removed) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line));
      if (!removed) lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(line), std::string(lines[line]));
      write_lines(files, kRank1, lines);
      const LedgerReport report = check_ledger(files, "run");
      const bool only_open = removed && line == 1 + kThreeEpochs;  // without its end line a rank may still run
      EXPECT_EQ(report.ok(), only_open) << "line " << line << (removed ? " removed" : " doubled");
      EXPECT_TRUE(report.open || !only_open);
    }
  }
}

TEST(LedgerCheck, FindsEverySingleBitThatIsChanged) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 2, {}, 4, true});
  const std::string path = "run/ledger/g0001-rank-0001.jsonl";
  const std::string text = files.read(path);
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {  // without its last line break the end line is only cut off
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    write_atomic(files, path, changed);
    const LedgerReport report = check_ledger(files, "run");
    EXPECT_FALSE(report.ok()) << "byte " << at << " of " << text.substr(at > 20 ? at - 20 : 0, 40);
  }
}

TEST(LedgerCheck, EndsThoughAnEndLineCountsStepsWithoutNumber) {
  MemoryFiles files;
  LedgerWriter writer(files, "run", {1, 0, 1, odd_plan(), {}});
  writer.finish(std::int64_t{1} << 49);
  EXPECT_THAT(check_ledger(files, "run").problems, Contains(HasSubstr("but has 0 lines: nothing more was checked")));
}

TEST(LedgerCheck, FindsARankWhoseFileIsGone) {
  MemoryFiles files;
  three_epochs(files).remove(kRank1);
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(report.problems, Contains("step 0, replica 2: no line of generation 1, rank 1"));
  EXPECT_THAT(report.problems, Contains("... and 11 more: parts without a line"));
  EXPECT_LT(report.problems.size(), 30u);
}

TEST(LedgerCheck, FindsARankThatFellBehindInAKilledGeneration) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 3, {}, 10, false});
  auto lines = read_lines(files, kRank1);
  lines.resize(lines.size() - 2);  // steps 8 and 9: more than the one that a kill can cost
  write_lines(files, kRank1, lines);
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.open);
  EXPECT_EQ(report.end_step, 9);
  EXPECT_THAT(report.problems, Contains("step 8, replica 2: no line of generation 1, rank 1"));
}

TEST(LedgerCheck, DoesNotCountAStepThatNotAllRanksCommitted) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 3, {}, 10, false});
  auto lines = read_lines(files, kRank1);
  lines.back().resize(30);  // step 9 was cut off
  write_lines(files, kRank1, lines);
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_TRUE(report.open);
  EXPECT_EQ(report.end_step, 9);
  EXPECT_EQ(report.samples, 53 + 16);
  EXPECT_THAT(report.notes, Contains(HasSubstr("generation 1, rank 1: the last line is cut off")));
  EXPECT_THAT(report.notes, Contains(HasSubstr("step 9 is being noted (3 of 4 replicas)")));
}

TEST(LedgerCheck, FollowsAKillAndAResumeOnOtherRanks) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 4, {}, 13, false});
  files.append("run/ledger/g0001-rank-0002.jsonl", "{\"step\":13,\"epo");
  write_generation(files, "run", odd_plan(), {2, 3, {1, 10}, kThreeEpochs, true});
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_EQ(report.samples, 3 * 53);
  EXPECT_EQ(report.epochs, 3);
  EXPECT_EQ(report.redone_steps, 3);
  EXPECT_EQ(report.redone_samples, 3 * 8);
  EXPECT_THAT(report.lineage, ElementsAre(1, 2));
  EXPECT_FALSE(report.open);
}

TEST(LedgerCheck, FollowsAResumeExactlyAtTheEndOfAnEpoch) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 2, {}, 7, true});
  write_generation(files, "run", odd_plan(), {2, 1, {1, 7}, kThreeEpochs, true});
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_EQ(report.samples, 3 * 53);
  EXPECT_EQ(report.redone_steps, 0);
}

TEST(LedgerCheck, LeavesOutAGenerationThatNobodyGoesOnFrom) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 3, {}, 9, false});
  write_generation(files, "run", odd_plan(), {2, 2, {1, 8}, 12, false});
  write_generation(files, "run", odd_plan(), {3, 4, {1, 8}, kThreeEpochs, true});
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_THAT(report.lineage, ElementsAre(1, 3));
  EXPECT_EQ(report.generations, 3);
  EXPECT_EQ(report.redone_steps, 1 + 4);
  EXPECT_EQ(report.samples, 3 * 53);
}

TEST(LedgerCheck, TakesNothingFromAParentWhoseStepsAreAllTakenBack) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 3, {}, 12, false});
  write_generation(files, "run", odd_plan(), {2, 3, {1, 10}, 15, false});
  write_generation(files, "run", odd_plan(),
                   {3, 3, {2, 5}, 14, true});  // an older checkpoint than generation 2 began at
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_EQ(report.samples, 2 * 53);
  EXPECT_EQ(report.redone_steps, 7 + 5);
}

TEST(LedgerCheck, FindsStepsThatAChildInheritsAndItsParentNeverCommitted) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 3, {}, 9, false});
  write_generation(files, "run", odd_plan(), {2, 3, {1, 10}, 14, true});
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.missing, 8);
  EXPECT_THAT(report.problems, Contains("step 9, replica 2: no line of generation 1, rank 1"));
}

TEST(LedgerCheck, ChecksARunThatGoesOnFromAnotherDirectoryAndSaysSo) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 3, {0, 10}, kThreeEpochs, true});
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_EQ(report.first_step, 10);
  EXPECT_EQ(report.epochs, 1) << "of epoch 1 only a part can be seen";
  EXPECT_EQ(report.samples, 2 * 53 - 24);
  EXPECT_THAT(report.notes, Contains(HasSubstr("the run goes on from step 10 of another directory")));
}

TEST(LedgerCheck, FindsAParentWithoutFiles) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {3, 3, {2, 10}, 14, true});
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_THAT(report.problems,
              ElementsAre("generation 3 goes on from step 10 of generation 2, which has no sound file here"));
}

TEST(LedgerCheck, IgnoresAGenerationKilledBeforeItsHeaderWasWhole) {
  MemoryFiles files;
  three_epochs(files);
  files.append("run/ledger/g0002-rank-0000.jsonl", "{\"ledger\":1,\"gen");
  files.append("run/ledger/g0002-rank-0001.jsonl", "");
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_THAT(report.lineage, ElementsAre(1));
  EXPECT_THAT(report.notes, Contains("generation 2 was killed before it did anything"));
}

TEST(LedgerCheck, FindsRanksThatDisagreeOnTheRun) {
  MemoryFiles files;
  three_epochs(files).remove(kRank1);
  spec::SamplePlanOptions other = odd_plan();
  other.seed = 22;
  const spec::SamplePlan plan(odd_plan());
  LedgerWriter writer(files, "run", {1, 1, 3, other, {}});
  for (std::int64_t step = 0; step < kThreeEpochs; ++step) writer.append(step, 2, plan.replica_samples(step, 2));
  writer.finish(kThreeEpochs);
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_THAT(report.problems,
              ElementsAre("generation 1, rank 1: its header tells of another run than those of other ranks"));
}

TEST(LedgerCheck, FindsEndLinesThatDisagree) {
  MemoryFiles files;
  write_generation(files, "run", odd_plan(), {1, 1, {}, 8, true});
  write_generation(files, "other", odd_plan(), {1, 4, {}, 7, true});
  files.write("run/ledger/g0001-rank-0001.jsonl",
              std::vector<std::string_view>{files.read("other/ledger/g0001-rank-0001.jsonl")});
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_THAT(report.problems, Contains("generation 1, rank 1: the end line counts 7 steps, another rank's 8"));
}

TEST(LedgerCheck, FindsAFileOfAnotherRankOrGeneration) {
  MemoryFiles files;
  three_epochs(files).rename(kRank1, "run/ledger/g0001-rank-0007.jsonl");
  EXPECT_THAT(check_ledger(files, "run").problems,
              Contains("generation 1, rank 7: line 1 is the header of generation 1, rank 1: the file was renamed"));
}

TEST(LedgerCheck, IsNotLedAstrayByNumbersThatWereChanged) {
  for (const char* step : {"\"step\":9000000000000000000", "\"step\":-4", "\"step\":30"}) {
    MemoryFiles files;
    write_generation(files, "run", odd_plan(), {1, 3, {}, 10, false});
    auto lines = read_lines(files, kRank1);
    const std::string from = "\"step\":9";
    lines.back().replace(lines.back().find(from), from.size(), step);
    write_lines(files, kRank1, lines);
    const LedgerReport report = check_ledger(files, "run");
    EXPECT_FALSE(report.ok()) << step;
    EXPECT_THAT(report.problems, Contains(HasSubstr("line 11 does not follow"))) << step;
  }
}

TEST(LedgerCheck, FindsReplicasAndSamplesThatDoNotExist) {
  MemoryFiles files;
  LedgerWriter writer(files, "run", {1, 0, 1, {4, 4, 2, 1, false, 1}, {}});
  writer.append(0, -1, {});
  writer.append(0, 0, std::vector<std::int64_t>{-5, 4000000000});
  writer.append(0, 1, spec::SamplePlan({4, 4, 2, 1, false, 1}).replica_samples(0, 1));
  writer.append(0, 2, {});
  writer.finish(1);
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_EQ(report.missing, 2);
  EXPECT_THAT(report.problems, Contains("step 0, replica -1 (generation 1, rank 0, line 2): there are 2 replicas"));
  EXPECT_THAT(report.problems, Contains("step 0, replica 2 (generation 1, rank 0, line 5): there are 2 replicas"));
  EXPECT_THAT(report.problems, Contains(HasSubstr("at place 0 sample -5 in place of sample")));
}

TEST(LedgerCheck, FindsTextThatIsNoLedger) {
  MemoryFiles files;
  three_epochs(files).append(kRank1, "hello\n{}\n");
  const LedgerReport report = check_ledger(files, "run");
  EXPECT_THAT(report.problems, Contains("generation 1, rank 1: line 24 has no hash: it was changed"));
}

TEST(LedgerCheck, RefusesADirectoryWithoutALedger) {
  MemoryFiles files;
  EXPECT_EQ(error_of([&] { check_ledger(files, "run"); }),
            "InvalidArgument: run has no ledger: there is no file like run/ledger/g0001-rank-0000.jsonl");
}

TEST(LedgerCheck, ReportsAsJson) {
  MemoryFiles files;
  const auto json = nlohmann::json::parse(to_json(check_ledger(three_epochs(files), "run")));
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["samples"], 159);
  EXPECT_EQ(json["missing"], 0);
  EXPECT_EQ(json["lineage"], nlohmann::json::array({1}));
}

TEST(LedgerCheck, WorksOnARealDirectory) {
  const std::string run_dir = testing::TempDir() + "convoy-ledger-test";
  local_files().remove(run_dir);
  write_generation(local_files(), run_dir, odd_plan(), {1, 3, {}, 8, false});
  write_generation(local_files(), run_dir, odd_plan(), {2, 2, {1, 7}, kThreeEpochs, true});
  const LedgerReport report = check_ledger(local_files(), run_dir);
  EXPECT_TRUE(report.ok()) << to_json(report);
  EXPECT_EQ(report.redone_samples, 8);
  local_files().remove(run_dir);
}

}  // namespace
}  // namespace convoy::records
