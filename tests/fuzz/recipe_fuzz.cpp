// Fuzzes the recipe reader: any bytes are read or refused with a convoy::Error, and what was read is written and read
// again. The bytes up to the first NUL are the file, what follows is one --set option.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/spec/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto end = bytes.find('\0');
  std::vector<std::string> options;
  if (end != std::string::npos) options.push_back(bytes.substr(end + 1));
  convoy::spec::Recipe recipe;
  try {
    recipe = convoy::spec::parse_recipe(bytes.substr(0, end), "fuzz.toml", options);
  } catch (const convoy::Error& error) {
    if (error.code() != convoy::ErrorCode::kInvalidArgument) std::abort();
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
    return 0;
  }
  if (convoy::spec::parse_recipe(convoy::spec::to_toml(recipe), "again.toml") != recipe) std::abort();
  return 0;
}
