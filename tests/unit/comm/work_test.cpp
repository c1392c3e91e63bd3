// Work: it cannot be lost, and it hands over what its operation failed with.
#include "convoy/comm/work.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "convoy/base/error.h"
#include "convoy/base/log.h"
#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

TEST(Work, WaitsUntilTheOperationIsComplete) {
  const auto state = std::make_shared<WorkState>("a test");
  Work work(state);
  EXPECT_FALSE(work.done());
  std::jthread engine([state] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    state->complete(nullptr);
  });
  work.wait();
  EXPECT_TRUE(work.done());
  work.wait();
}

TEST(Work, ThrowsWhatTheOperationFailedWith) {
  const auto state = std::make_shared<WorkState>("a test");
  state->complete(std::make_exception_ptr(Error(ErrorCode::kPeerLost, "rank 1 was lost")));
  state->complete(nullptr);
  Work work(state);
  EXPECT_NE(work.completed_at(), TimePoint());
  EXPECT_EQ(testing::error_of([&] { work.wait(); }).code(), ErrorCode::kPeerLost);
}

TEST(Work, ThatIsDroppedIsWaitedForAndReported) {
  const std::string path = ::testing::TempDir() + "/convoy_work_test.log";
  std::remove(path.c_str());
  log_to_file(path, "test");
  const auto dropped = std::make_shared<WorkState>("all_reduce #7");
  const auto replaced = std::make_shared<WorkState>("all_reduce #8");
  replaced->complete(std::make_exception_ptr(Error(ErrorCode::kTimeout, "late")));
  std::jthread engine([dropped] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    dropped->complete(nullptr);
  });
  {
    Work work(replaced);
    work = Work(dropped);
  }
  EXPECT_TRUE(dropped->done());
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("defect: the work on all_reduce #7 was dropped"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("defect: the work on all_reduce #8 was dropped"), std::string::npos) << text.str();
  std::remove(path.c_str());
}

}  // namespace
}  // namespace convoy::comm
