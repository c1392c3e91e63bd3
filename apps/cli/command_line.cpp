// The verbs and their options; with bench_options and overrides_option the only files that know CLI11.
#include "apps/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "apps/cli/bench_options.h"
#include "apps/cli/overrides_option.h"
#include "convoy/base/error.h"
#include "convoy/base/text.h"

namespace convoy::cli {
namespace {

constexpr int kBadUsage = 2;

// What CLI11 prints under the options.
std::string example(const char* text) { return fmt::format("Example:\n  {}", text); }

CLI::App* add_run(CLI::App& app, RunRequest& run, std::string& resume) {
  CLI::App* verb = app.add_subcommand("run", "Trains a recipe on several ranks of this host");
  verb->add_option("RECIPE", run.recipe, "The recipe, a TOML file")->required();
  verb->add_option("-n,--ranks", run.ranks, "How many ranks")->required();
  add_overrides(verb, run.overrides);
  verb->add_option("--out", run.out, "The run directory (default: a new one under runs/)");
  verb->add_option("--resume", resume, "Goes on from the newest checkpoint of DIR (default: of --out)")
      ->type_name("[DIR]")
      ->expected(0, 1);
  verb->add_flag("--baselines", run.baselines, "Times one rank and one process too, and shows the speed-up");
  verb->add_option("--baseline-steps", run.baseline_steps, "Steps of each timed run")->capture_default_str();
  verb->add_flag("--json", run.json, "Prints the summary as one JSON object");
  verb->add_flag("--quiet", run.quiet, "Shows no progress");
  verb->footer(example("convoy run examples/recipes/fashion_cnn.toml -n 2 --set train.epochs=1"));
  return verb;
}

CLI::App* add_verify(CLI::App& app, VerifyRequest& verify) {
  CLI::App* verb = app.add_subcommand("verify", "Compares updates of several ranks with those of one process");
  verb->add_option("RECIPE", verify.recipe, "The recipe, a TOML file")->required();
  verb->add_option("-n,--ranks", verify.ranks, "How many ranks")->required();
  verb->add_option("--steps", verify.steps, "How many updates")->capture_default_str();
  add_overrides(verb, verify.overrides);
  verb->add_option("--out", verify.out, "Keeps what both sides did in this new directory");
  verb->add_flag("--json", verify.json, "Prints the result as one JSON object");
  verb->footer(example("convoy verify examples/recipes/fashion_cnn.toml -n 2"));
  return verb;
}

CLI::App* add_profile(CLI::App& app, ProfileRequest& profile) {
  CLI::App* verb = app.add_subcommand("profile", "Measures a recipe in one process: time, memory, and what limits it");
  verb->add_option("RECIPE", profile.recipe, "The recipe, a TOML file")->required();
  verb->add_option("--warmup", profile.warmup, "Steps that are left out")->capture_default_str();
  verb->add_option("--steps", profile.steps, "Steps that count")->capture_default_str();
  verb->add_option("--memory-limit", profile.memory_limit,
                   "Memory that a process may take, for example 2GiB (default: what the system allows)");
  add_overrides(verb, profile.overrides);
  verb->add_option("--out", profile.out, "Keeps profile.json in this new directory");
  verb->add_flag("--json", profile.json, "Prints the profile as one JSON object");
  verb->footer(example("convoy profile examples/recipes/fashion_cnn.toml --memory-limit 2GiB"));
  return verb;
}

CLI::App* add_launch(CLI::App& app, LaunchRequest& launch) {
  CLI::App* verb = app.add_subcommand(
      "launch", "Starts and supervises ranks of any program: convoy launch -n N -- PROGRAM [ARGUMENTS...]");
  verb->add_option("-n,--ranks", launch.ranks, "How many ranks")->required();
  verb->add_flag("--json", launch.json, "Prints how each rank ended as one JSON object; output goes to standard error");
  verb->footer(example("convoy launch -n 2 -- build/examples/own_module"));
  return verb;
}

CLI::App* add_ledger(CLI::App& app, LedgerRequest& ledger) {
  CLI::App* verb = app.add_subcommand("ledger", "Proves that a run used every sample exactly once per epoch");
  verb->add_option("RUNDIR", ledger.run_directory, "The run directory")->required();
  verb->add_flag("--json", ledger.json, "Prints the report as one JSON object");
  verb->footer(example("convoy ledger runs/fashion-cnn-20260131-120000"));
  return verb;
}

CLI::App* add_trace(CLI::App& app, TraceRequest& trace) {
  CLI::App* verb = app.add_subcommand("trace", "Tells from a run's trace what cost time, who was waited for, and what is wrong");
  verb->add_option("RUNDIR", trace.run_directory, "The run directory")->required();
  verb->add_flag("--json", trace.json, "Prints numbers and findings as one JSON object");
  verb->footer(example("convoy trace runs/fashion-cnn-20260131-120000"));
  return verb;
}

CLI::App* add_explain(CLI::App& app, ExplainRequest& explain) {
  CLI::App* verb = app.add_subcommand("explain", "Tells one training step in order, or writes the training plan");
  verb->add_option("RECIPE", explain.recipe, "The recipe, a TOML file")->required();
  verb->add_option("-n,--ranks", explain.ranks, "How many ranks (a step: 1 unless given)");
  add_overrides(verb, explain.overrides);
  verb->add_flag("--document", explain.document, "Writes the training plan as a Markdown page");
  verb->add_option("--out", explain.out, "The page (default: plan.md); - for standard output");
  verb->add_option("--picture", explain.picture, "Writes the picture of the step as an SVG file");
  verb->add_option("--baseline", explain.baseline, "The directory of an earlier run of the model");
  verb->add_option("--parameters", explain.parameters, "How many parameters the model has");
  verb->add_flag("--json", explain.json, "Prints the step or the plan as one JSON object");
  verb->footer(example("convoy explain examples/recipes/fashion_cnn.toml -n 2 --document"));
  return verb;
}

CLI::App* add_data(CLI::App& app, DataRequest& data) {
  CLI::App* verb = app.add_subcommand("data", "Checks, makes or divides data");
  verb->require_subcommand(1);
  CLI::App* check = verb->add_subcommand("check", "Looks for duplicates, leaks, rare classes and missing values");
  CLI::App* synth = verb->add_subcommand("synth", "Makes small learnable files in exactly the official formats");
  CLI::App* split = verb->add_subcommand("split", "Divides the data of a recipe and writes the record");
  for (CLI::App* action : {check, split}) {
    action->add_option("RECIPE", data.recipe, "The recipe, a TOML file")->required();
    add_overrides(action, data.overrides);
  }
  check->add_flag("--strict", data.strict, "Ends with status 1 when something is found");
  synth->add_option("KIND", data.kind, "idx, cifar10 or bank")
      ->required()
      ->check(CLI::IsMember({"idx", "cifar10", "bank"}));
  synth->add_option("--out", data.out, "The folder for the files")->required();
  synth->add_option("--samples", data.samples, "Samples of the training files")->capture_default_str();
  synth->add_option("--test-samples", data.test_samples, "Samples of the test files (not bank)")->capture_default_str();
  synth->add_option("--seed", data.seed, "Seeds everything")->capture_default_str();
  split->add_option("--out", data.out, "The record, a JSON file")->required();
  for (CLI::App* action : {check, synth, split}) {
    action->add_flag("--json", data.json, "Prints the result as one JSON object");
    action->callback([&data, action] { data.action = action->get_name(); });
  }
  check->footer(example("convoy data check examples/recipes/bank.toml --set data.path=data/bank-additional-full.csv"));
  synth->footer(example("convoy data synth cifar10 --out data/cifar-10-batches-bin --samples 5000"));
  split->footer(example("convoy data split examples/recipes/bank.toml --out split.json"));
  verb->footer(example("convoy data synth bank --out data --samples 8000\n\nconvoy data ACTION --help says more."));
  return verb;
}

Answered refuse(const std::string& line) {
  fmt::print(stderr, "convoy: {}\n", line);
  return {kBadUsage};
}

std::vector<std::string> names_of_verbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// One line about what CLI11 did not understand.
std::string describe(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  const auto chosen = app.get_subcommands();
  const CLI::App& verb = chosen.empty() ? app : *chosen.front();
  const std::string name = chosen.empty() ? "" : verb.get_name() + ": ";
  const std::string help = fmt::format(" (see convoy {}{}--help)", verb.get_name(), chosen.empty() ? "" : " ");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return name + text + help;
  }
  const std::vector<std::string> extras = app.remaining(true);
  const std::string extra = extras.empty() ? arguments.back() : extras.front();
  if (extra.rfind('-', 0) == 0) {
    const std::string word = extra.substr(0, extra.find('='));
    return fmt::format("{}unknown option {}{}{}", name, extra, did_you_mean(word, names_of_options(verb)), help);
  }
  return fmt::format("{}unexpected argument '{}'{}", name, extra, help);
}

// Looks at the command itself, before CLI11 does: its own messages about it do not name what was meant.
std::string check_verb(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<std::string> verbs = names_of_verbs(app);
  if (arguments.empty()) return fmt::format("which command? {} (see convoy --help)", fmt::join(verbs, ", "));
  const std::string& verb = arguments.front();
  if (verb.rfind('-', 0) == 0 || std::find(verbs.begin(), verbs.end(), verb) != verbs.end()) return "";
  return fmt::format("unknown command '{}'{} (see convoy --help)", verb, did_you_mean(verb, verbs));
}

std::string check_ranks(int ranks) {
  return ranks >= 1 ? "" : fmt::format("-n {}: a job needs at least 1 rank", ranks);
}

std::variant<Request, Answered> finish_run(RunRequest run, const CLI::App& verb, const std::string& resume,
                                           const std::vector<std::string>& arguments) {
  if (const std::string wrong = check_ranks(run.ranks); !wrong.empty()) return refuse("run: " + wrong);
  if (run.baseline_steps < 1) return refuse("run: --baseline-steps must be at least 1");
  run.resume = verb.count("--resume") > 0;
  if (run.resume && !resume.empty()) {
    if (!run.out.empty() && run.out != resume) return refuse("run: --resume and --out name different directories");
    run.out = resume;
  }
  if (run.resume && run.out.empty()) return refuse("run: --resume needs the run directory: --resume DIR");
  run.command_line = {"convoy"};
  run.command_line.insert(run.command_line.end(), arguments.begin(), arguments.end());
  return Request(std::move(run));
}

std::variant<Request, Answered> finish_explain(ExplainRequest explain, const CLI::App& verb) {
  if (verb.count("--ranks") > 0) {
    if (const std::string wrong = check_ranks(explain.ranks); !wrong.empty()) return refuse("explain: " + wrong);
  }
  if (verb.count("--parameters") > 0 && explain.parameters < 1) {
    return refuse("explain: --parameters must be at least 1");
  }
  if (verb.count("--out") > 0 && !explain.document) return refuse("explain: --out names the page of --document");
  if (explain.out == "-" && explain.json) return refuse("explain: --out - and --json both ask for standard output");
  if (verb.count("--picture") > 0) {
    if (explain.document) return refuse("explain: --picture draws a step, --document writes the plan: use one of them");
    if (explain.picture.empty() || explain.picture == "-") return refuse("explain: --picture needs the name of a file");
  }
  return Request(std::move(explain));
}

std::variant<Request, Answered> finish_verify(VerifyRequest verify) {
  if (const std::string wrong = check_ranks(verify.ranks); !wrong.empty()) return refuse("verify: " + wrong);
  if (verify.steps < 1) return refuse("verify: --steps must be at least 1");
  return Request(std::move(verify));
}

std::variant<Request, Answered> finish_profile(ProfileRequest profile) {
  if (profile.steps < 1) return refuse("profile: --steps must be at least 1");
  if (profile.warmup < 0) return refuse("profile: --warmup must be at least 0");
  return Request(std::move(profile));
}

std::variant<Request, Answered> finish_data(DataRequest data) {
  constexpr std::int64_t kMost = 10'000'000;
  if (data.action == "synth" && (data.samples < 10 || data.samples > kMost)) {
    return refuse(fmt::format("data synth: --samples must be 10 to {}", kMost));
  }
  if (data.action == "synth" && (data.test_samples < 1 || data.test_samples > kMost)) {
    return refuse(fmt::format("data synth: --test-samples must be 1 to {}", kMost));
  }
  if (data.seed < 0) return refuse("data synth: --seed must be at least 0");
  return Request(std::move(data));
}

std::variant<Request, Answered> finish_launch(LaunchRequest launch, std::vector<std::string> command) {
  if (const std::string wrong = check_ranks(launch.ranks); !wrong.empty()) return refuse("launch: " + wrong);
  if (command.empty()) return refuse("launch: which program? convoy launch -n 2 -- ./program");
  launch.command = std::move(command);
  return Request(std::move(launch));
}

}  // namespace

