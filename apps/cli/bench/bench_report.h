// What was measured, for people: tables, a matrix of pairs, a plot.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/plan/link_fit.h"

namespace convoy::cli {

/// A pair of ranks and the fit of its link.
struct PairFit {
  /// The lower rank.
  int from = 0;
  /// The higher rank.
  int to = 1;
  /// What a message costs.
  plan::LinkFit fit;
};

/// Returns the rows of `bench p2p` as a table; with several pairs, medians over them.
std::string describe_pairs(const nlohmann::ordered_json& rows);

/// Returns latency and bandwidth of each pair as a matrix: microseconds above the diagonal, GB/s below.
std::string describe_matrix(const std::vector<PairFit>& pairs, int ranks);

/// Returns a fit in one line.
std::string describe_fit(const plan::LinkFit& fit);

/// Returns the rows of `bench collective` as a table.
std::string describe_collectives(const nlohmann::ordered_json& rows);

/// Returns bars of `key` (a bandwidth) by size, one for each row, on a logarithmic scale; `label` names a row.
std::string describe_plot(const nlohmann::ordered_json& rows, const std::string& key, const std::string& title);

}  // namespace convoy::cli
