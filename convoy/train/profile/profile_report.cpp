#include "convoy/train/profile/profile_report.h"

#include <algorithm>
#include <numeric>

#include "convoy/base/processor.h"
#include "convoy/observe/quantile.h"
#include "convoy/train/blas_facts.h"

namespace convoy::train {
namespace {

using nlohmann::ordered_json;

double mean(const std::vector<double>& values) {
  return values.empty() ? 0.0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Means add up over parts, medians need not.
ordered_json spread(const std::vector<double>& values) {
  if (values.empty()) return {{"median", 0.0}, {"p95", 0.0}, {"mean", 0.0}};
  return {{"median", observe::median(values)}, {"p95", observe::p95(values)}, {"mean", mean(values)}};
}

std::vector<double> times_of(const ProfileFacts& facts, observe::Part part) {
  std::vector<double> values;
  for (const observe::StepTimes& step : facts.steps) values.push_back(to_ms(step.part(part)));
  return values;
}

std::vector<double> totals_of(const ProfileFacts& facts) {
  std::vector<double> values;
  for (const observe::StepTimes& step : facts.steps) values.push_back(to_ms(step.total));
  return values;
}

double median_of(const std::vector<double>& values) { return values.empty() ? 0.0 : observe::median(values); }

ordered_json parts_json(const ProfileFacts& facts) {
  using observe::Part;
  ordered_json parts;
  parts["input_prepare"] = spread(times_of(facts, Part::kInputPrepare));
  parts["input_wait"] = spread(times_of(facts, Part::kInputWait));
  parts["forward"] = spread(times_of(facts, Part::kForward));
  parts["backward"] = spread(times_of(facts, Part::kBackward));
  parts["gradient_sum"] = spread(times_of(facts, Part::kCommExposed));
  parts["optimizer"] = spread(times_of(facts, Part::kOptimizer));
  parts["other"] = spread(times_of(facts, Part::kOther));
  return parts;
}

ordered_json pass_json(const std::vector<double>& times_ms, double flop, double bytes, const Ceilings& ceilings) {
  ordered_json json = spread(times_ms);
  json["flop"] = flop;
  json["bytes"] = bytes;
  const double seconds = median_of(times_ms) / 1000.0;
  const auto share = [seconds](double amount, double ceiling) {
    return seconds > 0 && ceiling > 0 ? amount / seconds / 1e9 / ceiling : 0.0;
  };
  json["matrix_share"] = share(flop, ceilings.matrix_gflop_per_s);
  json["memory_share"] = share(bytes, ceilings.memory_gb_per_s);
  return json;
}

ordered_json layers_json(const ProfileFacts& facts) {
  ordered_json json;
  std::vector<double> forward_rest = facts.layers.forward_ms();
  std::vector<double> backward_rest = facts.layers.backward_ms();
  ordered_json rows = ordered_json::array();
  for (const LayerRow& row : facts.layers.rows()) {
    for (std::size_t step = 0; step < facts.layers.steps(); ++step) {
      forward_rest[step] -= row.forward_ms[step];
      backward_rest[step] -= row.backward_ms[step];
    }
    const auto elements = facts.module_elements.find(row.name);
    const bool has_elements = row.has_parameters && elements != facts.module_elements.end();
    rows.push_back(
        {{"name", row.name},
         {"operators", row.operators},
         {"parameters", has_elements ? elements->second : 0},
         {"output_bytes", row.output_bytes},
         {"flop_known", row.cost.known},
         {"forward_ms", pass_json(row.forward_ms, row.cost.forward_flop, row.cost.forward_bytes, facts.ceilings)},
         {"backward_ms", pass_json(row.backward_ms, row.cost.backward_flop, row.cost.backward_bytes, facts.ceilings)}});
  }
  json["steps"] = facts.layers.steps();
  json["forward_ms"] = spread(facts.layers.forward_ms());
  json["backward_ms"] = spread(facts.layers.backward_ms());
  json["forward_rest_ms"] = spread(forward_rest);
  json["backward_rest_ms"] = spread(backward_rest);
  json["rows"] = std::move(rows);
  return json;
}

ordered_json closed_form_json(const law::StateBytes& state) {
  return {{"parameters", state.parameters},
          {"gradients", state.gradients},
          {"gradient_partials", state.gradient_partials},
          {"optimizer", state.optimizer}};
}

ordered_json batch_json(const ProfileFacts& facts) {
  const BatchFacts& batch = facts.batch;
  ordered_json json = {{"samples", batch.largest},
                       {"limit_bytes", batch.limit.bytes},
                       {"limit_source", batch.limit.source},
                       {"taken_bytes", batch.taken_bytes},
                       {"fixed_bytes", batch.fixed_bytes},
                       {"pass_base_bytes", batch.fit.base_bytes},
                       {"pass_bytes_per_sample", batch.fit.bytes_per_sample},
                       {"input_bytes_per_sample", batch.input_bytes_per_sample}};
  const auto point = [](const PassPoint& pass) {
    return ordered_json{{"samples", pass.samples}, {"bytes", pass.bytes}};
  };
  json["measured"] = ordered_json::array({point(batch.smaller), point(batch.larger)});
  json["predicted_peak_bytes"] = {{"local_batch", batch.peak_bytes(facts.local_batch)},
                                  {"largest", batch.peak_bytes(batch.largest)}};
  json["extrapolated"] = !batch.tried.has_value();
  json["tried"] = nullptr;
  if (batch.tried) {
    json["tried"] = point(*batch.tried);
    const double predicted = batch.fit.pass_bytes(batch.tried->samples);
    json["tried"]["predicted_bytes"] = predicted;
    json["tried"]["error"] = predicted / static_cast<double>(std::max<std::int64_t>(batch.tried->bytes, 1)) - 1.0;
  }
  json["untried"] = batch.untried.empty() ? ordered_json(nullptr) : ordered_json(batch.untried);
  return json;
}

ordered_json estimate_json(const RunEstimate& estimate) {
  return {{"steps", estimate.steps},
          {"setup_s", estimate.setup_s},
          {"training_s", estimate.training_s},
          {"validations", estimate.validations},
          {"evaluation_s", estimate.evaluation_s},
          {"checkpoints", estimate.checkpoints},
          {"checkpoint_s", estimate.checkpoint_s},
          {"total_s", estimate.total_s()}};
}

ordered_json walls_json(const ProfileFacts& facts) {
  ordered_json walls = ordered_json::array();
  for (const plan::WallFinding& finding : plan::find_walls(wall_facts(facts))) {
    ordered_json answers = ordered_json::array();
    for (const plan::WallAnswer& answer : finding.answers) {
      answers.push_back({{"strategy", answer.strategy}, {"why", answer.why}});
    }
    walls.push_back(
        {{"wall", std::string(plan::to_string(finding.wall))}, {"words", finding.words}, {"answers", answers}});
  }
  return walls;
}

}  // namespace

plan::WallFacts wall_facts(const ProfileFacts& facts) {
  plan::WallFacts wall;
  wall.memory_limit_bytes = static_cast<double>(facts.batch.limit.bytes);
  wall.taken_bytes = static_cast<double>(facts.batch.taken_bytes);
  const auto element = static_cast<double>(element_bytes(facts.dtype));
  double one_gradient = 0.0;
  for (const auto& [module, elements] : facts.module_elements) one_gradient += element * static_cast<double>(elements);
  wall.parameter_bytes = static_cast<double>(facts.state.parameters);
  // The pass holds one set of gradients itself.
  wall.gradient_bytes = static_cast<double>(facts.state.gradients) +
                        std::max(0.0, static_cast<double>(facts.state.gradient_partials) - one_gradient);
  wall.optimizer_bytes = static_cast<double>(facts.state.optimizer);
  wall.pass_base_bytes = facts.batch.fit.base_bytes;
  wall.bytes_per_sample = facts.batch.fit.bytes_per_sample + facts.batch.input_bytes_per_sample;
  wall.local_batch = facts.local_batch;
  for (const LayerRow& row : facts.layers.rows()) {
    const auto elements = facts.module_elements.find(row.name);
    // Values, the sum and autograd's own gradient, and moments.
    const double state = !row.has_parameters || elements == facts.module_elements.end()
                             ? 0.0
                             : element * static_cast<double>(elements->second) * (3.0 + facts.moments);
    const double output = row.output_bytes / static_cast<double>(std::max<std::int64_t>(facts.local_batch, 1));
    if (state + output <= wall.largest_layer_bytes) continue;
    wall.largest_layer = row.name;
    wall.largest_layer_bytes = state + output;
  }
  wall.step_ms = median_of(totals_of(facts));
  wall.input_wait_ms = median_of(times_of(facts, observe::Part::kInputWait));
  wall.optimizer_ms = median_of(times_of(facts, observe::Part::kOptimizer));
  wall.total_s = facts.estimate.total_s();
  return wall;
}

ordered_json to_json(const ProfileFacts& facts) {
  ordered_json json = {{"ok", true}, {"format", kProfileFormat}, {"task", facts.task}, {"model", facts.model}};
  std::int64_t parameters = 0;
  for (const auto& [module, elements] : facts.module_elements) parameters += elements;
  json["parameters"] = parameters;
  json["dtype"] = std::string(to_string(facts.dtype));
  json["replicas"] = facts.replicas;
  json["accumulation"] = facts.accumulation;
  json["global_batch"] = facts.global_batch;
  json["local_batch"] = facts.local_batch;
  json["steps"] = {{"warmup", facts.warmup_steps},
                   {"measured", facts.steps.size()},
                   {"layers", facts.layers.steps()},
                   {"ended_early", facts.ended_early}};
  const std::vector<double> totals = totals_of(facts);
  const double total_s = std::accumulate(totals.begin(), totals.end(), 0.0) / 1000.0;
  json["step_ms"] = spread(totals);
  json["samples_per_s"] = total_s > 0 ? static_cast<double>(facts.samples) / total_s : 0.0;
  json["parts_ms"] = parts_json(facts);
  json["layers"] = layers_json(facts);
  json["ceilings"] = {{"matrix_gflop_per_s", facts.ceilings.matrix_gflop_per_s},
                      {"memory_gb_per_s", facts.ceilings.memory_gb_per_s}};
  json["memory_bytes"] = facts.memory;
  json["memory_bytes"]["closed_form"] = closed_form_json(facts.state);
  json["largest_local_batch"] = batch_json(facts);
  json["estimated_run"] = estimate_json(facts.estimate);
  json["walls"] = walls_json(facts);
  const BlasFacts blas = blas_facts();
  json["blas"] = {{"library", blas.library}, {"kernel", blas.kernel}, {"threads", blas.threads}};
  json["processors"] = usable_processors();
  return json;
}

}  // namespace convoy::train
