#include "apps/cli/explain/plan_facts.h"

#include <fmt/format.h>

#include "apps/cli/run/summary.h"
#include "convoy/base/error.h"
#include "convoy/records/open/run_data.h"

namespace convoy::cli {

spec::PlanBaseline read_baseline(const std::string& directory, const spec::Recipe& recipe) {
  Files& files = local_files();
  const std::string recipe_path = directory + "/recipe.toml";
  if (!files.exists(recipe_path) || !files.exists(directory + "/summary.json")) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--baseline {}: there is no finished run in it (recipe.toml and summary.json)", directory));
  }
  const spec::Recipe earlier = spec::read_recipe(recipe_path);
  if (!(earlier.model == recipe.model)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("--baseline {}: its run trained another model: compare [model] of {}", directory, recipe_path));
  }
  const Json summary = read_summary(directory);
  spec::PlanBaseline baseline;
  baseline.directory = directory;
  baseline.ranks = static_cast<int>(summary_number(summary, "/ranks").value_or(0));
  baseline.other_settings = spec::recipe_digest(earlier) != spec::recipe_digest(recipe);
  baseline.step_ms = summary_number(summary, "/step_ms/median");
  baseline.samples_per_s = summary_number(summary, "/samples_per_s");
  if (const auto bytes = summary_number(summary, "/peak_memory_bytes/parameters")) {
    baseline.parameter_bytes = static_cast<std::int64_t>(*bytes);
  }
  for (const char* name : {"accuracy", "macro_f1", "loss"}) {
    const auto value = summary_number(summary, std::string("/quality/") + name);
    if (value) baseline.quality.emplace_back(name, *value);
  }
  return baseline;
}

std::int64_t parameters_of(const spec::PlanBaseline& baseline, const spec::Recipe& recipe) {
  return baseline.parameter_bytes.value_or(0) / (recipe.model.dtype == "float64" ? 8 : 4);
}

std::string look_at_data(const spec::Recipe& recipe, Files& files, spec::PlanFacts& facts) {
  try {
    records::RunData data = records::open_data(recipe.data, files, "", false);
    const auto count = [](const std::vector<std::int64_t>& part) { return static_cast<std::int64_t>(part.size()); };
    facts.sizes =
        spec::PlanSizes{count(data.split().training), count(data.split().validation), count(data.test().indexes)};
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

}  // namespace convoy::cli
