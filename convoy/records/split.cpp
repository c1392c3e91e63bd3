// Chooses the parts of a split.
#include "convoy/records/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convoy/base/error.h"
#include "convoy/base/random.h"
#include "convoy/records/split_parts.h"

namespace convoy::records {
namespace {

using Numbers = std::vector<std::int64_t>;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

Numbers all_of(std::int64_t count) {
  Numbers all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Moves `count` of the numbers, chosen at random, to the front.
void choose_front(Numbers& numbers, std::int64_t count, RandomStream stream) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    std::swap(numbers[i], numbers[i + stream.below(numbers.size() - i)]);
  }
}

// Chooses `count` of the given numbers and returns them in ascending order.
Numbers choose(Numbers numbers, std::int64_t count, RandomStream stream) {
  choose_front(numbers, count, stream);
  numbers.resize(static_cast<std::size_t>(count));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Numbers without(const Numbers& numbers, const Numbers& taken) {
  Numbers left;
  std::set_difference(numbers.begin(), numbers.end(), taken.begin(), taken.end(), std::back_inserter(left));
  return left;
}

RandomStream stream_of(const SplitOptions& options, std::uint64_t use) {
  return RandomStream(StreamPurpose::kSplit, {options.seed, use});
}

// Takes whole groups as long as they fit into `wanted` samples; `free` are the groups that are left, in order.
Numbers take_groups(std::int64_t wanted, const std::vector<Numbers>& members, Numbers& free) {
  Numbers taken;
  Numbers left;
  for (const std::int64_t group : free) {
    const Numbers& samples = members[static_cast<std::size_t>(group)];
    // The last group is for training, however well it would fit.
    const bool last = left.empty() && group == free.back();
    if (last || static_cast<std::int64_t>(taken.size() + samples.size()) > wanted) {
      left.push_back(group);
    } else {
      taken.insert(taken.end(), samples.begin(), samples.end());
    }
  }
  free = std::move(left);
  std::sort(taken.begin(), taken.end());
  return taken;
}

Split by_group(const SplitOptions& options, const Numbers& group_of) {
  CONVOY_CHECK(group_of.size() == static_cast<std::size_t>(options.samples), "each sample needs its group");
  std::vector<Numbers> members;
  for (std::size_t i = 0; i < group_of.size(); ++i) {
    const auto group = static_cast<std::size_t>(group_of[i]);
    if (group >= members.size()) members.resize(group + 1);
    members[group].push_back(static_cast<std::int64_t>(i));
  }
  Numbers free = all_of(static_cast<std::int64_t>(members.size()));
  choose_front(free, static_cast<std::int64_t>(free.size()), stream_of(options, 0));
  Split split;
  split.test = take_groups(options.test, members, free);
  split.validation = take_groups(options.validation, members, free);
  return split;
}

// Takes the latest `wanted` of the samples in `order`; samples of the moment at the border stay with the earlier ones.
Numbers take_latest(std::int64_t wanted, const std::vector<double>& time_of, Numbers& order) {
  std::size_t begin = order.size() - static_cast<std::size_t>(wanted);
  const auto time = [&](std::size_t i) { return time_of[static_cast<std::size_t>(order[i])]; };
  while (begin > 0 && begin < order.size() && time(begin) == time(begin - 1)) ++begin;
  Numbers taken(order.begin() + static_cast<std::ptrdiff_t>(begin), order.end());
  order.resize(begin);
  std::sort(taken.begin(), taken.end());
  return taken;
}

Split by_time(const SplitOptions& options, const std::vector<double>& time_of) {
  CONVOY_CHECK(time_of.size() == static_cast<std::size_t>(options.samples), "each sample needs its time");
  Numbers order = all_of(options.samples);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return time_of[static_cast<std::size_t>(a)] < time_of[static_cast<std::size_t>(b)];
  });
  Split split;
  split.test = take_latest(options.test, time_of, order);
  split.validation = take_latest(options.validation, time_of, order);
  return split;
}

Split at_random(const SplitOptions& options) {
  Split split;
  const Numbers all = all_of(options.samples);
  split.validation = choose(all, options.validation, stream_of(options, 0));
  split.test = choose(without(all, split.validation), options.test, stream_of(options, 2));
  return split;
}

void check_sizes(const SplitOptions& options) {
  if (options.samples < 1) refuse("there is no sample to divide");
  if (options.test < 0 || options.test >= options.samples) {
    refuse(fmt::format("data.test = {} leaves nothing to train on: the training set has {} samples", options.test,
                       options.samples));
  }
  if (options.validation < 0 || options.validation >= options.samples - options.test) {
    const std::string beside = options.test == 0 ? "" : fmt::format(", {} of them for the test", options.test);
    refuse(fmt::format("data.validation = {} leaves nothing to train on: the training set has {} samples{}",
                       options.validation, options.samples, beside));
  }
}

void check_part(const char* key, std::int64_t wanted, const Numbers& part, SplitKind kind) {
  if (wanted == 0 || !part.empty()) return;
  refuse(fmt::format("data.{} = {} gives an empty part: {}", key, wanted,
                     kind == SplitKind::kGroup ? "each group has more samples" : "more samples have the latest time"));
}

}  // namespace

SplitKind to_split_kind(const std::string& word) {
  for (std::size_t i = 0; i < kSplitKinds.size(); ++i) {
    if (word == kSplitKinds[i]) return static_cast<SplitKind>(i);
  }
  refuse(fmt::format("there is no split '{}'", word));
}

// The training part follows from the others: what is left, or a choice of it.
Split complete_split(const SplitOptions& options, Split parts) {
  parts.training = without(without(all_of(options.samples), parts.validation), parts.test);
  if (options.limit > 0) {
    parts.training = choose(std::move(parts.training), options.limit, stream_of(options, 1));
  }
  return parts;
}

Split make_split(const SplitOptions& options, const SplitKeys& keys) {
  check_sizes(options);
  Split parts;
  switch (options.kind) {
    case SplitKind::kOfficial:
    case SplitKind::kRandom: parts = at_random(options); break;
    case SplitKind::kGroup: parts = by_group(options, keys.group_of); break;
    case SplitKind::kTime: parts = by_time(options, keys.time_of); break;
  }
  check_part("test", options.test, parts.test, options.kind);
  check_part("validation", options.validation, parts.validation, options.kind);
  const auto set_apart = static_cast<std::int64_t>(parts.validation.size() + parts.test.size());
  if (options.limit < 0 || options.limit > options.samples - set_apart) {
    const std::string others = parts.test.empty() ? "" : fmt::format(" and {} for the test", parts.test.size());
    refuse(fmt::format("data.limit = {} is more than the {} samples that are left beside {} for validation{}",
                       options.limit, options.samples - set_apart, parts.validation.size(), others));
  }
  return complete_split(options, std::move(parts));
}

}  // namespace convoy::records
