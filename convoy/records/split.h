// The division of the samples into training, validation and test, fixed by seed, group or time and kept as a record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/base/files.h"

namespace convoy::records {

/// How parts are divided. Official: validation at random, the test part has files of its own. Random: both at random.
/// Group: no group in two parts. Time: the latest are the test part, those before them validation.
enum class SplitKind { kOfficial, kRandom, kGroup, kTime };

/// Returns the kind of a recipe's data.split.
/// Errors:     kInvalidArgument for another word
SplitKind to_split_kind(const std::string& word);

/// What decides a split.
struct SplitOptions {
  /// Samples in the training files.
  std::int64_t samples = 0;
  /// How many of them are set apart for validation; 0 sets none apart. By group and by time it may be fewer, never more.
  std::int64_t validation = 0;
  /// How many of the others are used for training, chosen at random; 0 uses all.
  std::int64_t limit = 0;
  /// Seeds the choices.
  std::uint64_t seed = 1;
  /// How many are set apart for the test; as `validation`.
  std::int64_t test = 0;
  /// How they are chosen.
  SplitKind kind = SplitKind::kOfficial;
  friend bool operator==(const SplitOptions&, const SplitOptions&) = default;
};

/// What splits by group and by time look at.
struct SplitKeys {
  /// The group of each sample, as a number from 0.
  std::vector<std::int64_t> group_of = {};
  /// The time of each sample.
  std::vector<double> time_of = {};
};

/// Which samples belong to which part. Sample number i of a sample plan is sample training[i] of the data.
struct Split {
  /// The samples of the training part, ascending.
  std::vector<std::int64_t> training;
  /// The samples of the validation part, ascending; in no other part.
  std::vector<std::int64_t> validation;
  /// The samples of the test part, ascending, where it is cut from the same files; in no other part.
  std::vector<std::int64_t> test = {};
  friend bool operator==(const Split&, const Split&) = default;
};

/// Returns the split that options and keys decide: the same on every rank and machine. By group, groups are taken in an
/// order of the seed as long as they fit; by time, samples of one moment stay together.
/// Errors:     kInvalidArgument naming data.validation, data.test or data.limit when the data is too small for it, or
///             when a part that was asked for would be empty
Split make_split(const SplitOptions& options, const SplitKeys& keys = {});

/// Returns a split's record, a JSON text: format version, options, `source_digest` (of the training files' content), a
/// digest of the index lists, and the validation and test samples.
/// See:        docs/data.md
std::string split_record(const SplitOptions& options, const std::string& source_digest, const Split& split);

/// Returns the split in a record file; where there is none, makes the split and writes the record first. A record is
/// believed before the options: a later version that would choose otherwise still trains on the recorded parts.
/// Collective: Local. One rank at a time may make the file: let the first rank do so, then the others read it
/// Errors:     kInvalidArgument naming each difference when the record was made from other data or other options;
///             kCorrupt when the record is damaged; kNotSupported for a record of another format; kIo
Split load_or_make_split(Files& files, const std::string& path, const SplitOptions& options,
                         const std::string& source_digest, const SplitKeys& keys = {});

}  // namespace convoy::records
