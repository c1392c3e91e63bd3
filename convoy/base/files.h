// The Files seam: every byte that has to survive goes through it, so that tests can fail the n-th operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/base/mutex.h"

namespace convoy {

/// A file system. Paths use '/'; a write that returned is on the disk, not in a cache, unless it says otherwise.
/// Threads:    all methods from any thread; two writers of one path must agree among themselves
/// Errors:     kIo naming the path and the system's reason
class Files {
 public:
  virtual ~Files() = default;
  /// Returns a whole file.
  virtual std::string read(const std::string& path) = 0;
  /// Returns `bytes` bytes from `offset`.
  /// Errors:     kCorrupt when the file ends before
  virtual std::string read_range(const std::string& path, std::uint64_t offset, std::uint64_t bytes) = 0;
  /// Returns the size of a file in bytes.
  virtual std::uint64_t size(const std::string& path) = 0;
  /// Returns whether a file or folder is there.
  virtual bool exists(const std::string& path) = 0;
  /// Creates or replaces a file from pieces, and syncs it.
  virtual void write(const std::string& path, std::span<const std::string_view> pieces) = 0;
  /// Appends to a file, creating it; not synced: see sync.
  virtual void append(const std::string& path, std::string_view data) = 0;
  /// Brings a file's appended bytes to the disk.
  virtual void sync(const std::string& path) = 0;
  /// Creates a folder and those above it; does nothing where it is there.
  virtual void make_directories(const std::string& path) = 0;
  /// Renames a file or an absent-target folder in one step, and syncs the folder above.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Removes a file or a whole folder; does nothing where nothing is.
  virtual void remove(const std::string& path) = 0;
  /// Returns the names inside a folder, sorted; empty when there is no such folder.
  virtual std::vector<std::string> list(const std::string& path) = 0;
};

/// Returns the machine's own file system.
/// Ownership:  lives for the whole process
Files& local_files();

/// Creates or replaces a file so that a reader sees the old content or the new, never a part.
void write_atomic(Files& files, const std::string& path, std::string_view data);

/// Returns a path's last part.
std::string base_name(const std::string& path);

/// Returns a path without its last part ("." when there is none).
std::string parent_path(const std::string& path);

/// A file system in memory: the fake behind the seam.
class MemoryFiles final : public Files {
 public:
  std::string read(const std::string& path) override;
  std::string read_range(const std::string& path, std::uint64_t offset, std::uint64_t bytes) override;
  std::uint64_t size(const std::string& path) override;
  bool exists(const std::string& path) override;
  void write(const std::string& path, std::span<const std::string_view> pieces) override;
  void append(const std::string& path, std::string_view data) override;
  void sync(const std::string& path) override;
  void make_directories(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;

 private:
  Mutex mutex_;
  std::map<std::string, std::string> files_ CONVOY_GUARDED_BY(mutex_);
  std::map<std::string, bool> folders_ CONVOY_GUARDED_BY(mutex_);
};

/// Forwards to another file system and fails the n-th changing operation (write, append, sync, rename, remove,
/// make_directories): the fault injector behind the seam.
class FailingFiles final : public Files {
 public:
  /// Makes operation number `fail_at` (counted from 1; 0 never) throw kIo without effect.
  FailingFiles(Files& inner, std::uint64_t fail_at) : inner_(inner), fail_at_(fail_at) {}
  std::string read(const std::string& path) override { return inner_.read(path); }
  std::string read_range(const std::string& path, std::uint64_t offset, std::uint64_t bytes) override {
    return inner_.read_range(path, offset, bytes);
  }
  std::uint64_t size(const std::string& path) override { return inner_.size(path); }
  bool exists(const std::string& path) override { return inner_.exists(path); }
  void write(const std::string& path, std::span<const std::string_view> pieces) override;
  void append(const std::string& path, std::string_view data) override;
  void sync(const std::string& path) override;
  void make_directories(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override { return inner_.list(path); }
  /// Returns how many changing operations were asked for.
  std::uint64_t operations() const { return operations_; }

 private:
  void count(const char* what, const std::string& path);

  Files& inner_;
  const std::uint64_t fail_at_;
  std::atomic<std::uint64_t> operations_{0};
};

}  // namespace convoy
