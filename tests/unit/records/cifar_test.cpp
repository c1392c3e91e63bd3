// CIFAR-10's binary batches: read, refused, written, normalised by channel and varied as whole images.
#include "convoy/records/images/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "convoy/records/images/image_dataset.h"
#include "convoy/records/open/run_data.h"
#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Colour images whose bytes differ by image, channel, row and column.
ImageSet make_colour_images(std::int64_t count) {
  ImageSet set;
  set.count = count;
  set.rows = set.columns = 32;
  set.channels = 3;
  for (std::int64_t i = 0; i < count; ++i) {
    set.labels.push_back(static_cast<std::uint8_t>((i * 3 + 1) % 10));
    for (std::int64_t at = 0; at < 3072; ++at) {
      set.pixels.push_back(static_cast<std::uint8_t>((i * 29 + at * 7 + at / 32 * 3 + at / 1024 * 50) % 256));
    }
  }
  return set;
}

void write_set(Files& files, std::int64_t training, const std::string& folder) {
  write_cifar(files, folder, make_colour_images(training), make_colour_images(3));
}

TEST(Cifar, ReadsRecordsOfLabelRedGreenBlue) {
  std::string bytes(2 * 3073, '\0');
  bytes[0] = 9;
  bytes[1] = 11;              // first red
  bytes[1 + 1024] = 22;       // first green
  bytes[1 + 2048 + 33] = 33;  // blue, second row, second column
  bytes[3073] = 4;
  ImageSet images;
  add_cifar_batch(bytes, "d/data_batch_1.bin", images);
  EXPECT_EQ(images.count, 2);
  EXPECT_THAT(images.labels, ElementsAre(9, 4));
  EXPECT_EQ(images.image(0)[0], 11);
  EXPECT_EQ(images.image(0)[1024], 22);
  EXPECT_EQ(images.image(0)[2 * 1024 + 33], 33);
  EXPECT_EQ(images.key_of(1), "data_batch_1.bin record 1");
}

TEST(Cifar, ReadsBackWhatItWroteFromItsFolderOrTheOneAbove) {
  MemoryFiles files;
  write_set(files, 13, "d/cifar-10-batches-bin");
  for (const char* folder : {"d", "d/", "d/cifar-10-batches-bin"}) {
    const ImageSet read = load_cifar_train(files, folder);
    EXPECT_EQ(read.pixels, make_colour_images(13).pixels) << folder;
    EXPECT_EQ(read.labels, make_colour_images(13).labels);
    ASSERT_EQ(read.sources.size(), 5u);
    EXPECT_EQ(read.sources[1].name, "data_batch_2.bin");
    EXPECT_EQ(read.sources[1].first, 2);
    EXPECT_EQ(read.class_names.at(9), "truck");
    EXPECT_EQ(load_cifar_test(files, folder).count, 3);
  }
}

TEST(Cifar, NamesAFileOfTheWrongSizeWhatWasExpectedAndFound) {
  MemoryFiles files;
  write_set(files, 13, "d");
  write_atomic(files, "d/data_batch_4.bin", std::string(3073 * 2 + 5, '\1'));
  EXPECT_EQ(
      error_of([&] { load_cifar_train(files, "d"); }),
      "InvalidArgument: d/data_batch_4.bin is no batch of CIFAR-10: expected a multiple of 3073 bytes (a label and 3 "
      "x 32 x 32 pixels a record), found 6151 (2 records and 5 bytes)");
  write_atomic(files, "d/data_batch_4.bin", "");
  EXPECT_THAT(error_of([&] { load_cifar_train(files, "d"); }), HasSubstr("found 0 (0 records and 0 bytes)"));
}

TEST(Cifar, NamesFileAndRecordOfALabelAboveNine) {
  MemoryFiles files;
  write_set(files, 13, "d");
  std::string bytes = files.read("d/test_batch.bin");
  bytes[3073] = 10;
  write_atomic(files, "d/test_batch.bin", bytes);
  EXPECT_EQ(error_of([&] { load_cifar_test(files, "d"); }),
            "InvalidArgument: d/test_batch.bin record 1: label 10, expected 0 to 9");
}

