// Every row is a line of its own, also after a crash, a full disk or a number that JSON has not.
#include "convoy/observe/metrics_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"

namespace convoy::observe {
namespace {

using Json = nlohmann::ordered_json;

TEST(MetricsLog, WritesRowsInBatchesAndTheRestAtTheEnd) {
  MemoryFiles files;
  {
    MetricsLog log(files, "metrics.jsonl", 2);
    log.add({{"step", 1}, {"loss", 0.5}});
    EXPECT_FALSE(files.exists("metrics.jsonl"));
    log.add({{"step", 2}, {"loss", 0.25}});
    EXPECT_EQ(files.read("metrics.jsonl"), "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":0.25}\n");
    log.add({{"step", 3}});
  }
  EXPECT_THAT(files.read("metrics.jsonl"), testing::EndsWith("\n{\"step\":3}\n"));
}

TEST(MetricsLog, GoesOnAfterEarlierRows) {
  MemoryFiles files;
  files.append("m", "{\"step\":1}\n");
  MetricsLog(files, "m").add({{"step", 2}});
  EXPECT_EQ(files.read("m"), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(MetricsLog, LeavesATornLineALineOfItsOwn) {
  MemoryFiles files;
  files.append("m", "{\"step\":1}\n{\"st");
  MetricsLog(files, "m").add({{"step", 2}});
  EXPECT_EQ(files.read("m"), "{\"step\":1}\n{\"st\n{\"step\":2}\n");
}

TEST(MetricsLog, KeepsRowsThatCouldNotBeWritten) {
  MemoryFiles memory;
  FailingFiles files(memory, 1);
  MetricsLog log(files, "m", 1);
  EXPECT_THROW(log.add({{"step", 1}}), Error);
  log.add({{"step", 2}});
  EXPECT_EQ(memory.read("m"), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(MetricsLog, DoesNotThrowWhenItEndsOnAFullDisk) {
  MemoryFiles memory;
  FailingFiles files(memory, 1);
  {
    MetricsLog log(files, "m", 10);
    log.add({{"step", 1}});
  }
  EXPECT_FALSE(memory.exists("m"));
}

TEST(MetricsLog, WritesWhatIsNotFiniteAsNull) {
  MemoryFiles files;
  MetricsLog(files, "m").add({{"loss", std::numeric_limits<double>::quiet_NaN()}, {"name", "caf\xe9"}});
  const Json row = Json::parse(files.read("m"));
  EXPECT_TRUE(row["loss"].is_null());
}

}  // namespace
}  // namespace convoy::observe
