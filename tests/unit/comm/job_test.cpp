// The environment of a rank, as launchers write it.
#include "convoy/comm/rendezvous/job.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

// Sets the variables of a job for one test and clears them afterwards.
class JobVariables : public ::testing::Test {
 protected:
  JobVariables() { clear(); }
  ~JobVariables() override { clear(); }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }

 private:
  static void clear() {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "CONVOY_STORE", "CONVOY_JOB_TOKEN"}) ::unsetenv(name);
  }
};

TEST_F(JobVariables, AbsentMeansAJobOfOneRank) {
  const JobEnvironment job = read_job_environment();
  EXPECT_EQ(job.rank, 0);
  EXPECT_EQ(job.world_size, 1);
  EXPECT_EQ(job.store_address, "");
}

TEST_F(JobVariables, SayWhatTheyMean) {
  set("RANK", "5");
  set("WORLD_SIZE", "8");
  set("CONVOY_STORE", "unix:@somewhere");
  set("CONVOY_JOB_TOKEN", "0123");
  JobEnvironment job = read_job_environment();
  EXPECT_EQ(job.rank, 5);
  EXPECT_EQ(job.world_size, 8);
  EXPECT_EQ(job.local_rank, 5);
  EXPECT_EQ(job.store_address, "unix:@somewhere");
  EXPECT_EQ(job.token, "0123");
  set("LOCAL_RANK", "1");
  EXPECT_EQ(read_job_environment().local_rank, 1);
}

TEST_F(JobVariables, ThatAreWrongAreNamed) {
  const auto message = [] { return testing::error_of([] { read_job_environment(); }).message(); };
  set("RANK", "0");
  EXPECT_NE(message().find("WORLD_SIZE is not"), std::string::npos) << message();
  set("WORLD_SIZE", "two");
  EXPECT_NE(message().find("WORLD_SIZE is 'two'"), std::string::npos) << message();
  set("WORLD_SIZE", "2");
  EXPECT_NE(message().find("CONVOY_STORE"), std::string::npos) << message();
  set("CONVOY_STORE", "unix:@somewhere");
  for (const char* rank : {"-1", "", "1x", "99999999999"}) {
    set("RANK", rank);
    EXPECT_NE(message().find(std::string("RANK is '") + rank), std::string::npos) << message();
  }
  set("RANK", "2");
  EXPECT_NE(message().find("RANK is 2"), std::string::npos) << message();
}

}  // namespace
}  // namespace convoy::comm
