// The ledger's writer: the lines it writes, when they are on the disk, and what it refuses.
#include "convoy/records/ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/records/ledger/ledger_check.h"
#include "tests/unit/records/ledger_runs.h"
#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kFile = "run/ledger/g0002-rank-0001.jsonl";

LedgerHeader second_generation() { return {2, 1, 3, odd_plan(), {1, 5}}; }

TEST(LedgerWriter, WritesAHeaderThenALineForEachPartThenAnEnd) {
  MemoryFiles files;
  LedgerWriter writer(files, "run", second_generation());
  EXPECT_EQ(writer.path(), kFile);
  writer.append(5, 2, std::vector<std::int64_t>{17, 4});
  writer.append(5, 3, {});
  writer.commit();
  writer.finish(6);
  const auto lines = read_lines(files, kFile);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], StartsWith(R"({"ledger":1,"generation":2,"rank":1,"ranks":3,"replicas":4,"samples":53,)"
                                   R"("global_batch":8,"steps_per_epoch":7,"drop_last":false,"seed":21,)"
                                   R"("parent":{"generation":1,"step":5},"hash":")"));
  EXPECT_THAT(lines[1], StartsWith(R"({"step":5,"epoch":0,"replica":2,"samples":[17,4],"hash":")"));
  EXPECT_THAT(lines[2], StartsWith(R"({"step":5,"epoch":0,"replica":3,"samples":[],"hash":")"));
  EXPECT_THAT(lines[3], StartsWith(R"({"end":true,"steps":6,"hash":")"));
  for (const std::string& line : lines) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
}

TEST(LedgerWriter, WritesNothingOfAStepBeforeItIsCommitted) {
  MemoryFiles files;
  LedgerWriter writer(files, "run", second_generation());
  const std::string header = files.read(kFile);
  writer.append(5, 2, std::vector<std::int64_t>{17, 4});
  EXPECT_EQ(files.read(kFile), header);
  writer.commit();
  EXPECT_GT(files.read(kFile).size(), header.size());
}

TEST(LedgerWriter, AppendsOnceAStep) {
  MemoryFiles memory;
  FailingFiles files(memory, 0);
  LedgerWriter writer(files, "run", second_generation());
  const std::uint64_t before = files.operations();
  for (std::int64_t step = 5; step < 15; ++step) {
    for (int replica = 0; replica < 4; ++replica) writer.append(step, replica, std::vector<std::int64_t>{step});
    writer.commit();
  }
  EXPECT_EQ(files.operations() - before, 10u);
}

TEST(LedgerWriter, RefusesAFileThatIsThereAndNumbersThatMakeNoSense) {
  MemoryFiles files;
  const LedgerWriter writer(files, "run", second_generation());
  EXPECT_THAT(error_of([&] { const LedgerWriter again(files, "run", second_generation()); }),
              StartsWith("InvalidArgument: run/ledger/g0002-rank-0001.jsonl is there already"));
  for (const LedgerHeader& header :
       {LedgerHeader{0, 0, 1, odd_plan(), {}}, LedgerHeader{1, 3, 3, odd_plan(), {}},
        LedgerHeader{1, 0, 1, odd_plan(), {1, 4}}, LedgerHeader{1, 0, 1, odd_plan(), {0, -1}},
        LedgerHeader{1, 0, 2, odd_plan(), {}, {{0, 1}, {1, 3}}}, LedgerHeader{1, 0, 2, odd_plan(), {}, {{0, 4}}}}) {
    EXPECT_THAT(error_of([&] { const LedgerWriter bad(files, "run", header); }),
                StartsWith("InvalidArgument: there can be no ledger of generation"));
  }
}

TEST(LedgerWriter, IsBrokenAfterAFailureSinceHalfALineMayBeThere) {
  MemoryFiles memory;
  FailingFiles files(memory, 4);  // folder, header, first commit, second commit
  LedgerWriter writer(files, "run", second_generation());
  writer.append(5, 2, {});
  writer.commit();
  writer.append(6, 2, {});
  EXPECT_THAT(error_of([&] { writer.commit(); }), HasSubstr("planted failure"));
  EXPECT_THAT(error_of([&] { writer.commit(); }),
              StartsWith("Io: run/ledger/g0002-rank-0001.jsonl could not be written"));
  EXPECT_THAT(error_of([&] { writer.sync(); }), StartsWith("Io: "));
}

TEST(LedgerWriter, LeavesACheckableLedgerWhereverTheDiskFails) {
  for (std::uint64_t fail_at = 1; fail_at < 100; ++fail_at) {
    MemoryFiles memory;
    FailingFiles files(memory, fail_at);
    const std::string error = error_of([&] { write_generation(files, "run", odd_plan(), {1, 1, {}, 10, true}); });
    if (files.operations() < fail_at) {
      EXPECT_EQ(error, "no error");
      EXPECT_GT(fail_at, 10u);
      return;
    }
    EXPECT_THAT(error, StartsWith("Io: "));
    if (memory.list("run/ledger").empty()) continue;
    const LedgerReport report = check_ledger(memory, "run");
    EXPECT_TRUE(report.ok()) << to_json(report);
    EXPECT_EQ(report.end_step, std::min<std::int64_t>(10, static_cast<std::int64_t>(fail_at) - 3));
  }
  FAIL() << "ten steps should take fewer operations";
}

TEST(NextGeneration, IsOneMoreThanTheNewest) {
  MemoryFiles files;
  EXPECT_EQ(next_generation(files, "run"), 1);
  write_generation(files, "run", odd_plan(), {1, 2, {}, 3, false});
  EXPECT_EQ(next_generation(files, "run"), 2);
  write_generation(files, "run", odd_plan(), {12, 1, {1, 3}, 4, false});
  files.append("run/ledger/g0099-rank-0000.jsonl.part", "x");
  files.append("run/ledger/notes.txt", "x");
  EXPECT_EQ(next_generation(files, "run"), 13);
}

}  // namespace
}  // namespace convoy::records
