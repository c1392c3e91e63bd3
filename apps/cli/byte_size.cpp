#include "apps/cli/byte_size.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

namespace convoy::cli {

std::optional<double> read_byte_size(const std::string& text) {
  const auto unit_at = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, unit_at);
  std::string unit = unit_at == std::string::npos ? "" : text.substr(unit_at);
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool plain = unit.empty() || unit == "b";
  const std::string_view letters = "kmgt";
  const auto power = unit.empty() ? std::string_view::npos : letters.find(unit.front());
  const bool binary = power != std::string_view::npos &&
                      (unit.size() == 1 || unit.substr(1) == "ib" || unit.substr(1) == "i" || unit.substr(1) == "b");
  if (error != std::errc() || end != number.data() + number.size() || !(plain || binary)) return std::nullopt;
  return value * (binary ? std::pow(1024, static_cast<double>(power + 1)) : 1);
}

}  // namespace convoy::cli
