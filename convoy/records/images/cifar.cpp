// Reads and writes CIFAR-10's binary batches; every size and label is checked before it is believed.
#include "convoy/records/images/cifar.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "convoy/base/error.h"

namespace convoy::records {
namespace {

constexpr std::int64_t kSide = 32;
constexpr std::int64_t kImageBytes = kCifarRecordBytes - 1;
constexpr const char* kNamesFile = "batches.meta.txt";
constexpr const char* kTestFile = "test_batch.bin";

// The names that the official batches.meta.txt has.
constexpr std::array<const char*, kCifarClasses> kClassNames = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                                "dog",      "frog",       "horse", "ship", "truck"};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

std::string training_file(int number) { return fmt::format("data_batch_{}.bin", number); }

// Returns the folder that has the batches: the one that was named, or the official one inside it.
std::string find_folder(Files& files, std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::string inner = fmt::format("{}/{}", folder, kCifarFolder);
  return files.exists(inner) && !files.exists(fmt::format("{}/{}", folder, kTestFile)) ? inner : folder;
}

void add_file(Files& files, const std::string& folder, const std::string& name, ImageSet& images) {
  const std::string path = fmt::format("{}/{}", folder, name);
  if (!files.exists(path)) {
    const char* what = files.exists(folder) ? "" : " (there is no such folder)";
    refuse(fmt::format("{} is missing{}; data.path names the folder with the batches of CIFAR-10's binary version",
                       path, what));
  }
  add_cifar_batch(files.read_range(path, 0, files.size(path)), path, images);
}

std::vector<std::string> read_names(Files& files, const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kNamesFile);
  if (!files.exists(path)) return {};
  std::vector<std::string> names;
  std::string line;
  for (const char c : files.read(path) + "\n") {
    if (c != '\n' && c != '\r') {
      line += c;
    } else if (!line.empty()) {
      names.push_back(std::exchange(line, ""));
    }
  }
  if (names.size() != kCifarClasses) {
    refuse(fmt::format("{} names {} classes, expected {}", path, names.size(), kCifarClasses));
  }
  return names;
}

}  // namespace

void add_cifar_batch(std::string_view bytes, const std::string& name, ImageSet& images) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (size == 0 || size % kCifarRecordBytes != 0) {
    refuse(
        fmt::format("{} is no batch of CIFAR-10: expected a multiple of {} bytes (a label and 3 x 32 x 32 pixels a "
                    "record), found {} ({} records and {} bytes)",
                    name, kCifarRecordBytes, size, size / kCifarRecordBytes, size % kCifarRecordBytes));
  }
  CONVOY_CHECK(images.count == 0 || (images.rows == kSide && images.columns == kSide && images.channels == 3),
               "batches are added to images of 3 x 32 x 32");
  images.rows = images.columns = kSide;
  images.channels = 3;
  images.sources.push_back({base_name(name), images.count});
  images.pixels.reserve(images.pixels.size() + bytes.size());
  for (std::int64_t record = 0; record < size / kCifarRecordBytes; ++record) {
    const std::string_view here = bytes.substr(static_cast<std::size_t>(record * kCifarRecordBytes), kCifarRecordBytes);
    const auto label = static_cast<std::uint8_t>(here.front());
    if (label >= kCifarClasses) {
      refuse(fmt::format("{} record {}: label {}, expected 0 to {}", name, record, label, kCifarClasses - 1));
    }
    images.labels.push_back(label);
    images.pixels.insert(images.pixels.end(), here.begin() + 1, here.end());
  }
  images.count = static_cast<std::int64_t>(images.labels.size());
}

ImageSet load_cifar_train(Files& files, const std::string& given_folder) {
  const std::string folder = find_folder(files, given_folder);
  ImageSet images;
  for (int number = 1; number <= 5; ++number) add_file(files, folder, training_file(number), images);
  images.class_names = read_names(files, folder);
  return images;
}

ImageSet load_cifar_test(Files& files, const std::string& given_folder) {
  const std::string folder = find_folder(files, given_folder);
  ImageSet images;
  add_file(files, folder, kTestFile, images);
  images.class_names = read_names(files, folder);
  return images;
}

std::string cifar_batch(const ImageSet& images, std::int64_t first, std::int64_t count) {
  if (images.channels != 3 || images.rows != kSide || images.columns != kSide) {
    refuse(fmt::format("images of {} x {} x {} are none of CIFAR-10, which are 3 x 32 x 32", images.channels,
                       images.rows, images.columns));
  }
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(count * kCifarRecordBytes));
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::uint8_t label = images.labels.at(static_cast<std::size_t>(i));
    if (label >= kCifarClasses) refuse(fmt::format("label {}, expected 0 to {}", label, kCifarClasses - 1));
    bytes += static_cast<char>(label);
    const auto image = images.image(i);
    bytes.append(image.begin(), image.end());
  }
  return bytes;
}

void write_cifar(Files& files, const std::string& folder, const ImageSet& training, const ImageSet& test) {
  if (training.count < 5) refuse(fmt::format("{} training images do not fill five batches", training.count));
  static_assert(kImageBytes == 3 * kSide * kSide);
  files.make_directories(folder);
  for (int number = 1; number <= 5; ++number) {
    const std::int64_t first = training.count * (number - 1) / 5;
    const std::int64_t end = training.count * number / 5;
    write_atomic(files, fmt::format("{}/{}", folder, training_file(number)), cifar_batch(training, first, end - first));
  }
  write_atomic(files, fmt::format("{}/{}", folder, kTestFile), cifar_batch(test, 0, test.count));
  std::string names;
  for (const char* name : kClassNames) names += fmt::format("{}\n", name);
  write_atomic(files, fmt::format("{}/{}", folder, kNamesFile), names + "\n");
}

}  // namespace convoy::records
