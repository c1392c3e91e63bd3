#include "convoy/train/run_report.h"

#include <fmt/format.h>

#include "convoy/comm/shared_memory/shared_arena.h"
#include "convoy/observe/memory_meter.h"
#include "convoy/observe/memory_report.h"
#include "convoy/train/blas_facts.h"

namespace convoy::train {
namespace {

using nlohmann::ordered_json;

// Rows are brought to the file so many at a time: one write for each step would be felt.
constexpr std::size_t kRowsAtOnce = 50;

ordered_json breakdown(const observe::StepSummary& summary) {
  ordered_json parts;
  for (const observe::Part part : observe::kAllParts) {
    parts[std::string(observe::to_string(part))] = summary.parts_ms[static_cast<std::size_t>(part)];
    // Pipelines will wait for stages; where there is none, nobody does.
    if (part == observe::Part::kWaitSlowest) parts["wait_stage"] = 0.0;
  }
  return parts;
}

ordered_json breakdown_by_rank(const std::vector<observe::StepSummary>& ranks) {
  ordered_json rows = ordered_json::array();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ordered_json row = {{"rank", rank}, {"step", ranks[rank].median_ms}};
    row.update(breakdown(ranks[rank]));
    rows.push_back(std::move(row));
  }
  return rows;
}

ordered_json shares(const RunFacts& facts) {
  ordered_json replicas = ordered_json::array();
  for (const spec::ReplicaRange& owned : facts.owners) replicas.push_back(owned.size());
  return {
      {"replicas", replicas},
      {"micro_batch_ms", facts.micro_batch_ms.empty() ? ordered_json(nullptr) : ordered_json(facts.micro_batch_ms)}};
}

}  // namespace

RunReport::RunReport(Files& files, std::string directory, const spec::Recipe& recipe)
    : files_(files),
      directory_(std::move(directory)),
      recipe_(recipe),
      metrics_(files, directory_ + "/metrics.jsonl", kRowsAtOnce),
      evaluations_(files, directory_ + "/evaluation.jsonl") {}

void RunReport::add_step(const StepRow& row) {
  ordered_json json = {{"step", row.step},
                       {"epoch", row.epoch},
                       {"loss", row.loss},
                       {"learning_rate", row.rate},
                       {"gradient_norm", row.gradient_norm},
                       {"samples", row.samples},
                       {"step_ms", to_ms(row.times.total)}};
  for (const observe::Part part : observe::kAllParts) {
    json[std::string(observe::to_string(part)) + "_ms"] = to_ms(row.times.part(part));
  }
  metrics_.add(json);
  const double seconds = to_seconds(row.times.total);
  const double rate = seconds > 0 ? static_cast<double>(row.samples) / seconds : 0.0;
  recent_ = recent_ == 0.0 ? rate : 0.9 * recent_ + 0.1 * rate;
}

void RunReport::add_own_work(std::span<const double> own_work_ms) {
  if (!own_work_) own_work_.emplace(static_cast<int>(own_work_ms.size()));
  own_work_->add_step(own_work_ms);
}

std::vector<std::string> RunReport::slow_rank_warnings() const {
  std::vector<std::string> warnings;
  if (!own_work_) return warnings;
  for (const observe::SlowRank& slow : own_work_->slow()) {
    warnings.push_back(fmt::format("rank {} is slow: its own work takes {:.1f} ms a step, the median rank's {:.1f} ms",
                                   slow.rank, slow.own_work_ms, slow.median_ms));
  }
  return warnings;
}

double RunReport::recent_samples_per_s() const { return recent_; }

void RunReport::add_evaluation(const std::string& part, std::int64_t step, std::int64_t epoch,
                               const ordered_json& found) {
  ordered_json row = {{"part", part}, {"step", step}, {"epoch", epoch}};
  row.update(found);
  evaluations_.add(row);
  quality_[part] = found;
}

