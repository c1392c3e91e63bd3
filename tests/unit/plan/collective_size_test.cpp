// Sizes of collectives.
#include "convoy/plan/collective_size.h"

#include <gtest/gtest.h>

namespace convoy::plan {
namespace {

TEST(CollectiveSize, IsNeverEmptyAndDividesEvenlyWhereTheOperationDivides) {
  EXPECT_EQ(collective_size("all_reduce", 3, 1, DType::kFloat32).elements, 1);
  EXPECT_EQ(collective_size("all_reduce", 3, 4099, DType::kFloat64).elements, 512);
  EXPECT_EQ(collective_size("all_gather", 3, 4, DType::kFloat32).elements, 3);
  EXPECT_EQ(collective_size("all_to_all", 4, 1000, DType::kFloat32).bytes(), 1008);
  EXPECT_EQ(collective_size("barrier", 4, 1000, DType::kFloat32).elements, 0);
}

TEST(CollectiveSize, CutsChunksOfAtLeastOneElement) {
  const CollectiveSize size = collective_size("all_reduce", 2, 4096, DType::kFloat64);
  EXPECT_EQ(size.shape({0, 1}, 1).options.chunk_elements, 1);
  EXPECT_EQ(size.shape({0, 1}, 1024).options.chunk_elements, 128);
  EXPECT_EQ(size.shape({0, 1}, 0).options.chunk_elements, 0);
  EXPECT_EQ(size.shape({0, 1}, 0).hosts.size(), 2u);
}

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor("reduce_scatter", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("all_gather", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("all_to_all", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("broadcast", 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor("reduce", 4), 1);
}

}  // namespace
}  // namespace convoy::plan
