// `convoy verify`: one update, k updates and the short last batch on N ranks, held against one process.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "apps/cli/requests.h"
#include "apps/cli/run/checked_recipe.h"
#include "apps/cli/run/rank_job.h"
#include "apps/cli/run/summary.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/text.h"
#include "convoy/elastic/probe/compare.h"

namespace convoy::cli {
namespace {

// What rank 0 of a side says about its run.
Json read_facts(const std::string& directory) {
  const std::string path = directory + "/probe.json";
  if (!local_files().exists(path)) throw Error(ErrorCode::kCorrupt, fmt::format("{} is missing", path));
  Json facts = Json::parse(local_files().read(path), nullptr, false);
  if (facts.is_discarded()) throw Error(ErrorCode::kCorrupt, fmt::format("{} is damaged", path));
  return facts;
}

class Verify {
 public:
  explicit Verify(const VerifyRequest& request) : request_(request) {}

  int execute() {
    recipe_ = read_checked_recipe(request_.recipe, request_.overrides, request_.ranks).recipe;
    find_rank_program();
    directory_ = make_directory();
    for (const bool reference : {true, false}) {
      const elastic::LaunchResult result = probe(reference);
      if (!result.ok()) return fail(result, reference);
    }
    return report();
  }

 private:
  std::string side(bool reference) const { return directory_ + (reference ? "/reference" : "/ranks"); }
  bool keeps() const { return !request_.out.empty(); }

  std::string make_directory() const {
    Files& files = local_files();
    if (keeps() && !files.list(request_.out).empty()) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("--out {}: the directory is not empty", request_.out));
    }
    std::string path = request_.out;
    if (path.empty()) {
      const std::string stem = fmt::format("runs/verify-{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
      path = stem;
      for (int copy = 2; files.exists(path); ++copy) path = fmt::format("{}-{}", stem, copy);
    }
    for (const char* name : {"/reference/log", "/ranks/log"}) files.make_directories(path + name);
    return path;
  }

  elastic::LaunchResult probe(bool reference) {
    RankJob job;
    job.ranks = reference ? 1 : request_.ranks;
    job.threads = static_cast<int>(recipe_.parallel.threads);
    job.directory = side(reference);
    job.arguments = {"--probe", std::to_string(request_.steps)};
    if (reference) {
      job.arguments.insert(job.arguments.end(), {"--reference", std::to_string(request_.ranks)});
    }
    write_atomic(local_files(), job.directory + "/recipe.toml", spec::to_toml(recipe_));
    elastic::LaunchOptions options = rank_launch_options(job);
    options.signals = &signals_;
    // A mistake that a test plants is the ranks' alone.
    if (reference) options.extra_environment["CONVOY_PLANT"] = "";
    if (!request_.json) {
      fmt::print(stderr, "{} {} updates on {}\n", reference ? "reference:" : "ranks:    ", request_.steps,
                 reference ? "one process" : fmt::format("{} rank{}", request_.ranks, request_.ranks == 1 ? "" : "s"));
    }
    return elastic::launch(options);
  }

