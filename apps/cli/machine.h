// What is known about this machine, for the record of a run.
#pragma once

#include <nlohmann/json.hpp>

namespace convoy::cli {

/// Returns host name, processor, cores, memory and kernel; what cannot be found out is left out.
nlohmann::ordered_json describe_machine();

}  // namespace convoy::cli
