// The journal of a block goes through these states, each a store that other processes see in order:
//   untouched -> old values copied -> `saved` says so -> elements change -> `done` says so.
// A rank that is killed before `saved` has changed nothing; after it the copy tells what the elements were.
#include "convoy/params/update/divided_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "convoy/base/error.h"

namespace convoy::params {
namespace {

constexpr std::size_t kLine = 64;

// Elements that are kept and updated at a time: few enough that they and their copies stay in the processor's first cache.
// Measured on the update of 10.5 million parameters with momentum by two ranks: 7.0 ms, with 4096 elements 8.2 ms, without
// a journal 5.5 ms.
constexpr std::int64_t kJournalElements = 1024;

std::size_t lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::vector<FlatSlice> cut(const std::vector<FlatSlice>& slices) {
  std::vector<FlatSlice> blocks;
  for (const FlatSlice& slice : slices) {
    for (std::int64_t at = 0; at < slice.count; at += kJournalElements) {
      blocks.push_back({slice.slot, slice.begin + at, std::min(kJournalElements, slice.count - at)});
    }
  }
  return blocks;
}

std::shared_ptr<comm::HostMemory> join(comm::Group& group, std::size_t bytes) {
  auto memory = comm::HostMemory::join(group, bytes);
  if (memory == nullptr) throw Error(ErrorCode::kInternal, "a divided update needs memory that its host's ranks share");
  return memory;
}

}  // namespace

// One rank's journal; behind it a byte for each parameter (used or not), then the old values of one block.
struct alignas(64) DividedUpdate::Journal {
  // The number of the update that the rank has begun, and of the one whose share is done.
  std::atomic<std::int64_t> begun;
  std::atomic<std::int64_t> finished;
  // Blocks [0, done) hold their new values.
  std::atomic<std::int64_t> done;
  // One more than the block whose old values were kept last.
  std::atomic<std::int64_t> saved;
  // One more than the place of the survivor that took this share over; 0 for none.
  std::atomic<std::int32_t> taker;
  double count;
  double clip;
  double rate;
};

DividedUpdate::DividedUpdate(comm::Group& group, std::size_t slots, std::size_t element_bytes,
                             std::vector<std::byte*> stretches)
    : group_(group),
      slots_(slots),
      element_bytes_(element_bytes),
      stretches_(std::move(stretches)),
      stride_(sizeof(Journal) + lines(slots) +
              lines(stretches_.size() * static_cast<std::size_t>(kJournalElements) * element_bytes)),
      memory_(join(group, stride_ * comm::ranks_of_host(group).size())),
      blocks_(memory_->ranks().size()) {
  static_assert(std::atomic<std::int64_t>::is_always_lock_free, "journals are shared between processes");
}

DividedUpdate::Journal& DividedUpdate::journal(int place) const {
  return *reinterpret_cast<Journal*>(memory_->data() + static_cast<std::size_t>(place) * stride_);
}

std::byte* DividedUpdate::old_values(int place) const {
  return memory_->data() + static_cast<std::size_t>(place) * stride_ + sizeof(Journal) + lines(slots_);
}

void DividedUpdate::set_shares(std::vector<std::vector<FlatSlice>> shares) {
  CONVOY_CHECK(shares.size() == blocks_.size(), "one share for each rank of the host");
  for (std::size_t place = 0; place < shares.size(); ++place) blocks_[place] = cut(shares[place]);
}

void DividedUpdate::copy_block(int place, const FlatSlice& block, bool back) const {
  const std::size_t bytes = static_cast<std::size_t>(block.count) * element_bytes_;
  std::byte* kept = old_values(place);
  for (std::byte* const stretch : stretches_) {
    std::byte* const elements = stretch + static_cast<std::size_t>(block.begin) * element_bytes_;
    back ? std::memcpy(elements, kept, bytes) : std::memcpy(kept, elements, bytes);
    kept += static_cast<std::size_t>(kJournalElements) * element_bytes_;
  }
}

void DividedUpdate::begin(const UpdateOrder& order) {
  Journal& own = journal(place());
  CONVOY_CHECK(own.finished.load() + 1 == order.number, "updates are numbered one after the other");
  own.done.store(0);
  own.saved.store(0);
  own.taker.store(0);
  own.count = order.scale.count;
  own.clip = order.scale.clip;
  own.rate = order.rate;
  auto* const used = reinterpret_cast<unsigned char*>(&own) + sizeof(Journal);
  for (std::size_t slot = 0; slot < slots_; ++slot) used[slot] = order.used[slot] ? 1 : 0;
  own.begun.store(order.number);
}

UpdateOrder DividedUpdate::order_of(const Journal& journal, int place) const {
  UpdateOrder order;
  order.number = journal.begun.load();
  order.scale = {journal.count, journal.clip};
  order.rate = journal.rate;
  const std::byte* const used = memory_->data() + static_cast<std::size_t>(place) * stride_ + sizeof(Journal);
  for (std::size_t slot = 0; slot < slots_; ++slot) order.used.push_back(used[slot] != std::byte{0});
  return order;
}

void DividedUpdate::work(int place, const UpdateOrder& order, const UpdateBlock& update) {
  Journal& theirs = journal(place);
  const std::vector<FlatSlice>& blocks = blocks_[static_cast<std::size_t>(place)];
  std::int64_t number = theirs.done.load();
  // Whoever worked here before may have been in the middle of this block.
  if (theirs.saved.load() == number + 1) copy_block(place, blocks[static_cast<std::size_t>(number)], true);
  for (; number < static_cast<std::int64_t>(blocks.size()); ++number) {
    const FlatSlice& block = blocks[static_cast<std::size_t>(number)];
    if (order.used[block.slot]) {
      copy_block(place, block, false);
      theirs.saved.store(number + 1);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      update(order, block);
    }
    theirs.done.store(number + 1);
  }
  theirs.finished.store(order.number);
}

void DividedUpdate::run(const UpdateOrder& order, const UpdateBlock& update) {
  CONVOY_CHECK(order.used.size() == slots_, "one used flag for each parameter");
  begin(order);
  work(place(), order, update);
  comm::barrier(group_);
}

std::optional<UpdateOrder> DividedUpdate::settle(std::int64_t number, std::span<const int> lost,
                                                 const UpdateBlock& update, Duration limit) {
  std::optional<UpdateOrder> order;
  Journal& own = journal(place());
  for (int other = 0; other < ranks() && !order; ++other) {
    const std::int64_t begun = journal(other).begun.load();
    // Somebody went on after this update: it was finished, only this rank has not heard it.
    if (begun > number) return order_of(own, place());
    if (begun == number) order = order_of(journal(other), other);
  }
  if (!order) return std::nullopt;
  if (own.begun.load() < number) begin(*order);
  if (own.finished.load() < number) work(place(), *order, update);

  const auto is_lost = [lost](int other) { return std::find(lost.begin(), lost.end(), other) != lost.end(); };
  for (int other = 0; other < ranks(); ++other) {
    Journal& theirs = journal(other);
    if (!is_lost(other) || theirs.finished.load() >= number) continue;
    // A survivor that took the share over and was lost too is followed by the next one.
    std::int32_t taker = theirs.taker.load();
    if (taker != 0 && !is_lost(taker - 1)) continue;
    if (!theirs.taker.compare_exchange_strong(taker, place() + 1)) continue;
    // One that had not begun has nothing in work, whatever its last update left.
    if (theirs.begun.load() < number) {
      theirs.done.store(0);
      theirs.saved.store(0);
    }
    work(other, *order, update);
  }
  const Deadline deadline(system_clock(), limit);
  for (int other = 0; other < ranks(); ++other) {
    while (journal(other).finished.load() < number) {
      if (deadline.expired()) {
        throw Error(ErrorCode::kTimeout, fmt::format("rank {} has not finished its share of update {} within {} s",
                                                     memory_->ranks()[static_cast<std::size_t>(other)], number,
                                                     to_seconds(limit)));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return order;
}

std::int64_t DividedUpdate::blocks_done(int place) const { return journal(place).done.load(); }

}  // namespace convoy::params
