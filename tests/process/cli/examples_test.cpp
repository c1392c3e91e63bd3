// The examples, run as their first lines say.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/command.h"

namespace convoy {
namespace {

std::string launch(int ranks) {
  const std::string build = CONVOY_BINARY_DIR;
  const auto result = testing::run_command(
      {build + "/bin/convoy", "launch", "-n", std::to_string(ranks), "--", build + "/examples/own_module"});
  EXPECT_EQ(result.status, 0) << result.errors;
  const auto at = result.output.find("loss ");
  EXPECT_NE(at, std::string::npos) << result.output;
  return at == std::string::npos ? "" : result.output.substr(at);
}

TEST(Examples, OwnModuleLearnsAndEndsWithTheSameBitsOnTwoAndThreeRanks) {
  const std::string two = launch(2);
  const auto at = two.find("accuracy ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(std::stod(two.substr(at + 9)), 0.9) << two;
  EXPECT_EQ(launch(3), two);
}

}  // namespace
}  // namespace convoy
