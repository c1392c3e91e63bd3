// Ping-pong as schedules, and loops over arrays.
#include "apps/bench/p2p/p2p_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/bench/collective/layout.h"
#include "apps/bench/collective/pool.h"
#include "apps/bench/request/statistics.h"
#include "convoy/base/error.h"
#include "convoy/comm/engine/reduce.h"

namespace convoy::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWarmUp = 3;
constexpr std::int64_t kArrayBytes = std::int64_t{1} << 20;
constexpr int kArrayRepeats = 31;

// Two ranks that take turns. The first writes and waits; the second answers with values of its own.
struct Pair {
  int first = 0;
  int second = 1;
};

int round_trips(std::int64_t bytes) {
  if (bytes <= 64 << 10) return 16;
  return bytes <= 1 << 20 ? 4 : 1;
}

spec::Schedule ping_pong(int ranks, const Pair& pair, std::int64_t elements, int trips) {
  spec::Schedule schedule;
  const auto count = static_cast<std::size_t>(ranks);
  const auto first = static_cast<std::size_t>(pair.first);
  const auto second = static_cast<std::size_t>(pair.second);
  schedule.algorithm = fmt::format("ping_pong {}-{}", pair.first, pair.second);
  schedule.collective = "p2p";
  schedule.elements = elements;
  schedule.input_elements.assign(count, 0);
  schedule.output_elements.assign(count, 0);
  schedule.inputs.assign(count, 0);
  schedule.scratches.assign(count, 0);
  schedule.ranks.resize(count);
  for (const std::size_t rank : {first, second}) {
    schedule.input_elements[rank] = schedule.output_elements[rank] = elements;
    schedule.inputs[rank] = 1;
  }
  spec::Operation send;
  send.kind = spec::OpKind::kSend;
  send.target = {spec::BufferKind::kInput, 0, 0, elements};
  spec::Operation receive;
  receive.kind = spec::OpKind::kReceive;
  receive.target = {spec::BufferKind::kOutput, 0, 0, elements};
  for (int trip = 0; trip < trips; ++trip) {
    send.peer = receive.peer = pair.second;
    schedule.ranks[first].push_back({send, receive});
    send.peer = receive.peer = pair.first;
    schedule.ranks[second].push_back({receive});
    schedule.ranks[second].push_back({send});
  }
  return schedule;
}

comm::Buffer buffer_of(std::byte* data, std::int64_t elements) {
  return comm::Buffer(std::vector<comm::Extent>{{data, elements}});
}

// Measures one pair with one size.
class PingPong {
 public:
  PingPong(Team& team, const Request& request, Pool& pool, const Pair& pair, std::int64_t elements)
      : team_(team), request_(request), pool_(pool), pair_(pair), elements_(elements) {
    bytes_ = elements * static_cast<std::int64_t>(element_bytes(request.dtype));
    trips_ = round_trips(bytes_);
    plays_ = team.rank() == pair.first || team.rank() == pair.second;
    schedule_ = std::make_shared<const spec::Schedule>(ping_pong(team.size(), pair, elements, trips_));
  }

  Json row() {
    const int repeats = repeats_of(request_, bytes_);
    pool_.begin(bytes_, bytes_, 1);
    std::vector<double> seconds;
    for (int number = 0; number < kWarmUp + repeats; ++number) {
      const double time = measure(pool_.slot(number), number == 0);
      if (number >= kWarmUp) seconds.push_back(time);
    }
    const Statistics times = statistics_of(team_.largest(std::move(seconds)));
    Json row;
    row["from"] = pair_.first;
    row["to"] = pair_.second;
    row["transport"] = request_.transport;
    row["bytes"] = bytes_;
    row["buffers"] = request_.shared_buffers ? "shared" : "private";
    row["repeats"] = repeats;
    row["median_us"] = rounded(times.median_us);
    row["p95_us"] = rounded(times.p95_us);
    row["min_us"] = rounded(times.min_us);
    row["spread"] = rounded(times.spread);
    row["bandwidth_gbps"] = times.median_us > 0 ? rounded(static_cast<double>(bytes_) / times.median_us * 1e-3) : 0;
    return row;
  }

