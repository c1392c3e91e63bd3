// What people see of a schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convoy/spec/collectives/registry.h"
#include "convoy/spec/schedule/describe.h"

namespace convoy::spec {
namespace {

Schedule schedule(std::string_view collective, std::string_view algorithm, int ranks, std::int64_t elements,
                  std::int64_t chunk = 0, HostOfRank hosts = {}) {
  CollectiveShape shape;
  shape.ranks = ranks;
  shape.elements = elements;
  shape.options.chunk_elements = chunk;
  shape.hosts = std::move(hosts);
  return build(collective, algorithm, shape);
}

TEST(DescribeSchedule, PictureOfARing) {
  EXPECT_EQ(describe_picture(schedule("all_reduce", "ring", 3, 6)),
            "ring all_reduce of 6 elements on 3 ranks\n"
            "round  rank 0    rank 1    rank 2    elements a message\n"
            "    0  >1 <2 +   >2 <0 +   >0 <1 +   2\n"
            "    1  >1 <2 +!  >2 <0 +!  >0 <1 +!  2\n"
            "  2-3  >1 <2     >2 <0     >0 <1     2\n");
}

TEST(DescribeSchedule, PictureOfAnExchange) {
  EXPECT_EQ(describe_picture(schedule("all_reduce", "ordered_exchange", 4, 4 * 4096)),
            "ordered_exchange all_reduce of 16384 elements on 4 ranks\n"
            "round  rank 0        rank 1            rank 2            rank 3        elements a message\n"
            "    0  >1-3 <1-3 +!  >0,2,3 <0,2,3 +!  >0,1,3 <0,1,3 +!  >0-2 <0-2 +!  4096\n"
            "    1  >1-3 <1-3     >0,2,3 <0,2,3     >0,1,3 <0,1,3     >0-2 <0-2     4096\n");
}

TEST(DescribeSchedule, PictureOfATreeWithTwoExtras) {
  EXPECT_EQ(describe_picture(schedule("all_reduce", "halving_doubling", 6, 16)),
            "halving_doubling all_reduce of 16 elements on 6 ranks\n"
            "round  rank 0    rank 1  rank 2    rank 3  rank 4    rank 5    elements a message\n"
            "    0  <1 +      >0      <3 +      >2      .         .         16\n"
            "    1  >4 <4 +   .       >5 <5 +   .       >0 <0 +   >2 <2 +   8\n"
            "    2  >2 <2 +!  .       >0 <0 +!  .       >5 <5 +!  >4 <4 +!  4\n"
            "    3  >2 <2     .       >0 <0     .       >5 <5     >4 <4     4\n"
            "    4  >4 <4     .       >5 <5     .       >0 <0     >2 <2     8\n"
            "    5  >1        <0      >3        <2      .         .         16\n");
}

TEST(DescribeSchedule, PictureOfAPipelineJoinsRoundsThatAreAlike) {
  EXPECT_EQ(describe_picture(schedule("broadcast", "chain", 3, 100, 10)),
            "chain broadcast of 100 elements on 3 ranks, root 0\n"
            "round  rank 0  rank 1  rank 2  elements a message\n"
            "    0  >1      <0      .       10\n"
            "  1-8  >1      >2 <0   <1      10\n"
            "    9  >1 =    >2 <0   <1      10\n"
            "   10  .       >2      <1      10\n");
}

TEST(DescribeSchedule, PictureOfABarrierOfOneRankHasNoRounds) {
  EXPECT_EQ(describe_picture(schedule("barrier", "dissemination", 1, 0)),
            "dissemination barrier of 0 elements on 1 ranks\n"
            "round  rank 0  elements a message\n");
}

TEST(DescribeSchedule, PictureIsCutAtTheWidthOfTheTerminal) {
  const std::string text = describe_picture(schedule("all_gather", "bruck", 40, 80), 60);
  std::size_t begin = text.find('\n') + 1;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 60u);
    EXPECT_THAT(text.substr(begin, end - begin), testing::HasSubstr("..."));
    begin = end + 1;
  }
}

TEST(DescribeSchedule, TableOfAHierarchy) {
  EXPECT_EQ(describe_table(schedule("all_reduce", "hierarchical:direct+ring", 4, 8, 0, {0, 0, 1, 1})),
            "hierarchical:direct+ring all_reduce of 8 elements on 4 ranks\n"
            "rank  rounds  messages  sent   to  from  reduced  copied  work\n"
            "--------------------------------------------------------------\n"
            "0          4         4    12  1,2   1,2        6       0     0\n"
            "1          4         4    12  0,3   0,3        6       0     0\n"
            "2          4         4    12  0,3   0,3        6       0     0\n"
            "3          4         4    12  1,2   1,2        6       0     0\n"
            "all                 16    48                  24       0\n");
}

TEST(DescribeSchedule, TableShowsWorkMemory) {
  EXPECT_EQ(describe_table(schedule("gather", "binomial", 4, 8)),
            "binomial gather of 8 elements on 4 ranks, root 0\n"
            "rank  rounds  messages  sent  to  from  reduced  copied  work\n"
            "-------------------------------------------------------------\n"
            "0          2         0     0       1,2        0       2     0\n"
            "1          1         1     2   0              0       0     0\n"
            "2          2         1     4   0     3        0       2     4\n"
            "3          1         1     2   2              0       0     0\n"
            "all                  3     8                  0       4\n");
}

}  // namespace
}  // namespace convoy::spec
