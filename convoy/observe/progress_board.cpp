// The shared board: words of plain memory that each rank writes for itself and everybody reads without a lock.
#include "convoy/observe/progress_board.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "convoy/base/error.h"

namespace convoy::observe {
namespace {

using Word = std::uint64_t;
using WordRef = std::atomic_ref<Word>;
static_assert(WordRef::is_always_lock_free, "words are shared between processes");

// Phase, peer, chunk and the lower part of the sequence number are one word, so that a reader never sees the phase of
// one operation with the number of another.
constexpr int kSequenceBits = 22;
constexpr int kPhaseBits = 2;
constexpr int kPeerBits = 16;
constexpr int kChunkBits = 24;
static_assert(kSequenceBits + kPhaseBits + kPeerBits + kChunkBits == 64);

constexpr Word mask(int bits) { return (Word{1} << bits) - 1; }

Word pack_state(Word sequence, BoardPhase phase, Word chunk, int waits_for) {
  Word word = std::min(chunk, mask(kChunkBits));
  word = (word << kPeerBits) | (static_cast<Word>(waits_for + 1) & mask(kPeerBits));
  word = (word << kPhaseBits) | static_cast<Word>(phase);
  return (word << kSequenceBits) | (sequence & mask(kSequenceBits));
}

void unpack_state(Word word, Word newest_sequence, BoardLine& line) {
  // The whole number may be one write older or newer than its lower part: take the nearest number that ends so.
  const Word ahead = (word - newest_sequence) & mask(kSequenceBits);
  const bool older = ahead > mask(kSequenceBits) / 2;
  line.sequence = newest_sequence + ahead - (older ? mask(kSequenceBits) + 1 : 0);
  word >>= kSequenceBits;
  line.phase = static_cast<BoardPhase>(word & mask(kPhaseBits));
  word >>= kPhaseBits;
  line.waits_for = static_cast<int>(word & mask(kPeerBits)) - 1;
  line.chunk = word >> kPeerBits;
}

constexpr std::size_t kNameWords = sizeof(BoardOperation::name) / sizeof(Word);

// One remembered operation. `sequence` is 0 while the rest is being written.
struct alignas(64) Entry {
  Word sequence;
  Word name[kNameWords];
  Word kinds;
  Word elements;
  Word layout;
};

Word load(Word& word) { return WordRef(word).load(std::memory_order_acquire); }
void store(Word& word, Word value) { WordRef(word).store(value, std::memory_order_release); }

Word pack_kinds(const BoardOperation& operation) {
  return (static_cast<Word>(static_cast<std::uint32_t>(operation.root)) << 32) |
         (static_cast<Word>(operation.reduce) << 8) | static_cast<Word>(operation.dtype);
}

}  // namespace

void BoardOperation::set_name(std::string_view text) {
  name.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), name.size() - 1), name.begin());
}

std::string BoardOperation::str() const {
  const std::string_view text(name.data(),
                              static_cast<std::size_t>(std::find(name.begin(), name.end(), '\0') - name.begin()));
  if (text == "barrier") return std::string(text);
  const bool reduces = text.find("reduce") != std::string_view::npos;
  return fmt::format("{}{}{} of {} {}{}", text, reduces ? " " : "", reduces ? to_string(reduce) : "", elements,
                     to_string(dtype), root >= 0 ? fmt::format(" from rank {}", root) : "");
}

bool BoardOperation::agrees_with(const BoardOperation& other) const {
  return sequence == other.sequence && name == other.name && dtype == other.dtype && reduce == other.reduce &&
         elements == other.elements && root == other.root && layout == other.layout;
}

// One rank's part of the board; the first line of it is written often, apart from other ranks' lines.
struct SharedBoard::Slot {
  alignas(64) Word sequence;
  Word state;
  Word heartbeat;
  Word pid;
  Entry history[kHistory];
};

std::size_t SharedBoard::bytes(int ranks) { return sizeof(Slot) * static_cast<std::size_t>(std::max(ranks, 0)); }

SharedBoard::SharedBoard(void* memory, int ranks) : memory_(memory), ranks_(ranks) {
  CONVOY_CHECK(ranks >= 1 && static_cast<Word>(ranks) < mask(kPeerBits), "a board has 1 to 65534 ranks");
  CONVOY_CHECK(memory != nullptr && reinterpret_cast<std::uintptr_t>(memory) % alignof(Slot) == 0,
               "a board's memory is aligned to 64 bytes");
}

SharedBoard::Slot& SharedBoard::slot(int rank) const {
  CONVOY_CHECK(rank >= 0 && rank < ranks_, fmt::format("rank {} is not on a board of {}", rank, ranks_));
  return static_cast<Slot*>(memory_)[rank];
}

void SharedBoard::enter(int rank, const BoardOperation& operation) {
  Slot& slot = this->slot(rank);
  CONVOY_CHECK(operation.sequence > 0, "operations are numbered from 1");
  Entry& entry = slot.history[operation.sequence % kHistory];
  // A reader that meets any of the new words also meets the 0 before them, and lets go of what it has read.
  store(entry.sequence, 0);
  Word name[kNameWords];
  std::memcpy(name, operation.name.data(), sizeof(name));
  for (std::size_t i = 0; i < kNameWords; ++i) store(entry.name[i], name[i]);
  store(entry.kinds, pack_kinds(operation));
  store(entry.elements, static_cast<Word>(operation.elements));
  store(entry.layout, operation.layout);
  store(entry.sequence, operation.sequence);
  store(slot.sequence, operation.sequence);
  store(slot.state, pack_state(operation.sequence, BoardPhase::kEntered, 0, -1));
}

void SharedBoard::update(int rank, BoardPhase phase, std::uint64_t chunk, int waits_for) {
  Slot& slot = this->slot(rank);
  store(slot.state, pack_state(load(slot.sequence), phase, chunk, waits_for));
}

void SharedBoard::beat(int rank, std::int64_t now_ns, std::int64_t pid) {
  Slot& slot = this->slot(rank);
  store(slot.pid, static_cast<Word>(pid));
  store(slot.heartbeat, static_cast<Word>(now_ns));
}

BoardLine SharedBoard::line(int rank) const {
  Slot& slot = this->slot(rank);
  BoardLine line;
  const Word state = load(slot.state);
  unpack_state(state, load(slot.sequence), line);
  line.heartbeat_ns = static_cast<std::int64_t>(load(slot.heartbeat));
  line.pid = static_cast<std::int64_t>(load(slot.pid));
  return line;
}

std::optional<BoardOperation> SharedBoard::operation(int rank, std::uint64_t sequence) const {
  Entry& entry = slot(rank).history[sequence % kHistory];
  if (sequence == 0 || load(entry.sequence) != sequence) return std::nullopt;
  BoardOperation operation;
  operation.sequence = sequence;
  Word name[kNameWords];
  for (std::size_t i = 0; i < kNameWords; ++i) name[i] = load(entry.name[i]);
  std::memcpy(operation.name.data(), name, sizeof(name));
  const Word kinds = load(entry.kinds);
  operation.root = static_cast<int>(static_cast<std::uint32_t>(kinds >> 32));
  operation.reduce = static_cast<ReduceOp>((kinds >> 8) & 0xff);
  operation.dtype = static_cast<DType>(kinds & 0xff);
  operation.elements = static_cast<std::int64_t>(load(entry.elements));
  operation.layout = load(entry.layout);
  if (load(entry.sequence) != sequence) return std::nullopt;
  return operation;
}

}  // namespace convoy::observe
