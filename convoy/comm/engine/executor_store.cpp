// Executor: storing results into the outputs of peers, and showing them this rank's own.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "convoy/comm/engine/executor.h"

namespace convoy::comm {
namespace {

// Whether a and b are the same memory, stretch by stretch.
bool same(const Buffer& a, const Buffer& b) {
  return std::equal(a.extents().begin(), a.extents().end(), b.extents().begin(), b.extents().end(),
                    [](const Extent& x, const Extent& y) { return x.data == y.data && x.elements == y.elements; });
}

bool overlap(const Buffer& a, const Buffer& b, std::size_t element_bytes) {
  const auto end = [&](const Extent& extent) {
    return extent.data + static_cast<std::size_t>(extent.elements) * element_bytes;
  };
  for (const Extent& x : a.extents()) {
    for (const Extent& y : b.extents()) {
      if (x.data < end(y) && y.data < end(x)) return true;
    }
  }
  return false;
}

}  // namespace

// Stores come before their turn in the schedule; that was shown to be right where an input is the output, element for
// element, or lies apart from it.
bool Executor::may_show_output() const {
  return std::all_of(collective_.inputs.begin(), collective_.inputs.end(), [this](const Buffer& input) {
    return same(input, collective_.output) || !overlap(input, collective_.output, element_bytes_);
  });
}

void Executor::open_window() {
  const bool wanted = std::any_of(stores_->begin(), stores_->end(), [this](const auto& stores) {
    return std::any_of(stores.begin(), stores.end(), [this](const auto& store) { return store.peer == rank_; });
  });
  const std::span<const Extent> output = collective_.output.extents();
  if (!wanted || output.empty() || !may_show_output()) return;
  window_open_ = true;
  window_->open(operation_.sequence, output, element_bytes_);
}

// A peer has stored this part of the output.
void Executor::take_stored(const Message& message, const spec::Chunk& part) {
  transport_.release(message);
  if (!window_open_ || part.kind != spec::BufferKind::kOutput) {
    fail(ErrorCode::kDesync,
         fmt::format("rank {} says that it has stored what rank {} does not show", message.peer, rank_), message.peer);
  }
}

bool Executor::in_arena(const std::vector<Extent>& pieces) const {
  return std::all_of(pieces.begin(), pieces.end(), [this](const Extent& piece) {
    return window_->arena().contains(piece.data, static_cast<std::size_t>(piece.elements) * element_bytes_);
  });
}

// Returns where else the result of this round's reduction number `index` is to go.
std::vector<Executor::StoreTarget> Executor::store_targets(const spec::Operation& operation, std::size_t index) {
  std::vector<StoreTarget> targets;
  if (window_ == nullptr) return targets;
  bool is_sent = false;
  for (const spec::DirectStore& store : (*stores_)[static_cast<std::size_t>(rank_)]) {
    if (store.round != round_ || store.operation != index) continue;
    StoreTarget target;
    target.store = &store;
    target.offset = store.offset;
    target.parts = window_->parts(store.peer, operation_.sequence, element_bytes_);
    if (target.parts.empty()) {
      is_sent = true;
    } else {
      targets.push_back(std::move(target));
    }
  }
  const std::size_t bytes = static_cast<std::size_t>(operation.target.count) * element_bytes_;
  if (!is_sent || bytes < kFewBytes || in_arena(pieces_of(operation.target))) return targets;
  StoreTarget copy;
  copy.copy = shared_pool_.share(bytes);
  copy.parts = {WindowPart{0, operation.target.count, copy.copy.get()}};
  targets.push_back(std::move(copy));
  return targets;
}

void Executor::begin_stores(std::vector<StoreTarget>& targets) {
  for (StoreTarget& target : targets) {
    target.announced = target.store == nullptr || window_->begin_store(target.store->peer, operation_.sequence);
  }
}

// Returns where the peer wants the elements from `done` on; cuts `count` to those that lie together. Null where the
// peer does not show them.
std::byte* Executor::store_place(const StoreTarget& target, std::int64_t done, std::int64_t& count) const {
  const std::int64_t first = target.offset + done;
  for (const WindowPart& part : target.parts) {
    if (part.offset + part.elements <= first) continue;
    if (part.offset > first) {
      count = std::min(count, part.offset - first);
      return nullptr;
    }
    count = std::min(count, part.offset + part.elements - first);
    return target.announced ? part.data + static_cast<std::size_t>(first - part.offset) * element_bytes_ : nullptr;
  }
  return nullptr;
}

// Copies a result, which the first target has already, to the others, and notes what is stored.
void Executor::end_stores(std::vector<StoreTarget>& targets, const std::byte* result, std::int64_t done,
                          std::int64_t count) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    StoreTarget& target = targets[i];
    for (std::int64_t at = 0; at < count;) {
      std::int64_t step = count - at;
      std::byte* const place = store_place(target, done + at, step);
      if (place != nullptr) {
        const std::size_t bytes = static_cast<std::size_t>(step) * element_bytes_;
        if (i > 0) std::memcpy(place, result + static_cast<std::size_t>(at) * element_bytes_, bytes);
        std::vector<StoredRange>& stored = target.stored;
        if (!stored.empty() && stored.back().end == done + at) {
          stored.back().end += step;
        } else {
          stored.push_back(StoredRange{done + at, done + at + step});
        }
      }
      at += step;
    }
    if (target.announced && target.store != nullptr) window_->end_store(target.store->peer);
    target.announced = false;
  }
}

void Executor::remember_stored(const spec::Operation& operation, std::vector<StoreTarget> targets) {
  for (StoreTarget& target : targets) {
    if (target.copy != nullptr) {
      copies_[{operation.target.offset, operation.target.count}] = std::move(target.copy);
    } else if (!target.stored.empty()) {
      stored_[{target.store->send_round, target.store->send_operation}] = std::move(target.stored);
    }
  }
}

}  // namespace convoy::comm
