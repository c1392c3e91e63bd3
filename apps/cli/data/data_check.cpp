// Whether the files that a run will read exist.
#include "apps/cli/data/data_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/error.h"
#include "convoy/records/images/images.h"

namespace convoy::cli {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

void check_idx(Files& files, const spec::DataRecipe& data) {
  const std::string folder = data.path.empty() ? records::kDefaultImageFolder : data.path;
  const char* hint = data.path.empty() ? "install the package dataset-fashion-mnist or set data.path" : "see data.path";
  if (!files.exists(folder)) refuse(fmt::format("there is no data folder {}: {}", folder, hint));
  const std::vector<std::string> names = files.list(folder);
  // Only the part of the names that all spellings share: the reader knows the rest.
  for (const char* part : {"train-images", "train-labels", "t10k-images", "t10k-labels"}) {
    const bool found =
        std::any_of(names.begin(), names.end(), [part](const std::string& name) { return name.rfind(part, 0) == 0; });
    if (!found) refuse(fmt::format("{}/{}-idx*-ubyte[.gz] is missing: {}", folder, part, hint));
  }
}

}  // namespace

void check_data(Files& files, const spec::DataRecipe& data) {
  if (data.format == "idx") check_idx(files, data);
  if (data.format == "cifar10" && !files.exists(data.path)) {
    refuse(fmt::format("there is no data folder {}: see data.path", data.path));
  }
  if (data.format != "csv") return;
  if (!files.exists(data.path)) refuse(fmt::format("there is no file {}: see data.path", data.path));
  if (!data.test_path.empty() && !files.exists(data.test_path)) {
    refuse(fmt::format("there is no file {}: see data.test_path", data.test_path));
  }
}

}  // namespace convoy::cli
