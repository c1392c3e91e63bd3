// The recipe's table of data: where samples come from and how they are divided.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace convoy::spec {

/// `[data]`: where samples come from and how they are divided.
struct DataRecipe {
  /// The file format: "idx" (MNIST, Fashion-MNIST), "cifar10" (binary batches) or "csv".
  std::string format = "idx";
  /// The folder with the files, or the CSV file; "" takes, for idx, the folder of Debian's package
  /// dataset-fashion-mnist.
  std::string path;
  /// CSV: the official test file, "" where there is none; and the delimiter between two fields.
  std::string test_path, delimiter = ",";
  /// How parts are divided: "official" (the test part has files of its own), "random", "group" or "time".
  std::string split = "official";
  /// How many training samples are set apart for validation, and (CSV without `test_path`) for the test.
  std::int64_t validation = 5000, test = 0;
  /// Seeds the choice of the samples that are set apart.
  std::int64_t split_seed = 1;
  /// Uses only this many samples of the training part; 0 uses all.
  std::int64_t limit = 0;
  /// Shifts each training image by up to this many pixels each way.
  std::int64_t shift = 0;
  /// Flips half of the training images left to right.
  bool flip = false;
  /// "none": each training sample once per epoch. "balanced": all classes are drawn alike.
  std::string resample = "none";
  /// CSV: the fields that stand for a missing value.
  std::vector<std::string> missing = {""};
  /// CSV with two classes: the class whose scores are ranked; "" takes the second one.
  std::string positive;
  /// The columns that evaluation results are cut by.
  std::vector<std::string> slices;
  /// CSV: what each column of the file is used for.
  /// See:        DataColumn
  std::map<std::string, std::string> columns;
  /// How many global batches are prepared ahead.
  std::int64_t prefetch = 3;
  friend bool operator==(const DataRecipe&, const DataRecipe&) = default;
};

}  // namespace convoy::spec
