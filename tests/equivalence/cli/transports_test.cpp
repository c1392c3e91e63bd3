// A choice changes speed, never results: the same run over shared memory, over sockets of one host, and over sockets
// between two network namespaces whose ranks another launcher started, ends with the same bits.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/namespaces.h"
#include "tests/support/processes.h"
#include "tests/support/temporary_folder.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::Program;
using testing::read_text;
using testing::TemporaryFolder;
using testing::TwoNamespaces;
using testing::write_text;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";
const std::string kRank = std::string(CONVOY_BINARY_DIR) + "/bin/convoy-rank";

json run(const std::string& folder, const std::vector<std::string>& sets) {
  std::vector<std::string> arguments{
      kConvoy, "run",   std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/fashion_cnn.toml", "-n", "2", "--out",
      folder,  "--json"};
  std::vector<std::string> all{"data.limit=600",     "data.validation=100",   "model.channels=[4,4,8,8]",
                               "replicas.count=4",   "train.steps=12",        "train.global_batch=64",
                               "train.momentum=0.9", "train.evaluate_every=0"};
  all.insert(all.end(), sets.begin(), sets.end());
  for (const std::string& one : all) arguments.insert(arguments.end(), {"--set", one});
  const testing::CommandResult result = testing::run_command(arguments);
  EXPECT_EQ(result.status, 0) << result.errors;
  return json::parse(result.output, nullptr, false);
}

// A port that nobody listens at now.
std::string free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  socklen_t length = sizeof(place);
  EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&place), length), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&place), &length), 0);
  ::close(socket);
  return std::to_string(ntohs(place.sin_port));
}

// Ranks that no launcher of Convoy's started: the environment says all. Returns the summary that rank 0 left.
json run_by_hand(const std::string& folder, const std::string& recipe, const std::string& master,
                 const std::vector<std::string>& token, bool namespaces) {
  std::filesystem::create_directories(folder + "/log");
  const std::string port = free_port();
  std::vector<std::unique_ptr<Program>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    std::map<std::string, std::string> variables{
        {"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"},      {"LOCAL_RANK", "0"},          {"MASTER_ADDR", master},
        {"MASTER_PORT", port},          {"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}};
    if (!token.empty()) variables["CONVOY_JOB_TOKEN"] = token.front();
    std::vector<std::string> command{kRank, "--recipe", recipe, "--out", folder};
    if (namespaces) command.insert(command.begin(), {"ip", "netns", "exec", TwoNamespaces::name(rank)});
    ranks.push_back(std::make_unique<Program>(command, variables));
  }
  for (const auto& rank : ranks) {
    const testing::CommandResult result = rank->wait();
    EXPECT_EQ(result.status, 0) << result.errors;
  }
  return json::parse(read_text(folder + "/summary.json"), nullptr, false);
}

// Writes the resolved recipe of a run with another transport.
std::string recipe_over_gloo(const std::string& from, const std::string& to) {
  std::string text = read_text(from);
  const std::string before = "transport = \"shared_memory\"";
  const auto at = text.find(before);
  EXPECT_NE(at, std::string::npos) << text;
  if (at != std::string::npos) text.replace(at, before.size(), "transport = \"gloo\"");
  return write_text(to, text);
}

class Transports : public ::testing::Test {
 protected:
  void SetUp() override {
    // The launcher chooses a BLAS kernel where the environment says nothing, even that; ranks started by hand get the
    // same environment, so the library chooses for all.
    ::setenv("OPENBLAS_CORETYPE", "", 1);
    reference_ = run(folder_.path() + "/shared", {});
    ASSERT_TRUE(reference_.contains("parameters_digest")) << reference_;
    recipe_ = recipe_over_gloo(folder_.path() + "/shared/recipe.toml", folder_.path() + "/gloo.toml");
  }
  void TearDown() override { ::unsetenv("OPENBLAS_CORETYPE"); }
  void expect_same(const json& other) const {
    ASSERT_TRUE(other.contains("parameters_digest")) << other;
    EXPECT_EQ(other["parameters_digest"], reference_["parameters_digest"]);
    EXPECT_EQ(other["quality"], reference_["quality"]);
    EXPECT_EQ(other["steps"], 12);
    EXPECT_EQ(other["blas"]["kernel"], reference_["blas"]["kernel"]) << "another BLAS kernel rounds differently";
  }

  const TemporaryFolder folder_;
  json reference_;
  std::string recipe_;
};

TEST_F(Transports, GiveTheSameBitsOnOneHost) {
  expect_same(run(folder_.path() + "/gloo", {"comm.transport=gloo"}));
  expect_same(run(folder_.path() + "/small", {"comm.transport=gloo", "comm.chunk_bytes=1000"}));
  expect_same(run(folder_.path() + "/two", {"comm.transport=gloo", "comm.interfaces=[\"127.0.0.1\", \"127.0.0.2\"]"}));
}

TEST_F(Transports, GiveTheSameBitsByAnyAlgorithm) {
  expect_same(run(folder_.path() + "/direct", {"comm.algorithm=ordered_direct"}));
  expect_same(run(folder_.path() + "/hosts", {"comm.algorithm=ordered_hierarchical", "comm.hosts=[\"a\", \"b\"]"}));
  expect_same(run(folder_.path() + "/gloo", {"comm.algorithm=ordered_direct", "comm.transport=gloo"}));
}

TEST_F(Transports, GiveTheSameBitsUnderAnotherLauncher) {
  expect_same(run_by_hand(folder_.path() + "/ipv4", recipe_, "127.0.0.1", {}, false));
  expect_same(run_by_hand(folder_.path() + "/ipv6", recipe_, "::1", {"a secret"}, false));
  expect_same(run_by_hand(folder_.path() + "/memory", folder_.path() + "/shared/recipe.toml", "localhost", {}, false));
}

TEST_F(Transports, GiveTheSameBitsBetweenTwoNamespaces) {
  const TwoNamespaces hosts;
  if (!hosts.problem().empty()) GTEST_SKIP() << hosts.problem();
  expect_same(run_by_hand(folder_.path() + "/ipv4", recipe_, "10.77.0.1", {"a secret"}, true));
  expect_same(run_by_hand(folder_.path() + "/ipv6", recipe_, "fd77::1", {"a secret"}, true));
}

}  // namespace
}  // namespace convoy
