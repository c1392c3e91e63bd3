// `convoy bench`: measures, keeps what was measured, and tells it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/cli/bench/bench_job.h"
#include "apps/cli/bench/bench_plan.h"
#include "apps/cli/bench/bench_report.h"
#include "apps/cli/bench/recorder_page.h"
#include "apps/cli/bench/schedule_page.h"
#include "apps/cli/bench/selection_page.h"
#include "apps/cli/requests.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/plan/calibration.h"

namespace convoy::cli {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void print_json(const Json& json) { fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace)); }

std::string save_path(const BenchRequest& request) {
  if (request.no_save) return "";
  return request.save.empty() ? plan::calibration_path() : request.save;
}

// The libraries to measure beside, and those that were hoped for.
struct Peers {
  Names chosen;
  Names missing;
};

[[noreturn]] void refuse_absent(const std::string& name) {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("bench: {} is not there: install {} and build again", name,
                          name == "openmpi" ? "libopenmpi-dev and openmpi-bin" : "libgloo-dev"));
}

Peers choose_peers(const BenchRequest& request, const BenchPlan& plan) {
  Names wanted;
  const bool named = !request.peers.empty();
  std::string rest = named ? request.peers : request.with_peers ? "openmpi,gloo" : "";
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    wanted.push_back(rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  for (const std::string& name : wanted) {
    if (name == "openmpi" || name == "gloo") continue;
    throw Error(ErrorCode::kInvalidArgument, fmt::format("bench: unknown peer '{}': there are openmpi and gloo", name));
  }
  const bool under_mpi = plan.transport == "openmpi";
  Peers peers;
  if (wanted.empty() && !under_mpi) return peers;
  const Names there = available_peers();
  if (under_mpi && !has(there, "openmpi")) refuse_absent("openmpi");
  for (const std::string& name : wanted) {
    if (has(there, name)) {
      peers.chosen.push_back(name);
      continue;
    }
    if (named) refuse_absent(name);
    peers.missing.push_back(name);
  }
  return peers;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

// Point-to-point times and what follows from them.
struct Links {
  Json rows;
  std::vector<PairFit> pairs;
  plan::LinkFit all;
  double gamma_s = 0;
  double kappa_s = 0;
};

Links fit_links(const Json& result) {
  Links links;
  links.rows = result.at("rows");
  links.gamma_s = result.at("arithmetic").at("gamma_s_per_byte");
  links.kappa_s = result.at("arithmetic").at("kappa_s_per_byte");
  std::map<std::pair<int, int>, std::vector<plan::MessageTime>> by_pair;
  std::map<std::int64_t, std::vector<double>> by_size;
  for (const Json& row : links.rows) {
    const plan::MessageTime time{row.at("bytes"), row.at("median_us").get<double>() * 1e-6};
    by_pair[{row.at("from"), row.at("to")}].push_back(time);
    by_size[time.bytes].push_back(time.seconds);
  }
  if (by_size.size() < 2) return links;
  for (const auto& [ranks, times] : by_pair) {
    links.pairs.push_back({ranks.first, ranks.second, plan::fit_link(times)});
  }
  std::vector<plan::MessageTime> medians;
  for (auto& [bytes, seconds] : by_size) medians.push_back({bytes, median(seconds)});
  links.all = plan::fit_link(medians);
  return links;
}

Json to_json(const plan::LinkFit& fit) {
  return {{"alpha_us", fit.cost.alpha_s * 1e6},
          {"beta_s_per_byte", fit.cost.beta_s},
          {"bandwidth_gbps", fit.cost.beta_s > 0 ? Json(1e-9 / fit.cost.beta_s) : Json(nullptr)},
          {"relative_error", fit.relative_error},
          {"worst_error", fit.worst_error}};
}

// Adds what was measured to the machine's calibration; returns where it lies, "" when nothing was kept.
std::string keep(const BenchRequest& request, const BenchPlan& plan, const Links* links, const Json* rows) {
  const std::string path = save_path(request);
  const bool fitted = links != nullptr && !links->pairs.empty();
  if (path.empty() || (!fitted && rows == nullptr)) return "";
  plan::Calibration fresh = plan::this_machine();
  // Another machine's numbers are of no use here.
  if (const auto known = plan::read_own_calibration(local_files(), path)) {
    const std::string date = fresh.date;
    fresh = *known;
    fresh.date = date;
  }
  if (fitted) {
    fresh.put({plan.transport, request.buffers, request.ranks, links->all, fresh.date});
    fresh.gamma_s = links->gamma_s;
    fresh.kappa_s = links->kappa_s;
  }
  for (const Json& row : rows != nullptr ? *rows : Json::array()) {
    if (row.at("library") != "convoy" || row.at("cold") || row.at("dtype") != "float32") continue;
    fresh.put({row.at("op"), row.at("algorithm"), row.at("transport"), row.at("buffers"), row.at("ranks"),
               row.at("bytes"), row.at("median_us").get<double>() * 1e-6, row.at("p95_us").get<double>() * 1e-6});
  }
  plan::write_calibration(local_files(), path, fresh);
  return path;
}

Json header(const BenchRequest& request, const BenchPlan& plan) {
  const plan::Calibration machine = plan::this_machine();
  return {{"ok", true},
          {"bench", request.action},
          {"host", machine.host},
          {"cpu", machine.cpu},
          {"cores", machine.cores},
          {"date", machine.date},
          {"ranks", request.ranks},
          {"transport", plan.transport}};
}

Json path_or_null(const std::string& path) { return path.empty() ? Json(nullptr) : Json(path); }

int p2p(const BenchRequest& request, const BenchPlan& plan) {
  const Links links = fit_links(run_workers(request, plan, "p2p", {}));
  const std::string saved = keep(request, plan, &links, nullptr);
  const bool fitted = !links.pairs.empty();
  if (request.json) {
    Json json = header(request, plan);
    json["fit"] = fitted ? to_json(links.all) : Json(nullptr);
    json["gamma_s_per_byte"] = links.gamma_s;
    json["kappa_s_per_byte"] = links.kappa_s;
    json["pairs"] = Json::array();
    for (const PairFit& pair : links.pairs) {
      Json one = to_json(pair.fit);
      one["from"] = pair.from;
      one["to"] = pair.to;
      json["pairs"].push_back(std::move(one));
    }
    json["calibration"] = path_or_null(saved);
    json["rows"] = links.rows;
    print_json(json);
    return 0;
  }
  fmt::print("messages over {}, {} ranks, {} buffers: half of a round trip\n{}", plan.transport, request.ranks,
             request.buffers, describe_pairs(links.rows));
  if (request.ranks > 2 && fitted) fmt::print("\n{}", describe_matrix(links.pairs, request.ranks));
  if (fitted) fmt::print("\n{}\n", describe_fit(links.all));
  fmt::print("a sum costs {:.3f} ns a byte of its second source, a copy {:.3f} ns a byte\n", links.gamma_s * 1e9,
             links.kappa_s * 1e9);
  if (request.plot) fmt::print("\n{}", describe_plot(links.rows, "bandwidth_gbps", "GB/s one way"));
  if (!saved.empty()) fmt::print("kept in {}\n", saved);
  return 0;
}

// A short look at messages, before what is made of them.
std::optional<Links> measure_links(const BenchRequest& request, BenchPlan plan) {
  if (request.ranks < 2) return std::nullopt;
  const std::int64_t largest = std::clamp<std::int64_t>(plan.sizes.back(), 4 << 10, 4 << 20);
  plan.sizes.clear();
  for (std::int64_t bytes = 8; bytes <= largest; bytes *= 8) plan.sizes.push_back(bytes);
  BenchRequest brief = request;
  brief.cold = false;
  brief.repeats = request.repeats > 0 ? std::min(request.repeats, 30) : 30;
  return fit_links(run_workers(brief, plan, "p2p", {}));
}

int collective(const BenchRequest& request, const BenchPlan& plan) {
  const Peers peers = choose_peers(request, plan);
  for (const std::string& name : peers.missing) {
    fmt::print(stderr, "convoy: note: {} is not there and is not measured\n", name);
  }
  const std::optional<Links> links = measure_links(request, plan);
  const Json rows = run_workers(request, plan, "collective", peers.chosen).at("rows");
  const std::string saved = keep(request, plan, links ? &*links : nullptr, &rows);
  if (request.json) {
    Json json = header(request, plan);
    json["op"] = request.op;
    json["peers"] = peers.chosen;
    json["peers_missing"] = peers.missing;
    json["point_to_point"] = links ? to_json(links->all) : Json(nullptr);
    json["calibration"] = path_or_null(saved);
    json["rows"] = rows;
    print_json(json);
    return 0;
  }
  fmt::print("{} on {} ranks, {} buffers, {}\n", request.op, request.ranks, request.buffers,
             request.cold ? "cold" : "warm");
  if (links && !links->pairs.empty()) fmt::print("{}\n", describe_fit(links->all));
  fmt::print("\n{}", describe_collectives(rows));
  if (request.plot) fmt::print("\n{}", describe_plot(rows, "busbw_gbps", "bus GB/s"));
  if (!saved.empty()) fmt::print("kept in {}\n", saved);
  return 0;
}

}  // namespace

int bench_command(const BenchRequest& request) {
  if (!request.recorder.empty()) {
    print_recorder(request.recorder, request.json);
    return 0;
  }
  const BenchPlan plan = make_bench_plan(request);
  if (request.table) {
    print_selection(request, plan);
    return 0;
  }
  if (request.action == "p2p") return p2p(request, plan);
  if (!request.explain) return collective(request, plan);
  const std::string path = request.save.empty() ? plan::calibration_path() : request.save;
  print_schedule(request, plan,
                 path.empty() || request.no_save ? std::nullopt : plan::read_calibration(local_files(), path));
  return 0;
}

}  // namespace convoy::cli
