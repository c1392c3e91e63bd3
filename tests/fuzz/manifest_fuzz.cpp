// Feeds arbitrary text to the manifest reader, as it is and closed with a hash that fits: one that is accepted must
// come through writing and reading unchanged, and cover every element of every tensor once.
#include <cstddef>
#include <cstdint>
#include <string>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/elastic/checkpoint/manifest.h"

namespace {

void try_manifest(const std::string& text) {
  using convoy::elastic::parse_manifest;
  try {
    const convoy::elastic::Manifest manifest = parse_manifest(text, "input");
    for (const auto& [name, tensor] : manifest.tensors) {
      std::int64_t covered = 0;
      for (const auto& piece : tensor.pieces) {
        if (piece.offset != covered || piece.file >= manifest.files.size()) __builtin_trap();
        covered += piece.count;
      }
      if (covered != convoy::spec::element_count(tensor.shape)) __builtin_trap();
    }
    if (parse_manifest(to_text(manifest, "output"), "output") != manifest) __builtin_trap();
  } catch (const convoy::Error& error) {
    if (error.code() != convoy::ErrorCode::kCorrupt) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_manifest(text);
  try_manifest(text + ",\"xxh3\":\"" + convoy::hash128_hex(text) + "\"}\n");
  return 0;
}
