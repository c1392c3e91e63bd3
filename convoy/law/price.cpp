// Plays schedules in time. A message's first byte comes alpha after its sender's port is free, and not before the network
// interfaces on its way and its receiver's port are free; messages are looked at in the order of their first bytes.
//
// Words: a *way* is inside a host (0) or between hosts (1). A rank has a port, and a queue of sends, for each.
#include "convoy/law/price.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace convoy::law {
namespace {

using spec::Operation;
using spec::OpKind;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// When a port or interface is free again, in each direction.
struct Port {
  double out = 0;
  double in = 0;
};

// A send that has not begun, and when its round did.
struct Waiting {
  const Operation* send = nullptr;
  double offered = 0;
};

struct RankTime {
  std::size_t round = 0;
  bool begun = false;
  // When the round could begin; then when all that was received so far had arrived.
  double time = 0;
  std::vector<const Operation*> receives;
  std::size_t received = 0;
  std::array<std::deque<Waiting>, 2> sends;  // by way
  double last_sent = 0;
};

// A rank whose first waiting send on a way could come at `first_byte`, as far as was known.
struct Candidate {
  double first_byte = 0;
  int rank = 0;
  std::size_t way = 0;
  friend bool operator>(const Candidate& a, const Candidate& b) {
    return std::tie(a.first_byte, a.rank, a.way) > std::tie(b.first_byte, b.rank, b.way);
  }
};

class Play {
 public:
  Play(const spec::Schedule& schedule, std::int64_t element_bytes, const Machine& machine)
      : schedule_(schedule), element_bytes_(element_bytes), machine_(machine), ranks_(schedule.ranks.size()) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const int host = rank < machine.host_of_rank.size() ? machine.host_of_rank[rank] : 0;
      const auto found = std::find_if(price_.hosts.begin(), price_.hosts.end(),
                                      [host](const HostLoad& load) { return load.host == host; });
      host_.push_back(static_cast<std::size_t>(found - price_.hosts.begin()));
      if (found == price_.hosts.end()) price_.hosts.push_back({host, 0, 0});
    }
    interfaces_.resize(price_.hosts.size());
    times_.resize(ranks_);
    ports_.resize(ranks_);
    price_.rank_seconds.assign(ranks_, 0);
    price_.sent_bytes.assign(ranks_, 0);
    price_.sent_messages.assign(ranks_, 0);
  }

  Price play() {
    for (std::size_t rank = 0; rank < ranks_; ++rank) advance(static_cast<int>(rank));
    while (!candidates_.empty()) {
      const Candidate next = candidates_.top();
      candidates_.pop();
      // Whoever finds a port busy is looked at again when it is free.
      const double first_byte = first_byte_of(next.rank, next.way);
      if (first_byte > next.first_byte) {
        candidates_.push({first_byte, next.rank, next.way});
      } else {
        move(next.rank, next.way, first_byte);
      }
    }
    finish();
    return std::move(price_);
  }

 private:
  double bytes(std::int64_t elements) const { return static_cast<double>(elements * element_bytes_); }
  std::size_t way(int from, int to) const { return host_[at(from)] != host_[at(to)] ? 1 : 0; }
  const LinkCost& link(std::size_t way) const { return way == 1 ? machine_.between : machine_.inside; }

  void advance(int rank);
  void begin_round(int rank);
  double compute_seconds(int rank) const;
  double first_byte_of(int rank, std::size_t way) const;
  void move(int rank, std::size_t way, double first_byte);
  void finish();

  const spec::Schedule& schedule_;
  const std::int64_t element_bytes_;
  const Machine& machine_;
  const std::size_t ranks_;
  std::vector<std::size_t> host_;  // of each rank, its place among the price's hosts
  std::vector<RankTime> times_;
  std::vector<std::array<Port, 2>> ports_;  // of each rank, by way
  std::vector<Port> interfaces_;
  std::map<std::pair<int, int>, std::deque<double>> arrivals_;  // by (sender, receiver)
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates_;
  Price price_;
};

