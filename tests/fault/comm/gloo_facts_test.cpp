// What Debian's Gloo does with a stranger, since docs/transports.md warns of it. When this fails after an update of
// Gloo, the warning can go.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "convoy/base/error.h"
#include "convoy/comm/gloo/link.h"

namespace convoy::comm {
namespace {

using std::chrono::seconds;

// A frame's head as Gloo reads it: bytes, operation, slot, offset, length, offset there. Nobody waits for slot 77.
constexpr std::uint64_t kUnexpected[6] = {48 + 8, 1, 77, 0, 8, 0};

TEST(GlooFacts, AFrameThatNobodyExpectsEndsTheProcess) {
  if (!has_gloo()) GTEST_SKIP() << "this build has no Gloo";
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const auto link = make_link("127.0.0.1", 0, 2, seconds(10));
    const std::string address = link->address(1);
    if (::write(pipe[1], address.data(), address.size()) < 0) ::_exit(2);
    ::fclose(stderr);
    sockaddr_in higher{};
    std::memcpy(&higher, address.data(), sizeof(higher));
    higher.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);  // the lower address waits to be connected to
    std::string other = address;
    std::memcpy(other.data(), &higher, sizeof(higher));
    try {
      link->connect(1, other);
      std::this_thread::sleep_for(seconds(10));
    } catch (const Error&) {
      // Then the process lives, which the test notices.
    }
    ::_exit(0);
  }
  char address[256] = {};
  ASSERT_GE(::read(pipe[0], address, sizeof(address)), static_cast<ssize_t>(sizeof(sockaddr_in)));
  sockaddr_in place{};
  std::memcpy(&place, address, sizeof(place));
  const int stranger = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(stranger, reinterpret_cast<const sockaddr*>(&place), sizeof(place)), 0);
  ASSERT_EQ(::send(stranger, kUnexpected, sizeof(kUnexpected), MSG_NOSIGNAL),
            static_cast<ssize_t>(sizeof(kUnexpected)));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  ::close(stranger);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace convoy::comm
