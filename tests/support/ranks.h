// Runs ranks as threads, for tests: each gets its number, all are joined by a deadline, and what they threw comes out.
#pragma once

#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/base/error.h"
#include "convoy/base/mutex.h"

namespace convoy::testing {

/// Runs `body(rank)` in `ranks` threads and returns what each threw (null where nothing). A rank that does not come
/// back within the limit is a hang: its threads cannot be ended, so the whole test program is.
/// Blocking:   until all ranks are back
inline std::vector<std::exception_ptr> collect_ranks(int ranks, const std::function<void(int)>& body,
                                                     Duration limit = std::chrono::seconds(120)) {
  struct Shared {
    Mutex mutex;
    CondVar changed;
    int running CONVOY_GUARDED_BY(mutex) = 0;
  };
  Shared shared;
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(ranks));
  {
    MutexLock lock(shared.mutex);
    shared.running = ranks;
  }
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        thrown[static_cast<std::size_t>(rank)] = std::current_exception();
      }
      MutexLock lock(shared.mutex);
      --shared.running;
      shared.changed.notify_all();
    });
  }
  const Deadline deadline(system_clock(), limit);
  {
    MutexLock lock(shared.mutex);
    while (shared.running > 0 && !deadline.expired()) shared.changed.wait_for(shared.mutex, deadline.remaining());
    if (shared.running > 0) {
      std::cerr << "a test hangs: " << shared.running << " of " << ranks << " ranks did not come back within "
                << to_seconds(limit) << " s" << std::endl;
      std::_Exit(70);
    }
  }
  return thrown;
}

/// Runs `body(rank)` in `ranks` threads; throws the first exception of the lowest rank that threw.
inline void run_ranks(int ranks, const std::function<void(int)>& body, Duration limit = std::chrono::seconds(120)) {
  for (const std::exception_ptr& thrown : collect_ranks(ranks, body, limit)) {
    if (thrown) std::rethrow_exception(thrown);
  }
}

/// Returns the Error that a body throws.
/// Errors:     kInternal when it throws none
inline Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "nothing was thrown");
}

/// Returns the Error that was caught; kInternal with its text for another exception or none.
inline Error error_in(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorCode::kInternal, error.what());
  }
  return Error(ErrorCode::kInternal, "nothing was thrown");
}

}  // namespace convoy::testing
