// Other processes of the host: where their shared files are found, and whether they still live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "convoy/base/clock.h"

namespace convoy::comm {

/// Returns a number from the kernel's generator: it tells one segment from any other that a descriptor may mean.
/// Errors:     kIo when there is none to be had
std::uint64_t random_number();

/// Returns this host's name, for messages; "an unnamed host" when it has none.
std::string host_name();

/// Returns what processes have in common that reach each other's memory and see each other's end: the booted kernel and
/// the view of its processes.
std::string host_memory();

/// Where other processes find a shared file.
struct FilePlace {
  /// The process that has the file open.
  std::int64_t pid = 0;
  /// The number of its descriptor there.
  std::int64_t descriptor = -1;
  /// The file's size.
  std::uint64_t bytes = 0;
  /// The number of a segment; 0 for other files.
  std::uint64_t nonce = 0;

  /// Returns the place as a store keeps it.
  std::string str() const;
  /// Reads what str() wrote.
  /// Errors:     kCorrupt naming the key
  static FilePlace parse(const std::string& key, const std::string& text);
};

/// Copies bytes from the memory of another process of this host.
/// Errors:     kPeerLost naming the process and the kernel's reason: it is gone, or the kernel does not allow it
void read_memory_of(std::int64_t pid, std::uint64_t address, void* to, std::size_t bytes);

/// Notices the end of a process, even of one that its parent has not waited for yet.
/// Threads:    one caller at a time
class ProcessWatch {
 public:
  /// Watches nothing.
  ProcessWatch() = default;
  /// Watches a process; this process itself never ends as long as it asks.
  explicit ProcessWatch(std::int64_t pid);
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&& other) noexcept;
  ~ProcessWatch();
  /// Returns whether it has ended.
  /// Cost:       one system call, at most every 10 ms
  bool ended();

 private:
  int descriptor_ = -1;
  bool ended_ = false;
  TimePoint checked_;
};

}  // namespace convoy::comm
