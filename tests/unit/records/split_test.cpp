// The split and its record: made once, used again, and refused when it is another's or damaged.
#include "convoy/records/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr SplitOptions kOptions{101, 23, 0, 7};
constexpr const char* kPath = "run/split.json";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Split, DividesTheSetIntoTwoAscendingParts) {
  const Split split = make_split(kOptions);
  EXPECT_EQ(split.validation.size(), 23u);
  EXPECT_TRUE(std::is_sorted(split.validation.begin(), split.validation.end()));
  EXPECT_TRUE(std::is_sorted(split.training.begin(), split.training.end()));
  std::vector<std::int64_t> both = split.training;
  both.insert(both.end(), split.validation.begin(), split.validation.end());
  std::sort(both.begin(), both.end());
  std::vector<std::int64_t> all(101);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(both, all);
}

TEST(Split, FollowsTheSeed) {
  SplitOptions other = kOptions;
  EXPECT_EQ(make_split(other), make_split(kOptions));
  other.seed = 8;
  EXPECT_NE(make_split(other), make_split(kOptions));
}

// The choice is part of the results of every run: should this fail, the way of choosing has changed.
TEST(Split, ChoosesTheSameImagesAsEver) {
  EXPECT_THAT(make_split({12, 4, 0, 1}).validation, testing::ElementsAreArray(make_split({12, 4, 5, 1}).validation));
  EXPECT_THAT(make_split({12, 4, 0, 1}).validation, testing::ElementsAre(0, 3, 5, 8));
}

TEST(Split, LimitsTheTrainingPartAndNotTheValidationPart) {
  SplitOptions limited = kOptions;
  limited.limit = 10;
  const Split split = make_split(limited);
  EXPECT_EQ(split.validation, make_split(kOptions).validation);
  ASSERT_EQ(split.training.size(), 10u);
  const std::vector<std::int64_t> whole = make_split(kOptions).training;
  EXPECT_TRUE(std::includes(whole.begin(), whole.end(), split.training.begin(), split.training.end()));
  EXPECT_FALSE(std::equal(split.training.begin(), split.training.end(), whole.begin())) << "not simply the first ones";
}

