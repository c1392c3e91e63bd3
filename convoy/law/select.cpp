// Prices all algorithms of the registry and keeps the cheapest.
#include "convoy/law/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "convoy/base/error.h"
#include "convoy/base/text.h"

namespace convoy::law {
namespace {

// The chunk sizes to try, in elements: no cutting first.
std::vector<std::int64_t> chunks_to_try(const spec::Algorithm& algorithm, const spec::CollectiveShape& shape,
                                        const SelectOptions& options) {
  std::vector<std::int64_t> chunks = {0};
  if (!algorithm.pipelined) return chunks;
  for (const std::int64_t bytes : options.chunk_bytes) {
    const std::int64_t elements = bytes / options.element_bytes;
    if (elements > 0 && elements < shape.elements) chunks.push_back(elements);
  }
  return chunks;
}

bool same(const Choice& a, const Choice& b) {
  return a.algorithm == b.algorithm && a.chunk_elements == b.chunk_elements && a.by_host == b.by_host;
}

}  // namespace

std::vector<Choice> rank_choices(const std::string& collective, const spec::CollectiveShape& asked,
                                 const Machine& machine, const SelectOptions& options) {
  spec::CollectiveShape shape = asked;
  if (shape.hosts.empty()) shape.hosts = machine.host_of_rank;
  const std::vector<int> by_host = spec::host_major_order(shape.ranks, shape.hosts);
  const bool has_hosts = spec::ranks_by_host(shape.ranks, shape.hosts).size() > 1;
  std::vector<Choice> choices;
  for (const spec::Algorithm& algorithm : spec::algorithms()) {
    if (algorithm.collective != collective || (options.reproducible && !algorithm.ordered)) continue;
    const bool hierarchical = algorithm.name.find("hierarchical") != std::string_view::npos;
    if ((hierarchical && !has_hosts) || !spec::fits(algorithm, shape)) continue;
    const bool laid_out = algorithm.takes_order && has_hosts && !std::is_sorted(by_host.begin(), by_host.end());
    for (const std::int64_t chunk : chunks_to_try(algorithm, shape, options)) {
      shape.options.chunk_elements = chunk;
      shape.options.order = laid_out ? by_host : asked.options.order;
      const double seconds =
          price(spec::build(collective, algorithm.name, shape), options.element_bytes, machine).seconds;
      choices.push_back({std::string(algorithm.name), chunk, laid_out, seconds});
    }
  }
  if (choices.empty()) (void)spec::find_algorithm(collective, "");  // says what is wrong
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.seconds < b.seconds; });
  return choices;
}

const Choice& SelectionTable::choose(std::int64_t bytes) const {
  CONVOY_CHECK(!rows.empty(), "a selection table has rows");
  const SelectionRow* found = &rows.front();
  for (const SelectionRow& row : rows) {
    if (row.from_bytes <= bytes) found = &row;
  }
  return found->choice;
}

SelectionTable make_selection_table(const std::string& collective, spec::CollectiveShape shape, const Machine& machine,
                                    const std::vector<std::int64_t>& sizes_bytes, const SelectOptions& options) {
  if (sizes_bytes.empty()) throw Error(ErrorCode::kInvalidArgument, "a selection table needs sizes");
  SelectionTable table;
  table.collective = collective;
  table.ranks = shape.ranks;
  table.hosts = static_cast<int>(spec::ranks_by_host(shape.ranks, machine.host_of_rank).size());
  for (const std::int64_t bytes : sizes_bytes) {
    shape.elements = bytes / options.element_bytes;
    const Choice best = rank_choices(collective, shape, machine, options).front();
    if (table.rows.empty() || !same(table.rows.back().choice, best)) table.rows.push_back({bytes, best});
  }
  return table;
}

std::string to_string(const SelectionTable& table) {
  TextTable text({"from", "algorithm", "chunk elements", "order", "predicted"});
  for (const SelectionRow& row : table.rows) {
    const Choice& choice = row.choice;
    text.add({format_bytes(static_cast<std::uint64_t>(row.from_bytes)), choice.algorithm,
              choice.chunk_elements > 0 ? fmt::format("{}", choice.chunk_elements) : "-",
              choice.by_host ? "by host" : "rank",
              format_duration(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(choice.seconds)))});
  }
  return fmt::format("{} on {} ranks, {} {}\n{}", table.collective, table.ranks, table.hosts,
                     table.hosts == 1 ? "host" : "hosts", text.str());
}

}  // namespace convoy::law
