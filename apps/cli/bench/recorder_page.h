// `convoy bench --recorder PATH`: what the ranks of a failed group did last, from the files that they left.
#pragma once

#include <string>

namespace convoy::cli {

/// Prints a row for each of the newest operations with a column for each rank, and who was missing. PATH is a rank's
/// file, beside which the others lie, or their folder (then the group that failed last).
/// Errors:     kIo for a path that is not there; kCorrupt naming a file of another kind; kInvalidArgument for a folder
///             without such files
void print_recorder(const std::string& path, bool json);

}  // namespace convoy::cli