void RunReport::add_class_counts(std::int64_t epoch, const std::vector<std::string>& names,
                                 const std::vector<std::int64_t>& counts) {
  ordered_json row = {{"part", "training"}, {"epoch", epoch}, {"classes", ordered_json::array()}};
  for (std::size_t i = 0; i < counts.size(); ++i) row["classes"].push_back({{"class", names[i]}, {"drawn", counts[i]}});
  evaluations_.add(row);
}

void RunReport::finish(const RunFacts& facts, const std::optional<ordered_json>& ledger) {
  metrics_.flush();
  const observe::StepSummary& steps = facts.by_rank.front();  // this rank's
  const double median_s = steps.median_ms / 1000.0;
  ordered_json json;
  json["ok"] = true;
  json["task"] = recipe_.task.name;
  json["steps"] = facts.steps;
  json["ranks"] = facts.ranks;
  json["replicas"] = facts.replicas;
  json["shares"] = shares(facts);
  json["global_batch"] = recipe_.train.global_batch;
  json["step_ms"] = {{"median", steps.median_ms}, {"p95", steps.p95_ms}, {"steps", steps.steps}};
  json["samples_per_s"] = median_s > 0 ? static_cast<double>(recipe_.train.global_batch) / median_s : 0.0;
  json["breakdown_ms"] = breakdown(steps);
  json["breakdown_by_rank"] = breakdown_by_rank(facts.by_rank);
  json["own_work_ms"] = own_work_ ? ordered_json(own_work_->medians()) : ordered_json::array();
  json["slow_ranks"] = own_work_ ? own_work_->to_json()["slow"] : ordered_json::array();
  const auto test = quality_.find("test");
  const auto validation = quality_.find("validation");
  const auto& quality = test != quality_.end() ? test : validation;
  json["quality"] = quality == quality_.end() ? ordered_json(nullptr) : quality->second;
  if (quality != quality_.end()) json["quality"]["part"] = quality->first;
  if (validation != quality_.end()) {
    json["validation"] = {{"loss", validation->second["loss"]},
                          {"accuracy", validation->second["accuracy"]},
                          {"macro_f1", validation->second["macro_f1"]}};
    if (validation->second.contains("binary")) json["validation"]["binary"] = validation->second["binary"];
  }
  json["reached_target"] = facts.reached_target;
  json["peak_memory_bytes"] = observe::to_json(observe::process_memory().peak());
  json["device_seconds"] = facts.ranks * to_seconds(facts.training);
  if (recipe_.cost.device_hour > 0) {
    json["cost"] = facts.ranks * to_seconds(facts.training) / 3600.0 * recipe_.cost.device_hour;
  }
  json["time_s"] = {{"setup", to_seconds(facts.setup)},
                    {"training", to_seconds(facts.training)},
                    {"evaluation", to_seconds(facts.evaluation)},
                    {"checkpoint", to_seconds(facts.checkpoint)},
                    {"total", to_seconds(facts.setup + facts.training + facts.evaluation + facts.checkpoint)}};
  json["trained_here"] = {{"steps", facts.trained_steps}, {"samples", facts.trained_samples}};
  json["generation"] = facts.generation;
  json["resumed_at_step"] = facts.resumed_at;
  json["ledger"] = ledger ? *ledger : ordered_json(nullptr);
  json["recoveries"] = ordered_json::array();
  json["trace"] = facts.trace;
  json["parameters_digest"] = facts.parameters_digest;
  const BlasFacts blas = blas_facts();
  json["blas"] = {{"library", blas.library}, {"kernel", blas.kernel}, {"threads", blas.threads}};
  ordered_json memory =
      observe::memory_json(observe::process_memory(), observe::read_resident_memory(local_files()));
  memory["arena_peak"] = comm::process_arena().peak();
  write_atomic(files_, directory_ + "/memory.json", memory.dump(2) + "\n");
  write_atomic(files_, directory_ + "/summary.json", json.dump(2) + "\n");
}

}  // namespace convoy::train
