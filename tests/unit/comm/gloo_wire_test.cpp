// What ranks say to each other over sockets, and to the store about themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convoy/comm/gloo/interfaces.h"
#include "convoy/comm/gloo/introduction.h"
#include "convoy/comm/gloo/wire.h"
#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

using ::testing::HasSubstr;

Control full_control() {
  Control control;
  control.released = {3, 4};
  control.line.sequence = 9;
  control.line.phase = observe::BoardPhase::kMoving;
  control.line.chunk = 17;
  control.line.waits_for = -1;
  control.line.pid = 4242;
  control.beat_age_ns = 123456789;
  for (std::uint64_t sequence = 2; sequence < 2 + observe::ProgressBoard::kHistory; ++sequence) {
    observe::BoardOperation operation;
    operation.sequence = sequence;
    operation.set_name("reduce_scatter_and_more");
    operation.dtype = DType::kInt64;
    operation.reduce = ReduceOp::kMax;
    operation.elements = -1;
    operation.root = -1;
    operation.layout = ~std::uint64_t{0};
    control.entered.push_back(operation);
  }
  control.notice = AbortNotice{1, ErrorCode::kPeerLost, std::string(3000, 'x')};
  return control;
}

TEST(Control, FitsAndIsReadBackAtItsLargest) {
  Control control = full_control();
  control.released.assign(kMaxLanes, ~std::uint64_t{0});
  const std::string body = encode(control);
  EXPECT_LE(body.size(), kMaxControlBytes);
  const auto read = decode_control(body);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->released, control.released);
  EXPECT_EQ(read->line.sequence, 9u);
  EXPECT_EQ(read->line.phase, observe::BoardPhase::kMoving);
  EXPECT_EQ(read->line.waits_for, -1);
  EXPECT_EQ(read->beat_age_ns, 123456789);
  ASSERT_EQ(read->entered.size(), control.entered.size());
  for (std::size_t i = 0; i < control.entered.size(); ++i) {
    EXPECT_TRUE(read->entered[i].agrees_with(control.entered[i])) << i;
  }
  EXPECT_EQ(read->notice->rank, 1);
  EXPECT_EQ(read->notice->code, ErrorCode::kPeerLost);
  EXPECT_EQ(read->notice->message, std::string(1000, 'x')) << "cut, as over shared memory";
}

TEST(Control, ThatIsCutOrLongerIsNotRead) {
  const std::string body = encode(full_control());
  for (std::size_t length = 0; length < body.size(); ++length) {
    EXPECT_FALSE(decode_control(std::string_view(body).substr(0, length)).has_value()) << length;
  }
  EXPECT_FALSE(decode_control(body + "x").has_value());
}

Introduction introduction(const std::string& host, const std::vector<std::string>& addresses) {
  Introduction one;
  one.host = host;
  one.addresses = addresses;
  one.chunks = 4;
  one.chunk_bytes = 4096;
  one.secrets = {"", "secret"};
  one.places = {std::vector<std::string>(addresses.size()), std::vector<std::string>(addresses.size(), "place")};
  return one;
}

std::string refusal(const Introduction& a, const Introduction& b) {
  const Error error = testing::error_of([&] { check_introductions({a, b}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
  return error.message();
}

TEST(Introductions, AreReadBackAndDamagedOnesNameTheirRank) {
  const Introduction one = introduction("host", {"10.0.0.1", "fd00::1"});
  const std::string bytes = encode(one);
  const Introduction read = decode_introduction(bytes, 1, 2);
  EXPECT_EQ(read.addresses, one.addresses);
  EXPECT_EQ(read.secrets, one.secrets);
  EXPECT_EQ(read.places, one.places);
  const Error error = testing::error_of([&] { decode_introduction(bytes.substr(1), 5, 2); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error.message(), HasSubstr("rank 5"));
}

TEST(Introductions, ThatDoNotFitNameBothRanksAndTheirAddresses) {
  EXPECT_NO_THROW(check_introductions({introduction("a", {"10.0.0.1"}), introduction("b", {"10.0.0.2"})}));
  EXPECT_NO_THROW(check_introductions({introduction("a", {"127.0.0.1"}), introduction("a", {"127.0.0.1"})}));
  EXPECT_THAT(refusal(introduction("a", {"10.0.0.1", "10.1.0.1"}), introduction("b", {"10.0.0.2"})),
              HasSubstr("rank 0 has 2 network interfaces (10.0.0.1, 10.1.0.1) and rank 1 has 1 (10.0.0.2)"));
  EXPECT_THAT(refusal(introduction("a", {"10.0.0.1"}), introduction("b", {"fd00::2"})), HasSubstr("of one family"));
  EXPECT_THAT(refusal(introduction("a", {"127.0.1.1"}), introduction("b", {"10.0.0.2"})), HasSubstr("loopback"));
  EXPECT_THAT(refusal(introduction("a", {"127.0.0.1"}), introduction("b", {"127.0.0.1"})), HasSubstr("loopback"));
  Introduction other = introduction("b", {"10.0.0.2"});
  other.chunk_bytes = 5000;
  EXPECT_THAT(refusal(introduction("a", {"10.0.0.1"}), other), HasSubstr("4096 bytes and rank 1 into 4 of 5000"));
}

TEST(Interfaces, AreFoundByNameAddressAndHostName) {
  EXPECT_EQ(local_address("lo"), "127.0.0.1");
  EXPECT_EQ(local_address("lo/ipv4"), "127.0.0.1");
  EXPECT_EQ(local_address("127.0.0.3"), "127.0.0.3");
  EXPECT_EQ(local_address("localhost/ipv4"), "127.0.0.1");
  const Error error = testing::error_of([] { local_address("no-such-interface.invalid"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("'no-such-interface.invalid'"));
  EXPECT_THAT(error.message(), HasSubstr("lo (127.0.0.1)"));
  EXPECT_EQ(testing::error_of([] { local_address("192.0.2.7"); }).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace convoy::comm
