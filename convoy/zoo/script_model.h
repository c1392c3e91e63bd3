// A TorchScript module, from a file that Python or C++ wrote, as a Model.
#pragma once

#include <memory>
#include <string>

#include "convoy/params/model.h"
#include "convoy/zoo/registry.h"

namespace convoy::zoo {

/// Loads the file of a request's `script` key: a module with forward(input [B, ...]) -> logits [B, C]. Parameters keep the
/// values that the file has; random layers draw from libtorch's default generator, which a params::RandomScope seeds.
/// Errors:     kInvalidArgument naming the file when it is missing, no TorchScript module, or has nothing to train
std::unique_ptr<params::Model> load_script(const ModelRequest& request);

/// Makes TorchScript run every execution alike. Its optimising executor specialises a graph after the first runs, and
/// fused kernels round differently, so the first executions would give other bits than later ones.
/// Threads:    once, before any script runs; for the whole process
void run_scripts_alike();

}  // namespace convoy::zoo
