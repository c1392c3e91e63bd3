// The contract of stores, for the one in memory and the one behind a socket; and what only a server has to stand.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "convoy/base/random.h"
#include "convoy/comm/rendezvous/host_port.h"
#include "convoy/comm/rendezvous/job.h"
#include "convoy/comm/rendezvous/sockets.h"
#include "convoy/comm/rendezvous/store_client.h"
#include "convoy/comm/rendezvous/store_server.h"
#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Where a server listens; "" stands for the store in memory.
class Stores : public ::testing::TestWithParam<std::string> {
 protected:
  // Returns a store as rank `rank` sees it.
  Store& store(int rank = 0) {
    if (GetParam().empty()) return memory_;
    return rank == 0 ? client_ : other_client_;
  }

 private:
  MemoryStore memory_;
  StoreServer server_{"", GetParam() == "unix" ? "" : GetParam()};
  StoreClient client_{server_.address(), server_.token(), seconds(10)};
  StoreClient other_client_{server_.address(), server_.token(), seconds(10)};
};

std::string name_of_place(std::size_t index) {
  const std::vector<std::string> names{"Memory", "Unix", "Ipv4", "Ipv6", "Localhost"};
  return names[index];
}

INSTANTIATE_TEST_SUITE_P(All, Stores,
                         ::testing::Values("", "unix", "tcp://127.0.0.1:0", "tcp://[::1]:0", "tcp://localhost:0"),
                         [](const auto& info) { return name_of_place(info.index); });

// The two kinds of sockets that a server has.
class StoreServers : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All, StoreServers, ::testing::Values("", "tcp://127.0.0.1:0"),
                         [](const auto& info) { return std::string(info.param.empty() ? "Unix" : "Tcp"); });

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

