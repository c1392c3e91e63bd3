// A file system that hands everything on, for tests that change one operation of another one.
#pragma once

#include <string>
#include <vector>

#include "convoy/base/files.h"

namespace convoy::testing {

/// Hands every call on to another file system.
/// Ownership:  borrows it
class ForwardingFiles : public Files {
 public:
  /// Hands on to `inner`.
  explicit ForwardingFiles(Files& inner) : inner_(inner) {}
  std::string read(const std::string& path) override { return inner_.read(path); }
  std::string read_range(const std::string& path, std::uint64_t offset, std::uint64_t bytes) override {
    return inner_.read_range(path, offset, bytes);
  }
  std::uint64_t size(const std::string& path) override { return inner_.size(path); }
  bool exists(const std::string& path) override { return inner_.exists(path); }
  void write(const std::string& path, std::span<const std::string_view> pieces) override { inner_.write(path, pieces); }
  void append(const std::string& path, std::string_view data) override { inner_.append(path, data); }
  void sync(const std::string& path) override { inner_.sync(path); }
  void make_directories(const std::string& path) override { inner_.make_directories(path); }
  void rename(const std::string& from, const std::string& to) override { inner_.rename(from, to); }
  void remove(const std::string& path) override { inner_.remove(path); }
  std::vector<std::string> list(const std::string& path) override { return inner_.list(path); }

 private:
  Files& inner_;
};

/// Replaces a file by this content, without any care.
inline void put_file(Files& files, const std::string& path, std::string_view content) {
  files.write(path, std::span(&content, 1));
}

/// Returns the pieces of a write as one text.
inline std::string joined(std::span<const std::string_view> pieces) {
  std::string whole;
  for (const std::string_view piece : pieces) whole += piece;
  return whole;
}

}  // namespace convoy::testing
