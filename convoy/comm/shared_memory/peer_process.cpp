// Places as text, and pidfds.
#include "convoy/comm/shared_memory/peer_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::comm {
namespace {

constexpr Duration kLifeCheck = std::chrono::milliseconds(10);

std::string link_target(const char* path) {
  std::array<char, 256> text{};
  return ::readlink(path, text.data(), text.size() - 1) > 0 ? text.data() : "";
}

}  // namespace

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != static_cast<ssize_t>(sizeof(number))) {
    throw Error(ErrorCode::kIo, "the kernel gives no random numbers");
  }
  return number;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "an unnamed host";
}

std::string host_memory() {
  std::string boot;
  try {
    boot = local_files().read("/proc/sys/kernel/random/boot_id");
  } catch (const Error&) {
    // Then the name alone decides.
  }
  return boot + link_target("/proc/self/ns/pid");
}

std::string FilePlace::str() const { return fmt::format("{} {} {} {}", pid, descriptor, bytes, nonce); }

FilePlace FilePlace::parse(const std::string& key, const std::string& text) {
  FilePlace place;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool good = true;
  const auto next = [&](auto& number) {
    while (at < end && *at == ' ') ++at;
    const auto result = std::from_chars(at, end, number);
    good = good && result.ec == std::errc();
    at = result.ptr;
  };
  next(place.pid);
  next(place.descriptor);
  next(place.bytes);
  next(place.nonce);
  if (!good || at != end)
    throw Error(ErrorCode::kCorrupt, fmt::format("'{}' in the store is damaged: '{}'", key, text));
  return place;
}

ProcessWatch::ProcessWatch(std::int64_t pid) {
  if (pid == ::getpid()) return;
  descriptor_ = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
  ended_ = descriptor_ < 0 && errno == ESRCH;
}

ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept { *this = std::move(other); }

ProcessWatch& ProcessWatch::operator=(ProcessWatch&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(ended_, other.ended_);
  std::swap(checked_, other.checked_);
  return *this;
}

ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ProcessWatch::ended() {
  if (ended_ || descriptor_ < 0) return ended_;
  const TimePoint now = system_clock().now();
  if (now - checked_ < kLifeCheck) return false;
  checked_ = now;
  pollfd event{descriptor_, POLLIN, 0};
  ended_ = ::poll(&event, 1, 0) == 1;
  return ended_;
}

void read_memory_of(std::int64_t pid, std::uint64_t address, void* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    iovec own{static_cast<std::byte*>(to) + done, bytes - done};
    iovec other{reinterpret_cast<void*>(address + done), bytes - done};  // NOLINT: an address of the other process
    const ssize_t got = ::process_vm_readv(static_cast<pid_t>(pid), &own, 1, &other, 1, 0);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    throw Error(ErrorCode::kPeerLost,
                fmt::format("cannot read the memory of process {}: {}", pid, std::strerror(errno)));
  }
}

}  // namespace convoy::comm
