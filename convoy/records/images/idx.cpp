// Reads and writes IDX files; every number in a header is checked before it is believed.
#include "convoy/records/images/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "convoy/base/error.h"
#include "convoy/records/byte_reader.h"

namespace convoy::records {
namespace {

constexpr std::uint32_t kImagesMagic = 0x00000803;
constexpr std::uint32_t kLabelsMagic = 0x00000801;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

[[noreturn]] void refuse_truncated(const ByteReader& reader, std::uint64_t expected, const char* what) {
  refuse(fmt::format("{} ends after {} of {} bytes{}: truncated?", reader.name(), reader.position(), expected, what));
}

// Reads the header's numbers, of which there are as many as the array is long.
template <std::size_t N>
std::array<std::uint32_t, N> read_header(ByteReader& reader) {
  std::array<std::uint8_t, 4 * N> bytes = {};
  if (reader.read(bytes) != bytes.size()) refuse_truncated(reader, bytes.size(), " of its header");
  std::array<std::uint32_t, N> numbers = {};
  for (std::size_t i = 0; i < bytes.size(); ++i) numbers[i / 4] = numbers[i / 4] << 8 | bytes[i];
  return numbers;
}

void check_magic(const ByteReader& reader, std::uint32_t found, std::uint32_t expected) {
  if (found == expected) return;
  const char* kind = expected == kImagesMagic ? "image" : "label";
  const char* other = "";
  if (found == kImagesMagic) other = " (it is an image file)";
  if (found == kLabelsMagic) other = " (it is a label file)";
  refuse(fmt::format("{} is not an IDX {} file: it begins with 0x{:08x}, expected 0x{:08x}{}", reader.name(), kind,
                     found, expected, other));
}

// Reads the rest of the file, which has to be `expected` bytes. `stored` is the file's own size: room is made for what
// so many bytes usually hold, and beyond that only as bytes arrive, so that a lying header costs nothing.
std::vector<std::uint8_t> read_body(ByteReader& reader, std::uint64_t expected, std::uint64_t stored) {
  const std::uint64_t total = reader.position() + expected;
  std::vector<std::uint8_t> body;
  std::uint64_t done = 0;
  while (done < expected) {
    const std::uint64_t room = std::min(expected, std::max(2 * done, 4 * stored + 4096));
    body.resize(room);
    const std::uint64_t got = reader.read(std::span(body).subspan(done));
    if (got < room - done) refuse_truncated(reader, total, "");
    done = room;
  }
  reader.expect_end();
  return body;
}

void read_images(std::string_view bytes, const std::string& name, ImageSet& set) {
  ByteReader reader(bytes, name);
  check_magic(reader, read_header<1>(reader)[0], kImagesMagic);
  const auto sizes = read_header<3>(reader);
  set.count = sizes[0];
  set.rows = sizes[1];
  set.columns = sizes[2];
  if (set.count == 0 || set.rows == 0 || set.columns == 0) {
    refuse(fmt::format("{} holds no pixels: its header names {} images of {} x {}", name, set.count, set.rows,
                       set.columns));
  }
  // Divisions, since the product of the three may exceed 64 bits.
  if (set.rows > kMaxPixelBytes / set.columns || set.count > kMaxPixelBytes / (set.rows * set.columns)) {
    refuse(fmt::format("{} names {} images of {} x {}, more than {} bytes: a damaged header?", name, set.count,
                       set.rows, set.columns, kMaxPixelBytes));
  }
  set.pixels = read_body(reader, static_cast<std::uint64_t>(set.count * set.image_size()), bytes.size());
}

void read_labels(std::string_view bytes, const std::string& name, const std::string& images_name, ImageSet& set) {
  ByteReader reader(bytes, name);
  check_magic(reader, read_header<1>(reader)[0], kLabelsMagic);
  const std::int64_t count = read_header<1>(reader)[0];
  if (count != set.count) {
    refuse(fmt::format("{} names {} labels, but {} names {} images", name, count, images_name, set.count));
  }
  set.labels = read_body(reader, static_cast<std::uint64_t>(count), bytes.size());
}

std::string read_file(Files& files, const std::string& path) {
  if (!files.exists(path)) refuse(fmt::format("there is no file {}", path));
  return files.read_range(path, 0, files.size(path));  // one buffer of the right size, where read() has to grow one
}

void put_number(std::string& out, std::int64_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(static_cast<std::uint32_t>(number) >> shift);
}

void write_file(Files& files, const std::string& path, const std::string& bytes, IdxPacking packing) {
  write_atomic(files, path, packing == IdxPacking::kGzip ? gzip(bytes) : bytes);
}

}  // namespace

ImageSet parse_idx(std::string_view images, std::string_view labels, const std::string& images_name,
                   const std::string& labels_name) {
  ImageSet set;
  read_images(images, images_name, set);
  read_labels(labels, labels_name, images_name, set);
  return set;
}

ImageSet read_idx(Files& files, const std::string& images_path, const std::string& labels_path) {
  const std::string images = read_file(files, images_path);
  const std::string labels = read_file(files, labels_path);
  return parse_idx(images, labels, images_path, labels_path);
}

void write_idx(Files& files, const ImageSet& images, const std::string& images_path, const std::string& labels_path,
               IdxPacking packing) {
  const auto count = static_cast<std::size_t>(images.count);
  if (images.labels.size() != count || images.pixels.size() != count * static_cast<std::size_t>(images.image_size())) {
    refuse(fmt::format("{} pixels and {} labels are no {} images of {} x {}", images.pixels.size(),
                       images.labels.size(), images.count, images.rows, images.columns));
  }
  std::string image_file;
  for (const std::int64_t number : {std::int64_t{kImagesMagic}, images.count, images.rows, images.columns}) {
    put_number(image_file, number);
  }
  image_file.append(images.pixels.begin(), images.pixels.end());
  std::string label_file;
  for (const std::int64_t number : {std::int64_t{kLabelsMagic}, images.count}) put_number(label_file, number);
  label_file.append(images.labels.begin(), images.labels.end());
  write_file(files, images_path, image_file, packing);
  write_file(files, labels_path, label_file, packing);
}

}  // namespace convoy::records
