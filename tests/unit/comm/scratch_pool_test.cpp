// Scratch memory is counted as what communication uses, for as long as anybody has it.
#include "convoy/comm/engine/scratch_pool.h"

#include <gtest/gtest.h>

#include "convoy/observe/memory_meter.h"

namespace convoy::comm {
namespace {

std::int64_t counted() {
  return observe::process_memory().current()[static_cast<std::size_t>(observe::MemoryCategory::kCommunicationBuffers)];
}

TEST(ScratchPool, CountsBlocksThatAreOutAndThoseThatItKeeps) {
  const std::int64_t before = counted();
  {
    ScratchPool pool;
    ScratchPool::Block block = pool.take(1000);
    EXPECT_EQ(counted() - before, 1000);
    pool.give(std::move(block));
    EXPECT_EQ(counted() - before, 1000) << "kept for later";
    const auto shared = pool.share(900);
    EXPECT_EQ(counted() - before, 1000) << "the same block again";
    const ScratchPool::Block larger = pool.take(3000);
    EXPECT_EQ(counted() - before, 4000);
  }
  EXPECT_EQ(counted(), before);
}

}  // namespace
}  // namespace convoy::comm
