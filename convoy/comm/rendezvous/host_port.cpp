// Reads hosts and ports.
#include "convoy/comm/rendezvous/host_port.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

#include "convoy/base/error.h"

namespace convoy::comm {
namespace {

constexpr int kLastPort = 65535;

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("'{}' is no host and port: {}", text, why));
}

// `whole` is quoted in messages.
int read_port(std::string_view text, std::string_view whole) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || port < 0 || port > kLastPort) {
    refuse(whole, fmt::format("the port must be a number from 0 to {}", kLastPort));
  }
  return port;
}

bool is_ipv6(const std::string& host) {
  in6_addr address{};
  // A zone ("fe80::1%eth0") is not part of the address.
  return ::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &address) == 1;
}

std::string read_host(std::string_view text, std::string_view whole) {
  std::string host(text);
  const bool brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  if (host.empty()) refuse(whole, "the host is missing");
  if (host.find_first_of("[] \t\n\r/@") != std::string::npos || host.find('\0') != std::string::npos) {
    refuse(whole, "the host has characters that no host has");
  }
  const bool colon = host.find(':') != std::string::npos;
  if ((brackets || colon) && !is_ipv6(host)) refuse(whole, "the host is no IPv6 address");
  return host;
}

}  // namespace

std::string HostPort::str() const {
  const bool colon = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", colon ? "[" : "", host, colon ? "]" : "", port);
}

bool HostPort::is_loopback() const {
  in_addr ipv4{};
  in6_addr ipv6{};
  if (host == "localhost" || host == "localhost.localdomain") return true;
  if (::inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return (ntohl(ipv4.s_addr) >> 24) == 127;
  return ::inet_pton(AF_INET6, host.c_str(), &ipv6) == 1 && IN6_IS_ADDR_LOOPBACK(&ipv6);
}

HostPort HostPort::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) refuse(text, "the port is missing");
  const std::string_view host = text.substr(0, colon);
  if (host.find(':') != std::string_view::npos && !host.starts_with('[')) {
    refuse(text, "an IPv6 address needs brackets before a port, like [::1]:29500");
  }
  return HostPort{read_host(host, text), read_port(text.substr(colon + 1), text)};
}

HostPort HostPort::parse(std::string_view host, std::string_view port) {
  return HostPort{read_host(host, host), read_port(port, port)};
}

}  // namespace convoy::comm
