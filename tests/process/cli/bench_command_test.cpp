// `convoy bench` as a user runs it: rows, schedules, the calibration, other libraries, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/observe/flight_recorder.h"
#include "convoy/plan/calibration.h"
#include "convoy/spec/collectives/registry.h"
#include "tests/support/processes.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::lines_of;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";
const std::string kRecipes = std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/";

class BenchCommand : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  CommandResult bench(std::vector<std::string> arguments, std::map<std::string, std::string> environment = {}) const {
    arguments.insert(arguments.begin(), {kConvoy, "bench"});
    environment["XDG_CACHE_HOME"] = path("cache");
    return testing::run_command(arguments, environment, std::chrono::seconds(60));
  }

  json measured(const std::vector<std::string>& arguments) const {
    const CommandResult finished = bench(arguments);
    EXPECT_EQ(finished.status, 0) << finished.errors;
    return finished.status == 0 ? json::parse(finished.output) : json::object({{"rows", json::array()}});
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& words) const {
    const CommandResult finished = bench(arguments);
    EXPECT_EQ(finished.status, 2) << finished.errors;
    EXPECT_EQ(finished.output, "");
    EXPECT_EQ(lines_of(finished.errors).size(), 1u) << finished.errors;
    EXPECT_THAT(finished.errors, HasSubstr(words));
  }

  // Measures all algorithms of an operation and holds the bytes of each row against those of the schedule shown.
  void expect_explained_bytes(const std::vector<std::string>& shape) const {
    std::vector<std::string> run = {"collective", "--algorithm", "all",    "--sizes",  "4,5000",
                                    "--repeats",  "1",           "--json", "--no-save"};
    run.insert(run.end(), shape.begin(), shape.end());
    const json result = measured(run);
    int compared = 0;
    for (const json& row : result.at("rows")) {
      if (row.at("library") != "convoy") continue;
      std::vector<std::string> show = {"collective", "--explain", "--json", "--no-save"};
      show.insert(show.end(), shape.begin(), shape.end());
      show.insert(show.end(), {"--algorithm", row.at("algorithm"), "--bytes",
                               std::to_string(std::max<std::int64_t>(1, row.at("bytes").get<std::int64_t>()))});
      std::vector<std::int64_t> shown;
      const json explained = measured(show);
      for (const json& rank : explained.at("rows")) shown.push_back(rank.at("sent_bytes"));
      EXPECT_EQ(row.at("sent_bytes").get<std::vector<std::int64_t>>(), shown)
          << row.at("op") << " " << row.at("algorithm") << " " << row.at("bytes");
      ++compared;
    }
    EXPECT_GT(compared, 0);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(BenchCommand, MeasuresEachPairAndFitsWhatAMessageCosts) {
  const json result = measured({"p2p", "-n", "3", "--sizes", "4,4KiB,64KiB", "--repeats", "3", "--json"});
  EXPECT_EQ(result.at("ok"), true);
  EXPECT_EQ(result.at("rows").size(), 9u);
  std::set<std::pair<int, int>> pairs;
  for (const json& row : result.at("rows")) {
    pairs.emplace(row.at("from").get<int>(), row.at("to").get<int>());
    EXPECT_GT(row.at("median_us"), 0);
    EXPECT_GE(row.at("p95_us"), row.at("median_us"));
    EXPECT_EQ(row.at("repeats"), 3);
  }
  EXPECT_EQ(pairs, (std::set<std::pair<int, int>>{{0, 1}, {0, 2}, {1, 2}}));
  EXPECT_EQ(result.at("pairs").size(), 3u);
  EXPECT_GE(result.at("fit").at("alpha_us"), 0);
  EXPECT_GE(result.at("fit").at("relative_error"), 0);
  EXPECT_GT(result.at("gamma_s_per_byte"), 0);
}

TEST_F(BenchCommand, KeepsTheCalibrationThatThePlannerReads) {
  const json p2p = measured({"p2p", "--sizes", "4,64KiB", "--repeats", "3", "--json"});
  EXPECT_EQ(p2p.at("calibration"), path("cache") + "/convoy/calibration.json");
  const std::vector<std::string> gather = {"collective", "--op", "all_gather", "--sizes", "4KiB",
                                           "--repeats",  "2",    "--json",     "--save",  p2p.at("calibration")};
  const json collective = measured(gather);
  const auto kept = plan::read_calibration(local_files(), p2p.at("calibration"));
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->gamma_s > 0, true);
  const plan::LinkCalibration* link = kept->link("shared_memory", "shared", 2);
  ASSERT_NE(link, nullptr);
  // The collective has measured messages anew.
  EXPECT_DOUBLE_EQ(link->fit.cost.alpha_s * 1e6, collective.at("point_to_point").at("alpha_us"));
  ASSERT_EQ(kept->collectives.size(), 1u);
  EXPECT_EQ(kept->collectives[0].op, "all_gather");
  EXPECT_EQ(kept->collectives[0].bytes, 4096);
  EXPECT_GT(kept->collectives[0].median_s, 0);
  const CommandResult shown = bench({"collective", "--explain", "--algorithm", "ring", "--bytes", "64KiB"});
  EXPECT_THAT(shown.output, HasSubstr("predicted over shared_memory from the calibration of"));
  measured({"p2p", "--sizes", "4,64", "--repeats", "1", "--json", "--no-save", "--transport", "in_process"});
  EXPECT_EQ(plan::read_calibration(local_files(), p2p.at("calibration"))->links.size(), 1u);
}

