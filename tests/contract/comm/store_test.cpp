// The contract of stores, for the one in memory and the one behind a socket; and what only a server has to stand.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "convoy/base/random.h"
#include "convoy/comm/rendezvous/job.h"
#include "convoy/comm/rendezvous/store_client.h"
#include "convoy/comm/rendezvous/store_server.h"
#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Stores : public ::testing::TestWithParam<bool> {
 protected:
  // Returns a store as rank `rank` sees it.
  Store& store(int rank = 0) {
    if (!GetParam()) return memory_;
    return rank == 0 ? client_ : other_client_;
  }

 private:
  MemoryStore memory_;
  StoreServer server_;
  StoreClient client_{server_.address(), server_.token(), seconds(10)};
  StoreClient other_client_{server_.address(), server_.token(), seconds(10)};
};

INSTANTIATE_TEST_SUITE_P(All, Stores, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Socket" : "Memory"); });

TEST_P(Stores, ReturnsWhatWasSet) {
  EXPECT_FALSE(store().try_get("a").has_value());
  store().set("a", std::string("zero \0 inside", 13));
  store().set("", "the empty key");
  EXPECT_EQ(store(1).get("a", seconds(1)), std::string("zero \0 inside", 13));
  EXPECT_EQ(store(1).try_get(""), "the empty key");
  store(1).set("a", "");
  EXPECT_EQ(store().try_get("a"), "");
  store().remove("a");
  store().remove("a");
  EXPECT_FALSE(store(1).try_get("a").has_value());
}

TEST_P(Stores, AGetWaitsForTheKey) {
  std::jthread late([&] {
    std::this_thread::sleep_for(milliseconds(100));
    store(1).set("late", "here");
  });
  EXPECT_EQ(store().get("late", seconds(20)), "here");
}

TEST_P(Stores, AGetThatWaitsInVainNamesTheKeyAndTheNextCallWorks) {
  const TimePoint begin = system_clock().now();
  const Error error = testing::error_of([&] { store().get("never", milliseconds(200)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_NE(error.message().find("'never'"), std::string::npos) << error.message();
  EXPECT_GE(system_clock().now() - begin, milliseconds(190));
  store(1).set("never", "after all");
  EXPECT_EQ(store().get("never", seconds(1)), "after all");
}

TEST_P(Stores, CountsFromManyThreads) {
  testing::run_ranks(4, [&](int rank) {
    for (int i = 0; i < 50; ++i) store(rank % 2).add("count", rank + 1);
  });
  EXPECT_EQ(store().add("count", 0), 50 * (1 + 2 + 3 + 4));
  EXPECT_EQ(store().add("count", -1000), -500);
  EXPECT_EQ(store().try_get("count"), "-500");
}

TEST_P(Stores, RefusesToAddToWhatIsNoNumber) {
  store().set("word", "seven");
  const Error error = testing::error_of([&] { store().add("word", 1); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(error.message().find("'word'"), std::string::npos);
  store().set("big", "9223372036854775807");
  EXPECT_EQ(testing::error_of([&] { store().add("big", 1); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(store().try_get("big"), "9223372036854775807");
}

TEST_P(Stores, OneThreadsWaitDoesNotHoldUpAnother) {
  std::jthread waiter([&] { EXPECT_EQ(store().get("go", seconds(20)), "now"); });
  std::this_thread::sleep_for(milliseconds(30));
  const TimePoint begin = system_clock().now();
  store().set("other", "1");
  EXPECT_EQ(store().get("other", seconds(1)), "1");
  EXPECT_LT(system_clock().now() - begin, seconds(5));
  store().set("go", "now");
}

TEST(MemoryStore, HasACapacity) {
  MemoryStore store(100);
  store.set("a", std::string(60, 'x'));
  EXPECT_EQ(testing::error_of([&] { store.set("b", std::string(60, 'y')); }).code(), ErrorCode::kOutOfMemory);
  store.set("a", std::string(80, 'z'));
  store.remove("a");
  store.set("b", std::string(90, 'y'));
}

TEST(StoreServer, LetsOnlyHoldersOfTheTokenIn) {
  StoreServer server;
  EXPECT_EQ(server.token().size(), 32u);
  EXPECT_NE(make_job_token(), make_job_token());
  for (const std::string& wrong :
       {std::string(), server.token().substr(1), server.token() + "0", std::string(32, '0'), std::string(200, 'f')}) {
    const Error error = testing::error_of([&] { StoreClient(server.address(), wrong, seconds(5)); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_NE(error.message().find(server.address()), std::string::npos);
  }
  StoreClient good(server.address(), server.token(), seconds(5));
  good.set("a", "1");
  EXPECT_EQ(server.store().try_get("a"), "1");
  EXPECT_EQ(server.clients(), 1);
}

TEST(StoreServer, ServesItsOwnProcessToo) {
  StoreServer server;
  StoreClient client(server.address(), server.token(), seconds(5));
  std::jthread late([&] {
    std::this_thread::sleep_for(milliseconds(50));
    server.store().set("from inside", "yes");
  });
  EXPECT_EQ(client.get("from inside", seconds(10)), "yes");
}

TEST(StoreServer, EndsWaitingClientsAtOnceWhenItEnds) {
  auto server = std::make_unique<StoreServer>();
  StoreClient client(server->address(), server->token(), seconds(5));
  std::jthread end([&] {
    std::this_thread::sleep_for(milliseconds(100));
    server.reset();
  });
  const TimePoint begin = system_clock().now();
  EXPECT_EQ(testing::error_of([&] { client.get("never", seconds(60)); }).code(), ErrorCode::kPeerLost);
  EXPECT_LT(system_clock().now() - begin, seconds(10));
  EXPECT_EQ(testing::error_of([&] { client.set("a", "b"); }).code(), ErrorCode::kPeerLost);
}

int raw_connection(const std::string& address) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  const socklen_t length = socket_name(address, name);
  EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&name), length), 0);
  const timeval limit{5, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  return socket;
}

TEST(StoreServer, StandsRandomBytes) {
  StoreServer server;
  StoreClient good(server.address(), server.token(), seconds(5));
  RandomStream random(17);
  StoreRequest hello;
  hello.key = server.token();
  for (int attempt = 0; attempt < 200; ++attempt) {
    const int socket = raw_connection(server.address());
    std::string bytes;
    // Half of them come after a true greeting, half of those as the body of a well-formed frame.
    if (attempt % 2 == 0) bytes = encode(hello);
    std::string noise;
    for (std::uint64_t i = random.below(300); i > 0; --i) noise.push_back(static_cast<char>(random.below(256)));
    if (attempt % 4 == 0)
      bytes += std::string({static_cast<char>(noise.size() & 0xff), static_cast<char>(noise.size() >> 8), 0, 0});
    bytes += noise;
    ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::close(socket);
  }
  // A frame that announces more than may be is answered by the end of the connection.
  const int socket = raw_connection(server.address());
  const std::string huge("\xff\xff\xff\x7f", 4);
  ::send(socket, huge.data(), huge.size(), MSG_NOSIGNAL);
  char byte = 0;
  EXPECT_EQ(::recv(socket, &byte, 1, 0), 0);
  ::close(socket);
  good.set("still", "alive");
  EXPECT_EQ(good.get("still", seconds(1)), "alive");
}

TEST(StoreClient, RefusesAValueThatIsTooLarge) {
  StoreServer server;
  StoreClient client(server.address(), server.token(), seconds(5));
  EXPECT_EQ(testing::error_of([&] { client.set("a", std::string(kMaxFrameBytes, 'x')); }).code(),
            ErrorCode::kInvalidArgument);
  client.set("a", std::string(kMaxFrameBytes / 2, 'x'));
  EXPECT_EQ(client.get("a", seconds(5)).size(), kMaxFrameBytes / 2);
}

TEST(ConnectStore, NamesAnAddressThatNobodyListensAt) {
  JobEnvironment job;
  job.world_size = 2;
  job.store_address = "unix:@convoy-nobody-listens-here";
  const Error error = testing::error_of([&] { connect_store(job, milliseconds(200)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_NE(error.message().find(job.store_address), std::string::npos) << error.message();
  for (const char* malformed : {"", "unix:", "unix:@", "tcp://[::1]:29500", "@name"}) {
    job.store_address = malformed;
    const Error refused = testing::error_of([&] { connect_store(job, milliseconds(200)); });
    EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument) << malformed;
    EXPECT_NE(refused.message().find(malformed), std::string::npos);
  }
}

TEST(JoinGroup, FormsAGroupFromTheEnvironmentOfARank) {
  StoreServer server;
  testing::run_ranks(3, [&](int rank) {
    JobEnvironment job;
    job.rank = rank;
    job.world_size = 3;
    job.store_address = server.address();
    job.token = server.token();
    const auto store = connect_store(job, seconds(10));
    GroupOptions options;
    options.timeout = seconds(20);
    const auto group = join_group(job, *store, options);
    EXPECT_EQ(group->rank(), rank);
    EXPECT_EQ(all_reduce_number(*group, rank, ReduceOp::kSum), 3.0);
  });
}

TEST(JoinGroup, NeedsNoStoreForOneRank) {
  const JobEnvironment job;
  const auto store = connect_store(job, seconds(1));
  const auto group = join_group(job, *store, GroupOptions());
  EXPECT_EQ(group->size(), 1);
  EXPECT_EQ(all_reduce_number(*group, 2.5, ReduceOp::kMean), 2.5);
}

}  // namespace
}  // namespace convoy::comm