TEST(Cifar, NamesAMissingBatch) {
  MemoryFiles files;
  write_set(files, 13, "d");
  files.remove("d/data_batch_5.bin");
  EXPECT_THAT(error_of([&] { load_cifar_train(files, "d/"); }),
              HasSubstr("InvalidArgument: d/data_batch_5.bin is missing;"));
  EXPECT_THAT(error_of([&] { load_cifar_train(files, "nowhere"); }), HasSubstr("(there is no such folder)"));
}

TEST(Cifar, GivesFortyFiveThousandFiveThousandTenThousandByDefault) {
  SplitOptions options = split_options(spec::DataRecipe{}, 50000);
  const Split split = make_split(options);
  EXPECT_EQ(split.training.size(), 45000u);
  EXPECT_EQ(split.validation.size(), 5000u);
}

struct Opened {
  MemoryFiles files;
  spec::DataRecipe recipe;
  Opened() {
    write_set(files, 40, "d");
    recipe.format = "cifar10";
    recipe.path = "d";
    recipe.validation = 10;
    recipe.shift = 4;
    recipe.flip = true;
  }
};

TEST(CifarData, IsNormalisedByChannelOfTheTrainingPart) {
  Opened opened;
  const RunData data = open_data(opened.recipe, opened.files, "", false);
  EXPECT_THAT(data.training_set().sample_shape(), ElementsAre(3, 32, 32));
  EXPECT_EQ(data.training_set().classes(), 10);
  double sums[3] = {};
  double squares[3] = {};
  std::vector<float> out(3072);
  for (const std::int64_t sample : data.split().training) {
    data.training_set().prepare(sample, {}, out);
    for (std::size_t at = 0; at < out.size(); ++at) {
      sums[at / 1024] += out[at];
      squares[at / 1024] += static_cast<double>(out[at]) * out[at];
    }
  }
  for (int channel = 0; channel < 3; ++channel) {
    EXPECT_NEAR(sums[channel] / (30 * 1024), 0.0, 1e-5);
    EXPECT_NEAR(squares[channel] / (30 * 1024), 1.0, 1e-5);
  }
}

TEST(CifarData, MovesAllChannelsOfATrainingImageAlikeAndNoOtherImage) {
  Opened opened;
  RunData data = open_data(opened.recipe, opened.files, "", false);
  const auto& dataset = dynamic_cast<const ImageDataset&>(data.training_set());
  int varied = 0;
  for (std::int64_t draw = 0; draw < 20; ++draw) {
    const Variation variation = draw_variation({4, true}, 7, 2, draw);
    varied += variation == Variation{} ? 0 : 1;
    std::vector<float> out(3072);
    dataset.prepare(draw, {true, 7, 2, draw}, out);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      std::vector<float> expected(1024);
      prepare_image(dataset.images().image(draw).subspan(channel * 1024, 1024), 32, 32, variation,
                    dataset.normalisation()[channel], expected);
      const std::vector<float> got(out.begin() + static_cast<std::ptrdiff_t>(channel * 1024),
                                   out.begin() + static_cast<std::ptrdiff_t>(channel * 1024 + 1024));
      EXPECT_EQ(got, expected) << "draw " << draw << ", channel " << channel;
    }
  }
  EXPECT_GT(varied, 10);
}

TEST(CifarData, IsSlicedByItsBatches) {
  Opened opened;
  RunData data = open_data(opened.recipe, opened.files, "", false);
  const std::vector<std::int64_t> part = {39, 0, 8};
  const auto slices = data.training_set().slices({}, part);
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].name, "source file");
  EXPECT_EQ(slices[0].values.size(), 5u);
  EXPECT_THAT(slices[0].value_of, ElementsAre(4, 0, 1));
  EXPECT_TRUE(data.test().dataset->slices({}, part).empty()) << "the test set is one file";
}

TEST(ImageData, RefusesATestLabelThatTheTrainingSetDoesNotHave) {
  ImageSet images = make_images(4, 2, 2);
  images.sources = {{"t10k", 0}};
  images.labels = {0, 1, 1, 5};
  EXPECT_EQ(error_of([&] { const ImageDataset dataset(images, {Normalisation(0, 1)}, {}, 5); }),
            "InvalidArgument: t10k image 3: label 5, but the training set has only 5 classes");
  EXPECT_THAT(error_of([&] {
                const ImageDataset dataset(images, {Normalisation(0, 1)}, {2, false}, 6);
              }),
              HasSubstr("data.shift = 2 moves images of 2 x 2 out of sight"));
}

}  // namespace
}  // namespace convoy::records