std::variant<Request, Answered> parse_command_line(const std::vector<std::string>& arguments) {
  CLI::App app("Convoy trains one model on several processes and measures whether that was worth it.", "convoy");
  RunRequest run;
  LaunchRequest launch;
  LedgerRequest ledger;
  std::string resume;
  app.set_version_flag("--version", fmt::format("convoy {}", kVersion));
  app.require_subcommand(1);
  const CLI::App* run_verb = add_run(app, run, resume);
  VerifyRequest verify;
  const CLI::App* verify_verb = add_verify(app, verify);
  ProfileRequest profile;
  const CLI::App* profile_verb = add_profile(app, profile);
  const CLI::App* launch_verb = add_launch(app, launch);
  ExplainRequest explain;
  const CLI::App* explain_verb = add_explain(app, explain);
  add_ledger(app, ledger);
  TraceRequest trace;
  const CLI::App* trace_verb = add_trace(app, trace);
  DataRequest data;
  const CLI::App* data_verb = add_data(app, data);
  BenchRequest bench;
  const CLI::App* bench_verb = add_bench(app, bench);
  app.footer(
      example("convoy run examples/recipes/fashion_cnn.toml -n 2\n\nconvoy VERB --help says more about each verb."));
  if (const std::string wrong = check_verb(app, arguments); !wrong.empty()) return refuse(wrong);

  // What follows -- belongs to the launched program, whatever it looks like.
  std::vector<std::string> own = arguments;
  std::vector<std::string> command;
  const auto dashes = std::find(own.begin(), own.end(), "--");
  if (arguments.front() == "launch" && dashes != own.end()) {
    command.assign(dashes + 1, own.end());
    own.erase(dashes, own.end());
  }
  try {
    std::reverse(own.begin(), own.end());  // CLI11 takes arguments from the back
    app.parse(own);
  } catch (const CLI::ParseError& error) {
    // Help and the version come as errors with status 0.
    if (error.get_exit_code() == 0) return Answered{app.exit(error)};
    return refuse(describe(app, error, arguments));
  }
  if (run_verb->parsed()) return finish_run(std::move(run), *run_verb, resume, arguments);
  if (verify_verb->parsed()) return finish_verify(std::move(verify));
  if (profile_verb->parsed()) return finish_profile(std::move(profile));
  if (launch_verb->parsed()) return finish_launch(std::move(launch), std::move(command));
  if (explain_verb->parsed()) return finish_explain(std::move(explain), *explain_verb);
  if (bench_verb->parsed()) {
    if (const std::string wrong = check_bench(bench); !wrong.empty()) return refuse("bench: " + wrong);
    return Request(std::move(bench));
  }
  if (data_verb->parsed()) return finish_data(std::move(data));
  if (trace_verb->parsed()) return Request(std::move(trace));
  return Request(std::move(ledger));
}

}  // namespace convoy::cli
