// Writes, reads and checks the record of a split.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/records/split_parts.h"

namespace convoy::records {
namespace {

constexpr int kFormat = 2;

std::string index_digest(const Split& split) {
  Hasher hasher;
  for (const auto* part : {&split.training, &split.validation, &split.test}) {
    hasher.update(fmt::format("{}:{};", part->size(), fmt::join(*part, ",")));
  }
  return hasher.hex();
}

const char* word_of(SplitKind kind) { return kSplitKinds[static_cast<std::size_t>(kind)]; }

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

// By group and by time a part may be smaller than was asked for, but never empty.
bool fits(SplitKind kind, std::int64_t wanted, std::size_t found) {
  const auto count = static_cast<std::int64_t>(found);
  if (kind == SplitKind::kOfficial || kind == SplitKind::kRandom) return count == wanted;
  return count <= wanted && (count > 0 || wanted == 0);
}

bool ascends_inside(const std::vector<std::int64_t>& part, std::int64_t samples) {
  return std::adjacent_find(part.begin(), part.end(), std::greater_equal<>()) == part.end() &&
         (part.empty() || (part.front() >= 0 && part.back() < samples));
}

void check_parts(const std::string& path, const SplitOptions& options, const Split& parts) {
  const auto set_apart = static_cast<std::int64_t>(parts.validation.size() + parts.test.size());
  const bool sized = options.samples >= 1 && options.samples <= INT32_MAX && options.limit >= 0 &&
                     fits(options.kind, options.validation, parts.validation.size()) &&
                     fits(options.kind, options.test, parts.test.size()) && set_apart < options.samples &&
                     options.limit <= options.samples - set_apart;
  if (!sized) refuse_damaged(path, "its numbers contradict each other");
  std::vector<std::int64_t> both;
  std::set_intersection(parts.validation.begin(), parts.validation.end(), parts.test.begin(), parts.test.end(),
                        std::back_inserter(both));
  if (!both.empty() || !ascends_inside(parts.validation, options.samples) ||
      !ascends_inside(parts.test, options.samples)) {
    refuse_damaged(path, "its parts are not ascending numbers inside the set, each in one part");
  }
}

Record read_record(const std::string& path, const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    const int format = json.at("split").get<int>();
    if (format != kFormat) {
      throw Error(
          ErrorCode::kNotSupported,
          fmt::format("the split record {} has format {}; this version reads format {}", path, format, kFormat));
    }
    Record record;
    record.options.kind = to_split_kind(json.at("kind").get<std::string>());
    record.options.samples = json.at("samples").get<std::int64_t>();
    record.options.validation = json.at("validation").get<std::int64_t>();
    record.options.test = json.at("test").get<std::int64_t>();
    record.options.limit = json.at("limit").get<std::int64_t>();
    record.options.seed = json.at("seed").get<std::uint64_t>();
    record.source_digest = json.at("source_digest").get<std::string>();
    Split parts;
    parts.validation = json.at("validation_samples").get<std::vector<std::int64_t>>();
    parts.test = json.at("test_samples").get<std::vector<std::int64_t>>();
    check_parts(path, record.options, parts);
    record.split = complete_split(record.options, std::move(parts));
    if (json.at("index_digest").get<std::string>() != index_digest(record.split)) {
      refuse_damaged(path, "the digest of its index lists does not fit them");
    }
    return record;
  } catch (const nlohmann::json::exception& error) {
    refuse_damaged(path, error.what());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) refuse_damaged(path, error.message());
    throw;
  }
}

}  // namespace

std::string split_record(const SplitOptions& options, const std::string& source_digest, const Split& split) {
  nlohmann::ordered_json json;
  json["split"] = kFormat;
  json["kind"] = word_of(options.kind);
  json["samples"] = options.samples;
  json["validation"] = options.validation;
  json["test"] = options.test;
  json["limit"] = options.limit;
  json["seed"] = options.seed;
  json["source_digest"] = source_digest;
  json["index_digest"] = index_digest(split);
  json["validation_samples"] = split.validation;
  json["test_samples"] = split.test;
  return json.dump() + "\n";
}

Split load_or_make_split(Files& files, const std::string& path, const SplitOptions& options,
                         const std::string& source_digest, const SplitKeys& keys) {
  if (!files.exists(path)) {
    Split split = make_split(options, keys);
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
  compare("data.split", std::string(word_of(record.options.kind)), std::string(word_of(options.kind)));
  compare("data.validation", record.options.validation, options.validation);
  compare("data.test", record.options.test, options.test);
  compare("data.limit", record.options.limit, options.limit);
  compare("data.split_seed", record.options.seed, options.seed);
  compare("digest of the training set", record.source_digest, source_digest);
  if (differences.empty()) return std::move(record.split);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the split record {} was made for another run: {}", path, fmt::join(differences, "; ")));
}

}  // namespace convoy::records