  int fail(const elastic::LaunchResult& result, bool reference) const {
    const std::string message =
        fmt::format("the {} failed: {}", reference ? "reference" : "ranks", describe_failure(result));
    fmt::print(stderr, "convoy: {}", message);
    if (request_.json) {
      const Json object = {{"ok", false}, {"status", result.status}, {"error", message}, {"directory", directory_}};
      fmt::print("{}\n", object.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return result.status;
  }

  int report() const {
    Files& files = local_files();
    const elastic::Probe reference = elastic::read_probe(files, side(true) + "/probe", 1);
    const elastic::Probe ranks = elastic::read_probe(files, side(false) + "/probe", request_.ranks);
    const Json facts = read_facts(side(true));
    elastic::CompareOptions options;
    options.owners = spec::deal_replicas(facts.at("replicas").get<int>(), request_.ranks);
    options.accumulation = facts.at("accumulation").get<int>();
    options.steps_per_epoch = facts.at("steps_per_epoch").get<std::int64_t>();
    options.exact = recipe_.replicas.mode == "on";
    const elastic::ProbeReport result = elastic::compare_probes(reference, ranks, options);
    const std::vector<std::string> batch_layers =
        options.exact ? std::vector<std::string>{} : elastic::batch_dependent_layers(reference);
    const bool kept = keeps() || !result.ok();
    if (!kept) files.remove(directory_);
    if (request_.json) {
      print_json(result, facts, batch_layers, kept);
    } else {
      print_table(result, facts, batch_layers, kept);
    }
    return result.ok() ? 0 : exit_status(ErrorCode::kFailed);
  }

  std::string tolerance(const Json& facts) const {
    if (recipe_.replicas.mode == "on") return "every bit equal";
    const bool wide = facts.at("type") == "float64";
    return fmt::format("{} within {:g} of the largest magnitude in its tensor", facts.at("type").get<std::string>(),
                       wide ? elastic::kFloat64Tolerance : elastic::kFloat32Tolerance);
  }

  void print_table(const elastic::ProbeReport& result, const Json& facts, const std::vector<std::string>& batch_layers,
                   bool kept) const {
    fmt::print("{} on {} ranks against one process: {} parameters ({}), {} replicas, {} micro-batches each\n",
               recipe_.task.name, request_.ranks, facts.at("parameters").get<std::int64_t>(),
               facts.at("type").get<std::string>(), facts.at("replicas").get<int>(),
               facts.at("accumulation").get<int>());
    fmt::print("accepted: {}\n\n", tolerance(facts));
    std::size_t width = 0;
    for (const elastic::ProbeCheck& check : result.checks) width = std::max(width, check.name.size());
    for (const elastic::ProbeCheck& check : result.checks) {
      fmt::print("  {:<{}}  {}  {}\n", check.name, width, check.ok ? "same   " : "DIFFERS", check.words);
    }
    if (!batch_layers.empty()) {
      fmt::print("\nreplicas are off, so these layers depend on how many samples a rank has (batch norm): {}\n",
                 fmt::join(batch_layers, ", "));
    }
    for (const elastic::ProbeFinding& finding : result.findings) fmt::print("\n{}: {}\n", finding.fault, finding.words);
    fmt::print("\n{} of {} compared elements differ", result.differing, result.elements);
    fmt::print("{}\n", result.differing == 0 ? "" : fmt::format(", by at most {:.3g}", result.largest));
    if (kept) fmt::print("what both sides did: {}\n", directory_);
  }

  void print_json(const elastic::ProbeReport& result, const Json& facts, const std::vector<std::string>& batch_layers,
                  bool kept) const {
    Json object = {{"ok", result.ok()},         {"ranks", request_.ranks},   {"updates", request_.steps},
                   {"facts", facts},            {"accepted", tolerance(facts)}, {"elements", result.elements},
                   {"differing", result.differing}};
    object["largest_difference"] = std::isfinite(result.largest) ? Json(result.largest) : Json(nullptr);
    object["checks"] = Json::array();
    for (const elastic::ProbeCheck& check : result.checks) {
      object["checks"].push_back({{"name", check.name}, {"ok", check.ok}, {"words", check.words}});
    }
    object["findings"] = Json::array();
    for (const elastic::ProbeFinding& finding : result.findings) {
      object["findings"].push_back({{"fault", finding.fault}, {"words", finding.words}});
    }
    object["batch_dependent_layers"] = batch_layers;
    object["directory"] = kept ? Json(directory_) : Json(nullptr);
    fmt::print("{}\n", object.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  const VerifyRequest& request_;
  elastic::SignalTrap signals_;
  spec::Recipe recipe_;
  std::string directory_;
};

}  // namespace

int verify_command(const VerifyRequest& request) { return Verify(request).execute(); }

}  // namespace convoy::cli
