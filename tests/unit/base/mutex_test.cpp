// The annotated mutex excludes, and a wait ends by a notification or by its limit, with the lock held again.
#include "convoy/base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace convoy {
namespace {

using namespace std::chrono_literals;

struct Counter {
  Mutex mutex;
  CondVar changed;
  int value CONVOY_GUARDED_BY(mutex) = 0;
};

// Waits until the counter has the value; returns false after five seconds.
bool wait_for_value(Counter& counter, int value) {
  const auto end = std::chrono::steady_clock::now() + 5s;
  const MutexLock lock(counter.mutex);
  while (counter.value != value) {
    if (std::chrono::steady_clock::now() >= end) return false;
    counter.changed.wait_for(counter.mutex, 100ms);
  }
  return true;
}

TEST(Mutex, LetsOneThreadInAtATime) {
  constexpr int kThreads = 4, kRounds = 5000;
  Counter counter;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < kRounds; ++round) {
          const MutexLock lock(counter.mutex);
          ++counter.value;
        }
      });
    }
  }
  const MutexLock lock(counter.mutex);
  EXPECT_EQ(counter.value, kThreads * kRounds);
}

TEST(CondVar, GivesUpAtTheLimitAndHoldsTheLockAgain) {
  Counter counter;
  std::atomic<bool> entered{false};
  std::jthread other;
  {
    const MutexLock lock(counter.mutex);
    const auto start = std::chrono::steady_clock::now();
    // A wake without cause is allowed, so the limit may take more than one wait.
    while (counter.changed.wait_for(counter.mutex, 20ms)) {
    }
    EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
    other = std::jthread([&] {
      const MutexLock inside(counter.mutex);
      entered = true;
    });
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(entered);
  }
  other.join();
  EXPECT_TRUE(entered);
}

TEST(CondVar, WakesAllWaitingThreads) {
  Counter counter;
  std::atomic<int> woken{0};
  {
    std::vector<std::jthread> waiting;
    for (int i = 0; i < 3; ++i) {
      waiting.emplace_back([&] { woken += wait_for_value(counter, 1) ? 1 : 0; });
    }
    const MutexLock lock(counter.mutex);
    counter.value = 1;
    counter.changed.notify_all();
  }
  EXPECT_EQ(woken, 3);
}

TEST(CondVar, LetsTheOtherThreadInWhileItWaits) {
  Counter counter;
  const std::jthread other([&] {
    for (int turn = 1; turn < 200; turn += 2) {
      if (!wait_for_value(counter, turn)) return;
      const MutexLock lock(counter.mutex);
      ++counter.value;
      counter.changed.notify_one();
    }
  });
  for (int turn = 0; turn < 200; turn += 2) {
    ASSERT_TRUE(wait_for_value(counter, turn));
    const MutexLock lock(counter.mutex);
    ++counter.value;
    counter.changed.notify_one();
  }
  EXPECT_TRUE(wait_for_value(counter, 200));
}

}  // namespace
}  // namespace convoy