TEST_F(BenchCommand, CountsBandwidthsAsNcclTestsDoes) {
  const json result = measured({"collective", "-n", "3", "--sizes", "4KiB,96KiB", "--repeats", "3", "--json",
                                "--no-save", "--algorithm", "ring,ordered_exchange"});
  ASSERT_EQ(result.at("rows").size(), 6u);  // two algorithms and the limit
  for (const json& row : result.at("rows")) {
    const double algorithm = row.at("bytes").get<double>() / row.at("median_us").get<double>() * 1e-3;
    EXPECT_NEAR(row.at("algbw_gbps"), algorithm, algorithm * 1e-3);
    EXPECT_NEAR(row.at("busbw_gbps"), algorithm * 4 / 3, algorithm * 1e-3);
    EXPECT_GE(row.at("p95_us"), row.at("median_us"));
    EXPECT_EQ(row.at("times_faster_than_openmpi"), nullptr);
    if (row.at("library") == "convoy") {
      EXPECT_GT(row.at("share_of_limit"), 0);
    }
  }
}

TEST_F(BenchCommand, MeasuresOverEachTransportAndFromEachKindOfMemory) {
  const std::vector<std::vector<std::string>> ways = {{"--transport", "in_process"}, {"--transport", "gloo"},
                                                      {"--buffers", "private"},      {"--cold"},
                                                      {"--dtype", "int64"},          {"-n", "1"}};
  for (const auto& way : ways) {
    std::vector<std::string> arguments = {"collective", "--sizes", "4,300KiB", "--repeats", "2", "--json", "--no-save"};
    arguments.insert(arguments.end(), way.begin(), way.end());
    const json result = measured(arguments);
    ASSERT_GE(result.at("rows").size(), 2u) << way.front();
    const json& row = result.at("rows").front();
    EXPECT_EQ(row.at("transport"), way[0] == "--transport" ? way[1] : "shared_memory");
    EXPECT_EQ(row.at("buffers"), way[0] == "--buffers" ? "private" : "shared");
    EXPECT_EQ(row.at("cold"), way[0] == "--cold");
    EXPECT_EQ(row.at("share_of_limit").is_null(), way[0] == "--buffers");
  }
}

