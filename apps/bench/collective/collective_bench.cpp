// The loop over sizes, contenders and measurements, and the rows that come of it.
#include "apps/bench/collective/collective_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <utility>

#include "apps/bench/collective/contender.h"
#include "apps/bench/request/statistics.h"
#include "convoy/base/error.h"
#include "convoy/base/random.h"
#include "convoy/base/text.h"

namespace convoy::bench {
namespace {

using Json = nlohmann::ordered_json;
using Contenders = std::vector<std::unique_ptr<Contender>>;

constexpr int kWarmUp = 3;

// A contender with its times on the slowest rank and the bytes that each rank sent in one operation.
struct Measured {
  Statistics times;
  int repeats = 0;
  std::vector<std::int64_t> sent_bytes;
};

// For tests: a result that is wrong by one bit.
bool planted_fault() {
  const char* const planted = std::getenv("CONVOY_PLANT");
  return planted != nullptr && std::string_view(planted) == "wrong_sum";
}

// Measures the contenders of one size.
class Round {
 public:
  Round(Team& team, const Request& request, Pool& pool, const Contenders& contenders, std::int64_t bytes)
      : team_(team), request_(request), pool_(pool), contenders_(contenders), bytes_(bytes), batch_(batch_of(bytes)) {}

  std::vector<Measured> run() {
    const int repeats = repeats_of(request_, bytes_);
    const int warm_up = std::min(kWarmUp, repeats);
    std::vector<std::vector<double>> seconds(contenders_.size());
    std::vector<Measured> measured(contenders_.size());
    begin();
    for (int number = 0; number < warm_up + repeats; ++number) {
      for (const std::size_t at : order_of(number)) {
        const auto before = static_cast<std::int64_t>(team_.group().sent_bytes());
        const double time = measure(*contenders_[at], number == 0);
        const auto sent = static_cast<std::int64_t>(team_.group().sent_bytes()) - before;
        if (number == 0) measured[at].sent_bytes = team_.gather(sent / batch_);
        if (number >= warm_up) seconds[at].push_back(time);
      }
    }
    for (std::size_t at = 0; at < contenders_.size(); ++at) {
      measured[at].repeats = repeats;
      measured[at].times = statistics_of(team_.largest(std::move(seconds[at])));
    }
    return measured;
  }

