// Proves what a schedule does, without running it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// What a schedule was proved to do.
struct ScheduleFacts {
  /// The longest chain of rounds, each waiting for the one before it through a message or on the same rank.
  int rounds = 0;
  /// Elements that each rank sends.
  std::vector<std::int64_t> sent_elements;
  /// Messages that each rank sends.
  std::vector<std::int64_t> sent_messages;
  /// What one rank sends to another.
  struct Link {
    /// The sender.
    int from = 0;
    /// The receiver.
    int to = 0;
    /// Elements of all messages together.
    std::int64_t elements = 0;
    /// How many messages.
    std::int64_t messages = 0;
    friend bool operator==(const Link&, const Link&) = default;
  };
  /// All pairs that exchange messages, by sender and then by receiver.
  std::vector<Link> links;
  /// Output elements [begin, end) of a rank on which the order of the sum is the same.
  struct Stretch {
    /// Whose output.
    int rank = 0;
    /// The first element.
    std::int64_t begin = 0;
    /// One past the last element.
    std::int64_t end = 0;
    /// Which of `values` these elements hold.
    int value = 0;
  };
  /// All outputs, by rank and then in order of elements.
  std::vector<Stretch> outputs;
  /// Each sum that some output holds, once, as text: "((0.0 + 1.0) + 2.0)" where r.k is input k of rank r. What stands
  /// for + is the operation's: sum, minimum, maximum, product.
  std::vector<std::string> values;
  /// Returns a stretch's sum.
  const std::string& value(const Stretch& stretch) const { return values[static_cast<std::size_t>(stretch.value)]; }
};

/// Plays a schedule of communication without data and returns what it does.
/// Errors:     kInvalidArgument naming rank, round and operation (all counted from 0) when it cannot finish (a receive
///             that nobody sends, a message of another size, a cycle of waits), leaves a message unread, reads what was
///             never written, writes an input or an output twice as final, uses a scratch chunk more than once or
///             never, writes memory that a peer may read in place and that waits for it, adds values of different elements, leaves an output element without a final value, or computes
///             something else than its collective (all_reduce, reduce_scatter, reduce, all_gather, gather, scatter,
///             broadcast, all_to_all, barrier) asks for
/// Cost:       time and memory grow with operations times stretches; meant for up to some hundred ranks
ScheduleFacts validate(const Schedule& schedule);

}  // namespace convoy::spec
