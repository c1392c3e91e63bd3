// The parts of the launcher that need no process: events, environments, verdicts, lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>

#include "convoy/elastic/launcher/rank_environment.h"
#include "convoy/elastic/launcher/rank_event.h"
#include "convoy/elastic/launcher/rank_output.h"
#include "convoy/elastic/launcher/verdict.h"

namespace convoy::elastic {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(RankEvent, ReadsProgress) {
  const auto event =
      parse_rank_event(R"({"event":"progress","step":12,"steps":400,"epoch":3,"loss":0.71,"samples_per_s":5100.5})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, RankEventKind::kProgress);
  EXPECT_EQ(event->step, 12);
  EXPECT_EQ(event->steps, 400);
  EXPECT_EQ(event->epoch, 3);
  EXPECT_EQ(event->loss, 0.71);
  EXPECT_EQ(event->samples_per_s, 5100.5);
}

TEST(RankEvent, HasNoLossWhereTheRankHasNone) {
  EXPECT_TRUE(std::isnan(parse_rank_event(R"({"event":"progress","step":1,"loss":null})")->loss));
  EXPECT_TRUE(std::isnan(parse_rank_event(R"({"event":"progress","step":1})")->loss));
}

TEST(RankEvent, ReadsAnError) {
  const auto event = parse_rank_event(R"({"event":"error","code":"Failed","message":"non-finite \"loss\""})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, RankEventKind::kError);
  EXPECT_EQ(event->code, "Failed");
  EXPECT_EQ(event->text, "non-finite \"loss\"");
}

TEST(RankEvent, IsNothingElse) {
  for (const char* line :
       {"", "x", "[]", "17", "null", "{}", R"({"event":3})", R"({"event":"other"})", "{\"event\":", "\xff\xfe"}) {
    EXPECT_FALSE(parse_rank_event(line)) << line;
  }
}

TEST(RankThreads, AreOneUnlessTheUserChose) {
  Environment unset;
  set_threads(unset, {1, false});
  EXPECT_THAT(unset, ElementsAre(Pair("MKL_NUM_THREADS", "1"), Pair("OMP_NUM_THREADS", "1"),
                                 Pair("OPENBLAS_NUM_THREADS", "1")));
  // OpenBLAS and MKL follow OMP_NUM_THREADS as long as their own variables are not set.
  Environment chosen = {{"OMP_NUM_THREADS", "3"}};
  set_threads(chosen, {1, false});
  EXPECT_THAT(chosen, ElementsAre(Pair("OMP_NUM_THREADS", "3")));
  Environment blas_chosen = {{"OPENBLAS_NUM_THREADS", "3"}};
  set_threads(blas_chosen, {1, false});
  EXPECT_EQ(blas_chosen["OPENBLAS_NUM_THREADS"], "3");
  EXPECT_EQ(blas_chosen["OMP_NUM_THREADS"], "1");
}

TEST(RankThreads, OfARecipeReplaceTheUsers) {
  Environment environment = {{"OMP_NUM_THREADS", "3"}, {"MKL_NUM_THREADS", "8"}};
  set_threads(environment, {2, true});
  EXPECT_THAT(environment, ElementsAre(Pair("MKL_NUM_THREADS", "2"), Pair("OMP_NUM_THREADS", "2"),
                                       Pair("OPENBLAS_NUM_THREADS", "2")));
}

TEST(BlasKernel, FitsTheProcessor) {
  CpuFeatures cpu;
  EXPECT_EQ(openblas_coretype(cpu), std::nullopt);
  cpu.avx2_fma = true;
  EXPECT_EQ(openblas_coretype(cpu), "Haswell");
  cpu.amd = true;
  EXPECT_EQ(openblas_coretype(cpu), "Zen");
  cpu.avx512 = true;
  EXPECT_EQ(openblas_coretype(cpu), "SkylakeX");
}

TEST(BlasKernel, NeverReplacesOneThatIsSetEvenToNothing) {
  Environment environment;
  set_blas_kernel(environment, std::nullopt);
  EXPECT_TRUE(environment.empty());
  set_blas_kernel(environment, "Haswell");
  EXPECT_EQ(environment["OPENBLAS_CORETYPE"], "Haswell");
  set_blas_kernel(environment, "Zen");
  EXPECT_EQ(environment["OPENBLAS_CORETYPE"], "Haswell");
  Environment empty = {{"OPENBLAS_CORETYPE", ""}};
  set_blas_kernel(empty, "Zen");
  EXPECT_EQ(empty["OPENBLAS_CORETYPE"], "");
}

