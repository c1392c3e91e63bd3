// The log writes whole lines with their level and who wrote them, and nothing below the level that was asked for.
#include "convoy/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy {
namespace {

class LogFile : public testing::Test {
 protected:
  LogFile() {
    std::string folder = std::filesystem::temp_directory_path() / "convoy-log-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) throw Error(ErrorCode::kIo, "no folder for the test");
    folder_ = folder;
    path_ = folder_ + "/rank-1.log";
    log_to_file(path_, "rank 1");
  }
  ~LogFile() override {
    set_log_level(LogLevel::kInfo);
    std::filesystem::remove_all(folder_);
  }
  std::string text() const { return local_files().read(path_); }

  std::string folder_;
  std::string path_;
};

TEST_F(LogFile, HasTimeLevelAndWhoInEachLine) {
  log_warning("step {} took {} ms", 7, 12.5);
  EXPECT_THAT(text(), testing::ContainsRegex("^[0-9-]+ [0-9:.]+ warning rank 1: step 7 took 12.5 ms\n$"));
}

TEST_F(LogFile, LeavesOutWhatIsBelowTheLevel) {
  log_debug("hidden");
  set_log_level(LogLevel::kError);
  log_info("hidden");
  log_warning("hidden");
  log_error("shown");
  set_log_level(LogLevel::kDebug);
  log_debug("seen");
  log_line(LogLevel::kInfo, "flushed");
  EXPECT_THAT(text(), testing::Not(testing::HasSubstr("hidden")));
  EXPECT_THAT(text(), testing::HasSubstr("shown"));
  EXPECT_THAT(text(), testing::HasSubstr("seen"));
}

TEST_F(LogFile, TakesBracesInALineAsTheyAre) {
  log_line(LogLevel::kInfo, "{\"ranks\": {}}");
  EXPECT_THAT(text(), testing::HasSubstr("rank 1: {\"ranks\": {}}\n"));
}

TEST_F(LogFile, IsNamedWhenItCannotBeOpened) {
  const std::string below_a_file = path_ + "/x.log";
  try {
    log_to_file(below_a_file, "rank 1");
    FAIL() << "opened " << below_a_file;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), testing::HasSubstr(below_a_file));
  }
}

}  // namespace
}  // namespace convoy
