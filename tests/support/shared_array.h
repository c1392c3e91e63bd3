// Memory and a meeting point for a process and those that it forks.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>

#include "convoy/base/error.h"

namespace convoy::testing {

/// Memory that a process and those forked after it share, all zero at first.
template <typename T>
class SharedArray {
 public:
  /// Takes memory for `count` values.
  explicit SharedArray(std::size_t count)
      : bytes_(std::max<std::size_t>(1, count) * sizeof(T)),
        data_(static_cast<T*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    CONVOY_CHECK(data_ != MAP_FAILED, "there is memory to share");
  }
  ~SharedArray() { ::munmap(data_, bytes_); }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;
  /// Returns a value.
  T& operator[](std::size_t at) const { return data_[at]; }

 private:
  const std::size_t bytes_;
  T* const data_;
};

/// A barrier of processes, beside whatever they measure. It has no deadline: who uses it has an alarm.
class SharedBarrier {
 public:
  /// Makes it for that many processes.
  explicit SharedBarrier(int processes) : barrier_(1) {
    pthread_barrierattr_t attributes;
    ::pthread_barrierattr_init(&attributes);
    ::pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_barrier_init(&barrier_[0], &attributes, static_cast<unsigned>(processes));
    ::pthread_barrierattr_destroy(&attributes);
  }
  /// Returns when all have come.
  void meet() const { ::pthread_barrier_wait(&barrier_[0]); }

 private:
  SharedArray<pthread_barrier_t> barrier_;
};

}  // namespace convoy::testing
