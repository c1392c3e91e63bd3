// The memory meter: what memory is used for, and for what at the worst moment.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "convoy/base/mutex.h"

namespace convoy::observe {

/// What memory is used for.
enum class MemoryCategory : unsigned char {
  kParameters,
  kGradients,
  kGradientPartials,  ///< sums of gradients of one maximal subtree of replicas, until they are reduced
  kOptimizer,
  kActivations,
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

/// Returns the phase's name in reports, for example "initialisation".
std::string_view to_string(MemoryPhase phase);

/// Bytes by number of MemoryCategory.
using MemoryBytes = std::array<std::int64_t, kMemoryCategories>;

/// The moment at which most bytes were in use.
struct MemoryPeak {
  /// All bytes.
  std::int64_t total = 0;
  /// The bytes of each category at that moment, which add up to the total.
  MemoryBytes categories{};
  /// What the run did.
  MemoryPhase phase = MemoryPhase::kInitialisation;
};

/// Counts bytes by category.
/// Threads:    any
class MemoryMeter {
 public:
  /// Counts bytes that are now in use.
  void add(MemoryCategory category, std::int64_t bytes);
  /// Counts bytes that are no longer in use. Removing more than was added shows as a negative number, never as an
  /// exception, since memory is given back in destructors.
  void remove(MemoryCategory category, std::int64_t bytes) { add(category, -bytes); }
  /// Sets what a category uses, where it is known as a whole.
  void set(MemoryCategory category, std::int64_t bytes);
  /// Says what the run does from now on.
  void enter(MemoryPhase phase);
  /// Returns what is in use now.
  MemoryBytes current() const;
  /// Returns the worst moment so far; the first one among equals.
  MemoryPeak peak() const;

 private:
  void note_peak() CONVOY_REQUIRES(mutex_);

  mutable Mutex mutex_;
  MemoryBytes bytes_ CONVOY_GUARDED_BY(mutex_){};
  std::int64_t total_ CONVOY_GUARDED_BY(mutex_) = 0;
  MemoryPhase phase_ CONVOY_GUARDED_BY(mutex_) = MemoryPhase::kInitialisation;
  MemoryPeak peak_ CONVOY_GUARDED_BY(mutex_);
};

}  // namespace convoy::observe
