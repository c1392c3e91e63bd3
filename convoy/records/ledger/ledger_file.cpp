// Lines of a ledger file, their hash chain, and the reading back of whole files.
#include "convoy/records/ledger/ledger_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"

namespace convoy::records {
namespace {

constexpr std::string_view kHashKey = ",\"hash\":\"";
constexpr std::size_t kHashDigits = 16;

// Takes `prefix` and a number off the front of a text.
std::optional<int> take_number(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return std::nullopt;
  text.remove_prefix(prefix.size());
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return number;
}

// A line cut into what its hash covers and the hash; the body is empty when the line does not end in a hash.
struct SealedLine {
  std::string_view body;
  std::string_view hash;
};

SealedLine open_line(std::string_view line) {
  const std::size_t tail = kHashKey.size() + kHashDigits + 2;
  if (line.size() < tail || line.substr(line.size() - 2) != "\"}") return {};
  const std::size_t body = line.size() - tail;
  if (line.substr(body, kHashKey.size()) != kHashKey) return {};
  return {line.substr(0, body), line.substr(body + kHashKey.size(), kHashDigits)};
}

// The ranges of ranks that carry so many replicas each; one that is beyond all replicas is left empty.
std::vector<spec::ReplicaRange> parse_shares(const nlohmann::json& sizes, int replicas) {
  std::vector<spec::ReplicaRange> owners;
  int begin = 0;
  for (const auto& size : sizes) {
    const int replicas_here = size.get<int>();
    const bool fits = replicas_here > 0 && replicas_here <= replicas - begin;
    owners.push_back({begin, fits ? begin + replicas_here : begin});
    begin = owners.back().end;
  }
  return owners;
}

bool owners_fit(const LedgerHeader& header) {
  if (header.owners.empty()) return true;
  try {
    spec::check_owners(header.owners, header.plan.replicas, header.ranks);
    return true;
  } catch (const Error&) {
    return false;
  }
}

LedgerHeader parse_header(const nlohmann::json& json) {
  LedgerHeader header;
  header.generation = json.at("generation").get<int>();
  header.rank = json.at("rank").get<int>();
  header.ranks = json.at("ranks").get<int>();
  header.plan.replicas = json.at("replicas").get<int>();
  header.plan.samples = json.at("samples").get<std::int64_t>();
  header.plan.global_batch = json.at("global_batch").get<std::int64_t>();
  header.plan.drop_last = json.at("drop_last").get<bool>();
  header.plan.seed = json.at("seed").get<std::uint64_t>();
  header.parent.generation = json.at("parent").at("generation").get<int>();
  header.parent.step = json.at("parent").at("step").get<std::int64_t>();
  if (json.contains("shares")) header.owners = parse_shares(json.at("shares"), header.plan.replicas);
  return header;
}

// Reads the lines of one file, one after the other.
class FileReader {
 public:
  explicit FileReader(LedgerFile& file) : file_(file) {}

  void read_line(std::string_view line) {
    ++number_;
    const SealedLine sealed = open_line(line);
    if (sealed.body.empty()) return report("has no hash: it was changed");
    const bool chained = chain_hash(chain_, sealed.body) == sealed.hash;
    const bool seen = !hashes_.insert(std::string(sealed.hash)).second;
    if (!chained && seen) {
      report("repeats an earlier line");
    } else if (!chained && number_ == 1) {
      report("was changed, or the header before it removed");
    } else if (!chained) {
      report("does not follow the line before it: one of the two was changed, or a line between them removed");
    }
    // Going on from the written hash, one change is reported once and not on every later line.
    chain_ = sealed.hash;
    try {
      read_json(nlohmann::json::parse(line), chained);
    } catch (const nlohmann::json::exception& error) {
      report(fmt::format("cannot be read ({})", error.what()));
    }
  }

 private:
  void read_json(const nlohmann::json& json, bool chained) {
    if (file_.end_steps) report("follows the end line");
    if (json.contains("ledger")) return read_header(json, chained);
    if (json.contains("end")) {
      const auto steps = json.at("steps").get<std::int64_t>();
      if (steps < 0 || steps > kMaxLedgerStep) return report(fmt::format("counts {} steps", steps));
      if (chained) file_.end_steps = steps;
      return;
    }
    LedgerEntry entry;
    entry.line = number_;
    entry.step = json.at("step").get<std::int64_t>();
    entry.epoch = json.at("epoch").get<std::int64_t>();
    entry.replica = json.at("replica").get<int>();
    entry.samples = json.at("samples").get<std::vector<std::int64_t>>();
    entry.chained = chained;
    if (entry.step < 0 || entry.step > kMaxLedgerStep) return report(fmt::format("tells of step {}", entry.step));
    file_.entries.push_back(std::move(entry));
  }

