// The IDX reader: what it reads, and what it refuses and how it says so.
#include "convoy/records/images/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convoy/records/byte_reader.h"
#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// The bytes of an image file and a label file, plain.
struct Bytes {
  std::string images;
  std::string labels;
};

Bytes plain_bytes(const ImageSet& set) {
  MemoryFiles files;
  write_idx(files, set, "images", "labels", IdxPacking::kPlain);
  return {files.read("images"), files.read("labels")};
}

std::string error_for(const std::string& images, const std::string& labels) {
  return error_of([&] { parse_idx(images, labels, "images.gz", "labels.gz"); });
}

void expect_equal(const ImageSet& a, const ImageSet& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.columns, b.columns);
  EXPECT_EQ(a.pixels, b.pixels);
  EXPECT_EQ(a.labels, b.labels);
}

TEST(IdxWriter, WritesTheFormatByteForByte) {
  const ImageSet set{2, 1, 3, {1, 2, 3, 253, 254, 255}, {9, 200}};
  const Bytes bytes = plain_bytes(set);
  EXPECT_EQ(bytes.images, std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03\x01\x02\x03\xfd\xfe\xff", 22));
  EXPECT_EQ(bytes.labels, std::string("\0\0\x08\x01\0\0\0\x02\x09\xc8", 10));
}

TEST(IdxWriter, RefusesASetThatDoesNotFitTogether) {
  MemoryFiles files;
  ImageSet set = make_images(3, 2, 2);
  set.labels.pop_back();
  EXPECT_THAT(error_of([&] { write_idx(files, set, "images", "labels", IdxPacking::kPlain); }),
              StartsWith("InvalidArgument: 12 pixels and 2 labels are no 3 images of 2 x 2"));
}

TEST(IdxReader, ReadsWhatTheWriterWrotePlainAndPacked) {
  const ImageSet set = make_images(37, 5, 3);
  for (const IdxPacking packing : {IdxPacking::kPlain, IdxPacking::kGzip}) {
    MemoryFiles files;
    write_idx(files, set, "images", "labels", packing);
    expect_equal(read_idx(files, "images", "labels"), set);
    EXPECT_EQ(files.read("images").substr(0, 2) == "\x1f\x8b", packing == IdxPacking::kGzip);
  }
}

TEST(IdxReader, TellsPackedFilesByTheirBytesAndNotByTheirNames) {
  const ImageSet set = make_images(4, 2, 3);
  const Bytes bytes = plain_bytes(set);
  expect_equal(parse_idx(gzip(bytes.images), bytes.labels, "images", "labels.gz"), set);
}

TEST(IdxReader, ReadsAGzipFileOfSeveralMembers) {
  const ImageSet set = make_images(4, 3, 3);
  const Bytes bytes = plain_bytes(set);
  const std::string members = gzip(bytes.images.substr(0, 10)) + gzip("") + gzip(bytes.images.substr(10));
  expect_equal(parse_idx(members, bytes.labels, "images", "labels"), set);
}

TEST(IdxReader, TakesLabelsAboveNine) {
  ImageSet set = make_images(3, 2, 2);
  set.labels = {0, 10, 255};
  const Bytes bytes = plain_bytes(set);
  const ImageSet read = parse_idx(bytes.images, bytes.labels, "images", "labels");
  EXPECT_EQ(read.labels, set.labels);
  EXPECT_EQ(read.classes(), 256);
}

TEST(IdxReader, RefusesAnImageFileCutAnywhere) {
  const Bytes bytes = plain_bytes(make_images(3, 2, 3));
  for (std::size_t length = 0; length < bytes.images.size(); ++length) {
    const std::size_t expected = length < 4 ? 4 : length < 16 ? 16 : bytes.images.size();
    EXPECT_THAT(error_for(bytes.images.substr(0, length), bytes.labels),
                AllOf(StartsWith("InvalidArgument: images.gz ends after " + std::to_string(length) + " of "),
                      HasSubstr("truncated?")))
        << "expected about " << expected;
  }
  EXPECT_THAT(error_for(bytes.images.substr(0, 20), bytes.labels), HasSubstr("ends after 20 of 34 bytes: truncated?"));
}

TEST(IdxReader, RefusesALabelFileCutAnywhere) {
  const Bytes bytes = plain_bytes(make_images(3, 2, 3));
  for (std::size_t length = 0; length < bytes.labels.size(); ++length) {
    EXPECT_THAT(error_for(bytes.images, bytes.labels.substr(0, length)),
                AllOf(StartsWith("InvalidArgument: labels.gz ends after " + std::to_string(length) + " of "),
                      HasSubstr("truncated?")));
  }
}

TEST(IdxReader, RefusesAPackedFileCutAnywhere) {
  const Bytes bytes = plain_bytes(make_images(9, 4, 5));
  const std::string packed = gzip(bytes.images);
  for (std::size_t length = 0; length < packed.size(); ++length) {
    EXPECT_THAT(error_for(packed.substr(0, length), bytes.labels),
                AllOf(StartsWith("InvalidArgument: images.gz ends"), HasSubstr("truncated?")))
        << length << " of " << packed.size();
  }
}

TEST(IdxReader, RefusesPackedBytesThatWereChanged) {
  const Bytes bytes = plain_bytes(make_images(9, 4, 5));
  std::string packed = gzip(bytes.images);
  packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 1);  // in the checksum
  EXPECT_THAT(error_for(packed, bytes.labels),
              AllOf(StartsWith("InvalidArgument: images.gz is damaged"), HasSubstr("incorrect data check")));
}

