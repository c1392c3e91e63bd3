// Rows to text.
#include "apps/cli/bench/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "convoy/base/text.h"

namespace convoy::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBarWidth = 50;

std::string bytes_of(const Json& row) { return format_bytes(row.at("bytes").get<std::uint64_t>()); }

// A number in a column, or a dash where there is none.
std::string number(const Json& value, const char* unit = "") {
  if (value.is_null()) return "-";
  const double real = value.get<double>();
  const int digits = real >= 100 ? 0 : real >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}{}", real, digits, unit);
}

std::string percent(const Json& value) {
  return value.is_null() ? "-" : fmt::format("{:.0f}%", value.get<double>() * 100);
}

std::string name_of(const Json& row) {
  const std::string transport = row.at("transport");
  if (!row.contains("algorithm")) return fmt::format("{}-{}", row.at("from").get<int>(), row.at("to").get<int>());
  const std::string library = row.at("library");
  const std::string algorithm = row.at("algorithm");
  // The transport openmpi has a namesake among the libraries.
  const std::string own = transport == "openmpi" ? "convoy/openmpi" : transport;
  return (library == "convoy" ? own : library) + " " + algorithm;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[(values.size() - 1) / 2];
}

}  // namespace

std::string describe_pairs(const Json& rows) {
  std::map<std::int64_t, std::map<std::string, std::vector<double>>> by_size;
  for (const Json& row : rows) {
    for (const char* key : {"median_us", "p95_us", "spread", "bandwidth_gbps"}) {
      by_size[row.at("bytes")][key].push_back(row.at(key));
    }
  }
  TextTable table({"bytes", "median us", "P95 us", "spread", "GB/s"});
  for (auto& [bytes, columns] : by_size) {
    table.add({format_bytes(static_cast<std::uint64_t>(bytes)), number(median(columns["median_us"])),
               number(median(columns["p95_us"])), percent(median(columns["spread"])),
               number(median(columns["bandwidth_gbps"]))});
  }
  return table.str();
}

std::string describe_matrix(const std::vector<PairFit>& pairs, int ranks) {
  std::vector<std::string> heads = {"rank"};
  for (int rank = 0; rank < ranks; ++rank) heads.push_back(fmt::format("{}", rank));
  std::vector<std::vector<std::string>> cells(static_cast<std::size_t>(ranks), heads);
  for (int rank = 0; rank < ranks; ++rank) {
    auto& row = cells[static_cast<std::size_t>(rank)];
    row.assign(static_cast<std::size_t>(ranks) + 1, "-");
    row[0] = fmt::format("{}", rank);
  }
  for (const PairFit& pair : pairs) {
    const auto from = static_cast<std::size_t>(pair.from);
    const auto to = static_cast<std::size_t>(pair.to);
    const double beta = pair.fit.cost.beta_s;
    cells[from][to + 1] = fmt::format("{:.1f}", pair.fit.cost.alpha_s * 1e6);
    cells[to][from + 1] = beta > 0 ? fmt::format("{:.2f}", 1e-9 / beta) : "-";
  }
  TextTable table(heads);
  for (auto& row : cells) table.add(std::move(row));
  return "alpha in us above the diagonal, 1/beta in GB/s below:\n" + table.str();
}

std::string describe_fit(const plan::LinkFit& fit) {
  const std::string bandwidth =
      fit.cost.beta_s > 0 ? fmt::format("{:.2f} GB/s", 1e-9 / fit.cost.beta_s) : std::string("no cost a byte");
  return fmt::format(
      "a message costs alpha + bytes x beta: alpha {:.2f} us, 1/beta {}; off by {:.0f}% (RMS), {:.0f}% at most",
      fit.cost.alpha_s * 1e6, bandwidth, fit.relative_error * 100, fit.worst_error * 100);
}

std::string describe_collectives(const Json& rows) {
  TextTable table({"bytes", "algorithm", "median us", "P95 us", "spread", "alg GB/s", "bus GB/s", "of limit",
                   "x Open MPI", "x Gloo"});
  for (const Json& row : rows) {
    table.add({bytes_of(row), name_of(row), number(row.at("median_us")), number(row.at("p95_us")),
               percent(row.at("spread")), number(row.at("algbw_gbps")), number(row.at("busbw_gbps")),
               percent(row.at("share_of_limit")), number(row.at("times_faster_than_openmpi")),
               number(row.at("times_faster_than_gloo"))});
  }
  return table.str();
}

std::string describe_plot(const Json& rows, const std::string& key, const std::string& title) {
  double least = INFINITY;
  double most = 0;
  std::size_t widest = 0;
  for (const Json& row : rows) {
    const double value = row.at(key);
    widest = std::max(widest, name_of(row).size());
    if (value <= 0) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (most <= 0) return "";
  // A bar for each power of ten below the largest is as long as any other.
  const double lowest = std::min(std::log10(least), std::log10(most) - 1) - 0.1;
  std::string text = fmt::format("{}, logarithmic\n", title);
  std::string last;
  for (const Json& row : rows) {
    const double value = row.at(key);
    const double share = value > 0 ? (std::log10(value) - lowest) / (std::log10(most) - lowest) : 0;
    const std::string bytes = bytes_of(row);
    text += fmt::format("{:>9}  {:<{}}  {} {}\n", bytes == last ? "" : bytes, name_of(row), widest,
                        std::string(static_cast<std::size_t>(std::lround(share * kBarWidth)), '#'), number(value));
    last = bytes;
  }
  return text;
}

}  // namespace convoy::cli
