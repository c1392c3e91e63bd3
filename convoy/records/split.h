// The split of the official training set into a training and a validation part, fixed by seed and kept as a record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/base/files.h"

namespace convoy::records {

/// What decides a split.
struct SplitOptions {
  /// Images in the official training set.
  std::int64_t samples = 0;
  /// How many of them are set apart for validation; 0 sets none apart.
  std::int64_t validation = 0;
  /// How many of the others are used for training, chosen at random; 0 uses all.
  std::int64_t limit = 0;
  /// Seeds the choices.
  std::uint64_t seed = 1;
  friend bool operator==(const SplitOptions&, const SplitOptions&) = default;
};

/// Which images belong to which part. Sample number i of a sample plan is image training[i].
struct Split {
  /// The images of the training part, ascending.
  std::vector<std::int64_t> training;
  /// The images of the validation part, ascending; none of them is in the training part.
  std::vector<std::int64_t> validation;
  friend bool operator==(const Split&, const Split&) = default;
};

/// Returns the split that the options decide: the same on every rank and machine.
/// Errors:     kInvalidArgument naming data.validation or data.limit when the set is too small for it
Split make_split(const SplitOptions& options);

/// Returns a split's record, a JSON text: format version, options, `source_digest` (digest() of the unpacked official
/// training set), a digest of both index lists, and the validation images.
/// See:        docs/data.md
std::string split_record(const SplitOptions& options, const std::string& source_digest, const Split& split);

/// Returns the split in a record file; where there is none, makes the split and writes the record first. A record is
/// believed before the options: a later version that would choose otherwise still trains on the recorded parts.
/// Collective: Local. One rank at a time may make the file: let the first rank do so, then the others read it
/// Errors:     kInvalidArgument naming each difference when the record was made from other data or other options;
///             kCorrupt when the record is damaged; kNotSupported for a record of a later format; kIo
Split load_or_make_split(Files& files, const std::string& path, const SplitOptions& options,
                         const std::string& source_digest);

}  // namespace convoy::records
