// `convoy data`: check, make and divide data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/requests.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/text.h"
#include "convoy/records/check/data_check.h"
#include "convoy/records/synth/synth.h"

namespace convoy::cli {
namespace {

using Json = nlohmann::ordered_json;

spec::Recipe read_recipe(const DataRequest& request) {
  if (!local_files().exists(request.recipe)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no recipe {}", request.recipe));
  }
  return spec::read_recipe(request.recipe, request.overrides);
}

void print_report(const records::DataReport& report) {
  TextTable parts({"part", "samples", "repeated", fmt::format("{}", fmt::join(report.classes, " / "))});
  for (const records::PartReport& part : report.parts) {
    parts.add({part.name, fmt::to_string(part.samples), fmt::to_string(part.duplicates),
               fmt::format("{}", fmt::join(part.class_counts, " / "))});
  }
  fmt::print("{}", parts.str());
  if (!report.columns.empty()) {
    TextTable columns({"column", "missing", "ROC AUC alone"});
    for (const records::ColumnReport& column : report.columns) {
      columns.add({column.name, fmt::to_string(column.missing), fmt::format("{:.4f}", column.auc)});
    }
    fmt::print("\n{}", columns.str());
  }
  fmt::print("\n{} numbers a sample; {} samples are in an earlier part, too; {} groups in several parts\n",
             report.features, report.duplicates_across, report.groups_across);
  for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
  for (const std::string& finding : report.findings) fmt::print("found: {}\n", finding);
  if (report.findings.empty()) fmt::print("ok: nothing found\n");
}

int check(const DataRequest& request) {
  const spec::Recipe recipe = read_recipe(request);
  const records::DataReport report = records::check_data(recipe.data, local_files());
  if (request.json) {
    fmt::print("{}\n", records::to_json(report));
  } else {
    print_report(report);
  }
  return request.strict && !report.findings.empty() ? exit_status(ErrorCode::kFailed) : 0;
}

int synth(const DataRequest& request) {
  Files& files = local_files();
  const records::SynthOptions options{request.samples, request.test_samples, static_cast<std::uint64_t>(request.seed)};
  std::vector<std::string> names;
  if (request.kind == "idx") names = records::synth_idx(files, request.out, options);
  if (request.kind == "cifar10") names = records::synth_cifar10(files, request.out, options);
  if (request.kind == "bank") names = records::synth_bank(files, request.out, options);
  if (request.json) {
    Json json = {{"ok", true}, {"kind", request.kind}, {"folder", request.out}, {"files", names}};
    json["samples"] = request.samples;
    json["seed"] = request.seed;
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    for (const std::string& name : names) fmt::print("{}/{}\n", request.out, name);
  }
  return 0;
}

int split(const DataRequest& request) {
  const spec::Recipe recipe = read_recipe(request);
  Files& files = local_files();
  const bool made = !files.exists(request.out);
  records::RunData data = records::open_data(recipe.data, files, request.out, true);
  const records::Split& parts = data.split();
  if (request.json) {
    const Json json = {{"ok", true},
                       {"record", request.out},
                       {"made", made},
                       {"kind", recipe.data.split},
                       {"training", parts.training.size()},
                       {"validation", parts.validation.size()},
                       {"test", parts.test.size()}};
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print(
        "{} {}: {} for training, {} for validation, {} for the test{}\n", made ? "wrote" : "read", request.out,
        parts.training.size(), parts.validation.size(), parts.test.size(),
        recipe.data.split == "official" || !recipe.data.test_path.empty() ? " (which has files of its own)" : "");
  }
  return 0;
}

}  // namespace

int data_command(const DataRequest& request) {
  if (request.action == "check") return check(request);
  if (request.action == "synth") return synth(request);
  return split(request);
}

}  // namespace convoy::cli