// The bytes of the table and those that the transport counts, with ranks that are no power of two, on two hosts.
TEST_F(BenchCommand, ExplainsTheBytesThatTheTransportCountsForEveryAlgorithm) {
  for (const std::string& op : spec::collectives()) {
    if (op == "barrier") continue;  // it has no bytes
    expect_explained_bytes({"--op", op, "-n", "3", "--hosts", "0,0,1"});
  }
  expect_explained_bytes({"--op", "all_reduce", "-n", "4", "--chunk", "512", "--transport", "gloo"});
  expect_explained_bytes({"--op", "all_reduce", "-n", "5", "--transport", "in_process", "--dtype", "float64"});
}

TEST_F(BenchCommand, ShowsAScheduleAsATableAndAPicture) {
  const CommandResult shown =
      bench({"collective", "--explain", "--algorithm", "ring", "-n", "3", "--bytes", "1KiB", "--no-save"});
  EXPECT_EQ(shown.status, 0) << shown.errors;
  for (const char* words : {"all_reduce of 1.0 KiB by ring, 3 ranks: 256 float32 elements", "4 rounds; 4.0 KiB sent",
                            "rank  rounds  messages", "round  rank 0", ">1 <2 +", "((0.0 + 1.0) + 2.0)"}) {
    EXPECT_THAT(shown.output, HasSubstr(words));
  }
}

TEST_F(BenchCommand, ShowsWhatAGroupChoosesOnceTheMachineIsCalibrated) {
  expect_refused({"collective", "--table", "-n", "4"},
                 "messages over shared_memory were not measured on this machine: run convoy bench p2p --transport "
                 "shared_memory first");
  plan::Calibration calibration = plan::this_machine();
  calibration.put({"shared_memory", "shared", 2, {{2e-6, 1e-10}, 0.01, 0.02}, calibration.date});
  calibration.put({"gloo", "shared", 2, {{50e-6, 8e-9}, 0.01, 0.02}, calibration.date});
  plan::write_calibration(local_files(), path("cache") + "/convoy/calibration.json", calibration);
  const std::vector<std::string> two_hosts = {"collective", "--table", "-n", "4", "--hosts", "0,0,1,1"};
  std::vector<std::string> as_json = two_hosts;
  as_json.emplace_back("--json");
  const json table = measured(as_json);
  EXPECT_EQ(table.at("hosts"), 2);
  EXPECT_EQ(table.at("used"), true);
  std::set<std::string> ordered;
  std::set<std::string> all;
  for (const json& row : table.at("rows")) {
    EXPECT_GT(row.at("predicted_us"), 0);
    (row.at("reproducible") ? ordered : all).insert(row.at("algorithm"));
  }
  EXPECT_EQ(ordered.count("ordered_hierarchical"), 1u);
  for (const std::string& name : ordered) EXPECT_TRUE(spec::find_algorithm("all_reduce", name).ordered) << name;
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const std::string& name) {
    return !spec::find_algorithm("all_reduce", name).ordered;
  })) << table;
  const CommandResult text = bench(two_hosts);
  EXPECT_THAT(text.output, HasSubstr("all_reduce on 4 ranks, 2 hosts\n"));
  EXPECT_THAT(text.output, HasSubstr("ordered_hierarchical"));
  EXPECT_THAT(text.output, ::testing::Not(HasSubstr("built-in rules")));
  EXPECT_THAT(bench({"collective", "--table"}).output,
              HasSubstr("over shared_memory on one host a group keeps to its built-in rules instead"));
  EXPECT_EQ(measured({"collective", "--table", "--json"}).at("used"), false);
}

