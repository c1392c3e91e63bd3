// The fakes behind the Files seam: a file system in memory, and one that fails on demand.
#include <fmt/format.h>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy {
namespace {

[[noreturn]] void fail_missing(const std::string& path) {
  throw Error(ErrorCode::kIo, fmt::format("cannot open {}: No such file or directory", path));
}

// A file can be made where its folder is there and no folder has its name.
void require_place_for_file(const std::map<std::string, bool>& folders, const std::string& path) {
  const std::string parent = parent_path(path);
  if (parent != "." && parent != "/" && folders.count(parent) == 0) fail_missing(path);
  if (folders.count(path) != 0) throw Error(ErrorCode::kIo, fmt::format("cannot create {}: Is a directory", path));
}

}  // namespace

std::string MemoryFiles::read(const std::string& path) {
  const MutexLock lock(mutex_);
  const auto found = files_.find(path);
  if (found == files_.end()) fail_missing(path);
  return found->second;
}

std::string MemoryFiles::read_range(const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
  const std::string whole = read(path);
  if (offset > whole.size() || bytes > whole.size() - offset) {
    throw Error(ErrorCode::kCorrupt, fmt::format("{} ends at byte {}, but {} bytes from byte {} were asked for", path,
                                                 whole.size(), bytes, offset));
  }
  return whole.substr(offset, bytes);
}

std::uint64_t MemoryFiles::size(const std::string& path) { return read(path).size(); }

bool MemoryFiles::exists(const std::string& path) {
  const MutexLock lock(mutex_);
  return files_.count(path) != 0 || folders_.count(path) != 0;
}

void MemoryFiles::write(const std::string& path, std::span<const std::string_view> pieces) {
  const MutexLock lock(mutex_);
  require_place_for_file(folders_, path);
  std::string whole;
  for (const std::string_view piece : pieces) whole += piece;
  files_[path] = std::move(whole);
}

void MemoryFiles::append(const std::string& path, std::string_view data) {
  const MutexLock lock(mutex_);
  require_place_for_file(folders_, path);
  files_[path] += data;
}

void MemoryFiles::sync(const std::string& path) {
  if (!exists(path)) fail_missing(path);
}

void MemoryFiles::make_directories(const std::string& path) {
  const MutexLock lock(mutex_);
  for (std::string at = path; at != "." && at != "/" && !at.empty(); at = parent_path(at)) folders_[at] = true;
}

void MemoryFiles::rename(const std::string& from, const std::string& to) {
  const MutexLock lock(mutex_);
  require_place_for_file(folders_, to);
  bool found = false;
  const auto move_entries = [&](auto& entries) {
    std::decay_t<decltype(entries)> moved;
    for (auto at = entries.begin(); at != entries.end();) {
      const bool inside = at->first.size() > from.size() && at->first.compare(0, from.size(), from) == 0 &&
                          at->first[from.size()] == '/';
      if (at->first != from && !inside) {
        ++at;
        continue;
      }
      moved[to + at->first.substr(from.size())] = std::move(at->second);
      at = entries.erase(at);
      found = true;
    }
    for (auto& [path, value] : moved) entries[path] = std::move(value);
  };
  move_entries(files_);
  move_entries(folders_);
  if (!found) fail_missing(from);
}

void MemoryFiles::remove(const std::string& path) {
  const MutexLock lock(mutex_);
  const auto erase_under = [&](auto& entries) {
    std::erase_if(entries, [&](const auto& entry) {
      return entry.first == path || entry.first.compare(0, path.size() + 1, path + "/") == 0;
    });
  };
  erase_under(files_);
  erase_under(folders_);
}

std::vector<std::string> MemoryFiles::list(const std::string& path) {
  const MutexLock lock(mutex_);
  std::map<std::string, bool> names;
  const auto collect = [&](const auto& entries) {
    for (const auto& entry : entries) {
      if (entry.first.compare(0, path.size() + 1, path + "/") != 0) continue;
      const std::string rest = entry.first.substr(path.size() + 1);
      names[rest.substr(0, rest.find('/'))] = true;
    }
  };
  collect(files_);
  collect(folders_);
  std::vector<std::string> sorted;
  for (const auto& entry : names) sorted.push_back(entry.first);
  return sorted;
}

void FailingFiles::count(const char* what, const std::string& path) {
  if (++operations_ != fail_at_) return;
  throw Error(ErrorCode::kIo, fmt::format("cannot {} {}: planted failure of operation {}", what, path, fail_at_));
}

void FailingFiles::write(const std::string& path, std::span<const std::string_view> pieces) {
  count("write", path);
  inner_.write(path, pieces);
}

void FailingFiles::append(const std::string& path, std::string_view data) {
  count("append to", path);
  inner_.append(path, data);
}

void FailingFiles::sync(const std::string& path) {
  count("sync", path);
  inner_.sync(path);
}

void FailingFiles::make_directories(const std::string& path) {
  count("create folder", path);
  inner_.make_directories(path);
}

void FailingFiles::rename(const std::string& from, const std::string& to) {
  count("rename to", to);
  inner_.rename(from, to);
}

void FailingFiles::remove(const std::string& path) {
  count("remove", path);
  inner_.remove(path);
}

}  // namespace convoy
