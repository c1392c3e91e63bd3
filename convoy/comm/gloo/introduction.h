// What each rank publishes so that the others can connect to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::comm {

/// A rank's introduction to the others.
struct Introduction {
  /// The name of its host, for messages.
  std::string host;
  /// Numeric addresses, one for each lane.
  std::vector<std::string> addresses;
  /// How its transport is cut: chunks and their bytes.
  std::uint64_t chunks = 0;
  /// The largest payload.
  std::uint64_t chunk_bytes = 0;
  /// For each rank: where to connect, for each lane, as the link says it.
  std::vector<std::vector<std::string>> places;
  /// For each rank: a random number that it must show in its first message.
  std::vector<std::string> secrets;
};

/// Returns an introduction as a store keeps it.
std::string encode(const Introduction& introduction);
/// Reads what encode wrote.
/// Errors:     kCorrupt naming the rank
Introduction decode_introduction(const std::string& bytes, int rank, int size);

/// Checks that these ranks can connect to each other.
/// Errors:     kInvalidArgument naming two ranks whose numbers of interfaces, families, options or reach differ
void check_introductions(const std::vector<Introduction>& all);

}  // namespace convoy::comm
