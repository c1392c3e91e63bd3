// The Store seam: the small shared dictionary through which ranks find each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "convoy/base/clock.h"
#include "convoy/base/mutex.h"

namespace convoy::comm {

/// A dictionary that all ranks of a job see.
/// Threads:    any
/// Errors:     kTimeout naming the key when a wait is over; kPeerLost when the store is gone
class Store {
 public:
  virtual ~Store() = default;
  /// Sets a key.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Returns a key's value, waiting until it is set.
  virtual std::string get(const std::string& key, Duration limit) = 0;
  /// Returns a key's value if it is set.
  virtual std::optional<std::string> try_get(const std::string& key) = 0;
  /// Adds to a number (0 when unset) and returns the new one.
  /// Errors:     kInvalidArgument naming the key when its value is no number
  virtual std::int64_t add(const std::string& key, std::int64_t delta) = 0;
  /// Forgets a key.
  virtual void remove(const std::string& key) = 0;
};

/// A store inside one process: for ranks that are threads, for the server behind a socket, and the fake for tests.
class MemoryStore final : public Store {
 public:
  /// Keeps at most this many bytes of keys and values; more is refused with kOutOfMemory.
  explicit MemoryStore(std::size_t capacity = std::size_t{64} << 20) : capacity_(capacity) {}
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Duration limit) override;
  std::optional<std::string> try_get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t delta) override;
  void remove(const std::string& key) override;

 private:
  void put(const std::string& key, const std::string& value) CONVOY_REQUIRES(mutex_);

  const std::size_t capacity_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::string> values_ CONVOY_GUARDED_BY(mutex_);
  std::size_t bytes_ CONVOY_GUARDED_BY(mutex_) = 0;
};

}  // namespace convoy::comm
