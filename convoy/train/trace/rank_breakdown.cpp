#include "convoy/train/trace/rank_breakdown.h"

#include <algorithm>
#include <span>

namespace convoy::train {

std::vector<observe::StepSummary> gather_summaries(comm::Group& group, const observe::StepSummary& own) {
  constexpr std::size_t kNumbers = observe::kParts + 3;
  std::vector<double> mine = {static_cast<double>(own.steps), own.median_ms, own.p95_ms};
  mine.insert(mine.end(), own.parts_ms.begin(), own.parts_ms.end());
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<double> all(kNumbers * ranks);
  comm::all_gather_async(group, comm::Buffer(std::span<const double>(mine)), comm::Buffer(std::span<double>(all)),
                         std::vector<std::int64_t>(ranks, kNumbers), DType::kFloat64)
      .wait();
  std::vector<observe::StepSummary> summaries(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::span<const double> numbers = std::span(all).subspan(rank * kNumbers, kNumbers);
    summaries[rank].steps = static_cast<std::int64_t>(numbers[0]);
    summaries[rank].median_ms = numbers[1];
    summaries[rank].p95_ms = numbers[2];
    std::copy(numbers.begin() + 3, numbers.end(), summaries[rank].parts_ms.begin());
  }
  return summaries;
}

}  // namespace convoy::train
