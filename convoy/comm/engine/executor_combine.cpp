// Executor: reductions and copies, chunk by chunk, and where their results go.
#include <algorithm>

#include "convoy/comm/engine/executor.h"
#include "convoy/comm/engine/pieces.h"
#include "convoy/comm/engine/reduce.h"

namespace convoy::comm {
namespace {

// Results that go to several peers are copied from the nearest cache: so many bytes at a time.
constexpr std::int64_t kHotBytes = 1 << 13;

}  // namespace

// What a reduction reads. A source in a peer's own memory is read through a window that stays in the cache.
struct Executor::Sources {
  std::vector<PieceCursor> cursors;
  std::vector<const Scratch*> remote;
  std::vector<ScratchPool::Block> windows;
};

Executor::Sources Executor::open_sources(const spec::Operation& operation, std::int64_t most) {
  Sources sources;
  for (const spec::Chunk& source : operation.sources) {
    sources.remote.push_back(remote_scratch(source));
    sources.windows.emplace_back();
    if (sources.remote.back() == nullptr) {
      sources.cursors.emplace_back(pieces_of(source));
      continue;
    }
    sources.windows.back() = pool_.take(static_cast<std::size_t>(std::min(most, source.count)) * element_bytes_);
    std::byte* const window = sources.windows.back().memory.get();
    sources.cursors.emplace_back(std::vector<Extent>{Extent{window, source.count}});
  }
  return sources;
}

void Executor::close_sources(const spec::Operation& operation, Sources& sources) {
  for (ScratchPool::Block& window : sources.windows) pool_.give(std::move(window));
  for (const spec::Chunk& source : operation.sources) {
    if (source.kind == spec::BufferKind::kScratch) let_go(scratches_[static_cast<std::size_t>(source.index)]);
  }
}

void Executor::combine_chunks(const spec::Operation& operation, std::size_t index) {
  if (operation.target.count == 0) return;
  if (operation.target.kind == spec::BufferKind::kScratch) {
    Scratch& scratch = scratches_[static_cast<std::size_t>(operation.target.index)];
    scratch.owned.push_back(pool_.take(static_cast<std::size_t>(operation.target.count) * element_bytes_));
    scratch.pieces = {Extent{scratch.owned.back().memory.get(), operation.target.count}};
  }
  std::vector<Extent> pieces = pieces_of(operation.target);
  wait_until_writable(pieces);
  PieceCursor target(std::move(pieces));
  std::vector<StoreTarget> stores = store_targets(operation, index);
  const std::int64_t bytes = stores.size() > 1 ? kHotBytes : options_.chunk_bytes;
  const std::int64_t most = std::max<std::int64_t>(1, bytes / static_cast<std::int64_t>(element_bytes_));
  Sources sources = open_sources(operation, most);
  for (std::int64_t done = 0; done < operation.target.count;) {
    const std::int64_t count = combine_some(operation, sources, target, stores, Range{done, most});
    target.advance(count);
    for (PieceCursor& source : sources.cursors) source.advance(count);
    done += count;
    if (done < operation.target.count) look_up();
  }
  close_sources(operation, sources);
  if (compresses() && operation.final && operation.target.kind == spec::BufferKind::kOutput) {
    round_result(operation.target);
  }
  remember_stored(operation, std::move(stores));
}

// Combines at most range.most elements from range.done on; returns how many.
std::int64_t Executor::combine_some(const spec::Operation& operation, Sources& sources, const PieceCursor& target,
                                    std::vector<StoreTarget>& stores, Range range) {
  std::int64_t count = std::min({operation.target.count - range.done, range.most, target.left()});
  std::vector<const std::byte*> at(sources.cursors.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    count = std::min(count, sources.cursors[i].left());
    at[i] = sources.cursors[i].data(element_bytes_);
  }
  std::byte* also = nullptr;
  if (!stores.empty()) {
    begin_stores(stores);
    also = store_place(stores.front(), range.done, count);
  }
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (sources.remote[i] == nullptr) continue;
    read_remote(*sources.remote[i], static_cast<std::size_t>(range.done) * element_bytes_,
                sources.windows[i].memory.get(), static_cast<std::size_t>(count) * element_bytes_);
    at[i] = sources.windows[i].memory.get();
  }
  static const std::vector<int> kCopyProgram{0};
  const std::vector<int>& program = operation.kind == spec::OpKind::kCopy ? kCopyProgram : operation.program;
  const bool divides = operation.final && collective_.reduce == ReduceOp::kMean;
  const int divisor = divides ? collective_.schedule->contributions : 1;
  combine(collective_.dtype, collective_.reduce, program, at, target.data(element_bytes_), count, divisor,
          stream_ && operation.target.kind == spec::BufferKind::kOutput, also);
  end_stores(stores, target.data(element_bytes_), range.done, count);
  return count;
}

// Returns the scratch buffer of a chunk when it lies in a peer's own memory, else null.
const Executor::Scratch* Executor::remote_scratch(const spec::Chunk& chunk) const {
  if (chunk.kind != spec::BufferKind::kScratch) return nullptr;
  const Scratch& scratch = scratches_[static_cast<std::size_t>(chunk.index)];
  return scratch.remote.empty() ? nullptr : &scratch;
}

void Executor::read_remote(const Scratch& scratch, std::size_t offset, std::byte* to, std::size_t bytes) {
  for (const Message& message : scratch.remote) {
    if (bytes == 0) return;
    if (offset >= message.header.bytes) {
      offset -= message.header.bytes;
      continue;
    }
    const std::size_t count = std::min<std::size_t>(bytes, message.header.bytes - offset);
    transport_.fetch(message, offset, to, count);
    to += count;
    bytes -= count;
    offset = 0;
  }
}

}  // namespace convoy::comm
