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
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "CONVOY_STORE", "CONVOY_JOB_TOKEN", "MASTER_ADDR", "MASTER_PORT",
          "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_PROCID",
          "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS"}) {
      ::unsetenv(name);
    }
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

TEST_F(JobVariables, OfOtherLaunchersMakeRankZeroServeTheStore) {
  set("RANK", "0");
  set("WORLD_SIZE", "2");
  set("MASTER_ADDR", "::1");
  set("MASTER_PORT", "29500");
  const JobEnvironment first = read_job_environment();
  EXPECT_TRUE(first.serves_store);
  EXPECT_EQ(first.store_address, "tcp://[::1]:29500");
  set("RANK", "1");
  const JobEnvironment second = read_job_environment();
  EXPECT_FALSE(second.serves_store);
  EXPECT_EQ(second.store_address, first.store_address);
  EXPECT_EQ(second.token, first.token) << "both make the same token";
  EXPECT_FALSE(first.token.empty());
  set("MASTER_PORT", "29501");
  EXPECT_NE(read_job_environment().token, first.token) << "another job's token is another one";
  set("CONVOY_JOB_TOKEN", "chosen");
  EXPECT_EQ(read_job_environment().token, "chosen");
  set("CONVOY_STORE", "unix:@launcher");
  EXPECT_EQ(read_job_environment().store_address, "unix:@launcher") << "a launcher of Convoy's comes first";
}

TEST_F(JobVariables, AskForASecretWhereOtherHostsCanConnect) {
  const auto message = [] { return testing::error_of([] { read_job_environment(); }).message(); };
  set("RANK", "1");
  set("WORLD_SIZE", "2");
  set("MASTER_ADDR", "10.0.0.1");
  EXPECT_NE(message().find("MASTER_PORT"), std::string::npos) << message();
  set("MASTER_PORT", "29500");
  EXPECT_NE(message().find("CONVOY_JOB_TOKEN is not set"), std::string::npos) << message();
  set("MASTER_PORT", "0");
  EXPECT_NE(message().find("MASTER_PORT is 0"), std::string::npos) << message();
  set("MASTER_PORT", "29500x");
  EXPECT_NE(message().find("'29500x'"), std::string::npos) << message();
}

TEST_F(JobVariables, OfOpenMpiAndSlurmAreUnderstood) {
  set("MASTER_ADDR", "localhost");
  set("MASTER_PORT", "29500");
  set("SLURM_PROCID", "3");
  set("SLURM_NTASKS", "4");
  EXPECT_EQ(read_job_environment().world_size, 1) << "a batch script is no rank";
  set("SLURM_STEP_NUM_TASKS", "4");
  set("SLURM_LOCALID", "1");
  EXPECT_EQ(read_job_environment().rank, 3);
  EXPECT_EQ(read_job_environment().local_rank, 1);
  set("OMPI_COMM_WORLD_RANK", "5");
  set("OMPI_COMM_WORLD_SIZE", "6");
  set("OMPI_COMM_WORLD_LOCAL_RANK", "2");
  const JobEnvironment job = read_job_environment();
  EXPECT_EQ(job.rank, 5);
  EXPECT_EQ(job.world_size, 6);
  EXPECT_EQ(job.local_rank, 2);
}

}  // namespace
}  // namespace convoy::comm
