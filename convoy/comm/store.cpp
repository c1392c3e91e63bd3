// MemoryStore: the dictionary inside one process.
#include "convoy/comm/store.h"

#include <fmt/format.h>

#include <charconv>

#include "convoy/base/error.h"
#include "convoy/base/text.h"

namespace convoy::comm {

void MemoryStore::put(const std::string& key, const std::string& value) {
  const auto found = values_.find(key);
  const std::size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
  const std::size_t after = key.size() + value.size();
  if (bytes_ - before + after > capacity_) {
    throw Error(ErrorCode::kOutOfMemory, fmt::format("the store is full: '{}' of {} bytes does not fit into {} bytes",
                                                     key, value.size(), capacity_));
  }
  bytes_ = bytes_ - before + after;
  values_[key] = value;
  changed_.notify_all();
}

void MemoryStore::set(const std::string& key, const std::string& value) {
  MutexLock lock(mutex_);
  put(key, value);
}

std::string MemoryStore::get(const std::string& key, Duration limit) {
  const Deadline deadline(system_clock(), limit);
  MutexLock lock(mutex_);
  while (true) {
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    if (deadline.expired()) break;
    changed_.wait_for(mutex_, deadline.remaining());
  }
  throw Error(ErrorCode::kTimeout, fmt::format("nobody set '{}' in the store within {}", key, format_duration(limit)));
}

std::optional<std::string> MemoryStore::try_get(const std::string& key) {
  MutexLock lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::int64_t MemoryStore::add(const std::string& key, std::int64_t delta) {
  MutexLock lock(mutex_);
  std::int64_t number = 0;
  const auto found = values_.find(key);
  if (found != values_.end()) {
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("'{}' in the store is no number to add to", key));
    }
  }
  if (__builtin_add_overflow(number, delta, &number)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("'{}' in the store would leave the range of 64 bits", key));
  }
  put(key, std::to_string(number));
  return number;
}

void MemoryStore::remove(const std::string& key) {
  MutexLock lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return;
  bytes_ -= key.size() + found->second.size();
  values_.erase(found);
}

}  // namespace convoy::comm
