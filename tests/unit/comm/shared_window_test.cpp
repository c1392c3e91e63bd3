// Windows: what of an output is shown, who may store, and what happens to memory that a stopped rank may still write.
#include "convoy/comm/shared_memory/shared_window.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

namespace convoy::comm {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kSequence = 7;

// Two ranks of one process, each with an arena that the other one maps.
class Windows : public ::testing::Test {
 protected:
  Windows() {
    const SegmentShape shape{2, 16, 2, 4096};
    segment_ = FileMapping::create("convoy-test", shape.bytes());
    view_ = SegmentView(segment_.data(), shape);
    for (std::size_t rank = 0; rank < 2; ++rank) arenas_[rank] = std::make_unique<SharedArena>(64 * kPage);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      mappings_.push_back(FileMapping::open(::getpid(), arenas_[rank]->descriptor(), 64 * kPage, true));
    }
    for (int rank = 0; rank < 2; ++rank) {
      windows_.push_back(
          std::make_unique<SharedWindow>(view_, rank, *arenas_[static_cast<std::size_t>(rank)], mappings_));
    }
  }
  SharedWindow& window(std::size_t rank) { return *windows_[rank]; }
  // Memory of rank 1 that begins `skew` bytes beyond a page.
  std::byte* memory(std::size_t bytes, std::size_t skew = 0) {
    auto* const block = static_cast<std::byte*>(arenas_[1]->allocate(bytes + 2 * kPage));
    const std::size_t beyond = arenas_[1]->offset_of(block) % kPage;
    return block + (kPage - beyond) % kPage + skew;
  }

  FileMapping segment_;
  SegmentView view_;
  std::array<std::unique_ptr<SharedArena>, 2> arenas_;
  std::vector<FileMapping> mappings_;
  std::vector<std::unique_ptr<SharedWindow>> windows_;
};

TEST_F(Windows, ShowWholeElementsInWholePages) {
  // Elements of 8 bytes at an odd address: the first that begins behind the border of a page is the 511th.
  std::byte* const data = memory(3 * kPage, 12);
  const std::array<Extent, 2> output{Extent{memory(100), 10}, Extent{data, 3 * 512}};
  window(1).open(kSequence, output, 8);
  const std::vector<WindowPart> parts = window(0).parts(1, kSequence, 8);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].offset, 10 + 511);
  EXPECT_EQ(parts[0].elements, 2 * 512 - 1);
  parts[0].data[0] = std::byte{42};
  EXPECT_EQ(data[511 * 8], std::byte{42});
}

TEST_F(Windows, ShowNothingOfPrivateMemoryAndNothingToOtherOperations) {
  std::vector<std::byte> outside(3 * kPage);
  const Extent output{outside.data(), 3 * 512};
  window(1).open(kSequence, {&output, 1}, 8);
  EXPECT_TRUE(window(0).parts(1, kSequence, 8).empty());
  const Extent inside{memory(kPage), 512};
  window(1).open(kSequence, {&inside, 1}, 8);
  EXPECT_EQ(window(0).parts(1, kSequence, 8).size(), 1U);
  EXPECT_TRUE(window(0).parts(1, kSequence + 1, 8).empty());
  EXPECT_FALSE(window(0).begin_store(1, kSequence + 1));
}

TEST_F(Windows, ThatAreTakenBackTakeNoMoreStores) {
  const Extent output{memory(kPage), 512};
  window(1).open(kSequence, {&output, 1}, 8);
  EXPECT_TRUE(window(0).begin_store(1, kSequence));
  window(0).end_store(1);
  window(1).take_back(std::chrono::seconds(10), [](int) { return false; });
  EXPECT_FALSE(window(0).begin_store(1, kSequence));
  EXPECT_TRUE(arenas_[1]->contains(output.data, kPage));
}

TEST_F(Windows, AreTakenBackOnceStoresUnderWayAreDone) {
  const Extent output{memory(kPage), 512};
  window(1).open(kSequence, {&output, 1}, 8);
  ASSERT_TRUE(window(0).begin_store(1, kSequence));
  std::byte* const place = window(0).parts(1, kSequence, 8)[0].data;
  std::jthread writer([&] {
    system_clock().sleep_for(std::chrono::milliseconds(50));
    place[3] = std::byte{9};
    window(0).end_store(1);
  });
  window(1).take_back(std::chrono::seconds(20), [](int) { return false; });
  EXPECT_EQ(output.data[3], std::byte{9});
  EXPECT_TRUE(arenas_[1]->contains(output.data, kPage));
}

TEST_F(Windows, WhoseWriterHasEndedAreTakenBackAtOnce) {
  const Extent output{memory(kPage), 512};
  window(1).open(kSequence, {&output, 1}, 8);
  ASSERT_TRUE(window(0).begin_store(1, kSequence));
  window(1).take_back(std::chrono::hours(1), [](int peer) { return peer == 0; });
  EXPECT_TRUE(arenas_[1]->contains(output.data, kPage));
}

TEST_F(Windows, ThatAStoppedRankMayStillWriteAreTakenOutOfItsReach) {
  std::byte* const block = memory(3 * kPage);
  const Extent output{block, 3 * 512};
  window(1).open(kSequence, {&output, 1}, 8);
  ASSERT_TRUE(window(0).begin_store(1, kSequence));
  std::byte* const place = window(0).parts(1, kSequence, 8)[0].data;
  window(1).take_back(std::chrono::milliseconds(20), [](int) { return false; });
  // The rank wakes, and goes on with its store.
  block[17] = std::byte{1};
  place[17] = std::byte{99};
  EXPECT_EQ(block[17], std::byte{1});
  // What peers cannot see is not offered to them again.
  EXPECT_FALSE(arenas_[1]->contains(block, kPage));
  EXPECT_TRUE(arenas_[1]->contains(block + 3 * kPage, 64));
}

}  // namespace
}  // namespace convoy::comm
