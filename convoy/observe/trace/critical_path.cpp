#include "convoy/observe/trace/critical_path.h"

#include <algorithm>
#include <optional>

namespace convoy::observe {
namespace {

class Walk {
 public:
  explicit Walk(const StepTimeline& step) : step_(step) {
    for (std::size_t rank = 1; rank < step.ranks.size(); ++rank) {
      if (step.ranks[rank].step.end > step.ranks[rank_].step.end) rank_ = rank;
    }
    now_ = step.ranks[rank_].step.end;
    collective_ = step.collectives.size();
  }

  std::vector<PathPart> go() {
    while (const DriverPart* part = part_before()) {
      if (part->kind == SpanKind::kCommWait && pass_collective(*part)) continue;
      add(part->kind, 0, part->begin);
    }
    std::reverse(path_.begin(), path_.end());
    return path_;
  }

 private:
  // What the rank's driver did just before now; null at the step's begin.
  const DriverPart* part_before() const {
    const std::vector<DriverPart>& parts = step_.ranks[rank_].parts;
    const auto after =
        std::partition_point(parts.begin(), parts.end(), [&](const DriverPart& part) { return part.begin < now_; });
    return after == parts.begin() ? nullptr : &*(after - 1);
  }

  // Goes through the newest collective that the wait can have been for; false when there is none.
  bool pass_collective(const DriverPart& wait) {
    while (collective_ > 0) {
      const CollectiveTimes& times = step_.collectives[--collective_];
      if (times.finished[rank_] > now_ || times.finished[rank_] <= wait.begin) continue;
      add(SpanKind::kCommWait, times.number, std::min(times.started[rank_], now_));
      if (times.started[rank_] > times.arrival) return true;  // the one before it held it up
      const auto last = static_cast<std::size_t>(times.last_rank);
      if (last != rank_ && times.arrival <= now_) {
        // What moved before was launched before: nothing else is left to wait for.
        rank_ = last;
        now_ = times.arrival;
      } else {
        now_ = std::min(now_, times.launched[rank_]);
      }
      return true;
    }
    return false;
  }

  void add(SpanKind kind, std::int64_t collective, std::int64_t begin) {
    if (begin < now_) path_.push_back({static_cast<int>(rank_), kind, collective, begin, now_});
    now_ = std::min(now_, begin);
  }

  const StepTimeline& step_;
  std::size_t rank_ = 0;
  std::int64_t now_ = 0;
  // Collectives before this one may still be waited for: time goes backwards.
  std::size_t collective_ = 0;
  std::vector<PathPart> path_;
};

}  // namespace

std::vector<PathPart> critical_path(const StepTimeline& step) { return Walk(step).go(); }

}  // namespace convoy::observe
