// What a training plan says about the data.
#include <fmt/format.h>

#include <vector>

#include "convoy/spec/document/plan_sections.h"
#include "convoy/spec/recipe/data_column.h"

namespace convoy::spec {
namespace {

// A column's name with what is declared about it, in the order of names.
struct NamedColumn {
  std::string name;
  DataColumn column;
};

std::vector<NamedColumn> columns_of(const DataRecipe& data) {
  std::vector<NamedColumn> columns;
  for (const auto& entry : data.columns) columns.push_back({entry.first, parse_data_column(entry.second)});
  return columns;
}

std::string names_of_kind(const DataRecipe& data, ColumnKind kind) {
  std::string names;
  for (const NamedColumn& named : columns_of(data)) {
    if (named.column.kind == kind) names += (names.empty() ? "" : ", ") + named.name;
  }
  return names;
}

std::string_view kind_words(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kNumber: return "number";
    case ColumnKind::kCategory: return "category";
    case ColumnKind::kTarget: return "target";
    case ColumnKind::kGroup: return "group";
    case ColumnKind::kTime: return "time";
    case ColumnKind::kExcluded: return "excluded";
  }
  return "unknown";
}

std::string use_words(const DataColumn& column) {
  switch (column.kind) {
    case ColumnKind::kNumber:
    case ColumnKind::kCategory: return "feature";
    case ColumnKind::kTarget: return "what is predicted";
    case ColumnKind::kGroup: return "no feature: keeps related samples in one part";
    case ColumnKind::kTime: return "no feature: says when a sample arose";
    case ColumnKind::kExcluded: return "no: " + column.reason;
  }
  return "";
}

std::string encoding_words(const DataColumn& column) {
  if (column.kind == ColumnKind::kNumber) {
    return std::string("(value - mean) / deviation; ") +
           (column.missing_allowed ? "a missing value becomes the mean, and one more feature says so"
                                   : "a missing value is an error");
  }
  return fmt::format("one feature for each category; a missing value {}; a category that the training part lacks {}",
                     column.missing_allowed ? "is a category of its own" : "is an error",
                     column.unseen_allowed ? "belongs to none" : "is an error");
}

PlanLine files_line(const DataRecipe& data) {
  if (data.path.empty() && data.format == "idx")
    return stated("files", "IDX, of Debian's package dataset-fashion-mnist");
  const std::string format = data.format == "idx" ? "IDX" : data.format == "csv" ? "CSV" : "CIFAR-10, binary batches";
  PlanLine line = declared("files", data.path, "data.path");
  if (!line.text.empty()) line.text = fmt::format("{}, in {}", format, line.text);
  if (!line.text.empty() && !data.test_path.empty()) line.text += ", test part in " + data.test_path;
  return line;
}

std::string split_words(const DataRecipe& data) {
  const std::string how =
      data.split == "time"
          ? fmt::format("by time (column {}): the latest samples", names_of_kind(data, ColumnKind::kTime))
      : data.split == "group"  ? fmt::format("by group (column {}), none in two parts, chosen at random by seed {}",
                                             names_of_kind(data, ColumnKind::kGroup), data.split_seed)
      : data.split == "random" ? fmt::format("at random by seed {}", data.split_seed)
                               : fmt::format(
                                     "official: the test part has files of its own; validation is drawn from the "
                                     "training set at random by seed {}",
                                     data.split_seed);
  return how;
}

}  // namespace

PlanSection task_section(const Recipe& recipe) {
  PlanSection section{"Task",
                      {declared("source", recipe.task.source, "task.source"), files_line(recipe.data),
                       declared("moment of prediction", recipe.task.prediction_moment, "task.prediction_moment"),
                       declared("label", recipe.task.label, "task.label")},
                      {}};
  if (!recipe.data.positive.empty()) section.lines.push_back(stated("positive class", recipe.data.positive));
  return section;
}

