// The board remembers what ranks post, whole, and the culprit is named rather than those who wait for it.
#include "convoy/observe/progress_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <thread>

#include "convoy/base/error.h"

namespace convoy::observe {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Duration kSilent = std::chrono::milliseconds(1500);
constexpr std::int64_t kNow = 100'000'000'000;

// A board over local memory.
class Board {
 public:
  explicit Board(int ranks) : memory_(SharedBoard::bytes(ranks) / sizeof(Line)), board_(memory_.data(), ranks) {}
  SharedBoard* operator->() { return &board_; }
  SharedBoard& operator*() { return board_; }

  void enter(int rank, std::uint64_t sequence) {
    BoardOperation operation;
    operation.sequence = sequence;
    operation.set_name("all_reduce");
    operation.elements = 5;
    board_.enter(rank, operation);
  }
  void beat(int rank, double seconds_ago) {
    board_.beat(rank, kNow - static_cast<std::int64_t>(seconds_ago * 1e9), 1000 + rank);
  }
  Culprits culprits(int waiting_rank, std::uint64_t sequence) {
    return find_culprits(board_, waiting_rank, sequence, kNow, kSilent);
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> memory_;
  SharedBoard board_;
};

TEST(SharedBoard, IsEmptyWhenItsMemoryIsZero) {
  Board board(3);
  const BoardLine line = board->line(2);
  EXPECT_EQ(line.sequence, 0u);
  EXPECT_EQ(line.phase, BoardPhase::kOutside);
  EXPECT_EQ(line.waits_for, -1);
  EXPECT_EQ(line.heartbeat_ns, 0);
  EXPECT_EQ(board->operation(2, 0), std::nullopt);
  EXPECT_EQ(board->operation(2, 8), std::nullopt);
}

TEST(SharedBoard, RefusesWhatIsNoBoard) {
  alignas(64) std::byte memory[4096] = {};
  EXPECT_THROW(SharedBoard(memory + 8, 1), Error);
  EXPECT_THROW(SharedBoard(nullptr, 1), Error);
  EXPECT_THROW(SharedBoard(memory, 0), Error);
  SharedBoard board(memory, 2);
  EXPECT_THROW(board.line(2), Error);
  EXPECT_THROW(board.enter(0, BoardOperation{}), Error);
}

TEST(SharedBoard, KeepsALineForEachRank) {
  Board board(3);
  board.enter(1, 7);
  board->update(1, BoardPhase::kMoving, 12, 2);
  board->beat(1, 55, 4321);
  const BoardLine line = board->line(1);
  EXPECT_EQ(line.sequence, 7u);
  EXPECT_EQ(line.phase, BoardPhase::kMoving);
  EXPECT_EQ(line.chunk, 12u);
  EXPECT_EQ(line.waits_for, 2);
  EXPECT_EQ(line.heartbeat_ns, 55);
  EXPECT_EQ(line.pid, 4321);
  EXPECT_EQ(board->line(0).sequence, 0u);
  EXPECT_EQ(board->line(2).sequence, 0u);
}

TEST(SharedBoard, KeepsSequenceNumbersOfAnySize) {
  Board board(1);
  for (const std::uint64_t sequence : {(1ull << 22) - 1, 1ull << 22, (1ull << 22) + 1, 1ull << 40, (1ull << 63) + 3}) {
    board.enter(0, sequence);
    EXPECT_EQ(board->line(0).sequence, sequence);
    board->update(0, BoardPhase::kOutside, 1, 65000);
    EXPECT_EQ(board->line(0).sequence, sequence);
    EXPECT_EQ(board->line(0).waits_for, 65000);
  }
}

TEST(SharedBoard, RemembersTheNewestOperationsWhole) {
  Board board(2);
  BoardOperation posted;
  posted.set_name("reduce_scatter_of_a_very_long_name");
  posted.dtype = DType::kInt64;
  posted.reduce = ReduceOp::kMax;
  posted.elements = (1ll << 40) + 3;
  posted.root = -1;
  posted.layout = 0xfedcba9876543210u;
  for (std::uint64_t sequence = 1; sequence <= 11; ++sequence) {
    posted.sequence = sequence;
    board->enter(1, posted);
  }
  for (std::uint64_t sequence = 4; sequence <= 11; ++sequence) {
    const auto found = board->operation(1, sequence);
    ASSERT_TRUE(found.has_value());
    posted.sequence = sequence;
    EXPECT_TRUE(found->agrees_with(posted));
    EXPECT_STREQ(found->name.data(), "reduce_scatter_of_a_ver");
    EXPECT_EQ(found->elements, posted.elements);
    EXPECT_EQ(found->root, -1);
  }
  EXPECT_EQ(board->operation(1, 3), std::nullopt);
  EXPECT_EQ(board->operation(1, 12), std::nullopt);
  EXPECT_EQ(board->operation(0, 11), std::nullopt);
}

TEST(SharedBoard, TwoBoardsOverOneMemoryAreOne) {
  alignas(64) std::byte memory[4096] = {};
  ASSERT_LE(SharedBoard::bytes(2), sizeof(memory));
  SharedBoard writer(memory, 2);
  const SharedBoard reader(memory, 2);
  writer.beat(1, 99, 5);
  EXPECT_EQ(reader.line(1).heartbeat_ns, 99);
}

// A writer enters operations whose fields all follow from the number; readers must never see a mixture.
TEST(SharedBoard, ReadersNeverSeeHalfAnOperation) {
  Board board(1);
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::atomic<std::int64_t> whole{0};
  {
    std::jthread reader([&] {
      while (!stop) {
        const BoardLine line = board->line(0);
        if (line.chunk != 0 && line.chunk != line.sequence % 1000) ++torn;
        const auto found = board->operation(0, line.sequence);
        if (!found) continue;
        ++whole;
        if (found->elements != static_cast<std::int64_t>(found->sequence * 3) || found->layout != found->sequence * 7) {
          ++torn;
        }
      }
    });
    for (std::uint64_t sequence = 1; sequence <= 20000 || whole < 100; ++sequence) {
      BoardOperation operation;
      operation.sequence = sequence;
      operation.elements = static_cast<std::int64_t>(sequence * 3);
      operation.layout = sequence * 7;
      board->enter(0, operation);
      board->update(0, BoardPhase::kMoving, sequence % 1000, -1);
      if (sequence > 20'000'000) break;
    }
    stop = true;
  }
  EXPECT_EQ(torn, 0);
  EXPECT_GE(whole, 100);
}

TEST(BoardOperation, ReadsLikeASentence) {
  BoardOperation operation;
  operation.set_name("all_reduce");
  operation.elements = 5;
  EXPECT_EQ(operation.str(), "all_reduce sum of 5 float32");
  operation.set_name("broadcast");
  operation.root = 3;
  operation.dtype = DType::kInt64;
  EXPECT_EQ(operation.str(), "broadcast of 5 int64 from rank 3");
  operation.set_name("barrier");
  EXPECT_EQ(operation.str(), "barrier");
}

TEST(BoardOperation, DisagreesInEveryField) {
  BoardOperation one;
  one.sequence = 4;
  one.set_name("all_reduce");
  one.elements = 5;
  EXPECT_TRUE(one.agrees_with(one));
  for (int field = 0; field < 7; ++field) {
    BoardOperation other = one;
    if (field == 0) other.sequence = 5;
    if (field == 1) other.set_name("broadcast");
    if (field == 2) other.dtype = DType::kFloat64;
    if (field == 3) other.reduce = ReduceOp::kMin;
    if (field == 4) other.elements = 4;
    if (field == 5) other.root = 0;
    if (field == 6) other.layout = 1;
    EXPECT_FALSE(one.agrees_with(other)) << field;
  }
}

TEST(FindCulprits, NamesTheRankThatHasNotEntered) {
  Board board(4);
  for (const int rank : {0, 1, 2}) board.enter(rank, 17);
  board.enter(3, 16);
  board->update(3, BoardPhase::kOutside, 2, -1);
  for (int rank = 0; rank < 4; ++rank) board.beat(rank, rank == 3 ? 4.0 : 0.1);
  board->update(0, BoardPhase::kMoving, 0, 1);
  for (const int waiting : {0, 1, 2}) {
    const Culprits culprits = board.culprits(waiting, 17);
    EXPECT_THAT(culprits.ranks, ElementsAre(3));
    EXPECT_EQ(culprits.reason, "rank 3 has not entered all_reduce #17 (last sign of life 4.0 s ago, last entered #16)");
  }
}

TEST(FindCulprits, NamesAllRanksThatHaveNotEntered) {
  Board board(4);
  board.enter(0, 1);
  board.enter(1, 1);
  board.beat(2, 0.2);
  const Culprits culprits = board.culprits(1, 1);
  EXPECT_THAT(culprits.ranks, ElementsAre(2, 3));
  EXPECT_THAT(culprits.reason, AllOf(HasSubstr("rank 2 has not entered all_reduce #1"), HasSubstr("entered nothing"),
                                     HasSubstr("rank 3"), HasSubstr("no sign of life yet")));
}

TEST(FindCulprits, FollowsTheChainToTheSilentRank) {
  Board board(3);
  for (int rank = 0; rank < 3; ++rank) board.enter(rank, 5);
  board->update(0, BoardPhase::kMoving, 3, 1);
  board->update(1, BoardPhase::kMoving, 2, 2);
  board->update(2, BoardPhase::kMoving, 1, -1);
  board.beat(0, 0.0);
  board.beat(1, 0.0);
  board.beat(2, 9.0);
  const Culprits culprits = board.culprits(0, 5);
  EXPECT_THAT(culprits.ranks, ElementsAre(2));
  EXPECT_THAT(culprits.reason, AllOf(HasSubstr("rank 2 is silent in all_reduce #5 after 1 messages"),
                                     HasSubstr("last sign of life 9.0 s ago")));
}

TEST(FindCulprits, NamesTheEndOfTheChainWhenNobodyIsSilent) {
  Board board(4);
  for (int rank = 0; rank < 4; ++rank) {
    board.enter(rank, 5);
    board.beat(rank, 0.0);
  }
  board->update(0, BoardPhase::kMoving, 3, 1);
  board->update(1, BoardPhase::kMoving, 2, 2);
  board->update(2, BoardPhase::kMoving, 2, -1);
  board->update(3, BoardPhase::kMoving, 2, -1);
  EXPECT_THAT(board.culprits(0, 5).ranks, ElementsAre(2));
}

TEST(FindCulprits, BlamesASilentRankInACycleBeforeOthers) {
  Board board(3);
  for (int rank = 0; rank < 3; ++rank) {
    board.enter(rank, 5);
    board->update(rank, BoardPhase::kMoving, 3, (rank + 1) % 3);
    board.beat(rank, rank == 1 ? 3.0 : 0.0);
  }
  EXPECT_THAT(board.culprits(0, 5).ranks, ElementsAre(1));
}

TEST(FindCulprits, BlamesNobodyWhenAllWaitForEachOther) {
  Board board(3);
  for (int rank = 0; rank < 3; ++rank) {
    board.enter(rank, 5);
    board->update(rank, BoardPhase::kMoving, 3, (rank + 1) % 3);
    board.beat(rank, 0.0);
  }
  const Culprits culprits = board.culprits(0, 5);
  EXPECT_THAT(culprits.ranks, IsEmpty());
  EXPECT_THAT(culprits.reason, HasSubstr("all ranks have entered all_reduce #5"));
}

TEST(FindCulprits, LooksAtTheEarliestOperationThatIsStuck) {
  // Rank 0 is in 17 already; rank 1 cannot leave 16, since rank 2 never came.
  Board board(3);
  board.enter(0, 17);
  board.enter(1, 16);
  board->update(1, BoardPhase::kMoving, 1, 2);
  board.enter(2, 15);
  board->update(2, BoardPhase::kOutside, 4, -1);
  for (int rank = 0; rank < 3; ++rank) board.beat(rank, 0.1);
  const Culprits culprits = board.culprits(0, 17);
  EXPECT_THAT(culprits.ranks, ElementsAre(2));
  EXPECT_THAT(culprits.reason, AllOf(HasSubstr("all_reduce #16"), Not(HasSubstr("rank 1"))));
}

}  // namespace
}  // namespace convoy::observe
