#include "apps/cli/profile/profile_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "convoy/base/clock.h"
#include "convoy/base/error.h"
#include "convoy/base/text.h"

namespace convoy::cli {
namespace {

std::string size(const Json& bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::max(bytes.get<double>(), 0.0)));
}

std::string ms(const Json& value) { return fmt::format("{:.3f}", value.get<double>()); }

std::string seconds(const Json& value) {
  return format_duration(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value.get<double>())));
}

std::string percent(double share) { return fmt::format("{:.1f}%", 100.0 * share); }

std::string amount(double value) {
  constexpr std::array<const char*, 5> kUnits = {"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  for (; value >= 1000.0 && unit + 1 < kUnits.size(); ++unit) value /= 1000.0;
  return fmt::format("{:.{}f}{}", value, unit == 0 || value >= 100 ? 0 : 1, kUnits[unit]);
}

std::string head(const Json& profile) {
  const Json& steps = profile.at("steps");
  return fmt::format(
      "{}: {} with {} parameters ({}), {} replicas x {} micro-batches of {} samples in one process\n"
      "{} steps after {} of warm-up{}: median {} ms, P95 {} ms, {:.0f} samples a second\n",
      profile.at("task").get<std::string>(), profile.at("model").get<std::string>(),
      profile.at("parameters").get<std::int64_t>(), profile.at("dtype").get<std::string>(),
      profile.at("replicas").get<int>(), profile.at("accumulation").get<int>(),
      profile.at("local_batch").get<std::int64_t>(), steps.at("measured").get<std::int64_t>(),
      steps.at("warmup").get<std::int64_t>(), steps.at("ended_early").get<bool>() ? " (the recipe has no more)" : "",
      ms(profile.at("step_ms").at("median")), ms(profile.at("step_ms").at("p95")),
      profile.at("samples_per_s").get<double>());
}

std::string parts(const Json& profile) {
  TextTable table({"part of a step", "median ms", "P95 ms", "mean ms", "of the step"});
  const double whole = std::max(profile.at("step_ms").at("mean").get<double>(), 1e-9);
  for (const auto& [name, part] : profile.at("parts_ms").items()) {
    // Input is prepared on a thread of its own, beside the step.
    const std::string share = name == "input_prepare" ? "beside" : percent(part.at("mean").get<double>() / whole);
    table.add({name, ms(part.at("median")), ms(part.at("p95")), ms(part.at("mean")), share});
  }
  return table.str();
}

std::string cost(const Json& pass) {
  const double flop = pass.at("flop").get<double>();
  const double matrix = pass.at("matrix_share").get<double>();
  const double memory = pass.at("memory_share").get<double>();
  if (flop == 0.0 && memory == 0.0) return "";
  return matrix >= memory ? percent(matrix) + " arithmetic" : percent(memory) + " memory";
}

std::string layers(const Json& profile) {
  const Json& all = profile.at("layers");
  if (all.at("steps").get<std::int64_t>() == 0) return "layers: the recipe has too few steps to watch them\n";
  TextTable table({fmt::format("layer ({} further steps)", all.at("steps").get<std::int64_t>()), "forward ms", "P95",
                   "backward ms", "P95", "FLOP forward", "backward", "forward reaches", "backward reaches"});
  for (const Json& row : all.at("rows")) {
    const Json& forward = row.at("forward_ms");
    const Json& backward = row.at("backward_ms");
    const bool known = row.at("flop_known").get<bool>();
    table.add({row.at("name").get<std::string>(), ms(forward.at("median")), ms(forward.at("p95")),
               ms(backward.at("median")), ms(backward.at("p95")),
               known ? amount(forward.at("flop").get<double>()) : "unknown",
               known ? amount(backward.at("flop").get<double>()) : "unknown", cost(forward), cost(backward)});
  }
  table.add({"rest", ms(all.at("forward_rest_ms").at("median")), ms(all.at("forward_rest_ms").at("p95")),
             ms(all.at("backward_rest_ms").at("median")), ms(all.at("backward_rest_ms").at("p95"))});
  table.add({"whole passes", ms(all.at("forward_ms").at("median")), ms(all.at("forward_ms").at("p95")),
             ms(all.at("backward_ms").at("median")), ms(all.at("backward_ms").at("p95"))});
  return table.str() +
         fmt::format("this process reaches {:.1f} GFLOP/s in a product of matrices, and {:.1f} GB/s in a copy\n",
                     profile.at("ceilings").at("matrix_gflop_per_s").get<double>(),
                     profile.at("ceilings").at("memory_gb_per_s").get<double>());
}

std::string memory(const Json& profile) {
  const Json& all = profile.at("memory_bytes");
  TextTable table({"memory", fmt::format("at the peak ({})", all.at("peak_phase").get<std::string>()), "most at once",
                   "closed form"});
  for (const auto& [name, most] : all.at("highest").items()) {
    const bool closed = all.at("closed_form").contains(name);
    table.add({name, size(all.at(name)), size(most), closed ? size(all.at("closed_form").at(name)) : ""});
  }
  table.add({"all", size(all.at("total"))});
  if (!all.at("resident").is_null()) table.add({"resident set", size(all.at("resident").at("peak"))});
  return table.str();
}

std::string batch(const Json& profile) {
  const Json& found = profile.at("largest_local_batch");
  std::string how;
  if (!found.at("tried").is_null()) {
    how = fmt::format("tried: a pass of {} samples took {}, foreseen were {}",
                      found.at("tried").at("samples").get<std::int64_t>(), size(found.at("tried").at("bytes")),
                      size(found.at("tried").at("predicted_bytes")));
  } else {
    how = "extrapolated, not tried: " + found.at("untried").get<std::string>();
  }
  return fmt::format(
      "largest local batch in {} ({}): {} samples; {} each, {} for programs and data, {} of state\n  {}\n",
      size(found.at("limit_bytes")), found.at("limit_source").get<std::string>(),
      found.at("samples").get<std::int64_t>(),
      size(found.at("pass_bytes_per_sample").get<double>() + found.at("input_bytes_per_sample").get<double>()),
      size(found.at("taken_bytes")), size(found.at("fixed_bytes")), how);
}

std::string run(const Json& profile) {
  const Json& estimate = profile.at("estimated_run");
  return fmt::format(
      "the whole run: about {} ({} steps {}, {} validations and the test {}, {} checkpoints {}, set-up {})\n",
      seconds(estimate.at("total_s")), estimate.at("steps").get<std::int64_t>(), seconds(estimate.at("training_s")),
      estimate.at("validations").get<std::int64_t>(), seconds(estimate.at("evaluation_s")),
      estimate.at("checkpoints").get<std::int64_t>(), seconds(estimate.at("checkpoint_s")),
      seconds(estimate.at("setup_s")));
}

std::string walls(const Json& profile) {
  std::string text;
  for (const Json& wall : profile.at("walls")) {
    text += fmt::format("{}: {}\n", text.empty() ? "the wall" : "then", wall.at("words").get<std::string>());
    for (const Json& answer : wall.at("answers")) {
      text += fmt::format("  {}: {}\n", answer.at("strategy").get<std::string>(), answer.at("why").get<std::string>());
    }
  }
  return text;
}

}  // namespace

std::string profile_page(const Json& profile) {
  try {
    return fmt::format("{}\n{}\n{}\n{}\n{}{}\n{}", head(profile), parts(profile), layers(profile), memory(profile),
                       batch(profile), run(profile), walls(profile));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt, fmt::format("profile.json: {}", error.what()));
  }
}

}  // namespace convoy::cli