// Takes a rank as far as what has arrived lets it go.
void Play::advance(int rank) {
  RankTime& state = times_[at(rank)];
  const spec::RankRounds& rounds = schedule_.ranks[at(rank)];
  for (; state.round < rounds.size(); ++state.round) {
    if (!state.begun) begin_round(rank);
    for (; state.received < state.receives.size(); ++state.received) {
      std::deque<double>& queue = arrivals_[{state.receives[state.received]->peer, rank}];
      if (queue.empty()) return;
      state.time = std::max(state.time, queue.front());
      queue.pop_front();
    }
    state.time += compute_seconds(rank);
    state.begun = false;
  }
}

void Play::begin_round(int rank) {
  RankTime& state = times_[at(rank)];
  state.begun = true;
  state.received = 0;
  state.receives.clear();
  const std::array<bool, 2> idle = {state.sends[0].empty(), state.sends[1].empty()};
  for (const Operation& operation : schedule_.ranks[at(rank)][state.round]) {
    if (operation.kind == OpKind::kReceive) state.receives.push_back(&operation);
    if (operation.kind == OpKind::kSend) state.sends[way(rank, operation.peer)].push_back({&operation, state.time});
  }
  for (std::size_t way = 0; way < idle.size(); ++way) {
    if (idle[way] && !state.sends[way].empty()) candidates_.push({first_byte_of(rank, way), rank, way});
  }
}

double Play::compute_seconds(int rank) const {
  double seconds = 0;
  for (const Operation& operation : schedule_.ranks[at(rank)][times_[at(rank)].round]) {
    const double size = bytes(operation.target.count);
    if (operation.kind == OpKind::kReduce && operation.sources.size() > 1) {
      seconds += static_cast<double>(operation.sources.size() - 1) * size * machine_.gamma_s;
    } else if (operation.kind == OpKind::kReduce || operation.kind == OpKind::kCopy) {
      seconds += size * machine_.kappa_s;
    }
  }
  return seconds;
}

// When the first byte of a rank's first waiting send on a way can come.
double Play::first_byte_of(int rank, std::size_t way) const {
  const Waiting& waiting = times_[at(rank)].sends[way].front();
  const int to = waiting.send->peer;
  const double left = std::max(waiting.offered, ports_[at(rank)][way].out);
  const double first_byte = std::max(left + link(way).alpha_s, ports_[at(to)][way].in);
  if (way == 0) return first_byte;
  return std::max({first_byte, interfaces_[host_[at(rank)]].out, interfaces_[host_[at(to)]].in});
}

void Play::move(int rank, std::size_t way, double first_byte) {
  RankTime& state = times_[at(rank)];
  const Operation& send = *state.sends[way].front().send;
  state.sends[way].pop_front();
  const int to = send.peer;
  const double end = first_byte + bytes(send.target.count) * link(way).beta_s;
  ports_[at(rank)][way].out = end;
  ports_[at(to)][way].in = end;
  state.last_sent = std::max(state.last_sent, end);
  const std::int64_t sent = send.target.count * element_bytes_;
  price_.sent_bytes[at(rank)] += sent;
  ++price_.sent_messages[at(rank)];
  if (way == 1) {
    interfaces_[host_[at(rank)]].out = end;
    interfaces_[host_[at(to)]].in = end;
    price_.hosts[host_[at(rank)]].sent_bytes += sent;
    price_.hosts[host_[at(to)]].received_bytes += sent;
  }
  if (!state.sends[way].empty()) candidates_.push({first_byte_of(rank, way), rank, way});
  arrivals_[{rank, to}].push_back(end);
  advance(to);
}

void Play::finish() {
  double last = 0;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const RankTime& state = times_[rank];
    if (state.round < schedule_.ranks[rank].size()) return;  // it waits for ever: the price stays infinite
    price_.rank_seconds[rank] = std::max(state.time, state.last_sent);
    last = std::max(last, price_.rank_seconds[rank]);
  }
  price_.seconds = last;
}

}  // namespace

Price price(const spec::Schedule& schedule, std::int64_t element_bytes, const Machine& machine) {
  return Play(schedule, element_bytes, machine).play();
}

}  // namespace convoy::law
