// OutputWindow: this rank's output as its peers reach it, so that whoever computes a part of it stores it there at once.
//
// Reading another rank's memory after one has given up does no harm; writing to it does. So a store is announced before
// it is made (begin_store), and who closes its window waits for those that are announced. A peer that is stopped in the
// middle of a store may go on with it at any later time: pages that it may still write are then taken out of its reach
// (withdraw). For that reason a window has whole pages only; what lies on their edges goes by message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "convoy/comm/buffer.h"

namespace convoy::comm {

class SharedArena;

/// A part of a peer's output that this rank can write.
struct WindowPart {
  /// The first element, and how many.
  std::int64_t offset = 0;
  std::int64_t elements = 0;
  /// Where it lies in this rank's address space.
  std::byte* data = nullptr;
};

/// What the ranks of a group show each other of their outputs.
/// Threads:    the transport's one caller
class OutputWindow {
 public:
  virtual ~OutputWindow() = default;
  /// Shows peers what of an output lies in whole pages of this rank's arena, until close() or the transport's withdraw().
  /// Cost:       none when nothing does
  virtual void open(std::uint64_t sequence, std::span<const Extent> output, std::size_t element_bytes) = 0;
  /// Ends it, when no store can be under way: every peer has said that its stores are done.
  virtual void close() = 0;
  /// Returns the parts that a peer shows for an operation, in order; none when it shows nothing.
  virtual std::vector<WindowPart> parts(int peer, std::uint64_t sequence, std::size_t element_bytes) = 0;
  /// Announces a store; false when the window is closed, and nothing may be written.
  virtual bool begin_store(int peer, std::uint64_t sequence) = 0;
  /// Says that what was announced has been written.
  virtual void end_store(int peer) = 0;
  /// Returns the memory in which windows lie.
  virtual SharedArena& arena() = 0;
};

}  // namespace convoy::comm
