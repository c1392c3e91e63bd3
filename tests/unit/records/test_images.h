// Small image sets for the tests, every pixel and label known.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "convoy/base/error.h"
#include "convoy/records/images/images.h"

namespace convoy::records {

// Returns images whose pixels differ by image, row and column, with labels 0 to 6.
inline ImageSet make_images(std::int64_t count, std::int64_t rows, std::int64_t columns) {
  ImageSet set{count, rows, columns, {}, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t at = 0; at < rows * columns; ++at) {
      set.pixels.push_back(static_cast<std::uint8_t>((i * 31 + at * 7 + i * at) % 256));
    }
    set.labels.push_back(static_cast<std::uint8_t>((i * 5 + 3) % 7));
  }
  return set;
}

// Runs something that should throw a convoy::Error, and returns its code and message as "InvalidArgument: ...".
inline std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.message();
  }
  return "no error";
}

}  // namespace convoy::records
