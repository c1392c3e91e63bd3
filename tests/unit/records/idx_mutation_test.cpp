// Damages IDX files in many random ways: the reader must answer with a whole set or a convoy::Error, nothing else.
#include <gtest/gtest.h>

#include "convoy/base/clock.h"
#include "convoy/base/random.h"
#include "convoy/records/byte_reader.h"
#include "convoy/records/images/idx.h"
#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

// Changes a few bytes, cuts, doubles or inserts a piece.
std::string mutate(std::string bytes, RandomStream& stream) {
  const std::uint64_t changes = 1 + stream.below(3);
  for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const std::size_t at = stream.below(bytes.size());
    // The header is a small part of the file, and the part where most can go wrong.
    const std::size_t place = stream.below(2) == 0 ? at : at % std::min<std::size_t>(bytes.size(), 20);
    switch (stream.below(5)) {
      case 0: bytes[place] = static_cast<char>(stream.next()); break;
      case 1: bytes[place] = static_cast<char>(bytes[place] ^ (1 << stream.below(8))); break;
      case 2: bytes.resize(place); break;
      case 3: bytes.insert(place, bytes.substr(at, stream.below(16))); break;
      default: bytes.insert(place, stream.below(9), static_cast<char>(stream.next())); break;
    }
  }
  return bytes;
}

TEST(IdxReader, SurvivesDamageOfAnyKind) {
  MemoryFiles files;
  write_idx(files, make_images(7, 4, 3), "images", "labels", IdxPacking::kPlain);
  const std::string images = files.read("images");
  const std::string labels = files.read("labels");
  RandomStream stream(20250101);
  int whole = 0;
  int refused = 0;
  const TimePoint began = system_clock().now();
  for (int round = 0; round < 25000 && system_clock().now() - began < std::chrono::seconds(10); ++round) {
    const bool pack_before = stream.below(2) == 0;
    const bool pack_after = stream.below(4) == 0;
    const auto damaged = [&](const std::string& bytes) {
      const std::string changed = mutate(pack_before ? gzip(bytes) : bytes, stream);
      return pack_after ? gzip(changed) : changed;
    };
    const bool hits_images = stream.below(3) != 0;
    try {
      const ImageSet set = hits_images ? parse_idx(damaged(images), labels, "images", "labels")
                                       : parse_idx(images, damaged(labels), "images", "labels");
      ASSERT_EQ(set.pixels.size(), static_cast<std::size_t>(set.count * set.image_size()));
      ASSERT_EQ(set.labels.size(), static_cast<std::size_t>(set.count));
      ++whole;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(whole, 100) << "damaged pixels alone should be read";
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace convoy::records