TEST_F(BenchCommand, MeasuresWhatAGroupChooses) {
  const auto sent_of = [&](std::vector<std::string> arguments, const std::string& algorithms) {
    const std::vector<std::string> usual = {"-n", "3", "--repeats", "2", "--json", "--algorithm", algorithms};
    arguments.insert(arguments.end(), usual.begin(), usual.end());
    const json result = measured(arguments);
    std::map<std::string, json> sent;
    for (const json& row : result.at("rows")) {
      if (row.at("library") == "convoy") sent[row.at("algorithm")] = row.at("sent_bytes");
    }
    return sent;
  };
  // Over several hosts without a calibration; then on one host with one, by which a message is dear.
  auto sent = sent_of({"collective", "--hosts", "0,0,1", "--bytes", "1MiB", "--no-save"},
                      "default,ordered_hierarchical,ordered_exchange");
  EXPECT_EQ(sent.at("default"), sent.at("ordered_hierarchical"));
  EXPECT_NE(sent.at("default"), sent.at("ordered_exchange"));
  plan::Calibration calibration = plan::this_machine();
  calibration.put({"gloo", "shared", 3, {{50e-6, 1e-9}, 0.01, 0.02}, calibration.date});
  plan::write_calibration(local_files(), path("links.json"), calibration);
  sent = sent_of({"collective", "--transport", "gloo", "--bytes", "1KiB", "--save", path("links.json")},
                 "default,ordered_direct,ordered_exchange");
  EXPECT_EQ(sent.at("default"), sent.at("ordered_direct"));
  EXPECT_NE(sent.at("default"), sent.at("ordered_exchange"));
}

TEST_F(BenchCommand, EndsWithStatus1WhenASumIsWrong) {
  const CommandResult finished =
      bench({"collective", "--sizes", "4KiB", "--repeats", "1", "--no-save"}, {{"CONVOY_PLANT", "wrong_sum"}});
  EXPECT_EQ(finished.status, 1) << finished.output;
  EXPECT_THAT(finished.errors, HasSubstr("default all_reduce of 4.0 KiB over shared_memory, rank "));
  EXPECT_THAT(finished.errors, HasSubstr("element 0 is "));
}

TEST_F(BenchCommand, EndsAtItsLimit) {
  const CommandResult finished = bench({"p2p", "--sizes", "64MiB", "--repeats", "100000", "--limit", "1", "--no-save"});
  EXPECT_EQ(finished.status, 3) << finished.errors;
  EXPECT_THAT(finished.errors, HasSubstr("not done within its limit"));
}

// The model needs libtorch and its data set's shape; both may be missing where only the command is built.
TEST_F(BenchCommand, TakesTheSizesOfARecipesModel) {
  if (!local_files().exists(std::string(CONVOY_BINARY_DIR) + "/bin/convoy-rank")) GTEST_SKIP() << "no convoy-rank";
  const json result =
      measured({"collective", "--recipe", kRecipes + "fashion_mlp.toml", "--set", "parallel.bucket_bytes=65536",
                "--set", "comm.transport=gloo", "--repeats", "1", "--json", "--no-save"});
  std::vector<std::int64_t> sizes;
  for (const json& row : result.at("rows")) {
    if (row.at("library") != "convoy") continue;
    sizes.push_back(row.at("bytes"));
    EXPECT_EQ(row.at("transport"), "gloo");
  }
  // Buckets: the last layer; 512 biases and 512 x 512 weights; 512 biases and 784 x 512 weights. And all six tensors.
  EXPECT_THAT(sizes, ::testing::ElementsAre(40, 2048, 20480, 20520, 1048576, 1050624, 1605632, 1607680));
}

TEST_F(BenchCommand, SaysWhatIsWrongWithARecipesModel) {
  if (!local_files().exists(std::string(CONVOY_BINARY_DIR) + "/bin/convoy-rank")) GTEST_SKIP() << "no convoy-rank";
  const CommandResult finished = bench({"collective", "--recipe", kRecipes + "fashion_mlp.toml", "--set",
                                        "data.path=/nowhere", "--repeats", "1", "--no-save"});
  EXPECT_EQ(finished.status, 2);
  EXPECT_THAT(finished.errors, HasSubstr("/nowhere/train-images-idx3-ubyte is missing"));
}

