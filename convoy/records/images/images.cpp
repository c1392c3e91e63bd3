// Finds the official image files in a folder, and tells sets apart by a digest.
#include "convoy/records/images/images.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/records/images/idx.h"

namespace convoy::records {
namespace {

// Returns the path of a file that may be packed, and may be spelt with a dot where the official name has a dash.
std::string find_file(Files& files, const std::string& folder, const std::string& part, const std::string& kind) {
  const std::string official = fmt::format("{}-{}-ubyte", part, kind);
  for (const std::string& name : {official, fmt::format("{}.{}-ubyte", part, kind)}) {
    for (const char* ending : {"", ".gz"}) {
      const std::string path = fmt::format("{}/{}{}", folder, name, ending);
      if (files.exists(path)) return path;
    }
  }
  const std::string what = files.exists(folder) ? "" : " (there is no such folder)";
  const std::string how = folder == kDefaultImageFolder
                              ? "; install the package dataset-fashion-mnist, or set data.path to a folder that has it"
                              : "; data.path names the folder";
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}/{} is missing, as is {}.gz{}{}", folder, official, official, what, how));
}

ImageSet load_part(Files& files, const std::string& given_folder, const std::string& part) {
  std::string folder = given_folder.empty() ? kDefaultImageFolder : given_folder;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::string images = find_file(files, folder, part + "-images", "idx3");
  const std::string labels = find_file(files, folder, part + "-labels", "idx1");
  ImageSet set = read_idx(files, images, labels);
  set.sources = {{base_name(images), 0}};
  return set;
}

}  // namespace

int ImageSet::classes() const {
  const auto highest = std::max_element(labels.begin(), labels.end());
  return highest == labels.end() ? 0 : *highest + 1;
}

std::size_t ImageSet::source_of(std::int64_t index) const {
  std::size_t source = 0;
  while (source + 1 < sources.size() && sources[source + 1].first <= index) ++source;
  return source;
}

std::string ImageSet::key_of(std::int64_t index) const {
  if (sources.empty()) return fmt::format("image {}", index);
  const ImageSource& source = sources[source_of(index)];
  return fmt::format("{} {} {}", source.name, channels == 1 ? "image" : "record", index - source.first);
}

ImageSet load_train(Files& files, const std::string& folder) { return load_part(files, folder, "train"); }

ImageSet load_test(Files& files, const std::string& folder) { return load_part(files, folder, "t10k"); }

std::string digest(const ImageSet& images) {
  Hasher hasher;
  hasher.update(fmt::format("{} images of {} x {};", images.count, images.rows, images.columns));
  if (images.channels != 1) hasher.update(fmt::format("{} channels;", images.channels));
  hasher.update(images.pixels.data(), images.pixels.size());
  hasher.update(images.labels.data(), images.labels.size());
  return hasher.hex();
}

}  // namespace convoy::records