 private:
  double measure(const Slot& slot, bool first) {
    if (plays_) {
      fill(request_.dtype, slot.input, elements_, team_.rank());
      if (first) spoil(request_.dtype, slot.output, elements_);
    }
    comm::Collective collective;
    collective.schedule = schedule_;
    if (plays_) collective.inputs.push_back(buffer_of(slot.input, elements_));
    collective.output = buffer_of(slot.output, plays_ ? elements_ : 0);
    collective.dtype = request_.dtype;
    team_.barrier();
    const TimePoint begin = system_clock().now();
    team_.group().run(std::move(collective));
    const double seconds = to_seconds(system_clock().now() - begin);
    team_.gather_quietly();
    if (!plays_) return 0;
    Layout layout;
    layout.output = {{elements_, team_.rank() == pair_.first ? pair_.second : pair_.first, 0}};
    check(request_.dtype, slot.output, layout, team_.size(), first,
          fmt::format("{} bytes between ranks {} and {} over {}, rank {}", bytes_, pair_.first, pair_.second,
                      request_.transport, team_.rank()));
    return seconds / (2.0 * trips_);
  }

  Team& team_;
  const Request& request_;
  Pool& pool_;
  const Pair pair_;
  const std::int64_t elements_;
  std::int64_t bytes_ = 0;
  int trips_ = 1;
  bool plays_ = false;
  std::shared_ptr<const spec::Schedule> schedule_;
};

// Returns seconds a byte of `body` over kArrayBytes.
template <typename Body>
double per_byte(Team& team, Body&& body) {
  std::vector<double> seconds;
  for (int number = 0; number < kArrayRepeats; ++number) {
    team.barrier();
    const TimePoint begin = system_clock().now();
    body();
    seconds.push_back(to_seconds(system_clock().now() - begin));
  }
  return statistics_of(team.largest(std::move(seconds))).median_us * 1e-6 / static_cast<double>(kArrayBytes);
}

}  // namespace

Json measure_pairs(Team& team, const Request& request) {
  const auto width = static_cast<std::int64_t>(element_bytes(request.dtype));
  const auto elements_of = [&](std::int64_t bytes) { return std::max<std::int64_t>(1, bytes / width); };
  std::int64_t largest = 0;
  for (const std::int64_t bytes : request.sizes) largest = std::max(largest, elements_of(bytes) * width);
  Pool pool(team, {largest, request.shared_buffers, request.cold});
  Json rows = Json::array();
  for (int first = 0; first < team.size(); ++first) {
    for (int second = first + 1; second < team.size(); ++second) {
      for (const std::int64_t bytes : request.sizes) {
        rows.push_back(PingPong(team, request, pool, {first, second}, elements_of(bytes)).row());
      }
    }
  }
  return rows;
}

Json measure_arithmetic(Team& team) {
  const std::int64_t elements = kArrayBytes / static_cast<std::int64_t>(sizeof(float));
  std::vector<float> a(static_cast<std::size_t>(elements), 1.0F);
  std::vector<float> b(a);
  std::vector<float> target(a);
  auto* const to = reinterpret_cast<std::byte*>(target.data());
  const std::array<const std::byte*, 2> sources{reinterpret_cast<const std::byte*>(a.data()),
                                                reinterpret_cast<const std::byte*>(b.data())};
  const std::array<int, 3> program{0, 1, spec::kAdd};
  const double gamma =
      per_byte(team, [&] { comm::combine(DType::kFloat32, ReduceOp::kSum, program, sources, to, elements, 1); });
  const double kappa = per_byte(team, [&] { std::memcpy(to, a.data(), static_cast<std::size_t>(kArrayBytes)); });
  return {{"gamma_s_per_byte", rounded(gamma)}, {"kappa_s_per_byte", rounded(kappa)}};
}

}  // namespace convoy::bench
