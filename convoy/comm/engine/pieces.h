// Pieces of memory that together hold a chunk: how an executor copies them and walks along them.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "convoy/comm/buffer.h"
#include "convoy/comm/kernels/steps.h"

namespace convoy::comm {

/// Copies elements from pieces to pieces of the same total length that are cut differently; with `stream` past the caches.
inline void copy_pieces(const std::vector<Extent>& from, const std::vector<Extent>& to, std::size_t element_bytes,
                        bool stream = false) {
  std::size_t source = 0;
  std::size_t source_done = 0;
  for (const Extent& target : to) {
    const std::size_t bytes = static_cast<std::size_t>(target.elements) * element_bytes;
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t length = static_cast<std::size_t>(from[source].elements) * element_bytes;
      const std::size_t step = std::min(bytes - done, length - source_done);
      const std::byte* const begin = from[source].data + source_done;
      if (stream) {
        kernels::copy_past_caches(target.data + done, begin, step);
      } else if (target.data + done != begin) {
        std::memmove(target.data + done, begin, step);
      }
      done += step;
      source_done += step;
      if (source_done == length) {
        ++source;
        source_done = 0;
      }
    }
  }
}

/// Walks along pieces of one chunk.
class PieceCursor {
 public:
  /// Begins at the first element.
  explicit PieceCursor(std::vector<Extent> pieces) : pieces_(std::move(pieces)) {}
  /// Returns the current element.
  std::byte* data(std::size_t element_bytes) const {
    return pieces_[at_].data + static_cast<std::size_t>(done_) * element_bytes;
  }
  /// Returns the elements that are left in the current piece.
  std::int64_t left() const { return pieces_[at_].elements - done_; }
  /// Goes on, at most to the end of the current piece.
  void advance(std::int64_t elements) {
    done_ += elements;
    if (done_ < pieces_[at_].elements) return;
    ++at_;
    done_ = 0;
  }

 private:
  std::vector<Extent> pieces_;
  std::size_t at_ = 0;
  std::int64_t done_ = 0;
};

}  // namespace convoy::comm
