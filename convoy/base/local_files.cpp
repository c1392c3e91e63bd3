// The machine's own file system, with every write synced and every failure named.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy {
namespace {

[[noreturn]] void fail(const char* what, const std::string& path) {
  const int reason = errno;
  throw Error(ErrorCode::kIo, fmt::format("cannot {} {}: {}", what, path, std::strerror(reason)));
}

// Closes a descriptor at the end of a scope.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, const char* what)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail(what, path);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void write_all(int fd, std::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t wrote = ::write(fd, data.data(), std::min<std::size_t>(data.size(), 1u << 30));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail("write", path);
    data.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

void sync_folder(const std::string& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY, "open folder");
  if (::fsync(folder.get()) != 0) fail("sync folder", path);
}

class LocalFiles final : public Files {
 public:
  std::string read(const std::string& path) override {
    const Descriptor file(path, O_RDONLY, "open");
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) fail("read", path);
    if (S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      fail("read", path);
    }
    std::string data;
    std::string piece(std::max<std::size_t>(static_cast<std::size_t>(status.st_size) + 1, 4096), '\0');
    while (true) {
      const ssize_t got = ::read(file.get(), piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read", path);
      if (got == 0) return data;
      data.append(piece.data(), static_cast<std::size_t>(got));
    }
  }

  std::string read_range(const std::string& path, std::uint64_t offset, std::uint64_t bytes) override {
    const Descriptor file(path, O_RDONLY, "open");
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) fail("read", path);
    const auto total = static_cast<std::uint64_t>(status.st_size);
    if (offset > total || bytes > total - offset) {
      throw Error(ErrorCode::kCorrupt, fmt::format("{} ends at byte {}, but {} bytes from byte {} were asked for", path,
                                                   total, bytes, offset));
    }
    std::string data(bytes, '\0');
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t got = ::pread(file.get(), data.data() + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read", path);
      if (got == 0) throw Error(ErrorCode::kCorrupt, fmt::format("{} became shorter while it was read", path));
      done += static_cast<std::size_t>(got);
    }
    return data;
  }

  std::uint64_t size(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) fail("read", path);
    return static_cast<std::uint64_t>(status.st_size);
  }

  bool exists(const std::string& path) override { return ::access(path.c_str(), F_OK) == 0; }

  void write(const std::string& path, std::span<const std::string_view> pieces) override {
    const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC, "create");
    for (const std::string_view piece : pieces) write_all(file.get(), piece, path);
    if (::fsync(file.get()) != 0) fail("sync", path);
  }

  void append(const std::string& path, std::string_view data) override {
    const Descriptor file(path, O_WRONLY | O_CREAT | O_APPEND, "open");
    write_all(file.get(), data, path);
  }

  void sync(const std::string& path) override {
    const Descriptor file(path, O_WRONLY, "open");
    if (::fsync(file.get()) != 0) fail("sync", path);
  }

  void make_directories(const std::string& path) override {
    std::error_code reason;
    std::filesystem::create_directories(path, reason);
    if (reason) {
      errno = reason.value();
      fail("create folder", path);
    }
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) fail("rename", from + " to " + to);
    sync_folder(parent_path(to));
  }

  void remove(const std::string& path) override {
    std::error_code reason;
    std::filesystem::remove_all(path, reason);
    if (reason) {
      errno = reason.value();
      fail("remove", path);
    }
  }

  std::vector<std::string> list(const std::string& path) override {
    std::vector<std::string> names;
    std::error_code reason;
    for (const auto& entry : std::filesystem::directory_iterator(path, reason))
      names.push_back(entry.path().filename());
    if (reason && reason != std::errc::no_such_file_or_directory) {
      errno = reason.value();
      fail("list", path);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace

Files& local_files() {
  static LocalFiles files;
  return files;
}

void write_atomic(Files& files, const std::string& path, std::string_view data) {
  const std::string beside = path + ".part";
  files.write(beside, std::span(&data, 1));
  files.rename(beside, path);
}

std::string base_name(const std::string& path) { return std::filesystem::path(path).filename(); }

std::string parent_path(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

}  // namespace convoy
