// The main function of a rank: what `convoy run` starts on every device.
#pragma once

#include "convoy/zoo/registry.h"

namespace convoy::train {

/// Runs `--recipe FILE --out DIR` with `--resume`, or as a probe with `--probe STEPS` and `--reference RANKS` (see
/// run_probe), and returns the exit status; errors become one line in the log and an event for the launcher. A user's
/// program with models of its own calls it with a registry that has them.
/// Errors:     none; nothing is thrown
int rank_main(int argc, char** argv, const zoo::Registry& models);

}  // namespace convoy::train
