// Safetensors files: writes named tensors, and reads slices of them without trusting the file.
//
// A file is the length of its header (8 bytes, lowest first), the header (a JSON object: for each tensor "dtype",
// "shape" and "data_offsets" [begin, end) counted from the end of the header; "__metadata__" holds texts), padded with
// spaces to a multiple of 8, and the tensors' bytes, lowest first, with neither gaps nor overlaps.
// Source: the published layout at https://github.com/huggingface/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/base/dtype.h"
#include "convoy/base/files.h"

namespace convoy::elastic {

/// The longest header that is read; more is taken for damage, as the published reader takes it.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Returns an element type as safetensors headers write it: "F32", "F64", "I32", "I64" or "U8".
std::string_view safetensors_dtype(DType type);

/// A tensor to be written.
/// Ownership:  borrows the bytes until write_safetensors returns
struct TensorBytes {
  /// The name, unique in the file; not "__metadata__".
  std::string name;
  /// The type of its elements.
  DType dtype = DType::kFloat32;
  /// The shape; empty for a scalar.
  std::vector<std::int64_t> shape;
  /// The elements, as many bytes as type and shape say.
  std::span<const std::byte> bytes;
};

/// What makes a file recognisable: its size and its XXH3-128 hash.
struct FileDigest {
  /// The size in bytes.
  std::uint64_t bytes = 0;
  /// The hash of all bytes as 32 hexadecimal digits.
  std::string xxh3;
  friend bool operator==(const FileDigest&, const FileDigest&) = default;
};

/// Returns the digest of a file, which it reads piece by piece.
/// Errors:     kIo when it cannot be read
FileDigest digest_file(Files& files, const std::string& path);

/// Writes a file and returns the digest of what it was given. Tensors of wide elements come first, so that all are
/// aligned; among equally wide ones the order is kept.
/// Errors:     kInvalidArgument for a name that is taken or no UTF-8, or bytes that do not fit the shape; kIo
FileDigest write_safetensors(Files& files, const std::string& path, std::span<const TensorBytes> tensors,
                             const std::map<std::string, std::string>& metadata = {});

/// Where a file holds a tensor.
struct StoredTensor {
  /// The type of its elements.
  DType dtype = DType::kFloat32;
  /// The shape; empty for a scalar.
  std::vector<std::int64_t> shape;
  /// The number of elements.
  std::int64_t elements = 0;
  /// The first byte, counted from the start of the file.
  std::uint64_t offset = 0;
};

/// Reads a file: the header at once, elements when asked for.
/// Ownership:  borrows the file system while it lives
/// Threads:    all methods from any thread
class SafetensorsReader {
 public:
  /// Reads and checks the header: its length against the file's size, every tensor's type, shape and place, that
  /// tensors fill the file without gaps or overlaps.
  /// Errors:     kCorrupt naming the file, and the tensor where it is about one; kIo when it cannot be read
  SafetensorsReader(Files& files, std::string path);
  /// Returns the tensors by name.
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// Returns the texts of "__metadata__".
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Returns the file's path.
  const std::string& path() const { return path_; }
  /// Fills `out` with elements [first, first + count) of the flattened tensor.
  /// Errors:     kInvalidArgument when there is no such tensor or range, or `out` is of another size; kCorrupt when the
  ///             file has become shorter
  void read(const std::string& name, std::int64_t first, std::int64_t count, std::span<std::byte> out) const;

 private:
  Files& files_;
  const std::string path_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace convoy::elastic
