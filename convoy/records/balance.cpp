// Class counts, class weights and the map from draws to samples.
#include "convoy/records/balance.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/error.h"
#include "convoy/base/random.h"

namespace convoy::records {
namespace {

void shuffle(std::vector<std::int64_t>& numbers, RandomStream& stream) {
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[stream.below(i)]);
}

}  // namespace

std::vector<std::int64_t> count_classes(const Dataset& dataset, std::span<const std::int64_t> indexes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(dataset.classes()), 0);
  for (const std::int64_t index : indexes) ++counts.at(static_cast<std::size_t>(dataset.label(index)));
  return counts;
}

std::vector<float> balanced_class_weights(std::span<const std::int64_t> counts) {
  std::int64_t samples = 0;
  std::int64_t present = 0;
  for (const std::int64_t count : counts) {
    samples += count;
    present += count > 0 ? 1 : 0;
  }
  std::vector<float> weights(counts.size(), 0.0f);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    weights[i] = static_cast<float>(static_cast<double>(samples) / static_cast<double>(present * counts[i]));
  }
  return weights;
}

DrawMap::DrawMap(std::vector<std::int64_t> labels, int classes, std::uint64_t seed)
    : labels_(std::move(labels)), classes_(classes), seed_(seed) {
  if (labels_.empty()) throw Error(ErrorCode::kInvalidArgument, "data.resample: there is no training sample to draw");
}

std::vector<std::int64_t> DrawMap::samples_of(std::int64_t epoch, std::span<const std::int64_t> draws) const {
  const MutexLock lock(mutex_);
  if (cached_epoch_ != epoch) {
    cached_ = order(epoch);
    cached_epoch_ = epoch;
  }
  std::vector<std::int64_t> samples;
  for (const std::int64_t draw : draws) {
    if (draw < 0 || draw >= static_cast<std::int64_t>(cached_.size())) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no draw {} of {}", draw, cached_.size()));
    }
    samples.push_back(cached_[static_cast<std::size_t>(draw)]);
  }
  return samples;
}

std::vector<std::int64_t> DrawMap::class_counts(std::int64_t epoch) const {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes_), 0);
  for (const std::int64_t sample : order(epoch))
    ++counts[static_cast<std::size_t>(labels_[static_cast<std::size_t>(sample)])];
  return counts;
}

// The sample of each draw. Where the draws do not divide by the classes, the classes that get one more change by epoch.
std::vector<std::int64_t> DrawMap::order(std::int64_t epoch) const {
  std::vector<std::vector<std::int64_t>> members(static_cast<std::size_t>(classes_));
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    members.at(static_cast<std::size_t>(labels_[i])).push_back(static_cast<std::int64_t>(i));
  }
  std::erase_if(members, [](const auto& group) { return group.empty(); });
  // One word more than the order of the samples has in its key, so the two share no numbers.
  RandomStream stream(StreamPurpose::kSampleOrder, {seed_, static_cast<std::uint64_t>(epoch), 1});
  for (auto& group : members) shuffle(group, stream);
  std::vector<std::int64_t> samples(labels_.size());
  const std::size_t turn = static_cast<std::size_t>(epoch) % members.size();
  for (std::size_t draw = 0; draw < samples.size(); ++draw) {
    auto& group = members[(draw + turn) % members.size()];
    const std::size_t round = draw / members.size();
    samples[draw] = group[round % group.size()];
  }
  return samples;
}

}  // namespace convoy::records
