// Safetensors files: the published layout byte for byte, slices, and headers that lie.
#include "convoy/elastic/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "convoy/base/clock.h"
#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/base/random.h"
#include "tests/support/forwarding_files.h"

namespace convoy::elastic {
namespace {

using convoy::testing::put_file;
using ::testing::HasSubstr;

template <typename T>
TensorBytes tensor(const std::string& name, DType dtype, std::vector<std::int64_t> shape,
                   const std::vector<T>& values) {
  return TensorBytes{name, dtype, std::move(shape), std::as_bytes(std::span(values))};
}

template <typename T>
std::vector<T> read(const SafetensorsReader& reader, const std::string& name, std::int64_t first, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  reader.read(name, first, count, std::as_writable_bytes(std::span(values)));
  return values;
}

// A file with this header and data, the length in front as the layout says.
std::string file_of(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return length + header + data;
}

// Made by hand from the published description, not by the writer.
const char kHandMade[] =
    "\x90\x00\x00\x00\x00\x00\x00\x00"
    "{\"__metadata__\":{\"by\":\"hand\"},\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
    "\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[8,16]}}"
    "\xfe\xff\xff\xff\xff\xff\xff\xff"   // -2
    "\x00\x00\x80\x3f\x00\x00\x20\xc0";  // 1.0, -2.5

std::string hand_made() {
  std::string bytes(kHandMade, sizeof(kHandMade) - 1);
  const std::size_t header_end = bytes.size() - 16;
  bytes.insert(header_end, 8 + 144 - header_end, ' ');
  return bytes;
}

TEST(SafetensorsReader, ReadsAFileMadeByHand) {
  MemoryFiles files;
  put_file(files, "hand.safetensors", hand_made());
  const SafetensorsReader reader(files, "hand.safetensors");
  ASSERT_EQ(reader.tensors().size(), 2u);
  EXPECT_EQ(reader.metadata().at("by"), "hand");
  EXPECT_EQ(reader.tensors().at("w").shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(reader.tensors().at("n").shape, (std::vector<std::int64_t>{}));
  EXPECT_EQ(read<std::int64_t>(reader, "n", 0, 1), (std::vector<std::int64_t>{-2}));
  EXPECT_EQ(read<float>(reader, "w", 0, 2), (std::vector<float>{1.0f, -2.5f}));
}

TEST(SafetensorsWriter, WritesTheFileMadeByHand) {
  MemoryFiles files;
  const std::vector<std::int64_t> n = {-2};
  const std::vector<float> w = {1.0f, -2.5f};
  const std::vector<TensorBytes> tensors = {tensor("w", DType::kFloat32, {1, 2}, w), tensor("n", DType::kInt64, {}, n)};
  const FileDigest digest = write_safetensors(files, "file", tensors, {{"by", "hand"}});
  EXPECT_EQ(files.read("file"), hand_made());
  EXPECT_EQ(digest.bytes, hand_made().size());
  EXPECT_EQ(digest.xxh3, hash128_hex(hand_made()));
  EXPECT_EQ(digest, digest_file(files, "file"));
}

TEST(SafetensorsWriter, AlignsEveryTensorWhateverTheOrder) {
  MemoryFiles files;
  const std::vector<std::uint8_t> bytes = {1, 2, 3};
  const std::vector<double> doubles = {0.5, -0.25, 1e300};
  const std::vector<std::int32_t> ints = {-7};
  const std::vector<float> none;
  const std::vector<TensorBytes> tensors = {
      tensor("bytes", DType::kUInt8, {3}, bytes), tensor("ints", DType::kInt32, {1, 1}, ints),
      tensor("none", DType::kFloat32, {4, 0}, none), tensor("doubles", DType::kFloat64, {3}, doubles)};
  write_safetensors(files, "file", tensors);
  const SafetensorsReader reader(files, "file");
  for (const auto& [name, stored] : reader.tensors())
    EXPECT_EQ(stored.offset % element_bytes(stored.dtype), 0u) << name;
  EXPECT_EQ(read<std::uint8_t>(reader, "bytes", 0, 3), bytes);
  EXPECT_EQ(read<std::int32_t>(reader, "ints", 0, 1), ints);
  EXPECT_EQ(read<double>(reader, "doubles", 0, 3), doubles);
  EXPECT_EQ(reader.tensors().at("none").shape, (std::vector<std::int64_t>{4, 0}));
  EXPECT_TRUE(read<float>(reader, "none", 0, 0).empty());
}

TEST(SafetensorsWriter, WritesAFileWithoutTensors) {
  MemoryFiles files;
  write_safetensors(files, "file", {});
  EXPECT_EQ(files.size("file") % 8, 0u);
  EXPECT_TRUE(SafetensorsReader(files, "file").tensors().empty());
}

TEST(SafetensorsWriter, RefusesWhatNoReaderCouldTellApart) {
  MemoryFiles files;
  const std::vector<float> two = {1, 2};
  const auto write = [&](std::vector<TensorBytes> tensors) { write_safetensors(files, "file", tensors); };
  const auto refused = [&](std::vector<TensorBytes> tensors) {
    try {
      write(std::move(tensors));
      return std::string("accepted");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.message();
    }
  };
  EXPECT_THAT(refused({tensor("a", DType::kFloat32, {2}, two), tensor("a", DType::kFloat32, {2}, two)}),
              HasSubstr("'a' is taken"));
  EXPECT_THAT(refused({tensor("__metadata__", DType::kFloat32, {2}, two)}), HasSubstr("'__metadata__' is taken"));
  EXPECT_THAT(refused({tensor("a", DType::kFloat32, {3}, two)}),
              HasSubstr("'a' has 3 elements of float32, but 8 bytes"));
  EXPECT_THAT(refused({tensor("\xff", DType::kFloat32, {2}, two)}), HasSubstr("no UTF-8"));
  EXPECT_FALSE(files.exists("file"));
}

TEST(SafetensorsReader, ReadsSlices) {
  MemoryFiles files;
  std::vector<std::int32_t> values(101);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * i);
  const std::vector<TensorBytes> tensors = {tensor("v", DType::kInt32, {101}, values)};
  write_safetensors(files, "file", tensors);
  const SafetensorsReader reader(files, "file");
  EXPECT_EQ(read<std::int32_t>(reader, "v", 7, 3), (std::vector<std::int32_t>{49, 64, 81}));
  EXPECT_EQ(read<std::int32_t>(reader, "v", 100, 1), (std::vector<std::int32_t>{10000}));
  EXPECT_TRUE(read<std::int32_t>(reader, "v", 101, 0).empty());
  EXPECT_THROW(read<std::int32_t>(reader, "v", 100, 2), Error);
  EXPECT_THROW(read<std::int32_t>(reader, "v", -1, 2), Error);
  EXPECT_THROW(read<std::int32_t>(reader, "w", 0, 1), Error);
}

TEST(SafetensorsReader, NamesFileAndTensorOfALyingHeader) {
  const std::string eight(8, '\x01');
  struct Case {
    std::string content;
    std::string says;
  };
  const auto one = [&](const std::string& entry) { return file_of("{\"w\":" + entry + "}", eight); };
  const std::vector<Case> cases = {
      {"1234567", "7 bytes are too few"},
      {std::string("\x09\0\0\0\0\0\0\0{}", 10), "claims a header of 9 bytes"},
      {std::string(8, '\xff') + "{}", "claims a header of 18446744073709551615 bytes"},
      {file_of("", ""), "damaged"},
      {file_of("[]", ""), "no object"},
      {file_of("{\"w\":", eight), "damaged"},
      {file_of("{}", eight), "its tensors end at byte 10"},
      {file_of("{\"__metadata__\":{\"a\":1}}", ""), "'a' in __metadata__ is no text"},
      {file_of("{\"__metadata__\":[]}", ""), "__metadata__ is no object"},
      {one("7"), "'w': its entry is no object"},
      {one(R"({"shape":[2],"data_offsets":[0,8]})"), "'w': it has no dtype"},
      {one(R"({"dtype":"F32","data_offsets":[0,8]})"), "'w': it has no shape"},
      {one(R"({"dtype":"F32","shape":[2]})"), "'w': it has no data_offsets"},
      {one(R"({"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]})"), "'w': its dtype \"F8_E4M3\" is unknown"},
      {one(R"({"dtype":4,"shape":[2],"data_offsets":[0,8]})"), "'w': its dtype is no text"},
      {one(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"), "'w': its shape is no list"},
      {one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), "'w': -2 is no number"},
      {one(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), "'w': 2.0 is no number"},
      {one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"), "'w': its shape"},
      {one(R"({"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]})"), "'w': data_offsets [0,8]"},
      {one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), "'w': data_offsets [0,8] do not fit shape [3]"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "'w': data_offsets [8,0]"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), "'w': its data_offsets are not two numbers"},
      {one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"), "'w': 12 is no number from 0 to 8"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), "'w' begins at byte"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), "its tensors end at byte"},
      {one(R"({"dtype":"F32","dtype":"I32","shape":[2],"data_offsets":[0,8]})"), "\"dtype\" stands twice"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{})"), "\"w\" stands twice"},
      {file_of(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"x":{"dtype":"U8","shape":[4],)"
               R"("data_offsets":[4,8]}})",
               eight),
       "'x' begins at byte"},
      {one(std::string(100000, '[') + std::string(100000, ']')), "'w': its entry is no object"},
      {one(R"({"dtype":"F32","shape":[)" + std::string(100000, '[') + std::string(100000, ']') +
           R"(],"data_offsets":[0,8]})"),
       "'w': a value of type array is no number"},
  };
  for (const Case& lie : cases) {
    MemoryFiles files;
    put_file(files, "lie.safetensors", lie.content);
    try {
      const SafetensorsReader reader(files, "lie.safetensors");
      ADD_FAILURE() << "accepted; should say: " << lie.says;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
      EXPECT_THAT(error.message(), HasSubstr("lie.safetensors"));
      EXPECT_THAT(error.message(), HasSubstr(lie.says));
      EXPECT_LT(error.message().size(), 600u);
    }
  }
}