TEST_F(BenchCommand, MeasuresOtherLibrariesBesideOnTheSameBuffers) {
  const CommandResult asked =
      bench({"collective", "--peers", "openmpi,gloo", "--sizes", "4KiB", "--repeats", "3", "--json", "--no-save"});
  if (asked.status == 2 && asked.errors.find("is not there") != std::string::npos) GTEST_SKIP() << asked.errors;
  ASSERT_EQ(asked.status, 0) << asked.errors;
  const json rows = json::parse(asked.output).at("rows");
  std::map<std::string, double> fastest;
  for (const json& row : rows) {
    double& best = fastest.try_emplace(row.at("library"), row.at("median_us")).first->second;
    best = std::min(best, row.at("median_us").get<double>());
  }
  ASSERT_EQ(fastest.count("openmpi") + fastest.count("gloo") + fastest.count("limit"), 3u) << rows.dump();
  const json& own = rows.front();
  ASSERT_EQ(own.at("library"), "convoy");
  EXPECT_NEAR(own.at("times_faster_than_openmpi"), fastest["openmpi"] / fastest["convoy"],
              1e-2 * own.at("times_faster_than_openmpi").get<double>());
  EXPECT_NEAR(own.at("times_faster_than_gloo"), fastest["gloo"] / fastest["convoy"],
              1e-2 * own.at("times_faster_than_gloo").get<double>());
  // One more, on two ranks: Open MPI's ranks spin, and take long on a busy machine.
  const CommandResult other = bench(
      {"collective", "--op", "all_to_all", "--peers", "openmpi", "--sizes", "1000", "--repeats", "1", "--no-save"});
  EXPECT_EQ(other.status, 0) << other.errors;
  EXPECT_THAT(other.output, HasSubstr("openmpi native"));
}

TEST_F(BenchCommand, MeasuresSchedulesOverOpenMpiBesideItsOwnCollectives) {
  const CommandResult asked = bench({"collective", "--transport", "openmpi", "--peers", "openmpi", "--algorithm",
                                     "ring,native", "--sizes", "64KiB", "--repeats", "3", "--json", "--no-save"});
  if (asked.status == 2 && asked.errors.find("is not there") != std::string::npos) GTEST_SKIP() << asked.errors;
  ASSERT_EQ(asked.status, 0) << asked.errors;
  const json result = json::parse(asked.output);
  std::vector<std::string> rows;
  for (const json& row : result.at("rows")) {
    if (row.at("transport") != "openmpi") continue;
    rows.push_back(row.at("library").get<std::string>() + " " + row.at("algorithm").get<std::string>());
  }
  EXPECT_THAT(rows, ::testing::UnorderedElementsAre("convoy ring", "convoy native", "openmpi native"));
}

// A run whose ranks 0 and 2 left files; rank 1 was gone.
void leave_flight_logs(const std::string& folder) {
  for (const int rank : {0, 2}) {
    observe::FlightLog log;
    log.group = "world";
    log.rank = rank;
    log.ranks = 3;
    log.host = "here";
    log.written_s = 1000.5 + rank;
    log.code = rank == 2 ? "Timeout" : "Aborted";
    log.message = "rank 1 is silent";
    log.operations.push_back({7, "barrier", "done", 990, 990, 990.001, 990.002, 0});
    log.operations.push_back({8, "all_reduce sum of 5 float32", "failed", 998, 998.4, 0, 1000.4, 20});
    log.board.resize(3);
    log.board[1].line.sequence = 7;
    log.board[1].silent_s = 2.5;
    observe::write_flight_log(local_files(), folder, log);
  }
}

TEST_F(BenchCommand, MeasuresSixteenBitTypes) {
  for (const char* const type : {"bfloat16", "float16"}) {
    const json result = measured({"collective", "-n", "3", "--dtype", type, "--sizes", "1000,64KiB", "--repeats", "2",
                                  "--algorithm", "ordered_exchange", "--json", "--no-save"});
    ASSERT_EQ(result.at("rows").size(), 2U);
    EXPECT_EQ(result.at("rows")[1].at("dtype"), type);
  }
}

