#include "convoy/train/profile/layer_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::train {

LayerRow& LayerTable::row_of(const std::string& name) {
  const auto [at, added] = index_.emplace(name, rows_.size());
  if (added) {
    LayerRow row;
    row.name = name;
    rows_.push_back(std::move(row));
    cost_sums_.emplace_back();
    output_sums_.push_back(0.0);
  }
  return rows_[at->second];
}

void LayerTable::add_pass(const std::vector<OperatorRun>& runs) {
  ++passes_;
  std::map<std::string, int> places;
  for (const OperatorRun& run : runs) {
    const bool module = !run.module.empty();
    const std::string name = module ? run.module : fmt::format("{} {}", run.name, ++places[run.name]);
    LayerRow& row = row_of(name);
    row.has_parameters = module;
    // A row that first runs in a later step took nothing before.
    row.forward_ms.resize(steps() + 1, 0.0);
    row.backward_ms.resize(steps() + 1, 0.0);
    if (std::find(row.operators.begin(), row.operators.end(), run.name) == row.operators.end()) {
      row.operators.push_back(run.name);
    }
    row.forward_ms.back() += run.forward_ms;
    row.backward_ms.back() += run.backward_ms;
    const auto index = static_cast<std::size_t>(&row - rows_.data());
    cost_sums_[index] += run.cost;
    output_sums_[index] += run.output_bytes;
  }
}

void LayerTable::end_step(double forward_ms, double backward_ms) {
  forward_ms_.push_back(forward_ms);
  backward_ms_.push_back(backward_ms);
  const auto count = static_cast<double>(forward_ms_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    LayerRow& row = rows_[i];
    row.forward_ms.resize(steps(), 0.0);
    row.backward_ms.resize(steps(), 0.0);
    const OperatorCost& sum = cost_sums_[i];
    row.cost = {sum.forward_flop / count, sum.backward_flop / count, sum.forward_bytes / count,
                sum.backward_bytes / count, sum.known};
    row.output_bytes = output_sums_[i] / static_cast<double>(std::max<std::int64_t>(passes_, 1));
  }
}

}  // namespace convoy::train
