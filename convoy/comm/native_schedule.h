// The schedule of a collective that is left to a transport's own library: sizes, and no rounds.
#pragma once

#include <string>

#include "convoy/comm/native_collectives.h"
#include "convoy/spec/collectives/registry.h"

namespace convoy::comm {

/// Returns a schedule with algorithm kNative. On one rank it copies what is to be copied; on several it has no rounds,
/// and only a transport that has NativeCollectives runs it. Parts follow each other in the order of the ranks, and of
/// reduce_scatter they are as even as the elements divide.
/// Errors:     kInvalidArgument for a collective that is not known
spec::Schedule native_schedule(const std::string& collective, const spec::CollectiveShape& shape);

}  // namespace convoy::comm
