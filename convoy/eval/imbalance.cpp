#include "convoy/eval/imbalance.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::eval {
namespace {

std::string class_name(std::size_t number, std::span<const std::string> names) {
  return number < names.size() && !names[number].empty() ? names[number] : fmt::to_string(number);
}

double share(std::int64_t part, std::int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

}  // namespace

std::vector<std::string> imbalance_warnings(const ConfusionMatrix& matrix, std::span<const std::string> names,
                                            const ImbalanceOptions& options) {
  std::vector<std::string> warnings;
  const std::int64_t samples = matrix.samples();
  if (samples == 0 || matrix.classes() < 2) return warnings;
  const double accuracy = matrix.accuracy();
  int commonest = 0;
  for (int i = 0; i < matrix.classes(); ++i) {
    const ClassRates rates = matrix.rates(i);
    if (rates.support > matrix.rates(commonest).support) commonest = i;
    const bool rare = share(rates.support, samples) * matrix.classes() < options.rare;
    if (rates.support == 0 || !rare || rates.recall >= options.low_recall) continue;
    if (accuracy - rates.recall < options.gap) continue;
    warnings.push_back(fmt::format("accuracy is {:.2f} while recall of class {} is {:.2f} ({} of {} samples)", accuracy,
                                   class_name(static_cast<std::size_t>(i), names), rates.recall, rates.support,
                                   samples));
  }
  const double always = share(matrix.rates(commonest).support, samples);
  // Among even classes an accuracy this low is plainly bad; it deceives only where one class is much commoner.
  if (accuracy <= always && always * matrix.classes() > 2.0 - options.rare) {
    warnings.push_back(fmt::format("accuracy is {:.2f}, and always answering class {} would give {:.2f}", accuracy,
                                   class_name(static_cast<std::size_t>(commonest), names), always));
  }
  return warnings;
}

std::vector<std::string> part_warnings(const std::string& part, std::span<const std::int64_t> counts,
                                       std::span<const std::string> names, const ImbalanceOptions& options) {
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] >= options.least_samples) continue;
    const std::string name = class_name(i, names);
    if (counts[i] == 0) {
      warnings.push_back(fmt::format("part {} has no sample of class {}", part, name));
    } else {
      warnings.push_back(
          fmt::format("part {} has only {} sample{} of class {}", part, counts[i], counts[i] == 1 ? "" : "s", name));
    }
  }
  return warnings;
}

}  // namespace convoy::eval
