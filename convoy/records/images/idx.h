// The IDX format of MNIST and Fashion-MNIST: reads it without trusting it, and writes it.
//
// An image file is the magic number 0x00000803, the number of images, rows and columns (32 bits each, highest byte
// first) and one byte a pixel; a label file is 0x00000801, the number of labels and one byte a label.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "convoy/base/files.h"
#include "convoy/records/images/images.h"

namespace convoy::records {

/// The most pixels that an image file may name; more is taken for a damaged header.
inline constexpr std::int64_t kMaxPixelBytes = std::int64_t{1} << 32;

/// Reads an image file and its label file, each plain or gzip (told by its first bytes, not by its name).
/// Errors:     kInvalidArgument naming the file, what was expected and what was found, when a file is missing, of
///             another kind, truncated, damaged or longer than its header says, or when the two do not fit together
/// Cost:       memory grows with the bytes that are there, never with what a header claims
ImageSet read_idx(Files& files, const std::string& images_path, const std::string& labels_path);

/// The same for two files that lie in memory; the names stand for them in messages.
ImageSet parse_idx(std::string_view images, std::string_view labels, const std::string& images_name,
                   const std::string& labels_name);

/// How write_idx stores a file.
enum class IdxPacking { kPlain, kGzip };

/// Writes a set as an image file and a label file.
/// Errors:     kInvalidArgument when pixels, labels and sizes do not fit together
void write_idx(Files& files, const ImageSet& images, const std::string& images_path, const std::string& labels_path,
               IdxPacking packing);

}  // namespace convoy::records
