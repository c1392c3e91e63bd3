// Builds a schedule, proves what it does, and tells it.
#include "apps/cli/bench/schedule_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "convoy/base/text.h"
#include "convoy/law/price.h"
#include "convoy/plan/collective_size.h"
#include "convoy/spec/schedule/describe.h"
#include "convoy/spec/schedule/validate.h"

namespace convoy::cli {
namespace {

using Json = nlohmann::ordered_json;

// Sums are shown until there are too many to read.
constexpr std::size_t kShownSums = 4;

std::optional<double> predicted_us(const spec::Schedule& schedule, const BenchPlan& plan, int ranks,
                                   const std::optional<plan::Calibration>& calibration) {
  if (!calibration) return std::nullopt;
  auto machine = plan::machine_of(*calibration, plan.transport, ranks);
  if (!machine) return std::nullopt;
  machine->host_of_rank = plan.hosts;
  return law::price(schedule, static_cast<std::int64_t>(element_bytes(plan.dtype)), *machine).seconds * 1e6;
}

void print_json(const BenchRequest& request, const plan::CollectiveSize& size, const spec::Schedule& schedule,
                const spec::ScheduleFacts& facts, std::optional<double> predicted) {
  const auto width = static_cast<std::int64_t>(element_bytes(size.dtype));
  Json rows = Json::array();
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    rows.push_back({{"rank", rank},
                    {"rounds", schedule.ranks[rank].size()},
                    {"messages", facts.sent_messages[rank]},
                    {"sent_bytes", facts.sent_elements[rank] * width},
                    {"work_bytes", schedule.work_elements.empty() ? 0 : schedule.work_elements[rank] * width}});
  }
  Json links = Json::array();
  for (const auto& link : facts.links) {
    links.push_back(
        {{"from", link.from}, {"to", link.to}, {"messages", link.messages}, {"bytes", link.elements * width}});
  }
  Json json = {{"ok", true},
               {"op", schedule.collective},
               {"algorithm", schedule.algorithm},
               {"ranks", request.ranks},
               {"elements", size.elements},
               {"bytes", size.bytes()},
               {"rounds", facts.rounds}};
  json["predicted_us"] = predicted ? Json(*predicted) : Json(nullptr);
  json["sums"] = facts.values;
  json["rows"] = std::move(rows);
  json["links"] = std::move(links);
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

void print_schedule(const BenchRequest& request, const BenchPlan& plan,
                    const std::optional<plan::Calibration>& calibration) {
  const plan::CollectiveSize size = plan::collective_size(request.op, request.ranks, plan.sizes.front(), plan.dtype);
  const spec::Schedule schedule =
      spec::build(request.op, plan.algorithms.front(), size.shape(plan.hosts, plan.chunk_bytes));
  const spec::ScheduleFacts facts = spec::validate(schedule);
  const auto predicted = predicted_us(schedule, plan, request.ranks, calibration);
  if (request.json) return print_json(request, size, schedule, facts, predicted);
  const std::int64_t sent = std::accumulate(facts.sent_elements.begin(), facts.sent_elements.end(), std::int64_t{0});
  fmt::print("{} of {} by {}, {} ranks: {} {} elements\n", schedule.collective,
             format_bytes(static_cast<std::uint64_t>(size.bytes())), schedule.algorithm, request.ranks, size.elements,
             to_string(size.dtype));
  fmt::print("{} rounds; {} sent in all\n\n", facts.rounds,
             format_bytes(static_cast<std::uint64_t>(sent) * element_bytes(size.dtype)));
  fmt::print("{}\n{}", spec::describe_table(schedule), spec::describe_picture(schedule));
  if (!facts.values.empty() && request.op != "all_gather") {
    fmt::print("\norder of sums, {} in all (r.k is input k of rank r):\n", facts.values.size());
    for (std::size_t i = 0; i < std::min(kShownSums, facts.values.size()); ++i) fmt::print("  {}\n", facts.values[i]);
    if (facts.values.size() > kShownSums) fmt::print("  ...\n");
  }
  if (predicted) {
    fmt::print("\npredicted over {} from the calibration of {}: {:.1f} us\n", plan.transport, calibration->date,
               *predicted);
  }
}

}  // namespace convoy::cli
