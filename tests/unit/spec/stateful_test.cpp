// Shapes count their elements, and placements are named as manifests name them.
#include "convoy/spec/stateful.h"

#include <gtest/gtest.h>

#include <limits>

#include "convoy/base/error.h"

namespace convoy::spec {
namespace {

std::int64_t count_of(std::vector<std::int64_t> shape) { return element_count(shape); }

TEST(ElementCount, IsTheProductAndOneForAScalar) {
  EXPECT_EQ(count_of({}), 1);
  EXPECT_EQ(count_of({3, 5, 7}), 105);
  EXPECT_EQ(count_of({2, 0, 3}), 0);
  EXPECT_EQ(count_of({std::numeric_limits<std::int64_t>::max()}), std::numeric_limits<std::int64_t>::max());
}

TEST(ElementCount, RefusesNegativeSizesAndOverflow) {
  EXPECT_THROW(count_of({3, -1}), Error);
  EXPECT_THROW(count_of({std::int64_t{1} << 32, std::int64_t{1} << 31}), Error);
  EXPECT_EQ(count_of({std::int64_t{1} << 31, std::int64_t{1} << 31}), std::int64_t{1} << 62);
}

TEST(Placement, HasANameForEachKind) {
  EXPECT_EQ(to_string(Placement::kReplicated), "replicated");
  EXPECT_EQ(to_string(Placement::kShard), "shard");
  EXPECT_EQ(to_string(Placement::kOwned), "owned");
}

// The smallest Stateful: what is written through its entries is what it holds.
class Pair final : public Stateful {
 public:
  std::vector<StateEntry> state() override {
    return {{"pair/a", {2}, DType::kFloat64, Placement::kReplicated, 0, 2, true, reinterpret_cast<std::byte*>(a)}};
  }
  void loaded() override { sum = a[0] + a[1]; }
  double a[2] = {1.0, 2.0};
  double sum = 3.0;
};

TEST(Stateful, IsFilledThroughTheMemoryThatItLists) {
  Pair pair;
  const auto entries = pair.state();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(element_count(entries[0].global_shape), entries[0].count);
  reinterpret_cast<double*>(entries[0].data)[1] = 5.0;
  pair.loaded();
  EXPECT_EQ(pair.sum, 6.0);
}

}  // namespace
}  // namespace convoy::spec
