// `convoy explain`: one training step in order, or the training plan as a page.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/explain/plan_facts.h"
#include "apps/cli/requests.h"
#include "apps/cli/run/checked_recipe.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/spec/document/plan_document.h"
#include "convoy/spec/document/step_picture.h"
#include "convoy/spec/document/step_story.h"

namespace convoy::cli {
namespace {

constexpr const char* kDefaultPage = "plan.md";

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

// Only an earlier plan is written over: a page of this name may be somebody's own work.
void check_replaceable(const std::string& path) {
  if (!local_files().exists(path) || spec::is_plan_page(local_files().read(path))) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} is there and is no plan of convoy explain: name another page with --out", path));
}

// As for a plan: only an earlier picture is written over.
void write_picture(const std::string& path, const spec::StepStory& story) {
  if (local_files().exists(path) && !spec::is_step_svg(local_files().read(path))) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} is there and is no picture of convoy explain: name another file with --picture", path));
  }
  write_atomic(local_files(), path, spec::picture_svg(spec::draw_step(story)));
}

int explain_step(const ExplainRequest& request, spec::Recipe recipe, const spec::PlanFacts& facts) {
  std::int64_t parameters = request.parameters;
  if (parameters == 0 && facts.baseline) parameters = parameters_of(*facts.baseline, recipe);
  const int ranks = request.ranks == 0 ? 1 : request.ranks;
  const plan::BucketChoice buckets = chosen_buckets(recipe, ranks);
  recipe.parallel.bucket_bytes = buckets.bytes;
  const spec::StepStory story = spec::tell_step(recipe, ranks, parameters, buckets.source);
  if (!request.picture.empty()) write_picture(request.picture, story);
  if (request.json) {
    nlohmann::ordered_json json = spec::to_json(story);
    if (!request.picture.empty()) json["file"] = request.picture;
    print_json(json);
  } else {
    fmt::print("{}", spec::step_tables(story));
    if (!request.picture.empty()) fmt::print("\nThe picture is in {}\n", request.picture);
  }
  return 0;
}

int write_document(const ExplainRequest& request, const spec::Recipe& recipe, spec::PlanFacts facts) {
  facts.data_problem = look_at_data(recipe, local_files(), facts);
  const spec::PlanDocument plan = spec::make_plan_document(recipe, facts);
  const std::string page = spec::to_markdown(plan);
  if (request.out == "-") {
    fmt::print("{}", page);
    return 0;
  }
  const std::string path = request.out.empty() ? kDefaultPage : request.out;
  check_replaceable(path);
  write_atomic(local_files(), path, page);
  const std::vector<spec::PlanLine> open = plan.open();
  if (request.json) {
    nlohmann::ordered_json json = spec::to_json(plan);
    json["file"] = path;
    print_json(json);
    return 0;
  }
  fmt::print("{}: {} open\n", path, open.empty() ? "nothing" : fmt::to_string(open.size()));
  for (const spec::PlanLine& line : open) fmt::print("open: {} ({})\n", line.what, line.key);
  return 0;
}

}  // namespace

int explain_command(const ExplainRequest& request) {
  if (!local_files().exists(request.recipe)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no recipe {}", request.recipe));
  }
  const spec::Recipe recipe = spec::read_recipe(request.recipe, request.overrides);
  spec::PlanFacts facts;
  facts.recipe_file = request.recipe;
  facts.ranks = request.ranks;
  if (!request.baseline.empty()) facts.baseline = read_baseline(request.baseline, recipe);
  return request.document ? write_document(request, recipe, std::move(facts)) : explain_step(request, recipe, facts);
}

}  // namespace convoy::cli
