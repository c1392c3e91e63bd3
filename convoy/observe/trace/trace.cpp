#include "convoy/observe/trace/trace.h"

#include <algorithm>
#include <limits>

#include "convoy/base/error.h"

namespace convoy::observe {
namespace {

constexpr std::array<std::string_view, kSpanKinds> kNames = {
    "setup",     "step",      "input_prepare", "input_wait", "forward",    "backward",  "bucket",
    "agreement", "comm_wait", "gradient_norm", "optimizer",  "evaluation", "checkpoint"};

constexpr std::size_t kHeaderWords = 7;
constexpr std::size_t kSpanWords = 11;

// Calls `body` with each time of a span that is known.
template <typename Body>
void each_time(Span& span, Body body) {
  body(span.begin_ns);
  body(span.end_ns);
  if (span.launched_ns >= 0) body(span.launched_ns);
  if (span.returned_ns >= 0) body(span.returned_ns);
}

}  // namespace

std::string_view to_string(SpanKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<SpanKind> try_span_kind(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<SpanKind>(found - kNames.begin());
}

std::vector<std::int64_t> to_words(const RankTrace& trace) {
  std::vector<std::int64_t> words = {
      trace.rank,   trace.host, trace.processors, trace.replicas, trace.clock_offset_ns, trace.clock_uncertainty_ns,
      trace.dropped};
  words.reserve(kHeaderWords + kSpanWords * trace.spans.size());
  for (const Span& span : trace.spans) {
    words.insert(words.end(),
                 {static_cast<std::int64_t>(span.kind), span.step, span.begin_ns, span.end_ns, span.number,
                  span.micro_batch, span.launched_ns, span.returned_ns, span.bytes, span.operators, span.operator_ns});
  }
  return words;
}

RankTrace from_words(std::span<const std::int64_t> words) {
  if (words.size() < kHeaderWords || (words.size() - kHeaderWords) % kSpanWords != 0) {
    throw Error(ErrorCode::kCorrupt, "the numbers of a rank's trace are cut off");
  }
  RankTrace trace;
  trace.rank = static_cast<int>(words[0]);
  trace.host = static_cast<int>(words[1]);
  trace.processors = static_cast<int>(words[2]);
  trace.replicas = static_cast<int>(words[3]);
  trace.clock_offset_ns = words[4];
  trace.clock_uncertainty_ns = words[5];
  trace.dropped = words[6];
  trace.spans.reserve((words.size() - kHeaderWords) / kSpanWords);
  for (auto rest = words.subspan(kHeaderWords); !rest.empty(); rest = rest.subspan(kSpanWords)) {
    if (rest[0] < 0 || rest[0] >= static_cast<std::int64_t>(kSpanKinds)) {
      throw Error(ErrorCode::kCorrupt, "a rank's trace has a span of an unknown kind");
    }
    trace.spans.push_back({static_cast<SpanKind>(rest[0]), rest[1], rest[2], rest[3], rest[4], rest[5], rest[6],
                           rest[7], rest[8], rest[9], rest[10]});
  }
  return trace;
}

void shift_to_common_clock(RankTrace& trace) {
  for (Span& span : trace.spans) {
    each_time(span, [&](std::int64_t& time) { time += trace.clock_offset_ns; });
  }
}

void start_at_zero(Trace& trace) {
  std::int64_t zero = std::numeric_limits<std::int64_t>::max();
  for (RankTrace& rank : trace.ranks) {
    for (Span& span : rank.spans) each_time(span, [&](std::int64_t time) { zero = std::min(zero, time); });
  }
  for (RankTrace& rank : trace.ranks) {
    for (Span& span : rank.spans) each_time(span, [&](std::int64_t& time) { time -= zero; });
  }
}

}  // namespace convoy::observe
