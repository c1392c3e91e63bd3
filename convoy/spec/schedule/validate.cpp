// Plays a schedule with symbols in place of numbers, and so proves what it computes before a byte is moved.
//
// Words: a *value* is a leaf (input k of rank r) or the sum of two values, and has a number. A *segment* is a range of
// a buffer that holds one value, element by element: its element i comes from element `element` + i of the leaves'
// inputs. A buffer's *content* is its segments in order; gaps were never written.
#include "convoy/spec/schedule/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/spec/schedule/describe.h"
#include "convoy/spec/schedule/lending.h"
#include "convoy/spec/schedule/meaning.h"
#include "convoy/spec/schedule/shape.h"
#include "convoy/spec/schedule/values.h"

namespace convoy::spec {
namespace {

struct Message {
  Content content;
  std::int64_t count = 0;
  int round = 0;
  int depth = 0;
  // Whose entry the sender had heard of; barriers only.
  std::vector<bool> heard;
};

struct Scratch {
  Content content;
  std::int64_t count = 0;
  bool written = false;
  bool read = false;
};

// Where a rank is: which round, which receive of it, and what its buffers hold.
struct RankState {
  std::size_t round = 0;
  bool round_begun = false;
  std::vector<const Operation*> receives;
  std::size_t received = 0;
  int depth = 0;
  int round_depth = 0;
  Content output;
  Content work;
  std::vector<Scratch> scratches;
  std::vector<bool> heard;
};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

class Player {
 public:
  // Takes a schedule whose shape was checked.
  explicit Player(const Schedule& schedule) : schedule_(schedule), meaning_(schedule) {}

  ScheduleFacts play() {
    prepare();
    while (advance_all()) {
    }
    refuse_if_stuck();
    check_leftovers();
    for (int rank = 0; rank < ranks(); ++rank) check_output(rank);
    list_links();
    return std::move(facts_);
  }

 private:
  int ranks() const { return static_cast<int>(schedule_.ranks.size()); }
  RankState& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  const RankRounds& rounds(int rank) const { return schedule_.ranks[static_cast<std::size_t>(rank)]; }

  // Refuses an operation of the round at which a rank is.
  [[noreturn]] void refuse_here(int rank, const Operation& operation, const std::string& why) {
    refuse_operation(schedule_, rank, state(rank).round, operation, why);
  }

  void prepare();
  bool advance_all();
  bool advance(int rank);
  void begin_round(int rank);
  bool take_receives(int rank);
  void finish_round(int rank);
  Content read(int rank, const Operation& operation, const Chunk& chunk);
  void write(int rank, const Operation& operation, Content content);
  void check_not_final(int rank, const Operation& operation);
  Content reduce(int rank, const Operation& operation);
  void refuse_if_stuck();
  void check_leftovers();
  void check_output(int rank);
  void check_value(int rank, const Segment& segment);
  bool combines_all(int value);
  int name_value(int value);
  void list_links();

