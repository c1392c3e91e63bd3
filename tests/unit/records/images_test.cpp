// Finding the official files, and the real data set that set-up installs.
#include "convoy/records/images/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "convoy/base/clock.h"
#include "convoy/records/images/augment.h"
#include "convoy/records/images/idx.h"
#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void write_part(Files& files, const std::string& folder, const std::string& part, const std::string& ending,
                const ImageSet& set) {
  files.make_directories(folder);
  write_idx(files, set, folder + "/" + part + "-images-idx3-ubyte" + ending,
            folder + "/" + part + "-labels-idx1-ubyte" + ending,
            ending.empty() ? IdxPacking::kPlain : IdxPacking::kGzip);
}

TEST(ImageFolder, HasATrainingSetAndATestSetPlainOrPacked) {
  MemoryFiles files;
  write_part(files, "data", "train", "", make_images(11, 3, 4));
  write_part(files, "data", "t10k", ".gz", make_images(5, 3, 4));
  EXPECT_EQ(load_train(files, "data/").count, 11);
  EXPECT_EQ(load_test(files, "data").count, 5);
}

TEST(ImageFolder, IsReadForTrainingThoughTheTestSetIsMissing) {
  MemoryFiles files;
  write_part(files, "data", "train", ".gz", make_images(11, 3, 4));
  EXPECT_EQ(load_train(files, "data").count, 11);
  EXPECT_EQ(
      error_of([&] { load_test(files, "data"); }),
      "InvalidArgument: data/t10k-images-idx3-ubyte is missing, as is t10k-images-idx3-ubyte.gz; data.path names the "
      "folder");
}

TEST(ImageFolder, NamesAFolderThatIsNotThere) {
  MemoryFiles files;
  EXPECT_THAT(error_of([&] { load_train(files, "nowhere"); }),
              AllOf(HasSubstr("InvalidArgument: nowhere/train-images-idx3-ubyte is missing"),
                    HasSubstr("there is no such folder")));
}

TEST(ImageFolder, NamesThePackageOfTheDefaultFolder) {
  MemoryFiles files;
  EXPECT_THAT(error_of([&] { load_train(files, ""); }), HasSubstr("install the package dataset-fashion-mnist"));
}

TEST(ImageDigest, IsEqualPlainAndPackedAndTellsEveryChange) {
  const ImageSet set = make_images(4, 2, 3);
  MemoryFiles files;
  write_idx(files, set, "images", "labels", IdxPacking::kGzip);
  EXPECT_EQ(digest(read_idx(files, "images", "labels")), digest(set));
  ImageSet other = set;
  ++other.labels[3];
  EXPECT_NE(digest(other), digest(set));
  other = set;
  ++other.pixels[5];
  EXPECT_NE(digest(other), digest(set));
  other = set;
  std::swap(other.rows, other.columns);
  EXPECT_NE(digest(other), digest(set));
}

TEST(FashionMnist, IsReadFromTheInstalledPackage) {
  const TimePoint began = system_clock().now();
  const ImageSet train = load_train(local_files(), "");
  RecordProperty("load_train_ms", std::to_string(to_ms(system_clock().now() - began)));
  EXPECT_EQ(train.count, 60000);
  EXPECT_EQ(train.rows, 28);
  EXPECT_EQ(train.columns, 28);
  EXPECT_EQ(train.classes(), 10);
  std::array<int, 10> of_class = {};
  for (const std::uint8_t label : train.labels) ++of_class.at(label);
  EXPECT_THAT(of_class, testing::Each(6000));
  EXPECT_EQ(train.labels[0], 9);  // the first image is an ankle boot
  std::vector<std::int64_t> all(60000);
  std::iota(all.begin(), all.end(), 0);
  const Normalisation normalisation = measure_normalisation(train, all);
  EXPECT_NEAR(normalisation.mean() / 255, 0.2860, 5e-5);  // the values that are usually given for this set
  EXPECT_NEAR(normalisation.deviation() / 255, 0.3530, 5e-5);
  const ImageSet test = load_test(local_files(), "");
  EXPECT_EQ(test.count, 10000);
  EXPECT_EQ(test.classes(), 10);
}

}  // namespace
}  // namespace convoy::records
