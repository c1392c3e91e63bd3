// Looks interfaces up with getifaddrs and names with getaddrinfo.
#include "convoy/comm/gloo/interfaces.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "convoy/base/error.h"

namespace convoy::comm {
namespace {

// An address of an interface.
struct Candidate {
  std::string interface;
  std::string address;
  bool ipv6 = false;
  bool link_local = false;
};

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  if (::getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

std::vector<Candidate> all_candidates() {
  ifaddrs* list = nullptr;
  std::vector<Candidate> found;
  if (::getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Candidate one;
    one.interface = at->ifa_name;
    one.ipv6 = family == AF_INET6;
    one.address = numeric(at->ifa_addr, one.ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    one.link_local = one.ipv6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr);
    if (!one.address.empty()) found.push_back(std::move(one));
  }
  return found;
}

// The addresses that a host name or a numeric address means.
std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  std::vector<std::string> found;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return found;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next)
    found.push_back(numeric(at->ai_addr, at->ai_addrlen));
  return found;
}

std::optional<std::string> best_of(std::vector<Candidate> candidates, const std::string& name,
                                   std::optional<bool> ipv6) {
  std::erase_if(candidates, [&](const Candidate& one) { return one.interface != name || (ipv6 && one.ipv6 != *ipv6); });
  const auto worth = [](const Candidate& one) { return (one.ipv6 ? 1 : 0) + (one.link_local ? 2 : 0); };
  const auto best = std::min_element(candidates.begin(), candidates.end(),
                                     [&](const auto& a, const auto& b) { return worth(a) < worth(b); });
  if (best == candidates.end()) return std::nullopt;
  return best->address;
}

}  // namespace

std::string local_address(const std::string& interface) {
  const std::vector<Candidate> candidates = all_candidates();
  std::string name = interface;
  std::optional<bool> ipv6;
  for (const char* suffix : {"/ipv4", "/ipv6"}) {
    if (!interface.ends_with(suffix)) continue;
    name = interface.substr(0, interface.size() - 5);
    ipv6 = std::string_view(suffix) == "/ipv6";
  }
  if (const auto best = best_of(candidates, name, ipv6)) return *best;
  for (const std::string& address : addresses_of(name)) {
    const bool own =
        std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& one) { return one.address == address; });
    // Any address in 127.0.0.0/8 is this host's, though only one is listed.
    if ((own || address.starts_with("127.")) && (!ipv6 || *ipv6 == is_ipv6(address))) return address;
  }
  std::set<std::string> there;
  for (const Candidate& one : candidates) there.insert(fmt::format("{} ({})", one.interface, one.address));
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is no network interface or address of this host; there are {}", interface,
                          fmt::join(there, ", ")));
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

bool is_ipv6(const std::string& address) { return address.find(':') != std::string::npos; }

}  // namespace convoy::comm
