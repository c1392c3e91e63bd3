// A folder for a command's own files, which ends with it.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::cli {

/// A new empty folder in the place for temporary files; removed with all in it.
/// Errors:     kIo when it cannot be made
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "convoy-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error(ErrorCode::kIo, fmt::format("cannot make a folder in {}", parent_path(name)));
    }
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  /// Returns the folder's path.
  const std::string& path() const { return path_; }
  /// Returns the path of a file in it.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace convoy::cli