  const Schedule& schedule_;
  const Meaning meaning_;
  Values values_;
  std::vector<RankState> states_;
  std::map<std::pair<int, int>, std::deque<Message>> messages_;  // by (sender, receiver)
  std::map<std::pair<int, int>, ScheduleFacts::Link> links_;
  std::map<int, bool> combines_all_;  // by value, once asked
  std::map<int, int> names_;          // by value: its place among the facts' values
  ScheduleFacts facts_;
};

void Player::prepare() {
  states_.resize(schedule_.ranks.size());
  for (std::size_t r = 0; r < states_.size(); ++r) {
    states_[r].scratches.resize(static_cast<std::size_t>(std::max(0, schedule_.scratches[r])));
    if (!meaning_.waits_for_all()) continue;
    states_[r].heard.assign(states_.size(), false);
    states_[r].heard[r] = true;
  }
  facts_.sent_elements.assign(states_.size(), 0);
  facts_.sent_messages.assign(states_.size(), 0);
}

bool Player::advance_all() {
  bool moved = false;
  for (int rank = 0; rank < ranks(); ++rank) {
    while (advance(rank)) moved = true;
  }
  return moved;
}

// Plays until the rank's round is done, or a message is missing. Returns whether anything happened.
bool Player::advance(int rank) {
  RankState& at = state(rank);
  if (at.round == rounds(rank).size()) return false;
  const bool begins = !at.round_begun;
  if (begins) begin_round(rank);
  const std::size_t before = at.received;
  if (!take_receives(rank)) return begins || at.received > before;
  finish_round(rank);
  return true;
}

void Player::begin_round(int rank) {
  RankState& at = state(rank);
  const Round& round = rounds(rank)[at.round];
  at.round_begun = true;
  at.received = 0;
  at.receives.clear();
  at.round_depth = at.depth + (round.empty() ? 0 : 1);
  for (const Operation& operation : round) {
    if (operation.kind == OpKind::kReceive) at.receives.push_back(&operation);
    if (operation.kind != OpKind::kSend) continue;
    const std::int64_t count = operation.target.count;
    messages_[{rank, operation.peer}].push_back(
        {read(rank, operation, operation.target), count, static_cast<int>(at.round), at.round_depth, at.heard});
    ScheduleFacts::Link& link = links_[{rank, operation.peer}];
    link.elements += count;
    ++link.messages;
    facts_.sent_elements[static_cast<std::size_t>(rank)] += count;
    ++facts_.sent_messages[static_cast<std::size_t>(rank)];
  }
}

bool Player::take_receives(int rank) {
  RankState& at = state(rank);
  for (; at.received < at.receives.size(); ++at.received) {
    const Operation& operation = *at.receives[at.received];
    std::deque<Message>& queue = messages_[{operation.peer, rank}];
    if (queue.empty()) return false;
    const Message message = std::move(queue.front());
    queue.pop_front();
    if (message.count != operation.target.count) {
      refuse_here(rank, operation,
                  fmt::format("takes {} elements, but rank {} sent {} in its round {}", operation.target.count,
                              operation.peer, message.count, message.round));
    }
    at.round_depth = std::max(at.round_depth, message.depth);
    for (std::size_t other = 0; other < message.heard.size(); ++other) {
      if (message.heard[other]) at.heard[other] = true;
    }
    write(rank, operation, message.content);
  }
  return true;
}

void Player::finish_round(int rank) {
  RankState& at = state(rank);
  for (const Operation& operation : rounds(rank)[at.round]) {
    if (operation.kind != OpKind::kReduce && operation.kind != OpKind::kCopy) continue;
    Content content = reduce(rank, operation);
    for (Segment& segment : content) segment.final = operation.final;
    write(rank, operation, std::move(content));
  }
  at.depth = at.round_depth;
  facts_.rounds = std::max(facts_.rounds, at.depth);
  at.round_begun = false;
  ++at.round;
}

// Returns what a chunk holds, its segments counted from the chunk's begin.
Content Player::read(int rank, const Operation& operation, const Chunk& chunk) {
  Content found;
  if (chunk.kind == BufferKind::kInput) {
    append(found, {0, chunk.count, values_.leaf(rank, chunk.index), chunk.offset, schedule_.contributions == 1});
    return found;
  }
  if (chunk.kind == BufferKind::kScratch) {
    Scratch& scratch = state(rank).scratches[static_cast<std::size_t>(chunk.index)];
    if (!scratch.written) refuse_here(rank, operation, fmt::format("{} was never received", to_string(chunk)));
    if (scratch.read) refuse_here(rank, operation, fmt::format("{} is read a second time", to_string(chunk)));
    if (scratch.count != chunk.count || chunk.offset != 0) {
      refuse_here(rank, operation, fmt::format("{} holds {} elements", to_string(chunk), scratch.count));
    }
    scratch.read = true;
    return scratch.content;
  }
  const bool output = chunk.kind == BufferKind::kOutput;
  const Content& buffer = output ? state(rank).output : state(rank).work;
  const std::int64_t end = chunk.offset + chunk.count;
  std::int64_t reached = chunk.offset;
  for (auto segment = first_ending_after(buffer, reached); segment != buffer.end() && segment->begin < end; ++segment) {
    Segment part = cut(*segment, chunk.offset, end);
    if (part.begin != reached) break;
    reached = part.end;
    part.begin -= chunk.offset;
    part.end -= chunk.offset;
    append(found, part);
  }
  if (reached != end) {
    refuse_here(rank, operation, fmt::format("{} element {} was never written", output ? "output" : "work", reached));
  }
  return found;
}

void Player::write(int rank, const Operation& operation, Content content) {
  const Chunk& target = operation.target;
  if (target.kind == BufferKind::kScratch) {
    Scratch& scratch = state(rank).scratches[static_cast<std::size_t>(target.index)];
    if (scratch.written) refuse_here(rank, operation, fmt::format("{} is written a second time", to_string(target)));
    scratch = {std::move(content), target.count, true, false};
    return;
  }
  const bool output = target.kind == BufferKind::kOutput;
  if (output) check_not_final(rank, operation);
  for (Segment& segment : content) {
    segment.begin += target.offset;
    segment.end += target.offset;
  }
  overwrite(output ? state(rank).output : state(rank).work, target.offset, target.offset + target.count, content);
}

// Refuses to write over what is final. Work memory may be used again.
void Player::check_not_final(int rank, const Operation& operation) {
  const std::int64_t begin = operation.target.offset;
  const Content& output = state(rank).output;
  for (auto segment = first_ending_after(output, begin);
       segment != output.end() && segment->begin < begin + operation.target.count; ++segment) {
    if (!segment->final) continue;
    refuse_here(rank, operation, fmt::format("output element {} is final already", std::max(segment->begin, begin)));
  }
}

// Returns the value of a reduction or copy (a reduction of one source) on each stretch on which no source changes.
Content Player::reduce(int rank, const Operation& operation) {
  std::vector<Content> sources;
  std::vector<std::int64_t> borders = {0, operation.target.count};
  for (const Chunk& source : operation.sources) {
    sources.push_back(read(rank, operation, source));
    for (const Segment& segment : sources.back()) {
      borders.push_back(segment.begin);
      if (segment.final && schedule_.contributions > 1 && operation.kind == OpKind::kReduce) {
        refuse_here(rank, operation, fmt::format("{} is final already", to_string(source)));
      }
    }
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  const std::vector<int> program = operation.kind == OpKind::kCopy ? std::vector<int>{0} : operation.program;
  Content result;
  std::vector<std::size_t> at(sources.size(), 0);
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    std::vector<Segment> stack;
    for (const int step : program) {
      if (step == kAdd) {
        const Segment right = stack.back();
        stack.pop_back();
        if (right.element != stack.back().element) {
          refuse_here(rank, operation,
                      fmt::format("adds element {} ({}) to element {} ({})", right.element, values_.text(right.value),
                                  stack.back().element, values_.text(stack.back().value)));
        }
        stack.back().value = values_.sum(stack.back().value, right.value);
        continue;
      }
      const Content& content = sources[static_cast<std::size_t>(step)];
      std::size_t& place = at[static_cast<std::size_t>(step)];
      while (content[place].end <= borders[i]) ++place;
      stack.push_back(cut(content[place], borders[i], borders[i + 1]));
    }
    append(result, stack.front());
  }
  return result;
}

// Names the rank at the root of a standstill: one that waits for a rank that is done, or a cycle.
void Player::refuse_if_stuck() {
  int rank = 0;
  while (rank < ranks() && state(rank).round == rounds(rank).size()) ++rank;
  if (rank == ranks()) return;
  std::vector<int> chain;
  while (std::find(chain.begin(), chain.end(), rank) == chain.end()) {
    chain.push_back(rank);
    const Operation& operation = *state(rank).receives[state(rank).received];
    if (state(operation.peer).round == rounds(operation.peer).size()) {
      refuse_here(rank, operation, fmt::format("rank {} never sends it", operation.peer));
    }
    rank = operation.peer;
  }
  const auto start = std::find(chain.begin(), chain.end(), rank);
  std::string cycle;
  for (auto member = start; member != chain.end(); ++member) {
    cycle += fmt::format("{} (round {}) waits for ", *member, state(*member).round);
  }
  refuse_here(rank, *state(rank).receives[state(rank).received],
              fmt::format("a cycle of waits: rank {}{}", cycle, rank));
}

void Player::check_leftovers() {
  for (const auto& [pair, queue] : messages_) {
    if (queue.empty()) continue;
    refuse(fmt::format("{}: rank {}, round {}: a message of {} elements to rank {} is never received",
                       schedule_.algorithm, pair.first, queue.front().round, queue.front().count, pair.second));
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    for (std::size_t i = 0; i < state(rank).scratches.size(); ++i) {
      const Scratch& scratch = state(rank).scratches[i];
      if (!scratch.written || scratch.read || scratch.count == 0) continue;
      refuse(fmt::format("{}: rank {}: scratch {} is received and never read", schedule_.algorithm, rank, i));
    }
  }
}

void Player::check_output(int rank) {
  const std::int64_t elements = schedule_.output_elements[static_cast<std::size_t>(rank)];
  std::int64_t reached = 0;
  for (const Segment& segment : state(rank).output) {
    if (segment.begin != reached) break;
    if (!segment.final) {
      refuse(fmt::format("{}: rank {}: output elements [{}, {}) end without a final value", schedule_.algorithm, rank,
                         segment.begin, segment.end));
    }
    check_value(rank, segment);
    facts_.outputs.push_back({rank, segment.begin, segment.end, name_value(segment.value)});
    reached = segment.end;
  }
  if (reached != elements) {
    refuse(fmt::format("{}: rank {}: output element {} is never written", schedule_.algorithm, rank, reached));
  }
  const std::vector<bool>& heard = state(rank).heard;
  const auto missing = std::find(heard.begin(), heard.end(), false);
  if (missing != heard.end()) {
    refuse(fmt::format("{}: rank {} leaves without having heard of rank {}", schedule_.algorithm, rank,
                       missing - heard.begin()));
  }
}

// Checks an output against what its collective is by definition.
void Player::check_value(int rank, const Segment& segment) {
  if (!meaning_.defined()) return;
  const Meaning::Origin origin = meaning_.origin(rank, segment.begin);
  const bool right = origin.rank < 0 ? combines_all(segment.value) : segment.value == values_.leaf(origin.rank, 0);
  if (right && segment.element == origin.element && segment.end - segment.begin <= origin.count) return;
  refuse(fmt::format("{}: rank {}: output elements [{}, {}) hold {} from element {} on, which is not what {} means",
                     schedule_.algorithm, rank, segment.begin, segment.end, values_.text(segment.value),
                     segment.element, schedule_.collective));
}

// Returns whether a value combines every input of every rank, each once.
bool Player::combines_all(int value) {
  const auto known = combines_all_.find(value);
  if (known != combines_all_.end()) return known->second;
  std::vector<std::pair<int, int>> leaves;
  values_.collect_leaves(value, leaves);
  std::sort(leaves.begin(), leaves.end());
  std::vector<std::pair<int, int>> wanted;
  for (int r = 0; r < ranks(); ++r) {
    for (int k = 0; k < schedule_.inputs[static_cast<std::size_t>(r)]; ++k) wanted.emplace_back(r, k);
  }
  return combines_all_[value] = leaves == wanted;
}

int Player::name_value(int value) {
  const auto entry = names_.try_emplace(value, static_cast<int>(facts_.values.size()));
  if (entry.second) facts_.values.push_back(values_.text(value));
  return entry.first->second;
}

void Player::list_links() {
  for (const auto& [pair, link] : links_) {
    facts_.links.push_back({pair.first, pair.second, link.elements, link.messages});
  }
}

}  // namespace

ScheduleFacts validate(const Schedule& schedule) {
  check_shape(schedule);
  ScheduleFacts facts = Player(schedule).play();
  check_lending(schedule);
  return facts;
}

}  // namespace convoy::spec
