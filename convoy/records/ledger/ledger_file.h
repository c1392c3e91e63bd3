// The lines of a ledger file: how they are named, written and read back; shared by the writer and the check.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/records/ledger/ledger.h"

namespace convoy::records {

/// Returns the folder of a run's ledger.
std::string ledger_folder(const std::string& run_dir);

/// A ledger file's name, taken apart.
struct LedgerName {
  /// The generation.
  int generation = 0;
  /// The rank.
  int rank = 0;
};

/// Returns a file's name, for example "g0001-rank-0000.jsonl".
std::string ledger_file_name(int generation, int rank);

/// Returns what a name says, or nothing when it is no ledger file's.
std::optional<LedgerName> try_ledger_name(std::string_view name);

/// The highest step that a ledger may tell of; more is taken for damage.
inline constexpr std::int64_t kMaxLedgerStep = std::int64_t{1} << 50;

/// Returns whether generation, ranks, parent and owners of a header fit together.
bool makes_sense(const LedgerHeader& header);

/// Returns the text of a header line, without its hash and closing brace.
std::string header_body(const LedgerHeader& header, std::int64_t steps_per_epoch);

/// Returns the text of a line for one replica's part of a step, without its hash and closing brace.
std::string entry_body(std::int64_t step, std::int64_t epoch, int replica, std::span<const std::int64_t> samples);

/// Returns the text of an end line, without its hash and closing brace.
std::string end_body(std::int64_t steps);

/// Returns the hash of a line that follows the line with hash `chain` ("" for a header).
std::string chain_hash(const std::string& chain, std::string_view body);

/// Returns a whole line with its hash and line break.
std::string seal_line(const std::string& body, const std::string& hash);

/// One replica's part of a step, as a file has it.
struct LedgerEntry {
  /// The line's number in its file, counted from 1.
  std::int64_t line = 0;
  /// The step.
  std::int64_t step = 0;
  /// The epoch as written.
  std::int64_t epoch = 0;
  /// The replica.
  int replica = 0;
  /// The samples.
  std::vector<std::int64_t> samples;
  /// Whether the line's hash follows from the line before it.
  bool chained = false;
};

/// One rank's file of one generation.
struct LedgerFile {
  /// The generation and rank that the file's name says.
  LedgerName name;
  /// The header, when there is a sound one.
  std::optional<LedgerHeader> header;
  /// The lines about steps, in the file's order.
  std::vector<LedgerEntry> entries;
  /// The committed steps that the end line counts, when there is an end line.
  std::optional<std::int64_t> end_steps;
  /// Whether the last line is cut off: its writer was killed.
  bool torn = false;
  /// What is wrong, each text naming generation, rank and line.
  std::vector<std::string> problems;
};

/// Reads a ledger file as far as it can be read.
/// Errors:     kIo; everything else that is wrong is in the result
LedgerFile read_ledger_file(Files& files, const std::string& path, const LedgerName& name);

}  // namespace convoy::records
