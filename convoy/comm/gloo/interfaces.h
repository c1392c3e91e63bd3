// Network interfaces of this host by name, address or host name.
#pragma once

#include <string>

namespace convoy::comm {

/// Returns a numeric address of this host for "eth0", "10.0.0.1", "::1" or a host name. "eth0/ipv4" and "eth0/ipv6" ask
/// for a family; without it, IPv4 comes first. Of IPv6 addresses, those that reach further than the link come first.
/// Errors:     kInvalidArgument naming what was asked for and the interfaces that there are
std::string local_address(const std::string& interface);

/// Returns whether a numeric address reaches only this host.
bool is_loopback(const std::string& address);

/// Returns whether a numeric address is one of IPv6.
bool is_ipv6(const std::string& address);

}  // namespace convoy::comm
