// From a collective of ours to one of MPI's: what it may do, which memory it works on, and what is left to do after it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/comm/openmpi/mpi_link.h"

namespace convoy::comm {

/// Returns why MPI cannot do a native collective; nothing when it can.
std::optional<std::string> native_refusal(const MpiLink& link, const Collective& collective);

/// One collective while MPI works on it. What lies in pieces, or overlaps where MPI does not allow that, is copied
/// before and after; everything else MPI reads and writes where it is.
class NativeCall {
 public:
  /// Prepares the call of a collective that native_refusal does not refuse.
  /// Ownership:  borrows the collective's buffers
  NativeCall(const Collective& collective, int rank);
  /// Returns what MPI is to do.
  const MpiCall& call() const { return call_; }
  /// Puts the result where it belongs, once MPI has ended.
  void finish();

 private:
  void place_input(const Collective& collective);
  void place_output(const Collective& collective);
  void describe(const spec::Schedule& schedule);
  void allow_in_place(const spec::Schedule& schedule);

  const int rank_;
  const std::size_t element_bytes_;
  MpiCall call_;
  Buffer output_;
  int divisor_ = 1;
  std::byte* input_at_ = nullptr;
  std::byte* output_at_ = nullptr;
  std::unique_ptr<std::byte[]> input_copy_;
  std::unique_ptr<std::byte[]> output_copy_;
};

}  // namespace convoy::comm
