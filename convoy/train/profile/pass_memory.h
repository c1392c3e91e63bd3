// Pass memory: what one forward and backward pass takes, tried with batches of any size made of a given one's samples.
#pragma once

#include <cstdint>

#include "convoy/base/clock.h"
#include "convoy/params/flat_space.h"
#include "convoy/params/model.h"
#include "convoy/train/profile/batch_fit.h"

namespace convoy::train {

/// A pass of some size.
struct TriedPass {
  /// How many samples it had and what it took at its peak, beyond what was there before.
  PassPoint point;
  /// How long it took.
  Duration time{};
};

/// Runs one pass of `samples` samples, those of the batch again and again; nothing is trained. Forgets the peaks of
/// observe::process_memory().
TriedPass try_pass(params::Model& model, const params::FlatSpace& space, const params::Batch& batch,
                   std::int64_t samples);

}  // namespace convoy::train