TEST(Split, MayHaveNoValidationPart) {
  const Split split = make_split({5, 0, 0, 1});
  EXPECT_TRUE(split.validation.empty());
  EXPECT_THAT(split.training, testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(Split, RefusesPartsThatAreLargerThanTheSet) {
  EXPECT_EQ(error_of([] {
              make_split({10, 10, 0, 1});
            }),
            "InvalidArgument: data.validation = 10 leaves nothing to train on: the training set has 10 samples");
  EXPECT_EQ(error_of([] {
              make_split({10, 4, 7, 1});
            }),
            "InvalidArgument: data.limit = 7 is more than the 6 samples that are left beside 4 for validation");
}

void check_disjoint_and_whole(const Split& split, std::int64_t samples) {
  std::vector<std::int64_t> all;
  for (const auto* part : {&split.training, &split.validation, &split.test}) {
    RC_ASSERT(std::is_sorted(part->begin(), part->end()));
    all.insert(all.end(), part->begin(), part->end());
  }
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> expected(static_cast<std::size_t>(samples));
  std::iota(expected.begin(), expected.end(), 0);
  RC_ASSERT(all == expected);
}

RC_GTEST_PROP(Split, ByGroupPutsNoGroupIntoTwoParts, ()) {
  const auto group_of =
      *rc::gen::container<std::vector<std::int64_t>>(60, rc::gen::inRange<std::int64_t>(0, *rc::gen::inRange(3, 40)));
  SplitOptions options{60, *rc::gen::inRange<std::int64_t>(0, 25), 0, *rc::gen::arbitrary<std::uint64_t>()};
  options.test = *rc::gen::inRange<std::int64_t>(0, 25);
  options.kind = SplitKind::kGroup;
  Split split;
  try {
    split = make_split(options, {group_of, {}});
  } catch (const Error& error) {
    RC_ASSERT(error.message().find("gives an empty part") != std::string::npos);
    return;
  }
  check_disjoint_and_whole(split, 60);
  RC_ASSERT(static_cast<std::int64_t>(split.validation.size()) <= options.validation);
  RC_ASSERT(static_cast<std::int64_t>(split.test.size()) <= options.test);
  RC_ASSERT(!split.training.empty());
  std::map<std::int64_t, std::set<int>> parts_of;
  for (const std::int64_t i : split.training) parts_of[group_of[static_cast<std::size_t>(i)]].insert(0);
  for (const std::int64_t i : split.validation) parts_of[group_of[static_cast<std::size_t>(i)]].insert(1);
  for (const std::int64_t i : split.test) parts_of[group_of[static_cast<std::size_t>(i)]].insert(2);
  for (const auto& [group, parts] : parts_of) RC_ASSERT(parts.size() == 1u);
}

RC_GTEST_PROP(Split, ByTimeTrainsOnThePast, ()) {
  const auto times = *rc::gen::container<std::vector<int>>(50, rc::gen::inRange(0, *rc::gen::inRange(2, 80)));
  SplitKeys keys;
  keys.time_of.assign(times.begin(), times.end());
  SplitOptions options{50, 9, 0, 1};
  options.test = 11;
  options.kind = SplitKind::kTime;
  Split split;
  try {
    split = make_split(options, keys);
  } catch (const Error& error) {
    RC_ASSERT(error.message().find("gives an empty part") != std::string::npos);
    return;
  }
  check_disjoint_and_whole(split, 50);
  const auto range = [&](const std::vector<std::int64_t>& part) {
    std::vector<double> of;
    for (const std::int64_t i : part) of.push_back(keys.time_of[static_cast<std::size_t>(i)]);
    return std::pair(*std::min_element(of.begin(), of.end()), *std::max_element(of.begin(), of.end()));
  };
  RC_ASSERT(range(split.training).second < range(split.validation).first);
  RC_ASSERT(range(split.validation).second < range(split.test).first);
}

TEST(Split, SetsATestPartApartAndLeavesTheValidationPartAsItWas) {
  SplitOptions options = kOptions;
  options.kind = SplitKind::kRandom;
  options.test = 17;
  const Split split = make_split(options);
  EXPECT_EQ(split.test.size(), 17u);
  EXPECT_EQ(split.validation, make_split(kOptions).validation);
  EXPECT_EQ(split.training.size(), 61u);
}

TEST(SplitRecord, KeepsATestPartAndTheKind) {
  MemoryFiles files;
  SplitOptions options = kOptions;
  options.kind = SplitKind::kRandom;
  options.test = 17;
  const Split made = load_or_make_split(files, kPath, options, "d1");
  EXPECT_EQ(load_or_make_split(files, kPath, options, "d1"), made);
  SplitOptions other = options;
  other.kind = SplitKind::kOfficial;
  other.test = 16;
  EXPECT_THAT(error_of([&] { load_or_make_split(files, kPath, other, "d1"); }),
              HasSubstr("data.split random there, official here; data.test 17 there, 16 here"));
}

TEST(SplitRecord, IsRefusedWhenASampleIsInTwoParts) {
  SplitOptions options = kOptions;
  options.kind = SplitKind::kRandom;
  options.test = 1;
  Split split = make_split(options);
  split.test = {split.validation[0]};
  MemoryFiles files;
  files.make_directories("run");
  write_atomic(files, kPath, split_record(options, "d1", split));
  EXPECT_THAT(error_of([&] { load_or_make_split(files, kPath, options, "d1"); }), HasSubstr("each in one part"));
}

TEST(SplitRecord, IsWrittenOnceAndUsedAgain) {
  MemoryFiles files;
  const Split made = load_or_make_split(files, kPath, kOptions, "d1");
  EXPECT_EQ(made, make_split(kOptions));
  FailingFiles read_only(files, 1);
  EXPECT_EQ(load_or_make_split(read_only, kPath, kOptions, "d1"), made);
  EXPECT_EQ(read_only.operations(), 0u) << "a record that is there is not written again";
}

TEST(SplitRecord, IsBelievedBeforeTheSeed) {
  MemoryFiles files;
  Split other = make_split({101, 23, 0, 99});
  files.make_directories("run");
  write_atomic(files, kPath, split_record(kOptions, "d1", other));
  EXPECT_EQ(load_or_make_split(files, kPath, kOptions, "d1"), other);
}

TEST(SplitRecord, KeepsALimit) {
  MemoryFiles files;
  SplitOptions limited = kOptions;
  limited.limit = 10;
  load_or_make_split(files, kPath, limited, "d1");
  EXPECT_EQ(load_or_make_split(files, kPath, limited, "d1"), make_split(limited));
}

TEST(SplitRecord, NamesEveryDifference) {
  MemoryFiles files;
  load_or_make_split(files, kPath, kOptions, "d1");
  const SplitOptions other{102, 24, 3, 8};
  EXPECT_EQ(
      error_of([&] { load_or_make_split(files, kPath, other, "d2"); }),
      "InvalidArgument: the split record run/split.json was made for another run: samples 101 there, 102 here; "
      "data.validation 23 there, 24 here; data.limit 0 there, 3 here; data.split_seed 7 there, 8 here; digest of the "
      "training set d1 there, d2 here");
}

TEST(SplitRecord, IsRefusedWhenDamaged) {
  const std::string record = split_record(kOptions, "d1", make_split(kOptions));
  const std::string first = std::to_string(make_split(kOptions).validation[0]);
  const std::vector<std::string> damaged = {
      record.substr(0, record.size() / 2),
      "",
      "[]",
      replaced(record, "\"seed\":7,", ""),
      replaced(record, "\"samples\":101", "\"samples\":\"101\""),
      replaced(record, "\"samples\":101", "\"samples\":-1"),
      replaced(record, "\"samples\":101", "\"samples\":9000000000000000000"),
      replaced(record, "\"samples\":101", "\"samples\":102"),
      replaced(record, "\"limit\":0", "\"limit\":1000"),
      replaced(record, "\"validation\":23", "\"validation\":22"),
      replaced(record, "\"validation_samples\":[" + first, "\"validation_samples\":[1000"),
      replaced(record, "\"validation_samples\":[" + first, "\"validation_samples\":[" + first + "," + first),
      replaced(record, "\"index_digest\":\"", "\"index_digest\":\"0"),
  };
  for (const std::string& text : damaged) {
    MemoryFiles files;
    files.make_directories("run");
    write_atomic(files, kPath, text);
    EXPECT_THAT(error_of([&] { load_or_make_split(files, kPath, kOptions, "d1"); }),
                AllOf(StartsWith("Corrupt: the split record run/split.json is damaged"), HasSubstr("remove it")))
        << text;
  }
}

TEST(SplitRecord, OfALaterFormatIsNotRead) {
  MemoryFiles files;
  files.make_directories("run");
  const std::string record = split_record(kOptions, "d1", make_split(kOptions));
  write_atomic(files, kPath, replaced(record, "\"split\":2", "\"split\":3"));
  EXPECT_THAT(error_of([&] { load_or_make_split(files, kPath, kOptions, "d1"); }), StartsWith("NotSupported: "));
}

TEST(SplitRecord, IsWholeOrAbsentWhenTheDiskFails) {
  for (std::uint64_t fail_at = 1; fail_at < 10; ++fail_at) {
    MemoryFiles files;
    FailingFiles failing(files, fail_at);
    const std::string error = error_of([&] { load_or_make_split(failing, kPath, kOptions, "d1"); });
    if (failing.operations() < fail_at) {
      EXPECT_EQ(error, "no error");
      EXPECT_GT(fail_at, 1u);
      return;
    }
    EXPECT_THAT(error, StartsWith("Io: "));
    EXPECT_EQ(load_or_make_split(files, kPath, kOptions, "d1"), make_split(kOptions));
  }
  FAIL() << "the record should take fewer operations";
}

}  // namespace
}  // namespace convoy::records
