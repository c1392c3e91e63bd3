// Two network namespaces joined by veth pairs, for tests of what goes between hosts.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace convoy::testing {

/// Two namespaces, 0 and 1. Link i has the interface v<i> in both, with 10.77.<i>.<1 + namespace>/24 and
/// fd77:<i>::<1 + namespace>/64. They are gone with the object; their names hold the process number.
class TwoNamespaces {
 public:
  explicit TwoNamespaces(int links = 1) {
    if (::geteuid() != 0) {
      problem_ = "network namespaces need root";
    } else if (!run("ip -V")) {
      problem_ = "the command ip is not installed";
    } else if (!run("ip netns add " + name(0)) || !run("ip netns add " + name(1))) {
      problem_ = "this kernel makes no network namespaces";
    }
    for (int side = 0; side < 2 && problem_.empty(); ++side) run(fmt::format("ip -n {} link set lo up", name(side)));
    for (int link = 0; link < links && problem_.empty(); ++link) add_link(link);
  }
  ~TwoNamespaces() {
    for (int side = 0; side < 2; ++side) run("ip netns del " + name(side));
  }
  TwoNamespaces(const TwoNamespaces&) = delete;
  TwoNamespaces& operator=(const TwoNamespaces&) = delete;

  /// Returns why there are none; "" when they are there.
  const std::string& problem() const { return problem_; }
  /// Returns a namespace's name, for `ip netns exec`.
  static std::string name(int side) { return fmt::format("convoy-{}-{}", ::getpid(), side); }
  /// Runs a command of `ip` in a namespace: "link set v0 down".
  static bool ip(int side, const std::string& command) { return run(fmt::format("ip -n {} {}", name(side), command)); }
  /// Moves the calling process, which has one thread, into the namespace of that name.
  static bool enter(const std::string& name) {
    const int descriptor = ::open(("/var/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    const bool entered = descriptor >= 0 && ::setns(descriptor, CLONE_NEWNET) == 0;
    if (descriptor >= 0) ::close(descriptor);
    return entered;
  }

 private:
  static bool run(const std::string& command) { return std::system((command + " > /dev/null 2>&1").c_str()) == 0; }
  void add_link(int link) {
    bool good =
        run(fmt::format("ip -n {} link add v{} type veth peer name v{} netns {}", name(0), link, link, name(1)));
    for (int side = 0; side < 2; ++side) {
      good = good && ip(side, fmt::format("addr add 10.77.{}.{}/24 dev v{}", link, 1 + side, link)) &&
             ip(side, fmt::format("addr add fd77:{}::{}/64 dev v{} nodad", link, 1 + side, link)) &&
             ip(side, fmt::format("link set v{} up", link));
    }
    if (!good) problem_ = "this kernel makes no veth pairs with IPv4 and IPv6 addresses";
  }

  std::string problem_;
};

}  // namespace convoy::testing
