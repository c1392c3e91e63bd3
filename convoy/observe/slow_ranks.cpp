#include "convoy/observe/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/observe/quantile.h"

namespace convoy::observe {

SlowRanks::SlowRanks(int ranks, const SlowRankOptions& options) : options_(options) {
  if (ranks < 1 || options.window < 1 || !(options.ratio > 1.0)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("slow ranks among {} by a ratio of {} over {} steps", ranks,
                                                         options.ratio, options.window));
  }
  newest_.resize(static_cast<std::size_t>(ranks));
}

void SlowRanks::add_step(std::span<const double> own_work_ms) {
  if (own_work_ms.size() != newest_.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("own work of {} ranks where there are {}", own_work_ms.size(), newest_.size()));
  }
  const std::size_t place = steps_++ % options_.window;
  for (std::size_t rank = 0; rank < newest_.size(); ++rank) {
    if (place == newest_[rank].size()) newest_[rank].push_back(0.0);
    newest_[rank][place] = own_work_ms[rank];
  }
}

std::vector<double> SlowRanks::medians() const {
  std::vector<double> all;
  if (steps_ == 0) return all;
  for (const std::vector<double>& steps : newest_) all.push_back(median(steps));
  return all;
}

std::vector<SlowRank> SlowRanks::slow() const {
  std::vector<SlowRank> found;
  const std::vector<double> all = medians();
  // The lower middle of an even number: of two ranks the slow one must not be its own measure.
  std::vector<double> sorted = all;
  std::sort(sorted.begin(), sorted.end());
  const double usual = sorted.empty() ? 0.0 : sorted[(sorted.size() - 1) / 2];
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (usual > 0.0 && all[rank] >= options_.ratio * usual) {
      found.push_back({static_cast<int>(rank), all[rank], usual});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const SlowRank& a, const SlowRank& b) { return a.own_work_ms > b.own_work_ms; });
  return found;
}

nlohmann::ordered_json SlowRanks::to_json() const {
  nlohmann::ordered_json json = {{"own_work_ms", medians()}, {"slow", nlohmann::ordered_json::array()}};
  for (const SlowRank& one : slow()) {
    json["slow"].push_back({{"rank", one.rank}, {"own_work_ms", one.own_work_ms}, {"median_ms", one.median_ms}});
  }
  return json;
}

}  // namespace convoy::observe
