// Matches final reductions with the sends of their results, and asks of each place whether somebody else needs it before.
#include "convoy/spec/schedule/storing.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace convoy::spec {
namespace {

// An operation by its place.
struct Place {
  std::size_t round = 0;
  std::size_t operation = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// A message of a schedule, from end to end.
struct Path {
  int from = -1;
  Place send;
  int to = -1;
  Place receive;
};

// Why an operation touches elements of a rank's inputs or output. What a round sends, it sends before it receives, and
// it computes at last.
enum class Use { kSend, kReceive, kRead, kWrite };

// That it does.
struct Touch {
  Chunk chunk;
  Place place;
  Use use = Use::kRead;
};

// All touches of one rank, to be found by elements.
class Touches {
 public:
  void add(const Chunk& chunk, Place place, Use use) {
    const bool counts = chunk.kind == BufferKind::kOutput || chunk.kind == BufferKind::kInput;
    if (!counts || chunk.count == 0) return;
    all_.push_back(Touch{chunk, place, use});
    longest_ = std::max(longest_, chunk.count);
  }
  void sort() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Touch& a, const Touch& b) { return a.chunk.offset < b.chunk.offset; });
  }
  // Whether all touches that share elements with a chunk of the output are as the predicate says.
  template <typename Predicate>
  bool all_of(const Chunk& chunk, Predicate predicate) const {
    auto touch = std::lower_bound(all_.begin(), all_.end(), chunk.offset - longest_,
                                  [](const Touch& a, std::int64_t offset) { return a.chunk.offset < offset; });
    for (; touch != all_.end() && touch->chunk.offset < chunk.offset + chunk.count; ++touch) {
      if (touch->chunk.offset + touch->chunk.count > chunk.offset && !predicate(*touch)) return false;
    }
    return true;
  }

 private:
  std::vector<Touch> all_;
  std::int64_t longest_ = 0;
};

class Finder {
 public:
  explicit Finder(const Schedule& schedule)
      : schedule_(schedule), touches_(schedule.ranks.size()), stores_(schedule.ranks.size()) {
    match();
    for (Touches& touches : touches_) touches.sort();
  }

  DirectStores find() {
    for (const Path& path : paths_) consider(path);
    for (std::vector<DirectStore>& stores : stores_) {
      std::stable_sort(stores.begin(), stores.end(), [](const DirectStore& a, const DirectStore& b) {
        return std::pair(a.round, a.operation) < std::pair(b.round, b.operation);
      });
    }
    return std::move(stores_);
  }

 private:
  const Operation& at(int rank, Place place) const {
    return schedule_.ranks[static_cast<std::size_t>(rank)][place.round][place.operation];
  }
  const Touches& touches(int rank) const { return touches_[static_cast<std::size_t>(rank)]; }

  void match();
  void note(int rank, Place place);
  void consider(const Path& path);
  std::optional<Place> result_of(const Path& path) const;
  bool free_at_receiver(const Path& path, const Operation& reduction) const;
  bool goes_into(int rank, Place send, const Path& path, const Operation& reduction) const;

  const Schedule& schedule_;
  std::vector<Path> paths_;
  std::map<std::pair<int, Place>, std::size_t> path_of_send_;
  std::map<std::pair<int, int>, std::deque<Place>> receives_;
  std::vector<Touches> touches_;
  DirectStores stores_;
};

void Finder::note(int rank, Place place) {
  const Operation& operation = at(rank, place);
  Touches& touches = touches_[static_cast<std::size_t>(rank)];
  if (operation.kind == OpKind::kSend) touches.add(operation.target, place, Use::kSend);
  if (operation.kind == OpKind::kReceive) {
    receives_[{operation.peer, rank}].push_back(place);
    touches.add(operation.target, place, Use::kReceive);
  }
  if (operation.kind != OpKind::kReduce && operation.kind != OpKind::kCopy) return;
  for (const Chunk& source : operation.sources) touches.add(source, place, Use::kRead);
  touches.add(operation.target, place, Use::kWrite);
}

// The n-th send from a rank to another is its n-th receive.
void Finder::match() {
  const auto each = [this](auto visit) {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      for (std::size_t round = 0; round < schedule_.ranks[rank].size(); ++round) {
        const std::size_t count = schedule_.ranks[rank][round].size();
        for (std::size_t i = 0; i < count; ++i) visit(static_cast<int>(rank), Place{round, i});
      }
    }
  };
  each([this](int rank, Place place) { note(rank, place); });
  each([this](int rank, Place place) {
    const Operation& operation = at(rank, place);
    if (operation.kind != OpKind::kSend) return;
    std::deque<Place>& queue = receives_[{rank, operation.peer}];
    if (queue.empty()) return;
    path_of_send_[{rank, place}] = paths_.size();
    paths_.push_back(Path{rank, place, operation.peer, queue.front()});
    queue.pop_front();
  });
}

// Returns the reduction whose final result a send carries as it is.
std::optional<Place> Finder::result_of(const Path& path) const {
  const Chunk& sent = at(path.from, path.send).target;
  std::optional<Place> newest;
  touches(path.from).all_of(sent, [&](const Touch& touch) {
    const bool writes = touch.use == Use::kWrite || touch.use == Use::kReceive;
    if (!writes || touch.chunk.kind != BufferKind::kOutput || touch.place.round >= path.send.round) return true;
    if (!newest || *newest < touch.place) newest = touch.place;
    return true;
  });
  if (!newest) return std::nullopt;
  const Operation& operation = at(path.from, *newest);
  const bool whole = operation.kind == OpKind::kReduce && operation.final && operation.target == sent;
  return whole ? newest : std::nullopt;
}

// Whether a send of the receiver is of the very elements that the reduction overwrites, and goes into that reduction.
bool Finder::goes_into(int rank, Place send, const Path& path, const Operation& reduction) const {
  const auto found = path_of_send_.find({rank, send});
  if (found == path_of_send_.end()) return false;
  const Path& sent = paths_[found->second];
  const Chunk& target = at(path.to, path.receive).target;
  const Chunk& lent = at(sent.from, sent.send).target;
  const Chunk& taken = at(sent.to, sent.receive).target;
  return sent.to == path.from && lent.kind == BufferKind::kInput && lent.offset == target.offset &&
         lent.count == target.count && taken.kind == BufferKind::kScratch &&
         std::find(reduction.sources.begin(), reduction.sources.end(), taken) != reduction.sources.end();
}

bool Finder::free_at_receiver(const Path& path, const Operation& reduction) const {
  return touches(path.to).all_of(at(path.to, path.receive).target, [&](const Touch& touch) {
    if (touch.place == path.receive || touch.place.round > path.receive.round) return true;
    if (touch.use == Use::kSend) return goes_into(path.to, touch.place, path, reduction);
    // Reductions and copies of the round of the receive come after it.
    return touch.use != Use::kReceive && touch.place.round == path.receive.round;
  });
}

void Finder::consider(const Path& path) {
  const Chunk& sent = at(path.from, path.send).target;
  const Chunk& target = at(path.to, path.receive).target;
  if (sent.kind != BufferKind::kOutput || target.kind != BufferKind::kOutput) return;
  if (sent.count == 0 || sent.count != target.count) return;
  const std::optional<Place> place = result_of(path);
  if (!place || !free_at_receiver(path, at(path.from, *place))) return;
  stores_[static_cast<std::size_t>(path.from)].push_back(DirectStore{
      place->round, place->operation, path.to, target.offset, path.send.round, path.send.operation});
}

}  // namespace

DirectStores find_direct_stores(const Schedule& schedule) { return Finder(schedule).find(); }

}  // namespace convoy::spec