 private:
  // Who comes when: another order each time, the same on all ranks, so that nobody always comes after the same one and
  // finds the caches as that one leaves them.
  std::vector<std::size_t> order_of(int number) const {
    std::vector<std::size_t> order(contenders_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    RandomStream random(static_cast<std::uint64_t>(number));
    for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
    return order;
  }

  void begin() {
    const auto width = static_cast<std::int64_t>(element_bytes(request_.dtype));
    std::int64_t input = 0;
    std::int64_t output = 0;
    for (const auto& contender : contenders_) {
      const Layout& layout = contender->layout();
      input = std::max({input, layout.input, layout.in_place ? layout.output_elements() : 0});
      output = std::max(output, layout.in_place ? 0 : layout.output_elements());
    }
    // The same places on all ranks, whose parts may differ.
    const std::vector<double> most =
        team_.largest({static_cast<double>(input * width), static_cast<double>(output * width)});
    const std::int64_t slots =
        pool_.begin(static_cast<std::int64_t>(most[0]), static_cast<std::int64_t>(most[1]), batch_);
    for (std::int64_t number = 0; number < slots && request_.cold; ++number) write_input(pool_.slot(number));
  }

  void write_input(const Slot& slot) {
    const Layout& layout = contenders_.front()->layout();
    fill(request_.dtype, slot.input, std::max(layout.input, layout.in_place ? layout.output_elements() : 0),
         team_.rank());
  }

  // Returns the seconds of one operation of a batch.
  double measure(Contender& contender, bool first) {
    std::vector<Slot> slots;
    for (int i = 0; i < batch_; ++i) slots.push_back(pool_.slot(next_++));
    const Layout& layout = contender.layout();
    // Warm: every rank has just written its input, as a backward pass has its gradients. Cold: long ago; what an
    // operation in place left there is put right after it.
    for (const Slot& slot : slots) {
      if (!request_.cold) restore(slot, layout);
    }
    team_.barrier();
    const TimePoint begin = system_clock().now();
    for (const Slot& slot : slots) contender.run(slot);
    const double seconds = to_seconds(system_clock().now() - begin) / batch_;
    // The limit's ranks write each other's buffers.
    team_.gather_quietly();
    for (const Slot& slot : slots) {
      check_result(slot, contender, first);
      if (request_.cold) restore(slot, layout);
    }
    return seconds;
  }

  void check_result(const Slot& slot, const Contender& contender, bool all) {
    const Layout& layout = contender.layout();
    std::byte* const output = layout.in_place ? slot.input : slot.output;
    if (plants_fault_ && layout.output_elements() > 0) *output ^= std::byte{1};
    check(request_.dtype, output, layout, team_.size(), all,
          fmt::format("{} {} of {} over {}, rank {}", contender.algorithm(), request_.op,
                      format_bytes(static_cast<std::uint64_t>(bytes_)), contender.transport(), team_.rank()));
  }

  // Input as at first, and no right value left over in the output.
  void restore(const Slot& slot, const Layout& layout) {
    write_input(slot);
    if (!layout.in_place) spoil(request_.dtype, slot.output, layout.output_elements());
  }

  Team& team_;
  const Request& request_;
  Pool& pool_;
  const Contenders& contenders_;
  const std::int64_t bytes_;
  const int batch_;
  std::int64_t next_ = 0;
  const bool plants_fault_ = planted_fault();
};

bool has_limit(const Request& request) {
  const bool adds =
      request.dtype != DType::kUInt8 && request.dtype != DType::kBFloat16 && request.dtype != DType::kFloat16;
  return request.op == "all_reduce" && request.shared_buffers && adds;
}

Contenders contenders_of(Team& team, const Request& request, const plan::CollectiveSize& size,
                         const std::vector<std::unique_ptr<PeerLibrary>>& peers) {
  Contenders all;
  for (const std::string& name : request.algorithms) all.push_back(make_our_contender(team, request, size, name));
  for (const auto& peer : peers) {
    for (const std::string& name : peer->algorithms(request.op, request.dtype)) {
      all.push_back(make_peer_contender(team, size, *peer, name));
    }
  }
  if (has_limit(request)) all.push_back(make_limit(team, size));
  if (all.empty()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("there is nothing to measure {} with", request.op));
  }
  return all;
}

// Returns the least median of a library's contenders; 0 when it has none.
double best_of(const Contenders& contenders, const std::vector<Measured>& measured, const std::string& library) {
  double best = 0;
  for (std::size_t at = 0; at < contenders.size(); ++at) {
    if (contenders[at]->library() != library) continue;
    if (best == 0 || measured[at].times.median_us < best) best = measured[at].times.median_us;
  }
  return best;
}

Json ratio(double over, double under) { return over > 0 && under > 0 ? Json(rounded(over / under)) : Json(nullptr); }

void add_rows(Json& rows, Team& team, const Request& request, const plan::CollectiveSize& size,
              const Contenders& contenders, const std::vector<Measured>& measured) {
  const auto bytes = static_cast<double>(size.bytes());
  const double limit = best_of(contenders, measured, "limit");
  const double openmpi = best_of(contenders, measured, "openmpi");
  const double gloo = best_of(contenders, measured, "gloo");
  for (std::size_t at = 0; at < contenders.size(); ++at) {
    const Contender& contender = *contenders[at];
    const Statistics& times = measured[at].times;
    const bool ours = contender.library() == "convoy";
    const double bandwidth = times.median_us > 0 ? bytes / times.median_us * 1e-3 : 0;
    Json row;
    row["op"] = request.op;
    row["algorithm"] = contender.algorithm();
    row["library"] = contender.library();
    row["transport"] = contender.transport();
    row["ranks"] = team.size();
    row["bytes"] = size.bytes();
    row["dtype"] = std::string(to_string(request.dtype));
    row["buffers"] = request.shared_buffers ? "shared" : "private";
    row["cold"] = request.cold;
    row["repeats"] = measured[at].repeats;
    row["batch"] = batch_of(size.bytes());
    row["median_us"] = rounded(times.median_us);
    row["p95_us"] = rounded(times.p95_us);
    row["min_us"] = rounded(times.min_us);
    row["spread"] = rounded(times.spread);
    row["algbw_gbps"] = rounded(bandwidth);
    row["busbw_gbps"] = rounded(bandwidth * plan::bus_factor(request.op, team.size()));
    row["share_of_limit"] = contender.library() == "limit" ? Json(nullptr) : ratio(limit, times.median_us);
    row["times_faster_than_openmpi"] = ours ? ratio(openmpi, times.median_us) : Json(nullptr);
    row["times_faster_than_gloo"] = ours ? ratio(gloo, times.median_us) : Json(nullptr);
    row["sent_bytes"] = ours ? Json(measured[at].sent_bytes) : Json(nullptr);
    rows.push_back(std::move(row));
  }
}

}  // namespace

Json measure_collectives(Team& team, const Request& request, const std::vector<std::unique_ptr<PeerLibrary>>& peers) {
  std::vector<plan::CollectiveSize> sizes;
  std::int64_t largest = 0;
  for (const std::int64_t bytes : request.sizes) {
    sizes.push_back(plan::collective_size(request.op, team.size(), bytes, request.dtype));
    largest = std::max(largest, sizes.back().bytes());
  }
  Pool pool(team, {largest, request.shared_buffers, request.cold});
  Json rows = Json::array();
  for (const plan::CollectiveSize& size : sizes) {
    const Contenders contenders = contenders_of(team, request, size, peers);
    const std::vector<Measured> measured = Round(team, request, pool, contenders, size.bytes()).run();
    add_rows(rows, team, request, size, contenders, measured);
  }
  return rows;
}

}  // namespace convoy::bench
