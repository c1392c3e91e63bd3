// Feeds arbitrary bytes to the safetensors reader: a file that it accepts must be safe to read as a whole.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/elastic/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  convoy::MemoryFiles files;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  files.write("input", std::span(&bytes, 1));
  try {
    const convoy::elastic::SafetensorsReader reader(files, "input");
    for (const auto& [name, tensor] : reader.tensors()) {
      const auto length = static_cast<std::size_t>(tensor.elements) * convoy::element_bytes(tensor.dtype);
      if (tensor.offset > size || length > size - tensor.offset) __builtin_trap();
      std::string out(length, '\0');
      reader.read(name, 0, tensor.elements, std::as_writable_bytes(std::span(out)));
      if (out != bytes.substr(tensor.offset, length)) __builtin_trap();
    }
  } catch (const convoy::Error& error) {
    if (error.code() != convoy::ErrorCode::kCorrupt) __builtin_trap();
  }
  return 0;
}
