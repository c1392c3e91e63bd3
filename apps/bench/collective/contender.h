// Contenders: ways to do one operation, measured in turn on the same buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench/collective/layout.h"
#include "apps/bench/collective/pool.h"
#include "apps/bench/peers/peer_library.h"
#include "apps/bench/request/request.h"
#include "apps/bench/team/team.h"
#include "convoy/plan/collective_size.h"

namespace convoy::bench {

/// One way to do an operation of one size.
class Contender {
 public:
  virtual ~Contender() = default;
  /// Returns whose it is: "convoy", "openmpi", "gloo" or "limit".
  virtual std::string library() const = 0;
  /// Returns what moves the bytes: "shared_memory", "openmpi", "memory".
  virtual std::string transport() const = 0;
  /// Returns how: "ring", "native", "copy_add".
  virtual std::string algorithm() const = 0;
  /// Returns this rank's part.
  virtual const Layout& layout() const = 0;
  /// Does it once.
  /// Collective: all ranks
  virtual void run(const Slot& slot) = 0;
};

/// Makes the contender that runs a schedule of the registry by name; "native": what the transport's library does; or
/// "default": what the group's own function for the operation chooses.
/// Errors:     kInvalidArgument naming what is unknown or does not fit
std::unique_ptr<Contender> make_our_contender(Team& team, const Request& request, const plan::CollectiveSize& size,
                                              const std::string& algorithm);

/// Makes the contender that is another library.
/// Ownership:  borrows the library
std::unique_ptr<Contender> make_peer_contender(Team& team, const plan::CollectiveSize& size, PeerLibrary& library,
                                               const std::string& algorithm);

/// Makes the limit of an all-reduce: each rank adds up its share of all buffers and stores it into all of them. No
/// all-reduce with buffers that ranks can write can move fewer bytes through these cores.
std::unique_ptr<Contender> make_limit(Team& team, const plan::CollectiveSize& size);

}  // namespace convoy::bench
