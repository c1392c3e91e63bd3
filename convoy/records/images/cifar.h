// The binary format of CIFAR-10: reads it without trusting it, and writes it.
//
// A batch is a run of records of 3073 bytes: the label (0 to 9), then 1024 bytes each of red, green and blue, row by row.
// The official set has data_batch_1.bin to data_batch_5.bin and test_batch.bin with 10,000 records each, and the names
// of the classes in batches.meta.txt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "convoy/base/files.h"
#include "convoy/records/images/images.h"

namespace convoy::records {

/// How many classes the format has.
inline constexpr int kCifarClasses = 10;

/// The bytes of one record.
inline constexpr std::int64_t kCifarRecordBytes = 1 + 3 * 32 * 32;

/// The folder inside the official archive; a recipe may name it or the folder above.
inline constexpr const char* kCifarFolder = "cifar-10-batches-bin";

/// Adds the records of a batch that lies in memory to a set of such images; `name` stands for the file in messages.
/// Errors:     kInvalidArgument naming the file, and what was expected and found, for a size that is no multiple of a
///             record, no record at all, or a label above 9 (names the record, counted from 0)
void add_cifar_batch(std::string_view bytes, const std::string& name, ImageSet& images);

/// Reads the five training batches from a folder, in order.
/// Errors:     kInvalidArgument naming the folder and the file that it lacks, and what add_cifar_batch finds wrong
ImageSet load_cifar_train(Files& files, const std::string& folder);

/// Reads the test batch. Touched once, when training is over.
/// Errors:     as load_cifar_train
ImageSet load_cifar_test(Files& files, const std::string& folder);

/// Returns images of 3 x 32 x 32 as one batch file.
/// Errors:     kInvalidArgument when the images have another size or a label is above 9
std::string cifar_batch(const ImageSet& images, std::int64_t first, std::int64_t count);

/// Writes a training set as five batches, as even as it divides, a test set as test_batch.bin, and batches.meta.txt.
/// Errors:     as cifar_batch; kInvalidArgument for fewer than 5 training images
void write_cifar(Files& files, const std::string& folder, const ImageSet& training, const ImageSet& test);

}  // namespace convoy::records
