// The option that every verb with a recipe has: `--set table.key=value`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace convoy::cli {

/// Adds `--set`, which may be repeated, to a verb.
inline void add_overrides(CLI::App* verb, std::vector<std::string>& overrides) {
  verb->add_option("--set", overrides, "Replaces a key of the recipe: table.key=value (may be repeated)")
      ->allow_extra_args(false);
}

}  // namespace convoy::cli
