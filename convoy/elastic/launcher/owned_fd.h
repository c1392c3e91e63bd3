// A file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace convoy::elastic {

/// Owns one file descriptor, or none.
class OwnedFd {
 public:
  OwnedFd() = default;
  /// Takes a descriptor over; -1 is none.
  explicit OwnedFd(int fd) : fd_(fd) {}
  ~OwnedFd() { reset(); }
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  /// Returns the descriptor, -1 when there is none.
  int get() const { return fd_; }
  /// Returns whether there is one.
  bool valid() const { return fd_ >= 0; }
  /// Closes it.
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace convoy::elastic