TEST_F(BenchCommand, ShowsWhatRanksThatFailedDidLast) {
  leave_flight_logs(path("log"));
  for (const std::string& asked : {path("log"), path("log/flight-world-rank-0.json")}) {
    const CommandResult shown = bench({"--recorder", asked});
    ASSERT_EQ(shown.status, 0) << shown.errors;
    EXPECT_THAT(shown.output, HasSubstr("files of 2 of 3 ranks"));
    EXPECT_THAT(shown.output, HasSubstr("rank 2 failed first: Timeout: rank 1 is silent"));
    EXPECT_THAT(shown.output, HasSubstr("rank 1 left no file: last sign of life 2.50 s before, last entered #7"));
    EXPECT_THAT(shown.output, HasSubstr("#8 all_reduce sum of 5 float32"));
    EXPECT_THAT(shown.output, HasSubstr("failed 2.00 s"));
    EXPECT_THAT(shown.output, HasSubstr("not entered"));
  }
  const CommandResult shown = bench({"--recorder", path("log"), "--json"});
  ASSERT_EQ(shown.status, 0) << shown.errors;
  const json result = json::parse(shown.output);
  EXPECT_EQ(result.at("missing"), json::array({1}));
  EXPECT_EQ(result.at("rows").size(), 4U);
  EXPECT_EQ(result.at("rows")[0].at("agreed_s"), 990.001);
  local_files().append(path("log/flight-world-rank-1.json"), "{");
  const CommandResult broken = bench({"--recorder", path("log")});
  EXPECT_EQ(broken.status, 4);
  EXPECT_THAT(broken.errors, HasSubstr("flight-world-rank-1.json is no flight recorder's file"));
}

TEST_F(BenchCommand, RefusesInOneLineWhatItDoesNotUnderstand) {
  expect_refused({}, "bench takes p2p, collective, or --recorder FILE");
  expect_refused({"--recorder", path("nowhere"), "p2p"}, "--recorder measures nothing");
  expect_refused({"--recorder", path("")}, "there is no flight recorder's file in");
  expect_refused({"p2p", "-n", "1"}, "-n 1: p2p takes 2 to 256 ranks");
  expect_refused({"p2p", "--sizes", "1x"}, "'1x' is no size");
  expect_refused({"p2p", "--min", "1KiB", "--max", "4"}, "--min 1024 is above --max 4");
  expect_refused({"p2p", "--transport", "glo"}, "unknown transport 'glo' (did you mean 'gloo'?)");
  expect_refused({"p2p", "--timeout", "nan"}, "--timeout");
  expect_refused({"collective", "--op", "all_redce"}, "did you mean 'all_reduce'?");
  expect_refused({"collective", "--algorithm", "rong"}, "did you mean 'ring'?");
  expect_refused({"collective", "--algorithm", "native"}, "algorithm native needs --transport openmpi");
  expect_refused({"collective", "--dtype", "float8"}, "--dtype");
  expect_refused({"collective", "--peers", "nccl"}, "unknown peer 'nccl'");
  expect_refused({"collective", "--hosts", "0,1,1"}, "--hosts names the hosts of 3 ranks, there are 2");
  expect_refused({"collective", "--explain"}, "name it with --algorithm");
  expect_refused({"collective", "--explain", "--algorithm", "all"}, "--explain shows one schedule, not all");
  expect_refused({"collective", "--table", "--explain", "--algorithm", "ring"}, "exclude each other");
  expect_refused({"collective", "--table", "--algorithm", "ring"}, "--table shows what is chosen");
  expect_refused({"collective", "--table", "--sizes", "4"}, "--table has sizes of its own");
  expect_refused({"collective", "--table", "--peers"}, "--table measures nothing");
  expect_refused({"collective", "--table", "-n", "65"}, "with more than 64 ranks nothing is priced");
  expect_refused({"collective", "--recipe", "nowhere.toml"}, "there is no recipe nowhere.toml");
  expect_refused({"collective", "--dtype", "uint8", "--sizes", "64", "--repeats", "1", "--no-save"}, "uint8");
}

}  // namespace
}  // namespace convoy
