// Network namespaces joined by veth pairs, for tests of what goes between hosts.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace convoy::testing {

/// Runs a command without its output; returns whether it succeeded.
inline bool run_quietly(const std::string& command) {
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

/// Returns why this process can make no network namespaces; "" when it can try.
inline std::string namespaces_problem() {
  if (::geteuid() != 0) return "network namespaces need root";
  return run_quietly("ip -V") ? "" : "the command ip is not installed";
}

/// Two namespaces, 0 and 1. Link i has the interface v<i> in both, with 10.77.<i>.<1 + namespace>/24 and
/// fd77:<i>::<1 + namespace>/64. They are gone with the object; their names hold the process number.
class TwoNamespaces {
 public:
  explicit TwoNamespaces(int links = 1) {
    problem_ = namespaces_problem();
    if (problem_.empty() && (!run("ip netns add " + name(0)) || !run("ip netns add " + name(1)))) {
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
  /// Lets a link carry no more than a rate ("1gbit") each way. What does not fit waits for at most 50 ms.
  void limit(int link, const std::string& rate) {
    for (int side = 0; side < 2 && problem_.empty(); ++side) {
      const bool good = run(
          fmt::format("tc -n {} qdisc add dev v{} root tbf rate {} burst 128kb latency 50ms", name(side), link, rate));
      if (!good) problem_ = "this kernel limits no link to a rate (tc, tbf)";
    }
  }
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
  static bool run(const std::string& command) { return run_quietly(command); }
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

/// Several namespaces around a bridge, each with the interface v0 and the address 10.77.0.<1 + host>/24. They are gone
/// with the object; their names hold the process number and the star's.
class NamespaceStar {
 public:
  NamespaceStar(int number, int hosts) : number_(number) {
    problem_ = namespaces_problem();
    const std::string bridge = fmt::format("ip -n {} link add br0 type bridge", hub());
    if (problem_.empty() && !(run_quietly("ip netns add " + hub()) && run_quietly(bridge) &&
                              run_quietly(fmt::format("ip -n {} link set br0 up", hub())))) {
      problem_ = "this kernel makes no network namespaces with a bridge";
    }
    for (int host = 0; host < hosts; ++host) add_host(host);
  }
  ~NamespaceStar() {
    for (const std::string& name : names_) run_quietly("ip netns del " + name);
    run_quietly("ip netns del " + hub());
  }
  NamespaceStar(const NamespaceStar&) = delete;
  NamespaceStar& operator=(const NamespaceStar&) = delete;

  /// Returns why there are none; "" when they are there.
  const std::string& problem() const { return problem_; }
  /// Returns the names of the hosts' namespaces.
  const std::vector<std::string>& names() const { return names_; }
  /// Cuts a host off from all others.
  bool cut(int host) const {
    return run_quietly(fmt::format("ip -n {} link set v0 down", names_[static_cast<std::size_t>(host)]));
  }

 private:
  std::string hub() const { return fmt::format("convoy-{}-star{}", ::getpid(), number_); }
  void add_host(int host) {
    if (!problem_.empty()) return;
    names_.push_back(fmt::format("{}-{}", hub(), host));
    const std::string& name = names_.back();
    const bool good =
        run_quietly("ip netns add " + name) &&
        run_quietly(fmt::format("ip -n {} link add v0 type veth peer name p{} netns {}", name, host, hub())) &&
        run_quietly(fmt::format("ip -n {} link set p{} master br0 up", hub(), host)) &&
        run_quietly(fmt::format("ip -n {} addr add 10.77.0.{}/24 dev v0", name, 1 + host)) &&
        run_quietly(fmt::format("ip -n {} link set v0 up", name)) &&
        run_quietly(fmt::format("ip -n {} link set lo up", name));
    if (!good) problem_ = "this kernel joins no network namespaces by a bridge";
  }

  const int number_;
  std::string problem_;
  std::vector<std::string> names_;
};

}  // namespace convoy::testing