TEST(RankIdentity, ReplacesThatOfALauncherFurtherUp) {
  Environment environment = {{"RANK", "9"}, {"CONVOY_STORE", "unix:@old"}, {"CONVOY_JOB_TOKEN", "old"}};
  set_identity(environment, {2, 5, "", ""});
  EXPECT_THAT(environment, ElementsAre(Pair("LOCAL_RANK", "2"), Pair("LOCAL_WORLD_SIZE", "5"), Pair("RANK", "2"),
                                       Pair("WORLD_SIZE", "5")));
}

TEST(LineSplitter, CutsAnywhereAndLosesNothing) {
  const std::string text = "one\n\nthree and more\nlast";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    LineSplitter splitter;
    std::vector<std::string> lines;
    const auto take = [&](std::string_view line) { lines.emplace_back(line); };
    for (std::size_t at = 0; at < text.size(); at += piece)
      splitter.feed(std::string_view(text).substr(at, piece), take);
    EXPECT_THAT(lines, ElementsAre("one", "", "three and more"));
    splitter.finish(take);
    EXPECT_EQ(lines.back(), "last");
  }
}

TEST(LineSplitter, HandsOnAnEndlessLineInPieces) {
  LineSplitter splitter;
  std::size_t bytes = 0;
  std::size_t pieces = 0;
  const auto take = [&](std::string_view line) {
    bytes += line.size();
    ++pieces;
  };
  for (int i = 0; i < 100; ++i) splitter.feed(std::string(50000, 'x'), take);
  splitter.finish(take);
  EXPECT_EQ(bytes, 5000000u);
  EXPECT_GE(pieces, 4u);
}

RankOutcome ended(std::optional<int> status, std::optional<int> signal, std::uint64_t order, bool stopped = false) {
  RankOutcome outcome;
  outcome.status = status;
  outcome.signal = signal;
  outcome.order = order;
  outcome.stopped = stopped;
  return outcome;
}

TEST(Verdict, NobodyFailedWhenAllEndedWell) {
  LaunchResult result;
  result.ranks = {ended(0, std::nullopt, 1), ended(0, std::nullopt, 2)};
  judge(result);
  EXPECT_EQ(result.culprit, -1);
  EXPECT_EQ(result.status, 0);
}

TEST(Verdict, PrefersASignalThatWeDidNotSend) {
  EXPECT_EQ(find_culprit({ended(1, std::nullopt, 1), ended(std::nullopt, SIGTERM, 2, true),
                          ended(std::nullopt, SIGBUS, 4), ended(std::nullopt, SIGSEGV, 3)}),
            3);
}

TEST(Verdict, PrefersAnErrorOfItsOwnToAborted) {
  std::vector<RankOutcome> ranks = {ended(3, std::nullopt, 1), ended(1, std::nullopt, 4), ended(1, std::nullopt, 5)};
  ranks[0].error = RankError{"Aborted", "", 1};
  ranks[1].error = RankError{"Failed", "", 3};
  ranks[2].error = RankError{"Timeout", "", 2};
  EXPECT_EQ(find_culprit(ranks), 2);
  ranks[1].error->code = ranks[2].error->code = "Aborted";
  EXPECT_EQ(find_culprit(ranks), 0);
}

TEST(Verdict, ASignalToTheLauncherDecidesTheStatus) {
  LaunchResult result;
  result.ranks = {ended(std::nullopt, SIGTERM, 1, true), ended(1, std::nullopt, 2, true)};
  result.interrupted_by = SIGINT;
  judge(result);
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(result.message, "interrupted by signal 2 (SIGINT): all ranks were stopped");
}

TEST(Verdict, KeepsAMessageOnOneLine) {
  LaunchResult result;
  result.ranks = {ended(2, std::nullopt, 1)};
  result.ranks[0].error = RankError{"InvalidArgument", "first\nsecond\n", 1};
  judge(result);
  EXPECT_EQ(result.message, "rank 0 ended with status 2: first second");
}

}  // namespace
}  // namespace convoy::elastic
