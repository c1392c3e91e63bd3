// The one harness of all benchmark programs: each measurement is repeated, and median and spread are printed.
#include <benchmark/benchmark.h>

#include <vector>

int main(int argc, char** argv) {
  // What the user gives comes later and wins.
  std::vector<char*> arguments(argv, argv + argc);
  static char repetitions[] = "--benchmark_repetitions=9";
  static char aggregates[] = "--benchmark_report_aggregates_only=true";
  static char interleave[] = "--benchmark_enable_random_interleaving=true";
  static char seconds[] = "--benchmark_min_time=0.05";
  arguments.insert(arguments.begin() + 1, {repetitions, aggregates, interleave, seconds});
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
