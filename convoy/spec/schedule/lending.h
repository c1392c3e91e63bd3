// Proves that a schedule is free of deadlock also where messages are lent: read in the sender's memory, which the sender
// must not write until they are let go. Used by validate alone.
#pragma once

#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Checks that no write waits for a reader that waits for it in turn. The rules of lending: a message may be read where
/// it lies until its receiver has finished the round in which it takes it. A rank that writes what it sends in the same
/// round first lets go of all that it holds of others; where both do so, taking the message is enough. In all-reduce, reduce and
/// broadcast the output counts as the memory of every input.
/// Errors:     kInvalidArgument naming the write and the reader
void check_lending(const Schedule& schedule);

}  // namespace convoy::spec
