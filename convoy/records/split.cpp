// Chooses the parts of a split, and writes, reads and checks the record of the choice.
#include "convoy/records/split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/base/random.h"

namespace convoy::records {
namespace {

constexpr int kFormat = 1;

// Chooses `count` of the given numbers and returns them in ascending order.
std::vector<std::int64_t> choose(std::vector<std::int64_t> numbers, std::int64_t count, RandomStream stream) {
  const auto wanted = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < wanted; ++i) std::swap(numbers[i], numbers[i + stream.below(numbers.size() - i)]);
  numbers.resize(wanted);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// The training part follows from the validation part: what is left, or a choice of it.
Split complete(const SplitOptions& options, std::vector<std::int64_t> validation) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(options.samples));
  std::iota(all.begin(), all.end(), 0);
  Split split;
  std::set_difference(all.begin(), all.end(), validation.begin(), validation.end(), std::back_inserter(split.training));
  split.validation = std::move(validation);
  if (options.limit > 0) {
    split.training =
        choose(std::move(split.training), options.limit, RandomStream(StreamPurpose::kSplit, {options.seed, 1}));
  }
  return split;
}

std::string index_digest(const Split& split) {
  Hasher hasher;
  for (const auto* part : {&split.training, &split.validation}) {
    hasher.update(fmt::format("{}:{};", part->size(), fmt::join(*part, ",")));
  }
  return hasher.hex();
}

[[noreturn]] void refuse_damaged(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kCorrupt,
              fmt::format("the split record {} is damaged ({}): remove it to make the split anew", path, why));
}

// A record as it was read; damage apart, nothing about it is known to fit.
struct Record {
  SplitOptions options;
  std::string source_digest;
  Split split;
};

void check_indexes(const std::string& path, const SplitOptions& options, const std::vector<std::int64_t>& validation) {
  const bool fits = options.samples >= 1 && options.samples <= INT32_MAX && options.limit >= 0 &&
                    static_cast<std::int64_t>(validation.size()) == options.validation &&
                    options.validation < options.samples && options.limit <= options.samples - options.validation;
  if (!fits) refuse_damaged(path, "its numbers contradict each other");
  const auto not_ascending = std::adjacent_find(validation.begin(), validation.end(), std::greater_equal<>());
  const bool inside = validation.empty() || (validation.front() >= 0 && validation.back() < options.samples);
  if (not_ascending != validation.end() || !inside) {
    refuse_damaged(path, "its validation images are not ascending numbers inside the set");
  }
}

Record read_record(const std::string& path, const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    const int format = json.at("split").get<int>();
    if (format > kFormat) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("the split record {} has format {}; this version reads up to {}", path, format, kFormat));
    }
    Record record;
    record.options.samples = json.at("samples").get<std::int64_t>();
    record.options.validation = json.at("validation").get<std::int64_t>();
    record.options.limit = json.at("limit").get<std::int64_t>();
    record.options.seed = json.at("seed").get<std::uint64_t>();
    record.source_digest = json.at("source_digest").get<std::string>();
    auto validation = json.at("validation_images").get<std::vector<std::int64_t>>();
    check_indexes(path, record.options, validation);
    record.split = complete(record.options, std::move(validation));
    if (json.at("index_digest").get<std::string>() != index_digest(record.split)) {
      refuse_damaged(path, "the digest of its index lists does not fit them");
    }
    return record;
  } catch (const nlohmann::json::exception& error) {
    refuse_damaged(path, error.what());
  }
}

}  // namespace

Split make_split(const SplitOptions& options) {
  if (options.validation < 0 || options.validation >= options.samples) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("data.validation = {} leaves nothing to train on: the training set has {} samples",
                            options.validation, options.samples));
  }
  if (options.limit < 0 || options.limit > options.samples - options.validation) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("data.limit = {} is more than the {} samples that are left beside {} for validation",
                            options.limit, options.samples - options.validation, options.validation));
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(options.samples));
  std::iota(all.begin(), all.end(), 0);
  return complete(options,
                  choose(std::move(all), options.validation, RandomStream(StreamPurpose::kSplit, {options.seed, 0})));
}

std::string split_record(const SplitOptions& options, const std::string& source_digest, const Split& split) {
  nlohmann::ordered_json json;
  json["split"] = kFormat;
  json["samples"] = options.samples;
  json["validation"] = options.validation;
  json["limit"] = options.limit;
  json["seed"] = options.seed;
  json["source_digest"] = source_digest;
  json["index_digest"] = index_digest(split);
  json["validation_images"] = split.validation;
  return json.dump() + "\n";
}

Split load_or_make_split(Files& files, const std::string& path, const SplitOptions& options,
                         const std::string& source_digest) {
  if (!files.exists(path)) {
    Split split = make_split(options);
    files.make_directories(parent_path(path));
    write_atomic(files, path, split_record(options, source_digest, split));
    return split;
  }
  Record record = read_record(path, files.read(path));
  std::vector<std::string> differences;
  const auto compare = [&](const char* what, const auto& recorded, const auto& wanted) {
    if (recorded != wanted) differences.push_back(fmt::format("{} {} there, {} here", what, recorded, wanted));
  };
  compare("samples", record.options.samples, options.samples);
  compare("data.validation", record.options.validation, options.validation);
  compare("data.limit", record.options.limit, options.limit);
  compare("data.split_seed", record.options.seed, options.seed);
  compare("digest of the training set", record.source_digest, source_digest);
  if (differences.empty()) return std::move(record.split);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the split record {} was made for another run: {}", path, fmt::join(differences, "; ")));
}

}  // namespace convoy::records
