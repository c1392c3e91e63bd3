// Addresses as people write them.
#include "convoy/comm/rendezvous/host_port.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

struct Written {
  const char* text;
  const char* host;
  int port;
};

TEST(HostPort, IsReadAsWritten) {
  for (const Written& one :
       {Written{"[::1]:29500", "::1", 29500}, Written{"127.0.0.1:29500", "127.0.0.1", 29500},
        Written{"localhost:29500", "localhost", 29500}, Written{"[fe80::1%eth0]:1", "fe80::1%eth0", 1},
        Written{"node-1.cluster:65535", "node-1.cluster", 65535}, Written{"[::]:0", "::", 0}}) {
    const HostPort place = HostPort::parse(one.text);
    EXPECT_EQ(place.host, one.host);
    EXPECT_EQ(place.port, one.port);
    EXPECT_EQ(place.str(), one.text);
  }
}

TEST(HostPort, IsReadInTwoParts) {
  for (const char* host : {"::1", "[::1]"}) {
    const HostPort place = HostPort::parse(host, "29500");
    EXPECT_EQ(place.host, "::1");
    EXPECT_EQ(place.str(), "[::1]:29500");
  }
  EXPECT_EQ(HostPort::parse("node-1", "7").str(), "node-1:7");
}

TEST(HostPort, QuotesWhatIsMalformed) {
  for (const char* text : {"",
                           ":",
                           "::1",
                           "::1:29500",
                           "[::1]",
                           "[::1]:",
                           "[::1]29500",
                           "[::1:29500",
                           "::1]:29500",
                           "[]:29500",
                           ":29500",
                           "host:",
                           "host:-1",
                           "host:65536",
                           "host:29500x",
                           "host: 29500",
                           "a host:1",
                           "[localhost]:1",
                           "user@host:1",
                           "[::1]]:1",
                           "1:2:3",
                           "host:99999999999"}) {
    const Error error = testing::error_of([&] { HostPort::parse(text); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(error.message().find("'" + std::string(text) + "'"), std::string::npos) << error.message();
  }
  EXPECT_NE(testing::error_of([] { HostPort::parse("host", "http"); }).message().find("'http'"), std::string::npos);
  EXPECT_NE(testing::error_of([] { HostPort::parse("1:2", "80"); }).message().find("'1:2'"), std::string::npos);
}

TEST(HostPort, KnowsLoopback) {
  for (const char* host : {"localhost", "127.0.0.1", "127.8.9.1", "::1"})
    EXPECT_TRUE((HostPort{host, 1}.is_loopback())) << host;
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "node-1", "localhost.example"}) {
    EXPECT_FALSE((HostPort{host, 1}.is_loopback())) << host;
  }
}

RC_GTEST_PROP(HostPort, AnyTextIsReadBackOrRefused, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("[]:.01a%")));
  try {
    const HostPort place = HostPort::parse(text);
    const HostPort again = HostPort::parse(place.str());
    RC_ASSERT(again.host == place.host);
    RC_ASSERT(again.port == place.port);
  } catch (const Error& error) {
    RC_ASSERT(error.code() == ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace convoy::comm