TEST_P(StoreServers, LetsOnlyHoldersOfTheTokenIn) {
  StoreServer server("", GetParam());
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

TEST_P(StoreServers, ServesItsOwnProcessToo) {
  StoreServer server("", GetParam());
  StoreClient client(server.address(), server.token(), seconds(5));
  std::jthread late([&] {
    std::this_thread::sleep_for(milliseconds(50));
    server.store().set("from inside", "yes");
  });
  EXPECT_EQ(client.get("from inside", seconds(10)), "yes");
}

TEST_P(StoreServers, EndsWaitingClientsAtOnceWhenItEnds) {
  auto server = std::make_unique<StoreServer>("", GetParam());
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

// A stream to a server whose bytes the test chooses.
class RawClient {
 public:
  explicit RawClient(const std::string& address) {
    std::string why;
    socket_ = try_connect(address, seconds(5), why);
    EXPECT_GE(socket_.get(), 0) << why;
    ::fcntl(socket_.get(), F_SETFL, 0);
    const timeval limit{10, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  void send(const std::string& bytes) const {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Returns the next answer; nothing at the end of the connection.
  std::optional<StoreReply> answer() {
    while (true) {
      if (const auto body = take_frame(received_, kMaxFrameBytes)) return decode_reply(*body);
      char bytes[4096];
      const ssize_t got = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
      if (got <= 0) return std::nullopt;
      received_.append(bytes, static_cast<std::size_t>(got));
    }
  }
  // Goes through the greeting; returns the server's last word.
  std::optional<StoreReply> greet(const std::string& token) {
    const std::string nonce = make_nonce();
    send(encode(StoreRequest{StoreVerb::kHello, nonce, "", 0}));
    const auto challenge = answer();
    if (!challenge) return std::nullopt;
    send(encode(StoreRequest{StoreVerb::kProof, proof_of(StoreSide::kClient, token, nonce, challenge->text), "", 0}));
    return answer();
  }

 private:
  Descriptor socket_;
  std::string received_;
};

TEST_P(StoreServers, StandsRandomBytes) {
  StoreServer server("", GetParam());
  StoreClient good(server.address(), server.token(), seconds(5));
  RandomStream random(17);
  for (int attempt = 0; attempt < 200; ++attempt) {
    RawClient client(server.address());
    // Half of them come after a true greeting, half of those as the body of a well-formed frame.
    if (attempt % 2 == 0) {
      EXPECT_EQ(client.greet(server.token())->status, StoreStatus::kOk);
    }
    std::string noise;
    for (std::uint64_t i = random.below(300); i > 0; --i) noise.push_back(static_cast<char>(random.below(256)));
    if (attempt % 4 == 0) {
      client.send({static_cast<char>(noise.size() & 0xff), static_cast<char>(noise.size() >> 8), 0, 0});
    }
    client.send(noise);
  }
  // A frame that announces more than may be is answered by the end of the connection.
  RawClient client(server.address());
  client.send(std::string("\xff\xff\xff\x7f", 4));
  EXPECT_FALSE(client.answer().has_value());
  good.set("still", "alive");
  EXPECT_EQ(good.get("still", seconds(1)), "alive");
}

TEST_P(StoreServers, AStrangerCanNeitherReadNorWriteNorJoin) {
  StoreServer server("", GetParam());
  server.store().set("secret", "value");
  const std::vector<StoreRequest> requests{{StoreVerb::kSet, "secret", "other", 0},
                                           {StoreVerb::kGet, "secret", "", 0},
                                           {StoreVerb::kTryGet, "secret", "", 0},
                                           {StoreVerb::kAdd, "count", "", 1},
                                           {StoreVerb::kRemove, "secret", "", 0}};
  for (const StoreRequest& request : requests) {
    RawClient before(server.address());
    before.send(encode(request));
    EXPECT_FALSE(before.answer().has_value()) << "a request in place of a greeting";

    RawClient between(server.address());
    between.send(encode(StoreRequest{StoreVerb::kHello, make_nonce(), "", 0}));
    EXPECT_TRUE(between.answer().has_value());
    between.send(encode(request));
    const auto refused = between.answer();
    EXPECT_TRUE(!refused || refused->status == StoreStatus::kRefused) << "a request in place of a proof";
    EXPECT_FALSE(between.answer().has_value());
  }
  EXPECT_EQ(server.store().try_get("secret"), "value");
  EXPECT_FALSE(server.store().try_get("count").has_value());
  EXPECT_EQ(server.clients(), 0);
}

TEST_P(StoreServers, AProofIsGoodForItsOwnGreetingOnly) {
  StoreServer server("", GetParam());
  const std::string nonce = make_nonce();
  RawClient first(server.address());
  first.send(encode(StoreRequest{StoreVerb::kHello, nonce, "", 0}));
  const auto challenge = first.answer();
  ASSERT_TRUE(challenge.has_value());
  const std::string proof = proof_of(StoreSide::kClient, server.token(), nonce, challenge->text);
  // Who has listened plays it back.
  RawClient second(server.address());
  second.send(encode(StoreRequest{StoreVerb::kHello, nonce, "", 0}));
  ASSERT_TRUE(second.answer().has_value());
  second.send(encode(StoreRequest{StoreVerb::kProof, proof, "", 0}));
  EXPECT_EQ(second.answer()->status, StoreStatus::kRefused);
  // The server's proof is no client's.
  RawClient third(server.address());
  third.send(encode(StoreRequest{StoreVerb::kHello, nonce, "", 0}));
  const auto again = third.answer();
  third.send(
      encode(StoreRequest{StoreVerb::kProof, proof_of(StoreSide::kServer, server.token(), nonce, again->text), "", 0}));
  EXPECT_EQ(third.answer()->status, StoreStatus::kRefused);
  first.send(encode(StoreRequest{StoreVerb::kProof, proof, "", 0}));
  EXPECT_EQ(first.answer()->status, StoreStatus::kOk);
}

TEST_P(StoreServers, SilentStrangersDoNotKeepRanksOut) {
  StoreServer server("", GetParam());
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 400; ++i) {
    strangers.push_back(std::make_unique<RawClient>(server.address()));
    strangers.back()->send(std::string("\x10", 1));  // the beginning of a greeting that never goes on
  }
  StoreClient good(server.address(), server.token(), seconds(5));
  good.set("a", "1");
  EXPECT_EQ(good.get("a", seconds(5)), "1");
  EXPECT_FALSE(strangers.front()->answer().has_value()) << "of too many, the oldest is closed";
}

TEST(StoreServer, ListensOnlyWhereItIsTold) {
  StoreServer server("", "tcp://127.0.0.1:0");
  const HostPort place = HostPort::parse(server.address().substr(6));
  EXPECT_GT(place.port, 0);
  std::string why;
  EXPECT_LT(try_connect(fmt::format("tcp://[::1]:{}", place.port), seconds(2), why).get(), 0);
  EXPECT_LT(try_connect(fmt::format("tcp://127.0.0.2:{}", place.port), seconds(2), why).get(), 0);
  EXPECT_GE(try_connect(server.address(), seconds(2), why).get(), 0);
}

TEST(StoreServer, NamesATakenPortAndTakesOneThatWasJustUsed) {
  auto first = std::make_unique<StoreServer>("", "tcp://127.0.0.1:0");
  const std::string address = first->address();
  const TimePoint begin = system_clock().now();
  const Error error = testing::error_of([&] { StoreServer second("", address); });
  EXPECT_EQ(error.code(), ErrorCode::kIo) << error.what();
  EXPECT_NE(error.message().find(address.substr(6)), std::string::npos) << error.message();
  EXPECT_EQ(error.message().find('\n'), std::string::npos);
  EXPECT_LT(system_clock().now() - begin, seconds(5));
  {
    StoreClient client(address, first->token(), seconds(5));
    client.set("a", "1");
    first.reset();  // closed by the server first, so that the port has a connection that lingers
  }
  StoreServer second("", address);
  EXPECT_EQ(second.address(), address);
  EXPECT_EQ(testing::error_of([&] { StoreServer("", "tcp://192.0.2.1:0"); }).code(), ErrorCode::kIo)
      << "an address that is not this host's";
}

TEST(StoreServer, OfAnotherJobIsNotBelieved) {
  StoreServer other("another job's token", "tcp://127.0.0.1:0");
  const Error error = testing::error_of([&] { StoreClient(other.address(), "this job's token", seconds(5)); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
  EXPECT_NE(error.message().find(other.address()), std::string::npos) << error.message();
}

TEST(StoreClient, TriesTheOtherFamilyOfAName) {
  // A server on one family only, under a name that has both.
  for (const char* only : {"tcp://127.0.0.1:0", "tcp://[::1]:0"}) {
    StoreServer server("", only);
    const HostPort place = HostPort::parse(server.address().substr(6));
    const TimePoint begin = system_clock().now();
    StoreClient client(fmt::format("tcp://localhost:{}", place.port), server.token(), seconds(5));
    EXPECT_LT(system_clock().now() - begin, seconds(5));
    client.set("family", only);
    EXPECT_EQ(server.store().try_get("family"), only);
  }
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
  for (const char* malformed :
       {"", "unix:", "unix:@", "@name", "tcp://", "tcp://::1:29500", "tcp://host", "tcp://host:x"}) {
    job.store_address = malformed;
    const Error refused = testing::error_of([&] { connect_store(job, milliseconds(200)); });
    EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument) << malformed;
    const std::string text = malformed;
    EXPECT_NE(refused.message().find(text.substr(text.starts_with("tcp://") ? 6 : 0)), std::string::npos);
  }
  job.store_address = "tcp://127.0.0.1:1";
  const Error nobody = testing::error_of([&] { connect_store(job, milliseconds(200)); });
  EXPECT_EQ(nobody.code(), ErrorCode::kTimeout);
  EXPECT_NE(nobody.message().find("127.0.0.1:1"), std::string::npos) << nobody.message();
  job.store_address = "tcp://no-such-host.invalid:29500";
  const Error unknown = testing::error_of([&] { connect_store(job, milliseconds(200)); });
  EXPECT_NE(unknown.message().find("no-such-host.invalid"), std::string::npos) << unknown.message();
}

// Runs three ranks of a job, the store being served at an address, and lets them sum.
void join_and_sum(const std::string& where, const TransportChoice& transport) {
  StoreServer server("", where);
  testing::run_ranks(3, [&](int rank) {
    JobEnvironment job;
    job.rank = rank;
    job.world_size = 3;
    job.store_address = server.address();
    job.token = server.token();
    const auto store = connect_store(job, seconds(10));
    GroupOptions options;
    options.timeout = seconds(20);
    const auto group = join_group(job, *store, options, transport);
    EXPECT_EQ(group->rank(), rank);
    EXPECT_EQ(all_reduce_number(*group, rank, ReduceOp::kSum), 3.0);
  });
}

TEST(JoinGroup, FormsAGroupFromTheEnvironmentOfARank) {
  join_and_sum("", {"shared_memory", {}});
  join_and_sum("tcp://127.0.0.1:0", {"shared_memory", {}});
  join_and_sum("", {"gloo", {}});
  join_and_sum("tcp://127.0.0.1:0", {"gloo", {}});
  join_and_sum("tcp://[::1]:0", {"gloo", {}});
  join_and_sum("tcp://[::1]:0", {"gloo", {"lo", "::1"}});
}

TEST(JoinGroup, RefusesATransportThatThereIsNot) {
  JobEnvironment job;
  job.world_size = 2;
  MemoryStore store;
  const Error error = testing::error_of([&] { join_group(job, store, GroupOptions(), {"pigeon", {}}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(error.message().find("'pigeon'"), std::string::npos) << error.message();
}

TEST(JoinGroup, NamesTwoHostsThatCannotShareMemory) {
  // Another host's rank has left what it says about itself.
  MemoryStore store;
  store.set("group/world/1/host/1", "elsewhere\nanother kernel");
  JobEnvironment job;
  job.world_size = 2;
  job.store_address = "tcp://127.0.0.1:29500";
  GroupOptions options;
  options.timeout = seconds(5);
  const Error error = testing::error_of([&] { join_group(job, store, options); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
  EXPECT_NE(error.message().find("rank 1 on 'elsewhere'"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("\"gloo\""), std::string::npos) << error.message();
}

// Two jobs without ports on one host, at the same time, with groups of the same name.
TEST(TwoJobs, OnOneHostDoNotDisturbEachOther) {
  for (const std::string transport : {"shared_memory", "gloo"}) {
    StoreServer servers[2];
    testing::run_ranks(4, [&](int number) {
      const StoreServer& server = servers[number / 2];
      JobEnvironment job;
      job.rank = number % 2;
      job.world_size = 2;
      job.store_address = server.address();
      job.token = server.token();
      const auto store = connect_store(job, seconds(10));
      GroupOptions options;
      options.timeout = seconds(20);
      const auto group = join_group(job, *store, options, {transport, {}});
      for (int repeat = 0; repeat < 20; ++repeat) {
        EXPECT_EQ(all_reduce_number(*group, 10.0 * (number / 2) + 1 + number % 2, ReduceOp::kSum),
                  number < 2 ? 3.0 : 23.0);
      }
    });
  }
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
