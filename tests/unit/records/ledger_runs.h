// Ledgers as runs write them, for the tests: whole generations in memory, and ways to tamper with their files.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "convoy/records/ledger/ledger.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::records {

// 53 samples in batches of 8 over 4 replicas: 7 steps an epoch, the last of 5 samples. Nothing divides anything.
inline spec::SamplePlanOptions odd_plan() { return {53, 8, 4, 1, false, 21}; }

// A generation to be written.
struct TestGeneration {
  int number = 1;
  int ranks = 3;
  LedgerParent parent;
  std::int64_t end_step = 0;
  bool finished = true;
  std::vector<spec::ReplicaRange> owners{};  // empty: dealt out evenly
};

// Writes a generation as its ranks would.
inline void write_generation(Files& files, const std::string& run_dir, const spec::SamplePlanOptions& options,
                             const TestGeneration& generation) {
  const spec::SamplePlan plan(options);
  const auto dealt =
      generation.owners.empty() ? spec::deal_replicas(options.replicas, generation.ranks) : generation.owners;
  for (int rank = 0; rank < generation.ranks; ++rank) {
    LedgerWriter writer(files, run_dir,
                        {generation.number, rank, generation.ranks, options, generation.parent, generation.owners});
    const spec::ReplicaRange mine = dealt[static_cast<std::size_t>(rank)];
    for (std::int64_t step = generation.parent.step; step < generation.end_step; ++step) {
      for (int replica = mine.begin; replica < mine.end; ++replica) {
        writer.append(step, replica, plan.replica_samples(step, replica));
      }
      writer.commit();
    }
    if (generation.finished) writer.finish(generation.end_step);
  }
}

inline std::vector<std::string> read_lines(Files& files, const std::string& path) {
  std::vector<std::string> lines;
  std::string line;
  for (const char c : files.read(path)) {
    line += c;
    if (c != '\n') continue;
    lines.push_back(line);
    line.clear();
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

inline void write_lines(Files& files, const std::string& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  write_atomic(files, path, text);
}

}  // namespace convoy::records
