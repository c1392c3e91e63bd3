// Orders the steps of all ranks under the rules of lending. A rank's round is two steps: *taken*, when all its messages
// have been taken, and *finished*, when all its writes are done. What is left without an order is a cycle of waits.
#include "convoy/spec/schedule/lending.h"

#include <fmt/format.h>

#include <cstddef>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/spec/schedule/describe.h"
#include "convoy/spec/schedule/shape.h"

namespace convoy::spec {
namespace {

// A message, from where it lies to the round in which it is taken.
struct Loan {
  const Chunk* chunk = nullptr;
  std::size_t round = 0;
  int reader = 0;
  std::size_t reader_round = 0;
};

class Order {
 public:
  explicit Order(const Schedule& schedule) : schedule_(schedule), loans_(schedule.ranks.size()) {
    const std::string& name = schedule.collective;
    in_place_ = name == "all_reduce" || name == "reduce" || name == "broadcast";
    for (const RankRounds& rounds : schedule.ranks) {
      first_step_.push_back(steps_);
      steps_ += 2 * rounds.size();
    }
    waits_.assign(steps_, 0);
    followers_.resize(steps_);
  }

  void check() {
    match_messages();
    find_who_lets_go();
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      for (std::size_t round = 0; round < schedule_.ranks[rank].size(); ++round) add_waits(rank, round);
    }
    run();
    refuse_what_is_left();
  }

 private:
  std::size_t taken(std::size_t rank, std::size_t round) const { return first_step_[rank] + 2 * round; }
  std::size_t finished(std::size_t rank, std::size_t round) const { return taken(rank, round) + 1; }
  void add_wait(std::size_t step, std::size_t earlier) {
    followers_[earlier].push_back(step);
    ++waits_[step];
  }

  void match_messages();
  void find_who_lets_go();
  void add_waits(std::size_t rank, std::size_t round);
  std::size_t let_go(const Loan& loan, std::size_t round) const;
  bool shares_memory(const Chunk& written, const Chunk& sent) const;
  void run();
  void refuse_what_is_left() const;

  const Schedule& schedule_;
  bool in_place_ = false;
  std::vector<std::vector<Loan>> loans_;    // of each rank's memory
  std::vector<std::vector<bool>> lets_go_;  // whether a rank writes what it sends in a round
  std::size_t steps_ = 0;
  std::vector<std::size_t> first_step_;
  std::vector<int> waits_;
  std::vector<std::vector<std::size_t>> followers_;
};

// Pairs sends with receives: the n-th from a rank to another with its n-th. A round begins when the one before it is
// finished, and a message is there when the sender's round has begun.
void Order::match_messages() {
  std::map<std::pair<int, int>, std::deque<Loan*>> sent;
  for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
    std::size_t sends = 0;
    for (const Round& round : schedule_.ranks[rank]) {
      for (const Operation& operation : round) sends += operation.kind == OpKind::kSend ? 1 : 0;
    }
    loans_[rank].reserve(sends);
    for (std::size_t round = 0; round < schedule_.ranks[rank].size(); ++round) {
      for (const Operation& operation : schedule_.ranks[rank][round]) {
        if (operation.kind != OpKind::kSend) continue;
        loans_[rank].push_back({&operation.target, round, operation.peer, 0});
        sent[{static_cast<int>(rank), operation.peer}].push_back(&loans_[rank].back());
      }
    }
  }
  for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
    for (std::size_t round = 0; round < schedule_.ranks[rank].size(); ++round) {
      for (const Operation& operation : schedule_.ranks[rank][round]) {
        if (operation.kind != OpKind::kReceive) continue;
        std::deque<Loan*>& queue = sent[{operation.peer, static_cast<int>(rank)}];
        Loan& loan = *queue.front();  // it is there: the schedule was played
        queue.pop_front();
        loan.reader_round = round;
        if (loan.round > 0) {
          add_wait(taken(rank, round), finished(static_cast<std::size_t>(operation.peer), loan.round - 1));
        }
      }
    }
  }
}

bool Order::shares_memory(const Chunk& written, const Chunk& sent) const {
  const bool same = written.kind == sent.kind && written.index == sent.index;
  const bool over_input = in_place_ && written.kind == BufferKind::kOutput && sent.kind == BufferKind::kInput;
  return (same || over_input) && written.offset < sent.offset + sent.count &&
         sent.offset < written.offset + written.count;
}

void Order::find_who_lets_go() {
  for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
    std::vector<bool>& lets_go = lets_go_.emplace_back(schedule_.ranks[rank].size(), false);
    for (const Loan& loan : loans_[rank]) {
      for (const Operation& operation : schedule_.ranks[rank][loan.round]) {
        if (operation.kind == OpKind::kSend || !shares_memory(operation.target, *loan.chunk)) continue;
        lets_go[loan.round] = true;
      }
    }
  }
}

// Returns the step after which a write of the lender in its round `round` need not wait for the loan.
std::size_t Order::let_go(const Loan& loan, std::size_t round) const {
  const auto reader = static_cast<std::size_t>(loan.reader);
  const bool at_once = loan.round == round && lets_go_[reader][loan.reader_round];
  return at_once ? taken(reader, loan.reader_round) : finished(reader, loan.reader_round);
}

void Order::add_waits(std::size_t rank, std::size_t round) {
  add_wait(finished(rank, round), taken(rank, round));
  if (round > 0) add_wait(taken(rank, round), finished(rank, round - 1));
  for (const Operation& operation : schedule_.ranks[rank][round]) {
    if (operation.kind == OpKind::kSend || operation.target.kind == BufferKind::kScratch) continue;
    for (const Loan& loan : loans_[rank]) {
      if (loan.round > round) break;
      if (!shares_memory(operation.target, *loan.chunk)) continue;
      add_wait(finished(rank, round), let_go(loan, round));
    }
  }
}

void Order::run() {
  std::vector<std::size_t> ready;
  for (std::size_t step = 0; step < steps_; ++step) {
    if (waits_[step] == 0) ready.push_back(step);
  }
  while (!ready.empty()) {
    const std::size_t step = ready.back();
    ready.pop_back();
    for (const std::size_t follower : followers_[step]) {
      if (--waits_[follower] == 0) ready.push_back(follower);
    }
  }
}

void Order::refuse_what_is_left() const {
  for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
    for (std::size_t round = 0; round < schedule_.ranks[rank].size(); ++round) {
      if (waits_[finished(rank, round)] == 0 || waits_[taken(rank, round)] > 0) continue;
      // This rank has taken everything and cannot write.
      for (const Operation& operation : schedule_.ranks[rank][round]) {
        if (operation.kind == OpKind::kSend || operation.target.kind == BufferKind::kScratch) continue;
        for (const Loan& loan : loans_[rank]) {
          if (loan.round > round || !shares_memory(operation.target, *loan.chunk)) continue;
          if (waits_[let_go(loan, round)] == 0) continue;
          refuse_operation(schedule_, static_cast<int>(rank), round, operation,
                           fmt::format("rank {} may still read {} where it lies, in its round {}, which waits for this",
                                       loan.reader, to_string(*loan.chunk), loan.reader_round));
        }
      }
    }
  }
}

}  // namespace

void check_lending(const Schedule& schedule) { Order(schedule).check(); }

}  // namespace convoy::spec
