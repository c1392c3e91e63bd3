// Errors say who has to act, where it happened, and which status a command ends with.
#include "convoy/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace convoy {
namespace {

const std::vector<ErrorCode> kAllCodes = {
    ErrorCode::kInvalidArgument, ErrorCode::kNotSupported, ErrorCode::kDesync,  ErrorCode::kTimeout,
    ErrorCode::kPeerLost,        ErrorCode::kAborted,      ErrorCode::kIo,      ErrorCode::kCorrupt,
    ErrorCode::kOutOfMemory,     ErrorCode::kFailed,       ErrorCode::kInternal};

TEST(Error, WithoutContextIsItsMessage) {
  const Error error(ErrorCode::kIo, "cannot open x");
  EXPECT_STREQ(error.what(), "cannot open x");
  EXPECT_EQ(error.message(), "cannot open x");
  EXPECT_EQ(error.code(), ErrorCode::kIo);
}

TEST(Error, PutsWhatItKnowsBehindTheMessage) {
  ErrorContext context;
  context.global_rank = 0;
  context.peer = 3;
  context.group = "dp";
  context.operation = "all_reduce";
  context.sequence = 17;
  const Error error(ErrorCode::kTimeout, "no answer within 2.0 s", context);
  EXPECT_STREQ(error.what(), "no answer within 2.0 s [rank 0, peer 3, group dp, all_reduce, #17]");
  EXPECT_EQ(error.message(), "no answer within 2.0 s");
  EXPECT_EQ(error.context().peer, 3);
}

TEST(Error, LeavesOutWhatItDoesNotKnow) {
  ErrorContext context;
  context.peer = 2;
  EXPECT_STREQ(Error(ErrorCode::kPeerLost, "gone", context).what(), "gone [peer 2]");
}

TEST(Error, IsCaughtAsAStandardException) {
  try {
    throw Error(ErrorCode::kAborted, "rank 1 failed");
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "rank 1 failed");
  }
}

TEST(ErrorCode, HasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const ErrorCode code : kAllCodes) names.insert(to_string(code));
  EXPECT_EQ(names.size(), kAllCodes.size());
  EXPECT_EQ(names.count("Unknown"), 0u);
  EXPECT_EQ(to_string(ErrorCode::kPeerLost), "PeerLost");
}

TEST(ErrorCode, DecidesTheExitStatus) {
  std::vector<int> statuses;
  for (const ErrorCode code : kAllCodes) statuses.push_back(exit_status(code));
  EXPECT_THAT(statuses, testing::ElementsAre(2, 2, 1, 3, 3, 3, 4, 4, 1, 1, 1));
}

TEST(Check, DoesNothingWhenTheConditionHolds) {
  int evaluated = 0;
  CONVOY_CHECK(++evaluated == 1, "must hold");
  EXPECT_EQ(evaluated, 1);
}

TEST(Check, NamesConditionAndPlaceInReleaseBuildsToo) {
  const int ranks = 3;
  try {
    CONVOY_CHECK(ranks == 4, "ranks do not agree");
    FAIL() << "the check did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_THAT(error.what(), testing::HasSubstr("ranks do not agree"));
    EXPECT_THAT(error.what(), testing::HasSubstr("'ranks == 4'"));
    EXPECT_THAT(error.what(), testing::ContainsRegex("error_test.cpp:[0-9]+"));
  }
}

}  // namespace
}  // namespace convoy
