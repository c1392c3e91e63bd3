// Plain and gzip bytes behind one reader, and the packing for files that Convoy makes itself.
#include "convoy/records/byte_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "convoy/base/error.h"

namespace convoy::records {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, and the gzip container

// zlib counts in 32 bits, so large buffers are passed in pieces.
uInt piece(std::size_t bytes) { return static_cast<uInt>(std::min<std::size_t>(bytes, 1u << 30)); }

}  // namespace

struct ByteReader::Inflater {
  Inflater() { CONVOY_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK, "zlib cannot start to unpack"); }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream = {};
  bool ended = false;
};

ByteReader::ByteReader(std::string_view bytes, std::string name) : rest_(bytes), name_(std::move(name)) {
  if (bytes.substr(0, kGzipMagic.size()) == kGzipMagic) inflater_ = std::make_unique<Inflater>();
}

ByteReader::~ByteReader() = default;

std::size_t ByteReader::read(std::span<std::uint8_t> out) {
  const std::size_t got = inflater_ ? read_packed(out) : read_plain(out);
  position_ += got;
  return got;
}

std::size_t ByteReader::read_plain(std::span<std::uint8_t> out) {
  const std::size_t got = std::min(out.size(), rest_.size());
  if (got > 0) std::memcpy(out.data(), rest_.data(), got);
  rest_.remove_prefix(got);
  return got;
}

std::size_t ByteReader::read_packed(std::span<std::uint8_t> out) {
  z_stream& stream = inflater_->stream;
  std::size_t got = 0;
  while (got < out.size() && !inflater_->ended) {
    const uInt offered = piece(rest_.size());
    const uInt wanted = piece(out.size() - got);
    // zlib's interface predates const: the input is only read.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
    stream.avail_in = offered;
    stream.next_out = out.data() + got;
    stream.avail_out = wanted;
    const int status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t made = wanted - stream.avail_out;
    rest_.remove_prefix(offered - stream.avail_in);
    got += made;
    if (status == Z_STREAM_END) {
      // A gzip file may consist of several members, one after the other.
      inflater_->ended = rest_.substr(0, kGzipMagic.size()) != kGzipMagic;
      if (!inflater_->ended) inflateReset(&stream);
    } else if (status == Z_MEM_ERROR) {
      throw Error(ErrorCode::kOutOfMemory, fmt::format("no memory left to unpack {}", name_));
    } else if (status == Z_BUF_ERROR || (status == Z_OK && made == 0 && rest_.empty())) {
      return got;  // the file ends inside the packed bytes
    } else if (status != Z_OK) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} is damaged: its gzip bytes cannot be unpacked after {} bytes ({})", name_,
                              position_ + got, stream.msg != nullptr ? stream.msg : "unknown dictionary"));
    }
  }
  return got;
}

void ByteReader::expect_end() {
  std::uint8_t more = 0;
  const std::uint64_t expected = position_;
  const bool goes_on = read(std::span(&more, 1)) == 1;
  if (goes_on || (inflater_ && inflater_->ended && !rest_.empty())) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} goes on after the {} bytes that its header names", name_, expected));
  }
  if (inflater_ && !inflater_->ended) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} ends inside its gzip trailer, after all {} bytes: truncated?", name_, expected));
  }
}

std::string gzip(std::string_view bytes) {
  z_stream stream = {};
  const int started = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  CONVOY_CHECK(started == Z_OK, "zlib cannot start to pack");
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  std::size_t taken = 0;
  std::size_t made = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
    stream.avail_in = piece(bytes.size() - taken);
    stream.next_out = reinterpret_cast<Bytef*>(packed.data() + made);
    stream.avail_out = piece(packed.size() - made);
    const uInt offered = stream.avail_in;
    const uInt room = stream.avail_out;
    status = deflate(&stream, taken + offered == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    taken += offered - stream.avail_in;
    made += room - stream.avail_out;
  }
  deflateEnd(&stream);
  CONVOY_CHECK(status == Z_STREAM_END, "zlib could not pack");
  packed.resize(made);
  return packed;
}

}  // namespace convoy::records
