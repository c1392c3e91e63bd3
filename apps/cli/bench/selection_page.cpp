// The group's own tables, for people and as JSON.
#include "apps/cli/bench/selection_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/comm/engine/selection.h"

namespace convoy::cli {
namespace {

using Json = nlohmann::ordered_json;

bool has_unordered(const std::string& op) {
  const auto all = spec::algorithms();
  return std::any_of(all.begin(), all.end(), [&](const spec::Algorithm& algorithm) {
    return algorithm.collective == op && !algorithm.ordered;
  });
}

// Why a group does not look at the table; "" where it does.
std::string own_rules(const BenchRequest& request, const BenchPlan& plan) {
  if (request.op != "all_reduce" && request.op != "reduce_scatter" && request.op != "all_gather" &&
      request.op != "broadcast") {
    return "a group chooses for all_reduce, reduce_scatter, all_gather and broadcast only";
  }
  const bool memory = plan.transport == "shared_memory" || plan.transport == "in_process";
  if (!memory || std::set<int>(plan.hosts.begin(), plan.hosts.end()).size() > 1) return "";
  return fmt::format("over {} on one host a group keeps to its built-in rules instead (docs/collectives.md)",
                     plan.transport);
}

void add_rows(Json& rows, const law::SelectionTable& table, bool reproducible) {
  for (const law::SelectionRow& row : table.rows) {
    rows.push_back({{"reproducible", reproducible},
                    {"from_bytes", row.from_bytes},
                    {"algorithm", row.choice.algorithm},
                    {"chunk_elements", row.choice.chunk_elements},
                    {"by_host", row.choice.by_host},
                    {"predicted_us", row.choice.seconds * 1e6}});
  }
}

}  // namespace

void print_selection(const BenchRequest& request, const BenchPlan& plan) {
  const auto machine = machine_of(request, plan);
  if (!machine) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("bench: messages over {} were not measured on this machine: run convoy bench p2p "
                            "--transport {} first",
                            plan.transport, plan.transport));
  }
  spec::CollectiveShape shape;
  shape.ranks = request.ranks;
  const auto table = [&](bool reproducible) {
    return comm::selection_table(request.op, shape, *machine, static_cast<std::int64_t>(element_bytes(plan.dtype)),
                                 reproducible);
  };
  const law::SelectionTable ordered = table(true);
  const std::string instead = own_rules(request, plan);
  if (request.json) {
    Json json = {{"ok", true},
                 {"op", request.op},
                 {"ranks", request.ranks},
                 {"hosts", ordered.hosts},
                 {"transport", plan.transport},
                 {"used", instead.empty()},
                 {"rows", Json::array()}};
    add_rows(json["rows"], ordered, true);
    if (has_unordered(request.op)) add_rows(json["rows"], table(false), false);
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("{}", law::to_string(ordered));
  if (has_unordered(request.op)) {
    fmt::print("\nwhere results may depend on the number of ranks (replicas.mode = \"off\"):\n{}",
               law::to_string(table(false)));
  }
  if (!instead.empty()) fmt::print("\n{}\n", instead);
}

}  // namespace convoy::cli
