// What a trace says, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convoy/observe/trace/diagnosis.h"
#include "convoy/observe/trace/trace_analysis.h"

namespace convoy::observe {

/// Returns {steps, ms: {NAME: {median, p95}}, ranks: [{rank, ms}], tail_ms, waited_for, critical_path, findings}: the field
/// `trace` of summary.json.
nlohmann::ordered_json summary_json(const Trace& trace, const TraceAnalysis& analysis,
                                    const std::vector<Finding>& findings);

/// Returns the same, and the numbers, arrivals and critical path of each step.
nlohmann::ordered_json to_json(const Trace& trace, const TraceAnalysis& analysis, const std::vector<Finding>& findings);

/// Returns the tables that a user sees, each line ended by a line break.
std::string trace_tables(const Trace& trace, const TraceAnalysis& analysis, const std::vector<Finding>& findings);

}  // namespace convoy::observe