PlanSection feature_section(const Recipe& recipe) {
  PlanSection section{"Features", {}, {}};
  if (recipe.data.columns.empty() || !recipe.task.features.empty()) {
    section.lines.push_back(declared("features", recipe.task.features, "task.features"));
  }
  if (recipe.data.columns.empty()) return section;
  section.table = {{"column", "kind", "used"}};
  for (const NamedColumn& named : columns_of(recipe.data)) {
    section.table.push_back({named.name, std::string(kind_words(named.column.kind)), use_words(named.column)});
  }
  return section;
}

PlanSection encoding_section(const Recipe& recipe) {
  PlanSection section{"Encoding", {}, {}};
  const auto say = [&](const char* what, std::string text) { section.lines.push_back(stated(what, std::move(text))); };
  if (!recipe.data.columns.empty()) {
    say("fitted on", "the training part alone; validation and test are encoded with it");
    section.table = {{"column", "encoding"}};
    for (const NamedColumn& named : columns_of(recipe.data)) {
      const ColumnKind kind = named.column.kind;
      if (kind != ColumnKind::kNumber && kind != ColumnKind::kCategory) continue;
      section.table.push_back({named.name, encoding_words(named.column)});
    }
    return section;
  }
  say("pixels",
      "(pixel - mean) / deviation of each channel; both are fitted on the training part alone and used for all parts");
  std::string variation = recipe.data.flip ? "half of the images are flipped left to right" : "";
  if (recipe.data.shift > 0) {
    variation += fmt::format("{}shifted by up to {} each way", variation.empty() ? "images are " : ", all are ",
                             counted(recipe.data.shift, "pixel"));
  }
  say("augmentation", variation.empty() ? "none" : "training only: " + variation);
  return section;
}

PlanSection split_section(const Recipe& recipe, const PlanFacts& facts) {
  const DataRecipe& data = recipe.data;
  PlanSection section{"Splits", {stated("parts", split_words(data))}, {}};
  section.lines.push_back(stated(
      "validation", data.validation == 0 ? std::string("no part is set apart") : counted(data.validation, "sample")));
  section.lines.push_back(stated("test", data.test > 0 ? counted(data.test, "sample") + ", read once at the end"
                                                       : std::string("the official test set, read once at the end")));
  if (data.limit > 0) {
    section.lines.push_back(
        stated("limit", fmt::format("only {} of the training part", counted(data.limit, "sample"))));
  }
  if (!facts.sizes) {
    section.lines.push_back(stated(
        "sizes", facts.data_problem.empty() ? "the data were not looked at" : "not known: " + facts.data_problem));
    return section;
  }
  section.table = {{"part", "samples"},
                   {"training", fmt::to_string(facts.sizes->training)},
                   {"validation", fmt::to_string(facts.sizes->validation)},
                   {"test", fmt::to_string(facts.sizes->test)}};
  return section;
}

PlanSection sampling_section(const Recipe& recipe, const PlanFacts& facts) {
  PlanSection section{"Sampling", {}, {}};
  const auto say = [&](const char* what, std::string text) { section.lines.push_back(stated(what, std::move(text))); };
  say("order",
      fmt::format("a new random order of the whole training part in each epoch, from seed {}", recipe.task.seed));
  std::string last =
      recipe.train.drop_last ? "left out when it is short" : "used when it is short, weighted by its samples";
  if (facts.sizes && facts.sizes->training > 0) {
    const std::int64_t rest = facts.sizes->training % recipe.train.global_batch;
    last += rest == 0 ? " (it is whole)" : fmt::format(" ({} of {} samples)", rest, recipe.train.global_batch);
  }
  say("last batch", last);
  say("class weights", recipe.train.class_weights == "none"
                           ? std::string("none")
                           : recipe.train.class_weights + ", from the classes of the whole training part");
  say("resampling", recipe.data.resample == "none"
                        ? std::string("none: each sample once per epoch")
                        : recipe.data.resample + ": all classes are drawn alike, over the whole training part");
  return section;
}

}  // namespace convoy::spec
