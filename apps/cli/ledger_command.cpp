// `convoy ledger`: the proof of which samples a run used.
#include <fmt/format.h>

#include <cstdio>

#include "apps/cli/requests.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/text.h"
#include "convoy/records/ledger/ledger_check.h"

namespace convoy::cli {
namespace {

void print_report(const records::LedgerReport& report) {
  TextTable table({"ledger", ""});
  const auto add = [&](const char* what, const auto& value) { table.add({what, fmt::format("{}", value)}); };
  add("samples used", report.samples);
  add("repeated", report.repeated);
  add("missing", report.missing);
  add("whole epochs", report.epochs);
  add("steps", fmt::format("{} to {}", report.first_step, report.end_step));
  add("generations", fmt::format("{} (lineage: {})", report.generations, fmt::join(report.lineage, ", ")));
  add("redone samples", report.redone_samples);
  add("redone steps", report.redone_steps);
  fmt::print("{}", table.str());
  for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
  if (report.open) fmt::print("note: the newest generation has no end line: it still runs, or was killed\n");
  for (const std::string& problem : report.problems) fmt::print("wrong: {}\n", problem);
  const char* verdict = report.ok() ? "ok: every sample exactly once per epoch" : "failed: see the lines above";
  fmt::print("{}\n", verdict);
}

}  // namespace

int ledger_command(const LedgerRequest& request) {
  Files& files = local_files();
  if (!files.exists(request.run_directory)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no run directory {}", request.run_directory));
  }
  const records::LedgerReport report = records::check_ledger(files, request.run_directory);
  if (request.json) {
    fmt::print("{}\n", records::to_json(report));
  } else {
    print_report(report);
  }
  return report.ok() ? 0 : exit_status(ErrorCode::kFailed);
}

}  // namespace convoy::cli
