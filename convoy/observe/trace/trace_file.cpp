#include "convoy/observe/trace/trace_file.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/observe/trace/step_timeline.h"

namespace convoy::observe {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
enum Thread { kDriver = 0, kLoader = 1, kCommunication = 2 };

Thread thread_of(SpanKind kind) {
  if (kind == SpanKind::kInputPrepare) return kLoader;
  return kind == SpanKind::kBucket || kind == SpanKind::kAgreement ? kCommunication : kDriver;
}

// The groups by which viewers colour and filter.
const char* category_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kInputPrepare:
    case SpanKind::kInputWait: return "input";
    case SpanKind::kForward:
    case SpanKind::kBackward:
    case SpanKind::kOptimizer: return "compute";
    case SpanKind::kBucket:
    case SpanKind::kAgreement:
    case SpanKind::kCommWait:
    case SpanKind::kGradientNorm: return "communication";
    default: return "run";
  }
}

// When the bytes of each collective could move, by rank, step and number.
using Starts = std::map<std::tuple<int, std::int64_t, std::int64_t>, std::int64_t>;

Starts starts_of(const Trace& trace) {
  Starts starts;
  for (const StepTimeline& step : step_timelines(trace)) {
    for (const CollectiveTimes& times : step.collectives) {
      for (std::size_t rank = 0; rank < times.started.size(); ++rank) {
        starts[{trace.ranks[rank].rank, step.step, times.number}] = times.started[rank];
      }
    }
  }
  return starts;
}

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace), starts_(starts_of(trace)) {}

  std::string text() {
    put("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\n\"traceEvents\":[", header().dump());
    for (const RankTrace& rank : trace_.ranks) {
      name(rank);
      for (const Span& span : rank.spans) {
        thread_of(span.kind) == kCommunication ? collective(rank, span) : plain(rank, span);
      }
    }
    put("\n]}}\n");
    return std::move(text_);
  }

 private:
  template <typename... Values>
  void put(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  // Begins an event.
  void next() {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
  }

  static std::string us(std::int64_t ns) {
    const std::int64_t size = ns < 0 ? -ns : ns;
    return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
  }

  json header() const {
    json ranks = json::array();
    for (const RankTrace& rank : trace_.ranks) {
      ranks.push_back({{"rank", rank.rank},
                       {"host", rank.host},
                       {"processors", rank.processors},
                       {"replicas", rank.replicas},
                       {"clock_offset_us", static_cast<double>(rank.clock_offset_ns) / 1000},
                       {"clock_uncertainty_us", static_cast<double>(rank.clock_uncertainty_ns) / 1000},
                       {"dropped", rank.dropped}});
    }
    return {{"convoy_trace", kFormat}, {"task", trace_.task}, {"bucket_bytes", trace_.bucket_bytes}, {"ranks", ranks}};
  }

  void name(const RankTrace& rank) {
    next();
    put(R"x({{"name":"process_name","ph":"M","pid":{0},"tid":0,"args":{{"name":"rank {0} (host {1})"}}}})x", rank.rank,
        rank.host);
    next();
    put(R"({{"name":"process_sort_index","ph":"M","pid":{0},"tid":0,"args":{{"sort_index":{0}}}}})", rank.rank);
    for (const auto& [thread, title] :
         {std::pair{kDriver, "driver"}, {kLoader, "loader"}, {kCommunication, "communication"}}) {
      next();
      put(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", rank.rank,
          static_cast<int>(thread), title);
    }
  }

  void complete(int rank, const Span& span, const std::string& title, std::int64_t begin, std::int64_t end) {
    next();
    put(R"({{"name":"{}","cat":"{}","ph":"X","pid":{},"tid":{},"ts":{},"dur":{})", title, category_of(span.kind), rank,
        static_cast<int>(thread_of(span.kind)), us(begin), us(end - begin));
  }

  void plain(const RankTrace& rank, const Span& span) {
    complete(rank.rank, span, std::string(to_string(span.kind)), span.begin_ns, span.end_ns);
    if (span.step >= 0) {
      put(R"(,"args":{{"step":{})", span.step);
      if (span.number >= 0) put(R"(,"replica":{})", span.number);
      if (span.micro_batch >= 0) put(R"(,"micro_batch":{})", span.micro_batch);
      if (span.operators >= 0) put(R"(,"operators":{},"operator_us":{})", span.operators, us(span.operator_ns));
      text_ += '}';
    }
    text_ += '}';
  }

  void collective(const RankTrace& rank, const Span& span) {
    const bool bucket = span.kind == SpanKind::kBucket;
    const std::string title = bucket ? fmt::format("bucket {}", span.number) : "agreement";
    const auto start = starts_.find({rank.rank, span.step, bucket ? span.number : kAgreementNumber});
    complete(rank.rank, span, title, start == starts_.end() ? span.launched_ns : start->second, span.end_ns);
    put(R"(,"args":{{"step":{},"bytes":{},"ready":{},"launched":{},"returned":{})", span.step, span.bytes,
        us(span.begin_ns), us(span.launched_ns), us(span.returned_ns));
    if (bucket) put(R"(,"bucket":{})", span.number);
    put("}}}}");
    if (!bucket) return;
    const auto moment = [&](char phase, const char* moment_name, std::int64_t at) {
      next();
      put(R"({{"name":"{}","cat":"bucket","ph":"{}","id":"{}.{}.{}","pid":{},"tid":{},"ts":{}}})", moment_name, phase,
          rank.rank, span.step, span.number, rank.rank, static_cast<int>(kCommunication), us(at));
    };
    moment('b', title.c_str(), span.begin_ns);
    moment('n', "launched", span.launched_ns);
    moment('e', title.c_str(), span.end_ns);
  }

  const Trace& trace_;
  const Starts starts_;
  std::string text_;
  bool first_ = true;
};

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  Trace read(const std::string& text) {
    const json file = json::parse(text, nullptr, false);
    if (file.is_discarded()) fail("it is no JSON");
    if (!file.is_object() || !file.contains("traceEvents") || !file["traceEvents"].is_array()) {
      fail("it has no list traceEvents");
    }
    where_ = "otherData";
    try {
      header(file.at("otherData"));
      std::size_t number = 0;
      for (const json& event : file["traceEvents"]) {
        where_ = fmt::format("event {}", number++);
        if (event.at("ph") == "X") add(event);
      }
    } catch (const json::exception&) {
      fail(fmt::format("{} lacks a value, or has one of another type", where_));
    }
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kCorrupt, fmt::format("{} is no trace of a run: {}", path_, what));
  }

  static std::int64_t ns(const json& us) { return std::llround(us.get<double>() * 1000.0); }

  void header(const json& data) {
    if (data.at("convoy_trace") != kFormat) fail("another version wrote it");
    trace_.task = data.at("task").get<std::string>();
    trace_.bucket_bytes = data.at("bucket_bytes").get<std::int64_t>();
    for (const json& rank : data.at("ranks")) {
      RankTrace one;
      one.rank = rank.at("rank").get<int>();
      if (one.rank != static_cast<int>(trace_.ranks.size())) fail("otherData does not list the ranks in order");
      one.host = rank.at("host").get<int>();
      one.processors = rank.at("processors").get<int>();
      one.replicas = rank.at("replicas").get<int>();
      one.clock_offset_ns = ns(rank.at("clock_offset_us"));
      one.clock_uncertainty_ns = ns(rank.at("clock_uncertainty_us"));
      one.dropped = rank.at("dropped").get<std::int64_t>();
      trace_.ranks.push_back(std::move(one));
    }
  }

  void add(const json& event) {
    const auto rank = event.at("pid").get<std::int64_t>();
    if (rank < 0 || rank >= static_cast<std::int64_t>(trace_.ranks.size())) {
      fail(fmt::format("{} is of process {}, which is no rank of it", where_, rank));
    }
    const json args = event.value("args", json::object());
    Span span;
    span.step = args.value("step", std::int64_t{-1});
    span.begin_ns = ns(event.at("ts"));
    span.end_ns = span.begin_ns + ns(event.at("dur"));
    if (span.end_ns < span.begin_ns) fail(fmt::format("{} has a negative duration", where_));
    const auto title = event.at("name").get<std::string>();
    const std::string name = title.starts_with("bucket ") ? "bucket" : title;
    const std::optional<SpanKind> kind = try_span_kind(name);
    if (!kind) fail(fmt::format("{} has the unknown name '{}'", where_, title));
    span.kind = *kind;
    if (thread_of(span.kind) == kCommunication) {
      span.begin_ns = ns(args.at("ready"));
      span.launched_ns = ns(args.at("launched"));
      span.returned_ns = ns(args.at("returned"));
      span.bytes = args.at("bytes").get<std::int64_t>();
      if (span.kind == SpanKind::kBucket) span.number = args.at("bucket").get<std::int64_t>();
    } else {
      span.number = args.value("replica", std::int64_t{-1});
      span.micro_batch = args.value("micro_batch", std::int64_t{-1});
      span.operators = args.value("operators", std::int64_t{-1});
      if (span.operators >= 0) span.operator_ns = ns(args.at("operator_us"));
    }
    trace_.ranks[static_cast<std::size_t>(rank)].spans.push_back(span);
  }

  const std::string path_;
  std::string where_;
  Trace trace_;
};

}  // namespace

std::string to_chrome_trace(const Trace& trace) { return Writer(trace).text(); }

void write_trace(Files& files, const std::string& path, const Trace& trace) {
  write_atomic(files, path, to_chrome_trace(trace));
}

Trace read_trace(Files& files, const std::string& path) { return Reader(path).read(files.read(path)); }

}  // namespace convoy::observe