TEST(IdxReader, RefusesBytesBeyondTheEnd) {
  const Bytes bytes = plain_bytes(make_images(3, 2, 3));
  const char* expected = "InvalidArgument: images.gz goes on after the 34 bytes that its header names";
  EXPECT_EQ(error_for(bytes.images + "x", bytes.labels), expected);
  EXPECT_EQ(error_for(gzip(bytes.images + "x"), bytes.labels), expected);
  EXPECT_EQ(error_for(gzip(bytes.images) + "x", bytes.labels), expected);
  EXPECT_THAT(error_for(bytes.images, bytes.labels + "x"), HasSubstr("labels.gz goes on after the 11 bytes"));
}

TEST(IdxReader, NamesAFileOfAnotherKind) {
  const Bytes bytes = plain_bytes(make_images(3, 2, 3));
  EXPECT_EQ(
      error_for(bytes.labels, bytes.labels),
      "InvalidArgument: images.gz is not an IDX image file: it begins with 0x00000801, expected 0x00000803 (it is a "
      "label file)");
  EXPECT_THAT(error_for(bytes.images, bytes.images), HasSubstr("labels.gz is not an IDX label file"));
  EXPECT_THAT(error_for("a text file\n", bytes.labels), HasSubstr("it begins with 0x61207465, expected 0x00000803"));
}

TEST(IdxReader, RefusesCountsThatDoNotFitTogether) {
  const Bytes three = plain_bytes(make_images(3, 2, 3));
  const Bytes four = plain_bytes(make_images(4, 2, 3));
  EXPECT_EQ(error_for(three.images, four.labels),
            "InvalidArgument: labels.gz names 4 labels, but images.gz names 3 images");
}

TEST(IdxReader, RefusesASetWithoutPixels) {
  const Bytes bytes = plain_bytes(ImageSet{0, 28, 28, {}, {}});
  EXPECT_EQ(error_for(bytes.images, bytes.labels),
            "InvalidArgument: images.gz holds no pixels: its header names 0 images of 28 x 28");
}

// A header of any size costs no more memory than the bytes that follow it: this test would be killed otherwise.
TEST(IdxReader, DoesNotBelieveALyingHeader) {
  const Bytes bytes = plain_bytes(make_images(3, 2, 3));
  const auto with_sizes = [&](const std::string& sizes) {
    return bytes.images.substr(0, 4) + sizes + bytes.images.substr(16);
  };
  const std::string all_ones(12, '\xff');
  const std::string four_gib("\0\1\0\0\0\0\1\0\0\0\1\0", 12);  // 65536 images of 256 x 256
  EXPECT_THAT(error_for(with_sizes(all_ones), bytes.labels),
              HasSubstr("names 4294967295 images of 4294967295 x 4294967295, more than 4294967296 bytes"));
  EXPECT_THAT(error_for(with_sizes(four_gib), bytes.labels), HasSubstr("ends after 34 of 4294967312 bytes"));
  EXPECT_THAT(error_for(gzip(with_sizes(four_gib)), bytes.labels), HasSubstr("ends after 34 of 4294967312 bytes"));
}

TEST(IdxReader, NamesAMissingFile) {
  MemoryFiles files;
  EXPECT_EQ(error_of([&] { read_idx(files, "folder/images", "folder/labels"); }),
            "InvalidArgument: there is no file folder/images");
}

}  // namespace
}  // namespace convoy::records
