// Small learnable data in exactly the official formats: for tests, trials and machines without the real files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/records/images/images.h"

namespace convoy::records {

/// What is made.
struct SynthOptions {
  /// Samples of the training files; the bank table has only these.
  std::int64_t samples = 5000;
  /// Samples of the test files.
  std::int64_t test = 1000;
  /// Seeds everything; the training set of another seed has other patterns.
  std::uint64_t seed = 1;
};

/// Returns images of 10 classes. Each class has a smooth pattern in each channel; an image is its class's pattern, moved by
/// up to an eighth of its side and fainter or stronger, under a fainter one of another class and noise. Images of one seed
/// share their patterns, `first` says which numbers of the endless row of images are made.
ImageSet synth_images(std::int64_t channels, std::int64_t side, std::int64_t first, std::int64_t count,
                      std::uint64_t seed);

/// Writes the four IDX files of MNIST's names, packed, 28 x 28 pixels; returns their names.
std::vector<std::string> synth_idx(Files& files, const std::string& folder, const SynthOptions& options);

/// Writes the six binary batches of CIFAR-10 and their class names; returns the names of the files.
std::vector<std::string> synth_cifar10(Files& files, const std::string& folder, const SynthOptions& options);

/// Writes bank-additional-full.csv as the bank-marketing table has it: its columns, quotes and order by date. About 11% of
/// the rows are "yes"; age, job, contact, month, poutcome and the figures of the economy decide with what chance, and the
/// call's duration gives the answer away. Some categories are rare. Returns the names of the files.
std::vector<std::string> synth_bank(Files& files, const std::string& folder, const SynthOptions& options);

}  // namespace convoy::records
