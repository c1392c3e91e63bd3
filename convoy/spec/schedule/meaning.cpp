// The definitions of the collectives.
#include "convoy/spec/schedule/meaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convoy/base/error.h"

namespace convoy::spec {
namespace {

[[noreturn]] void refuse(const Schedule& schedule, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", schedule.algorithm, why));
}

}  // namespace

Meaning::Meaning(const Schedule& schedule) : schedule_(schedule) {
  const std::string& name = schedule.collective;
  const std::size_t ranks = schedule.ranks.size();
  const bool rooted = name == "broadcast" || name == "reduce" || name == "gather" || name == "scatter";
  if (rooted && (schedule.root < 0 || static_cast<std::size_t>(schedule.root) >= ranks)) {
    refuse(schedule, fmt::format("the root of a {} is {}", name, schedule.root));
  }
  if (name == "reduce_scatter" || name == "scatter") {
    place_parts(schedule.output_elements);
  } else if (name == "all_gather" || name == "gather") {
    place_parts(schedule.input_elements);
  } else if (name == "all_to_all") {
    const auto wrong = [ranks](const std::vector<std::int64_t>& row) { return row.size() != ranks; };
    if (schedule.counts.size() != ranks || std::any_of(schedule.counts.begin(), schedule.counts.end(), wrong)) {
      refuse(schedule, fmt::format("the counts of an all_to_all are not for {} ranks", ranks));
    }
  } else {
    defined_ = rooted || name == "all_reduce" || name == "barrier";
  }
}

void Meaning::place_parts(const std::vector<std::int64_t>& sizes) {
  owners_.resize(sizes.size());
  std::iota(owners_.begin(), owners_.end(), 0);
  if (!schedule_.part_of.empty()) {
    if (!std::is_permutation(schedule_.part_of.begin(), schedule_.part_of.end(), owners_.begin(), owners_.end())) {
      refuse(schedule_, fmt::format("part_of does not name each of {} parts once", sizes.size()));
    }
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      owners_[static_cast<std::size_t>(schedule_.part_of[rank])] = static_cast<int>(rank);
    }
  }
  begins_.resize(sizes.size());
  std::int64_t reached = 0;
  for (const int owner : owners_) {
    begin(owner) = reached;
    reached += sizes[static_cast<std::size_t>(owner)];
  }
}

Meaning::Origin Meaning::origin(int rank, std::int64_t element) const {
  const std::string& name = schedule_.collective;
  const auto r = static_cast<std::size_t>(rank);
  const std::int64_t left = schedule_.output_elements[r] - element;
  if (name == "all_reduce" || name == "reduce") return {-1, element, left};
  if (name == "reduce_scatter") return {-1, element + begins_[r], left};
  if (name == "broadcast") return {schedule_.root, element, left};
  if (name == "scatter") return {schedule_.root, element + begins_[r], left};
  if (name == "all_to_all") {
    std::int64_t at = element;
    for (std::size_t source = 0; source < schedule_.counts.size(); ++source) {
      const std::vector<std::int64_t>& row = schedule_.counts[source];
      if (at < row[r]) {
        const std::int64_t before = std::accumulate(row.begin(), row.begin() + rank, std::int64_t{0});
        return {static_cast<int>(source), before + at, row[r] - at};
      }
      at -= row[r];
    }
    return {};
  }
  for (const int owner : owners_) {
    const auto o = static_cast<std::size_t>(owner);
    const std::int64_t within = element - begins_[o];
    if (within >= 0 && within < schedule_.input_elements[o]) {
      return {owner, within, schedule_.input_elements[o] - within};
    }
  }
  return {};
}

}  // namespace convoy::spec
