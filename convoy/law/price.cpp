// Plays schedules in time. A message's first byte comes alpha after its sender's port is free, and not before the network
// interfaces on its way and its receiver's port are free; messages are looked at in the order of their first bytes.
#include "convoy/law/price.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <queue>
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
  std::deque<Waiting> sends;
  double last_sent = 0;
};

// A rank whose first waiting send could come at `first_byte`, as far as was known.
struct Candidate {
  double first_byte = 0;
  int rank = 0;
  friend bool operator>(const Candidate& a, const Candidate& b) {
    return a.first_byte != b.first_byte ? a.first_byte > b.first_byte : a.rank > b.rank;
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
      const double first_byte = first_byte_of(next.rank);
      if (first_byte > next.first_byte) {
        candidates_.push({first_byte, next.rank});
      } else {
        move(next.rank, first_byte);
      }
    }
    finish();
    return std::move(price_);
  }

 private:
  double bytes(std::int64_t elements) const { return static_cast<double>(elements * element_bytes_); }
  bool crosses(int from, int to) const { return host_[at(from)] != host_[at(to)]; }
  const LinkCost& link(int from, int to) const { return crosses(from, to) ? machine_.between : machine_.inside; }

  void advance(int rank);
  void begin_round(int rank);
  double compute_seconds(int rank) const;
  double first_byte_of(int rank) const;
  void move(int rank, double first_byte);
  void finish();

  const spec::Schedule& schedule_;
  const std::int64_t element_bytes_;
  const Machine& machine_;
  const std::size_t ranks_;
  std::vector<std::size_t> host_;  // of each rank, its place among the price's hosts
  std::vector<RankTime> times_;
  std::vector<Port> ports_;
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
  const bool idle = state.sends.empty();
  for (const Operation& operation : schedule_.ranks[at(rank)][state.round]) {
    if (operation.kind == OpKind::kReceive) state.receives.push_back(&operation);
    if (operation.kind == OpKind::kSend) state.sends.push_back({&operation, state.time});
  }
  if (idle && !state.sends.empty()) candidates_.push({first_byte_of(rank), rank});
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

// When the first byte of a rank's first waiting send can come.
double Play::first_byte_of(int rank) const {
  const Waiting& waiting = times_[at(rank)].sends.front();
  const int to = waiting.send->peer;
  const double left = std::max(waiting.offered, ports_[at(rank)].out);
  const double first_byte = std::max(left + link(rank, to).alpha_s, ports_[at(to)].in);
  if (!crosses(rank, to)) return first_byte;
  return std::max({first_byte, interfaces_[host_[at(rank)]].out, interfaces_[host_[at(to)]].in});
}

void Play::move(int rank, double first_byte) {
  RankTime& state = times_[at(rank)];
  const Operation& send = *state.sends.front().send;
  state.sends.pop_front();
  const int to = send.peer;
  const double end = first_byte + bytes(send.target.count) * link(rank, to).beta_s;
  ports_[at(rank)].out = end;
  ports_[at(to)].in = end;
  state.last_sent = end;
  const std::int64_t sent = send.target.count * element_bytes_;
  price_.sent_bytes[at(rank)] += sent;
  ++price_.sent_messages[at(rank)];
  if (crosses(rank, to)) {
    interfaces_[host_[at(rank)]].out = end;
    interfaces_[host_[at(to)]].in = end;
    price_.hosts[host_[at(rank)]].sent_bytes += sent;
    price_.hosts[host_[at(to)]].received_bytes += sent;
  }
  if (!state.sends.empty()) candidates_.push({first_byte_of(rank), rank});
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