  void read_header(const nlohmann::json& json, bool chained) {
    if (number_ != 1) return report("is a second header");
    if (const int format = json.at("ledger").get<int>(); format != 1) {
      return report(fmt::format("names ledger format {}; this version reads 1", format));
    }
    const LedgerHeader header = parse_header(json);
    if (header.generation != file_.name.generation || header.rank != file_.name.rank) {
      return report(
          fmt::format("is the header of generation {}, rank {}: the file was renamed", header.generation, header.rank));
    }
    if (!makes_sense(header)) return report("is a header whose numbers contradict each other");
    if (chained) file_.header = header;
  }

  void report(const std::string& what) {
    file_.problems.push_back(
        fmt::format("generation {}, rank {}: line {} {}", file_.name.generation, file_.name.rank, number_, what));
  }

  LedgerFile& file_;
  std::int64_t number_ = 0;
  std::string chain_;
  std::unordered_set<std::string> hashes_;
};

}  // namespace

std::string ledger_folder(const std::string& run_dir) { return run_dir + "/ledger"; }

std::string ledger_file_name(int generation, int rank) {
  return fmt::format("g{:04d}-rank-{:04d}.jsonl", generation, rank);
}

std::optional<LedgerName> try_ledger_name(std::string_view name) {
  std::string_view rest = name;
  const auto generation = take_number(rest, "g");
  if (!generation) return std::nullopt;
  const auto rank = take_number(rest, "-rank-");
  if (!rank || ledger_file_name(*generation, *rank) != name) return std::nullopt;
  return LedgerName{*generation, *rank};
}

bool makes_sense(const LedgerHeader& header) {
  return header.generation >= 1 && header.ranks >= 1 && header.rank >= 0 && header.rank < header.ranks &&
         header.parent.generation >= 0 && header.parent.generation < header.generation && header.parent.step >= 0 &&
         header.parent.step <= kMaxLedgerStep && owners_fit(header);
}

std::string header_body(const LedgerHeader& header, std::int64_t steps_per_epoch) {
  const spec::SamplePlanOptions& plan = header.plan;
  std::vector<int> sizes;
  for (const spec::ReplicaRange& owned : header.owners) sizes.push_back(owned.size());
  const std::string shares = sizes.empty() ? "" : fmt::format(R"("shares":[{}],)", fmt::join(sizes, ","));
  return fmt::format(
      R"({{"ledger":1,"generation":{},"rank":{},"ranks":{},"replicas":{},"samples":{},"global_batch":{},)"
      R"("steps_per_epoch":{},"drop_last":{},"seed":{},{}"parent":{{"generation":{},"step":{}}})",
      header.generation, header.rank, header.ranks, plan.replicas, plan.samples, plan.global_batch, steps_per_epoch,
      plan.drop_last, plan.seed, shares, header.parent.generation, header.parent.step);
}

std::string entry_body(std::int64_t step, std::int64_t epoch, int replica, std::span<const std::int64_t> samples) {
  return fmt::format(R"({{"step":{},"epoch":{},"replica":{},"samples":[{}])", step, epoch, replica,
                     fmt::join(samples, ","));
}

std::string end_body(std::int64_t steps) { return fmt::format(R"({{"end":true,"steps":{})", steps); }

std::string chain_hash(const std::string& chain, std::string_view body) {
  return fmt::format("{:016x}", hash64(chain + std::string(body)));
}

std::string seal_line(const std::string& body, const std::string& hash) {
  return fmt::format("{}{}{}\"}}\n", body, kHashKey, hash);
}

LedgerFile read_ledger_file(Files& files, const std::string& path, const LedgerName& name) {
  const std::string text = files.read(path);
  LedgerFile file;
  file.name = name;
  FileReader reader(file);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      file.torn = true;
      break;
    }
    reader.read_line(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return file;
}

}  // namespace convoy::records
