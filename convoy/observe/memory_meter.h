// The memory meter: what memory is used for, and for what at the worst moment.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "convoy/base/mutex.h"

namespace convoy::observe {

/// What memory is used for.
enum class MemoryCategory : unsigned char {
  kParameters,
  kGradients,         ///< the summed gradient that the optimizer updates by
  kGradientPartials,  ///< autograd's own gradients and sums of them, from when they are taken until they are reduced
  kOptimizer,
  kActivations,  ///< all that forward and backward passes make beside gradients
  kBatch,
  kCommunicationBuffers,
  kOther,
};

/// How many categories there are.
inline constexpr std::size_t kMemoryCategories = 8;

/// Returns the category's name in reports, for example "gradient_partials".
std::string_view to_string(MemoryCategory category);

/// What a run does while memory is counted.
enum class MemoryPhase : unsigned char { kInitialisation, kForward, kBackward, kUpdate };

/// How many phases there are.
inline constexpr std::size_t kMemoryPhases = 4;

/// Returns the phase's name in reports, for example "initialisation".
std::string_view to_string(MemoryPhase phase);

/// Bytes by number of MemoryCategory.
using MemoryBytes = std::array<std::int64_t, kMemoryCategories>;

/// The moment at which most bytes were in use.
struct MemoryPeak {
  /// All bytes.
  std::int64_t total = 0;
  /// The bytes of each category at that moment. They add up to the total, apart from what other threads changed while
  /// they were read.
  MemoryBytes categories{};
  /// What the run did.
  MemoryPhase phase = MemoryPhase::kInitialisation;

  /// Returns the bytes of one category.
  std::int64_t of(MemoryCategory category) const { return categories[static_cast<std::size_t>(category)]; }
};

/// Counts bytes by category.
/// Threads:    any
/// Cost:       two atomic additions; the categories are copied only when a peak rises
class MemoryMeter {
 public:
  /// Counts bytes that are now in use.
  void add(MemoryCategory category, std::int64_t bytes);
  /// Counts bytes that are no longer in use. Removing more than was added shows as a negative number, never as an
  /// exception, since memory is given back in destructors.
  void remove(MemoryCategory category, std::int64_t bytes) { add(category, -bytes); }
  /// Counts bytes under another category from now on.
  void move(MemoryCategory from, MemoryCategory to, std::int64_t bytes);
  /// Says what the run does from now on.
  void enter(MemoryPhase phase);
  /// Returns what the run does.
  MemoryPhase phase() const { return phase_.load(std::memory_order_relaxed); }
  /// Returns what is in use now.
  MemoryBytes current() const;
  /// Returns the bytes in use now, all together.
  std::int64_t total() const { return total_.load(std::memory_order_relaxed); }
  /// Returns the most bytes that each category has had, each at its own moment.
  MemoryBytes highest() const;
  /// Returns the worst moment so far; the one of the earlier phase among equals.
  MemoryPeak peak() const;
  /// Returns the worst moment of one phase.
  MemoryPeak peak(MemoryPhase phase) const;
  /// Counts, or does not until the next call: for measuring what counting costs. Bytes that come and go meanwhile are not
  /// in the numbers afterwards.
  void set_counting(bool on) { counting_.store(on, std::memory_order_relaxed); }
  /// Starts a new search for the peaks and the highest values, from what is in use now.
  void reset_peaks();

 private:
  void note(MemoryCategory category, std::int64_t bytes);
  void note_total(std::int64_t total);

  std::atomic<bool> counting_{true};
  std::array<std::atomic<std::int64_t>, kMemoryCategories> bytes_{};
  std::array<std::atomic<std::int64_t>, kMemoryCategories> highest_{};
  std::atomic<std::int64_t> total_{0};
  std::atomic<MemoryPhase> phase_{MemoryPhase::kInitialisation};
  std::array<std::atomic<std::int64_t>, kMemoryPhases> peak_totals_{};
  mutable Mutex mutex_;
  std::array<MemoryPeak, kMemoryPhases> peaks_ CONVOY_GUARDED_BY(mutex_){};
};

/// Returns the meter of this process: libtorch's tensors (params::use_shared_arena), batches, scratch memory of groups.
/// Ownership:  never destroyed: tensors in static objects may outlive everything else
MemoryMeter& process_memory();

/// Says what memory that this thread takes is used for, while it lives; scopes nest.
class MemoryScope {
 public:
  /// Opens the scope.
  explicit MemoryScope(MemoryCategory category);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;
  /// Returns the category of this thread's innermost scope. Without one: kActivations while the process is in a forward
  /// or backward pass, else kOther.
  static MemoryCategory current();

 private:
  const unsigned char before_;
};

/// Runs `make` and returns what it returns; memory that it takes on this thread counts under the category.
template <typename F>
auto counted_as(MemoryCategory category, F&& make) {
  const MemoryScope scope(category);
  return make();
}

/// Memory that is counted for as long as this object lives.
/// Threads:    one caller at a time
class CountedMemory {
 public:
  /// Counts nothing.
  CountedMemory() = default;
  /// Counts bytes in process_memory().
  CountedMemory(MemoryCategory category, std::int64_t bytes) : category_(category) { resize(bytes); }
  ~CountedMemory() { resize(0); }
  CountedMemory(CountedMemory&& other) noexcept;
  CountedMemory& operator=(CountedMemory&& other) noexcept;
  /// Counts so many bytes from now on.
  void resize(std::int64_t bytes);
  /// Returns the bytes that are counted.
  std::int64_t bytes() const { return bytes_; }

 private:
  MemoryCategory category_ = MemoryCategory::kOther;
  std::int64_t bytes_ = 0;
};

}  // namespace convoy::observe