std::string mutate(std::string bytes, RandomStream& stream) {
  const std::uint64_t changes = 1 + stream.below(3);
  for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const std::size_t at = stream.below(bytes.size());
    switch (stream.below(6)) {
      case 0: bytes[at] = static_cast<char>(stream.next()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << stream.below(8))); break;
      case 2: bytes[at] = "0123456789[]{},:\"-"[stream.below(18)]; break;
      case 3: bytes.resize(at); break;
      case 4: bytes.insert(at, bytes.substr(stream.below(bytes.size()), stream.below(32))); break;
      default: bytes.erase(at, stream.below(8)); break;
    }
  }
  return bytes;
}

// A file that is accepted must be safe to read as a whole, and no tensor may lie outside it.
TEST(SafetensorsReader, SurvivesDamageOfAnyKind) {
  MemoryFiles files;
  const std::vector<double> doubles = {1, 2, 3, 4, 5, 6};
  const std::vector<std::uint8_t> bytes = {1, 2, 3, 4, 5};
  const std::vector<TensorBytes> tensors = {tensor("doubles", DType::kFloat64, {2, 3}, doubles),
                                            tensor("bytes", DType::kUInt8, {5}, bytes)};
  write_safetensors(files, "file", tensors, {{"step", "17"}});
  const std::string whole = files.read("file");
  std::uint64_t header = 0;
  std::memcpy(&header, whole.data(), 8);
  RandomStream stream(20250102);
  int accepted = 0;
  int refused = 0;
  const TimePoint began = system_clock().now();
  for (int round = 0; round < 60000 && system_clock().now() - began < std::chrono::seconds(10); ++round) {
    // Half of the damaged headers get a length that fits them, so that the damage reaches the JSON.
    const bool fits = stream.below(2) == 0;
    const std::string damaged =
        fits ? file_of(mutate(whole.substr(8, header), stream), whole.substr(8 + header)) : mutate(whole, stream);
    put_file(files, "damaged", damaged);
    try {
      const SafetensorsReader reader(files, "damaged");
      for (const auto& [name, stored] : reader.tensors()) {
        const std::size_t size = static_cast<std::size_t>(stored.elements) * element_bytes(stored.dtype);
        ASSERT_LE(stored.offset + size, damaged.size());
        std::string out(size, '\0');
        reader.read(name, 0, stored.elements, std::as_writable_bytes(std::span(out)));
        ASSERT_EQ(out, damaged.substr(stored.offset, size));
      }
      ++accepted;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(accepted, 100) << "damage inside the data or a name should be read: only the hash finds it";
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace convoy::elastic
