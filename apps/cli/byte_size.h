// Sizes as people write them.
#pragma once

#include <optional>
#include <string>

namespace convoy::cli {

/// Returns a size in bytes: "4", "64KiB", "64k", "1.5M", "2GiB"; nothing for a text that is none. Units are binary.
std::optional<double> read_byte_size(const std::string& text);

}  // namespace convoy::cli
