// What can be said of a schedule without playing it: sizes fit, chunks lie in their buffers. Used by validate alone.
#pragma once

#include <cstddef>
#include <string>

#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Checks that sizes are there for every rank and that each operation is one that a rank can do.
/// Errors:     kInvalidArgument naming rank, round and operation, all counted from 0
void check_shape(const Schedule& schedule);

/// Refuses an operation, which stands in the named round of a rank.
[[noreturn]] void refuse_operation(const Schedule& schedule, int rank, std::size_t round, const Operation& operation,
                                   const std::string& why);

}  // namespace convoy::spec
