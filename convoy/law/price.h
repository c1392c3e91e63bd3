// Price: how long a schedule takes on given links, by the alpha-beta-gamma model.
//
// The model: a message of b bytes keeps its sender's port busy for alpha + b beta, and arrives at its end. Ports work
// both ways at once (full duplex), and take one message at a time: a sender offers its messages in the order of the
// schedule, a receiver's port is busy for b beta. A rank has a port to ranks of its host and one to others, which work at
// the same time: a wire carries its bytes while memory is copied. All ranks of a host share its network interface, which
// likewise takes one message at a time in each direction. A reduction of k sources into b bytes takes (k-1) b gamma, a
// copy b kappa. A rank begins a round when its round before is done: everything received, reduced and copied; it does not
// wait for its own sends, only for its ports.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "convoy/spec/schedule/schedule.h"

namespace convoy::law {

/// What a message costs on a link: alpha + bytes x beta.
struct LinkCost {
  /// Seconds for a message of no bytes.
  double alpha_s = 0;
  /// Seconds a byte.
  double beta_s = 0;
};

/// Ranks on hosts, and what moving and combining bytes costs there.
struct Machine {
  /// The host of each rank, as any numbers; empty means that all ranks share one.
  std::vector<int> host_of_rank;
  /// Between two ranks of a host.
  LinkCost inside;
  /// Between two hosts.
  LinkCost between;
  /// Seconds a byte of each source but the first of a reduction.
  double gamma_s = 0;
  /// Seconds a byte of a copy within a rank.
  double kappa_s = 0;
};

/// What one host sends to others.
struct HostLoad {
  /// The host's number.
  int host = 0;
  /// Bytes through its network interface, to others and from others.
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
};

/// What a schedule costs.
struct Price {
  /// From the common start until the last rank is done; infinite for a schedule that cannot finish.
  double seconds = std::numeric_limits<double>::infinity();
  /// When each rank is done.
  std::vector<double> rank_seconds;
  /// Bytes that each rank sends.
  std::vector<std::int64_t> sent_bytes;
  /// Messages that each rank sends.
  std::vector<std::int64_t> sent_messages;
  /// Each host, in the order of its first rank.
  std::vector<HostLoad> hosts;
};

/// Plays a schedule in time and returns what it costs with elements of `element_bytes`.
/// Cost:       the operations, and a queue of the messages under way
/// Source:     Hockney: The communication challenge for MPP, Parallel Computing 1994 (alpha, beta); Thakur, Rabenseifner,
///             Gropp: Optimization of collective communication operations in MPICH, IJHPCA 2005 (gamma)
Price price(const spec::Schedule& schedule, std::int64_t element_bytes, const Machine& machine);

}  // namespace convoy::law
