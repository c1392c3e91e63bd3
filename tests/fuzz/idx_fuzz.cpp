// Feeds arbitrary bytes to the IDX reader: the first byte says which file they stand for and where they are cut.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "convoy/base/error.h"
#include "convoy/records/images/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  // A large first byte gives the whole input to the image file, which alone has most of what can go wrong.
  const std::size_t cut = data[0] >= 128 ? bytes.size() : bytes.size() * data[0] / 128;
  try {
    const auto set = convoy::records::parse_idx(bytes.substr(0, cut), bytes.substr(cut), "images", "labels");
    if (set.pixels.size() != static_cast<std::size_t>(set.count * set.rows * set.columns)) __builtin_trap();
    if (set.labels.size() != static_cast<std::size_t>(set.count)) __builtin_trap();
  } catch (const convoy::Error& error) {
    if (error.code() != convoy::ErrorCode::kInvalidArgument) __builtin_trap();
  }
  return 0;
}
