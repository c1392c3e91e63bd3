// What `convoy bench` understands.
#include "apps/cli/bench_options.h"

#include <fmt/format.h>

#include "apps/cli/overrides_option.h"
#include "convoy/comm/engine/selection.h"

namespace convoy::cli {
namespace {

constexpr int kMostRanks = 256;
constexpr int kMostRepeats = 1'000'000;
constexpr double kLongest = 86'400;

void add_common(CLI::App* action, BenchRequest& bench) {
  action->add_option("-n,--ranks", bench.ranks, "How many ranks")->capture_default_str();
  action->add_option("--transport", bench.transport, "shared_memory (unless given), gloo, openmpi or in_process");
  action->add_option("--dtype", bench.dtype, "The element type")
      ->check(CLI::IsMember({"float32", "float64", "int32", "int64", "uint8", "bfloat16", "float16"}))
      ->capture_default_str();
  action->add_option("--buffers", bench.buffers, "Where buffers lie: where peers reach them, or in ordinary memory")
      ->check(CLI::IsMember({"shared", "private"}))
      ->capture_default_str();
  action->add_option("--sizes,--bytes", bench.sizes, "Sizes, for example 4,64KiB,1MiB");
  action->add_option("--min", bench.min, "The smallest size; the others are 4 times the one before");
  action->add_option("--max", bench.max, "The largest size");
  action->add_flag("--cold", bench.cold, "Rotates through more memory than the cache holds");
  action->add_option("--repeats", bench.repeats, "Measurements of each size (default: by size)");
  action->add_option("--timeout", bench.timeout_s, "The longest wait of an operation in seconds")
      ->capture_default_str();
  action->add_option("--limit", bench.limit_s, "The longest time for everything in seconds")->capture_default_str();
  action->add_option("--save", bench.save, "The calibration (default: $XDG_CACHE_HOME/convoy/calibration.json)");
  action->add_flag("--no-save", bench.no_save, "Leaves the calibration alone");
  action->add_flag("--plot", bench.plot, "Shows bandwidth by size as a picture, too");
  action->add_flag("--json", bench.json, "Prints the result as one JSON object");
  action->callback([&bench, action] { bench.action = action->get_name(); });
}

std::string check_table(const BenchRequest& bench) {
  if (bench.explain) return "--table and --explain exclude each other";
  if (bench.with_peers) return "--table measures nothing: leave out --peers";
  if (!bench.algorithms.empty()) return "--table shows what is chosen: leave out --algorithm";
  if (!(bench.sizes.empty() && bench.min.empty() && bench.max.empty())) {
    return "--table has sizes of its own: leave out --sizes, --min and --max";
  }
  if (bench.ranks > comm::kMostPricedRanks) {
    return fmt::format("-n {}: with more than {} ranks nothing is priced", bench.ranks, comm::kMostPricedRanks);
  }
  return "";
}

}  // namespace

CLI::App* add_bench(CLI::App& app, BenchRequest& bench) {
  CLI::App* verb = app.add_subcommand("bench", "Measures messages and collectives between ranks of this host");
  verb->require_subcommand(0, 1);
  verb->add_option("--recorder", bench.recorder,
                   "Shows what ranks that failed did last: a file flight-*.json, or their folder");
  verb->add_flag("--json", bench.json, "With --recorder: prints one JSON object");
  CLI::App* p2p = verb->add_subcommand("p2p", "Latency and bandwidth of each pair of ranks, by size");
  CLI::App* collective = verb->add_subcommand("collective", "Algorithms of a collective, by size");
  add_common(p2p, bench);
  add_common(collective, bench);
  collective->add_option("--op", bench.op, "The operation: all_reduce, all_gather, broadcast ...")
      ->capture_default_str();
  collective
      ->add_option("--algorithm", bench.algorithms,
                   "An algorithm by name, or all (may be repeated; unless given, "
                   "what the group chooses)")
      ->delimiter(',');
  collective->add_option("--hosts", bench.hosts,
                         "The host of each rank as schedules shall see it, for example 0,0,1,1");
  collective->add_option("--chunk", bench.chunk, "The most bytes of a message of pipelined algorithms");
  collective->add_option("--recipe", bench.recipe, "Measures the bucket size of a recipe, over its transport");
  add_overrides(collective, bench.overrides);
  collective
      ->add_option("--peers", bench.peers,
                   "Measures other libraries beside: openmpi,gloo (unless named, those "
                   "that are there)")
      ->type_name("[NAMES]")
      ->expected(0, 1);
  collective->add_flag("--explain", bench.explain,
                       "Shows the schedule of --algorithm and --bytes; nothing is measured");
  collective->add_flag("--table", bench.table,
                       "Shows which algorithms a group chooses by the calibration; nothing is measured");
  collective->callback([&bench, collective] {
    bench.action = collective->get_name();
    bench.with_peers = collective->count("--peers") > 0;
  });
  p2p->footer("Example:\n  convoy bench p2p -n 2");
  collective->footer("Example:\n  convoy bench collective -n 2 --sizes 4,64KiB,16MiB --peers");
  verb->footer("Example:\n  convoy bench collective -n 2 --peers\n\nconvoy bench ACTION --help says more.");
  return verb;
}

std::string check_bench(const BenchRequest& bench) {
  if (bench.action.empty()) return bench.recorder.empty() ? "bench takes p2p, collective, or --recorder FILE" : "";
  if (!bench.recorder.empty()) return fmt::format("--recorder measures nothing: leave out {}", bench.action);
  const int least = bench.action == "p2p" ? 2 : 1;
  if (bench.ranks < least || bench.ranks > kMostRanks) {
    return fmt::format("-n {}: {} takes {} to {} ranks", bench.ranks, bench.action, least, kMostRanks);
  }
  if (bench.repeats < 0 || bench.repeats > kMostRepeats) return fmt::format("--repeats must be 0 to {}", kMostRepeats);
  if (!(bench.timeout_s > 0 && bench.timeout_s <= kLongest)) return "--timeout must be above 0 and at most a day";
  if (!(bench.limit_s >= 1 && bench.limit_s <= kLongest)) return "--limit must be 1 s to a day";
  if (!bench.sizes.empty() && !(bench.min.empty() && bench.max.empty())) return "--sizes and --min or --max exclude";
  if (bench.no_save && !bench.save.empty()) return "--save and --no-save exclude each other";
  if (!bench.recipe.empty() && !(bench.sizes.empty() && bench.min.empty() && bench.max.empty())) {
    return "--recipe has a size of its own: leave out --sizes, --min and --max";
  }
  if (bench.recipe.empty() && !bench.overrides.empty()) return "--set replaces keys of --recipe";
  if (bench.explain && bench.algorithms.size() != 1) return "--explain shows one schedule: name it with --algorithm";
  if (bench.explain && bench.with_peers) return "--explain measures nothing: leave out --peers";
  if (bench.table) return check_table(bench);
  return "";
}

}  // namespace convoy::cli
