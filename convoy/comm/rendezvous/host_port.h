// Network addresses as people write them: a host and a port.
#pragma once

#include <string>
#include <string_view>

namespace convoy::comm {

/// A host and a port.
struct HostPort {
  /// A name or a numeric address, without brackets.
  std::string host;
  /// 0 asks for any free one.
  int port = 0;

  /// Returns "host:port", with brackets around an IPv6 address.
  std::string str() const;
  /// Returns whether the host is this one's loopback interface: "localhost", 127.0.0.0/8 or ::1.
  bool is_loopback() const;
  /// Reads "host:port", "10.0.0.1:29500" or "[::1]:29500".
  /// Errors:     kInvalidArgument quoting the text
  static HostPort parse(std::string_view text);
  /// Reads a host ("::1", "[::1]", "node-1") and a port that are given apart.
  /// Errors:     kInvalidArgument quoting what is malformed
  static HostPort parse(std::string_view host, std::string_view port);
};

/// What a store's TCP address begins with.
inline constexpr std::string_view kTcpPrefix = "tcp://";

}  // namespace convoy::comm
