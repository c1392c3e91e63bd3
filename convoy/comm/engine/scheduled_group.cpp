// Queues operations, runs them in order, and turns the first failure into everybody's.
#include "convoy/comm/engine/scheduled_group.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>

#include "convoy/base/files.h"
#include "convoy/base/hash.h"
#include "convoy/base/log.h"
#include "convoy/comm/engine/reduce.h"
#include "convoy/comm/kernels/steps.h"
#include "convoy/comm/shared_memory/peer_process.h"
#include "convoy/spec/collectives/all_reduce.h"

namespace convoy::comm {
namespace {

constexpr std::size_t kRemembered = 64;
constexpr Duration kIdleBeat = std::chrono::milliseconds(200);
constexpr Duration kWithdrawLimit = std::chrono::seconds(1);

// Finds what is wanted and moves it to the end: the first gives way, so what is asked for once never displaces what is
// asked for in every step. Null when it is not there.
template <typename T, typename Wanted>
const T* recall(std::vector<T>& remembered, const Wanted& wanted) {
  const auto found = std::find_if(remembered.begin(), remembered.end(), wanted);
  if (found == remembered.end()) return nullptr;
  std::rotate(found, found + 1, remembered.end());
  return &remembered.back();
}

using Words = std::vector<std::uint64_t>;

void add_number(Words& words, std::int64_t number) { words.push_back(static_cast<std::uint64_t>(number)); }

void add_chunk(Words& words, const spec::Chunk& chunk) {
  add_number(words, static_cast<std::int64_t>(chunk.kind));
  add_number(words, chunk.index);
  add_number(words, chunk.offset);
  add_number(words, chunk.count);
}

void add_operation(Words& words, const spec::Operation& operation) {
  add_number(words, static_cast<std::int64_t>(operation.kind));
  add_number(words, operation.peer);
  add_number(words, operation.final ? 1 : 0);
  add_chunk(words, operation.target);
  for (const spec::Chunk& source : operation.sources) add_chunk(words, source);
  for (const int step : operation.program) add_number(words, step);
}

// A hash of everything that the ranks must agree on.
std::uint64_t hash_of(const spec::Schedule& schedule) {
  Words words;
  add_number(words, schedule.contributions);
  // What there are no rounds to tell of.
  for (const std::int64_t elements : schedule.input_elements) add_number(words, elements);
  for (const std::int64_t elements : schedule.output_elements) add_number(words, elements);
  for (const std::vector<std::int64_t>& row : schedule.counts) {
    for (const std::int64_t elements : row) add_number(words, elements);
  }
  for (const spec::RankRounds& rounds : schedule.ranks) {
    add_number(words, static_cast<std::int64_t>(rounds.size()));
    for (const spec::Round& round : rounds) {
      add_number(words, static_cast<std::int64_t>(round.size()));
      for (const spec::Operation& operation : round) add_operation(words, operation);
    }
  }
  const std::string_view bytes(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::uint64_t));
  return hash64(bytes, hash64(schedule.algorithm));
}

// Whether this is the schedule that a small all-reduce executes by publication; with another order of ranks it sums in
// another order.
bool is_plain_direct(const spec::Schedule& schedule, std::uint64_t hash) {
  if (schedule.algorithm != "direct" || schedule.collective != "all_reduce" || schedule.elements == 0) return false;
  return hash == hash_of(spec::direct_all_reduce(static_cast<int>(schedule.ranks.size()), schedule.elements));
}

// Says of a schedule whether it has reductions at all, and whether one's result is reduced further.
struct Reductions {
  bool any = false;
  bool partial = false;
};

Reductions reductions_of(const spec::Schedule& schedule) {
  Reductions found;
  for (const spec::RankRounds& rounds : schedule.ranks) {
    for (const spec::Round& round : rounds) {
      for (const spec::Operation& operation : round) {
        if (operation.kind != spec::OpKind::kReduce) continue;
        found.any = true;
        found.partial = found.partial || !operation.final;
      }
    }
  }
  return found;
}

ExecutorOptions executor_options(const GroupOptions& options, observe::FlightRecorder& recorder) {
  ExecutorOptions chosen;
  chosen.group = options.name;
  chosen.generation = options.generation;
  chosen.timeout = options.timeout;
  chosen.silent_after = options.silent_after;
  chosen.chunk_bytes = options.chunk_bytes;
  chosen.recorder = &recorder;
  chosen.cache_bytes = options.cache_bytes > 0 ? options.cache_bytes : kernels::largest_cache_bytes();
  return chosen;
}

}  // namespace

ScheduledGroup::ScheduledGroup(std::unique_ptr<Transport> transport, const GroupOptions& options)
    : options_(options),
      executor_options_(executor_options(options, recorder_)),
      transport_(std::move(transport)),
      selection_(transport_->size(), transport_->publish_capacity() > 0, options.selection),
      pools_{ScratchPool(), ScratchPool(transport_->window() != nullptr ? &transport_->window()->arena() : nullptr)},
      reducer_(*transport_),
      thread_([this] { work(); }) {}

ScheduledGroup::~ScheduledGroup() {
  bool busy = false;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    busy = running_ || !queue_.empty();
    changed_.notify_all();
  }
  if (busy) {
    abort(Error(ErrorCode::kAborted,
                fmt::format("rank {} destroyed group '{}' while operations were running", rank(), options_.name)));
  }
  thread_.join();
}

std::shared_ptr<const spec::Schedule> ScheduledGroup::schedule(const std::string& key,
                                                               const std::function<spec::Schedule()>& build) {
  const auto* const known = recall(schedules_, [&](const auto& one) { return one.first == key; });
  if (known != nullptr) return known->second;
  if (schedules_.size() == kRemembered) schedules_.erase(schedules_.begin());
  schedules_.emplace_back(key, std::make_shared<const spec::Schedule>(build()));
  return schedules_.back().second;
}

const ScheduledGroup::ScheduleFacts& ScheduledGroup::facts_of(const std::shared_ptr<const spec::Schedule>& schedule) {
  const ScheduleFacts* const known = recall(facts_, [&](const ScheduleFacts& one) { return one.schedule == schedule; });
  if (known != nullptr) return *known;
  if (facts_.size() == kRemembered) facts_.erase(facts_.begin());
  ScheduleFacts facts;
  facts.schedule = schedule;
  facts.hash = hash_of(*schedule);
  facts.plain_direct = is_plain_direct(*schedule, facts.hash);
  const Reductions reductions = reductions_of(*schedule);
  facts.reduces = reductions.any;
  facts.stores_partials = reductions.partial;
  if (transport_->window() != nullptr && size() > 1) {
    spec::DirectStores stores = spec::find_direct_stores(*schedule);
    const bool any = std::any_of(stores.begin(), stores.end(), [](const auto& of_rank) { return !of_rank.empty(); });
    if (any) facts.stores = std::make_shared<const spec::DirectStores>(std::move(stores));
  }
  facts_.push_back(std::move(facts));
  return facts_.back();
}

void ScheduledGroup::check(const Collective& collective, const ScheduleFacts& facts) const {
  const spec::Schedule& schedule = *collective.schedule;
  const auto refuse = [&](ErrorCode code, const std::string& what) {
    throw Error(code, fmt::format("{} in group '{}': {}", schedule.collective, options_.name, what));
  };
  const auto me = static_cast<std::size_t>(rank());
  if (schedule.ranks.size() != static_cast<std::size_t>(size())) {
    refuse(ErrorCode::kInvalidArgument,
           fmt::format("the schedule is for {} ranks, the group has {}", schedule.ranks.size(), size()));
  }
  if (collective.inputs.size() != static_cast<std::size_t>(schedule.inputs[me])) {
    refuse(ErrorCode::kInvalidArgument, fmt::format("rank {} brings {} inputs where {} are wanted", rank(),
                                                    collective.inputs.size(), schedule.inputs[me]));
  }
  for (const Buffer& input : collective.inputs) {
    if (input.elements() == schedule.input_elements[me]) continue;
    refuse(ErrorCode::kInvalidArgument, fmt::format("an input of rank {} has {} elements where {} are wanted", rank(),
                                                    input.elements(), schedule.input_elements[me]));
  }
  if (collective.output.elements() != schedule.output_elements[me]) {
    refuse(ErrorCode::kInvalidArgument, fmt::format("the output of rank {} has {} elements where {} are wanted", rank(),
                                                    collective.output.elements(), schedule.output_elements[me]));
  }
  const bool integer_mean = collective.reduce == ReduceOp::kMean && !can_reduce(collective.dtype, ReduceOp::kMean);
  if (integer_mean || (facts.reduces && !can_reduce(collective.dtype, collective.reduce))) {
    refuse(ErrorCode::kNotSupported,
           fmt::format("no {} of {} elements", to_string(collective.reduce), to_string(collective.dtype)));
  }
  check_compression(collective, schedule);
  if (is_native(schedule)) {
    NativeCollectives* const library = transport_->native();
    const auto why = library != nullptr ? library->refusal(collective)
                                        : fmt::format("transport {} has no algorithm native", transport_->name());
    if (why) refuse(ErrorCode::kNotSupported, *why);
  }
  if (facts.stores_partials && rounds_between_reductions(collective.dtype, collective.reduce)) {
    refuse(ErrorCode::kNotSupported,
           fmt::format("algorithm '{}' would round the {} of {} elements at every hop; one that combines each element "
                       "in one reduction, such as ordered_exchange, rounds once",
                       schedule.algorithm, to_string(collective.reduce), to_string(collective.dtype)));
  }
}

void ScheduledGroup::check_compression(const Collective& collective, const spec::Schedule& schedule) const {
  const auto refuse = [&](ErrorCode code, const std::string& what) {
    throw Error(code, fmt::format("{} in group '{}': {}", schedule.collective, options_.name, what));
  };
  const Compression& compression = collective.compression;
  const std::int64_t residual = collective.residual.elements();
  if (compression.format == WireFormat::kPlain) {
    if (residual != 0) refuse(ErrorCode::kInvalidArgument, "a residual without compression");
    return;
  }
  const bool sums =
      schedule.collective == "all_reduce" || schedule.collective == "reduce_scatter" || schedule.collective == "reduce";
  if (!sums || collective.dtype != DType::kFloat32 || is_native(schedule)) {
    refuse(ErrorCode::kNotSupported,
           fmt::format("no {} on the wire of {} elements with algorithm '{}'", to_string(compression.format),
                       to_string(collective.dtype), schedule.algorithm));
  }
  if (!(compression.keep > 0 && compression.keep <= 1)) {
    refuse(ErrorCode::kInvalidArgument, fmt::format("a share of {} of the elements cannot be kept", compression.keep));
  }
  if (residual == 0) return;
  if (collective.inputs.size() != 1 || residual != collective.inputs.front().elements()) {
    refuse(ErrorCode::kInvalidArgument,
           fmt::format("a residual of {} elements belongs to one input of as many, rank {} "
                       "brings {}",
                       residual, rank(), collective.inputs.size()));
  }
}

void ScheduledGroup::throw_if_aborted() {
  auto notice = transport_->abort_notice();
  // Should the notice not have got through, this rank still knows.
  if (!notice && failed_) notice = AbortNotice{rank(), ErrorCode::kAborted, "an earlier operation failed"};
  if (!notice) return;
  ErrorContext context;
  context.global_rank = rank();
  context.peer = notice->rank;
  context.group = options_.name;
  // A disagreement is everybody's error, also of a rank that comes when the others have found out already; once.
  const bool told = failed_.exchange(true);
  const bool disagreement = !told && notice->code == ErrorCode::kDesync;
  const Error error(disagreement ? ErrorCode::kDesync : ErrorCode::kAborted,
                    fmt::format("group '{}' has ended because rank {} failed first: {}", options_.name, notice->rank,
                                notice->message),
                    context);
  record_failure(error);
  throw error;
}

ScheduledGroup::Task ScheduledGroup::make_task(Collective collective, std::uint64_t sequence) {
  CONVOY_CHECK(collective.schedule != nullptr, "a collective has a schedule");
  const ScheduleFacts& facts = facts_of(collective.schedule);
  check(collective, facts);
  Task task;
  task.operation.sequence = sequence;
  task.operation.set_name(collective.schedule->collective);
  task.operation.dtype = collective.dtype;
  task.operation.reduce = collective.reduce;
  task.operation.elements = collective.schedule->elements;
  task.operation.root = collective.schedule->root;
  task.operation.layout = facts.hash;
  const Compression& compression = collective.compression;
  const bool compresses = compression.format != WireFormat::kPlain;
  if (compresses)
    task.operation.layout ^= hash64(fmt::format("{} {}", to_string(compression.format), compression.keep));
  task.state = std::make_shared<WorkState>(
      fmt::format("{} #{} in group '{}'", collective.schedule->collective, sequence, options_.name));
  task.small =
      facts.plain_direct && !compresses &&
      static_cast<std::size_t>(collective.schedule->elements) * element_bytes(collective.dtype) <= reducer_.capacity();
  if (!compresses) task.stores = facts.stores;
  task.collective = std::move(collective);
  recorder_.queued(task.operation, system_clock().now());
  return task;
}

Work ScheduledGroup::submit(Collective collective) {
  throw_if_aborted();
  Task task = make_task(std::move(collective), next_sequence_);
  ++next_sequence_;
  in_flight_.fetch_add(1);
  Work work(task.state);
  MutexLock lock(mutex_);
  queue_.push_back(std::move(task));
  changed_.notify_all();
  return work;
}

// On the caller's thread, and without anything that takes longer than the exchange itself: no queue, no memory, no line
// on the board. Only when the others do not come within a moment it becomes an operation like all others.
bool ScheduledGroup::try_all_reduce(const std::byte* input, std::byte* output, std::int64_t elements, DType dtype,
                                    ReduceOp reduce) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * element_bytes(dtype);
  if (elements == 0 || bytes > reducer_.capacity() || !can_reduce(dtype, reduce)) return false;
  if (in_flight_.load() != 0) return false;
  throw_if_aborted();
  const SmallReduce operation{next_sequence_++, dtype, reduce, elements};
  reducer_.publish(operation, input);
  sent_bytes_.fetch_add(bytes * static_cast<std::size_t>(size() - 1), std::memory_order_relaxed);
  if (reducer_.spin(operation)) {
    reducer_.combine_all(operation, output);
    recorder_.small_done(operation.sequence);
    return true;
  }
  Collective collective;
  collective.schedule = schedule(fmt::format("direct_all_reduce {}", elements),
                                 [&] { return spec::direct_all_reduce(size(), elements); });
  collective.inputs = {Buffer({Extent{const_cast<std::byte*>(input), elements}})};
  collective.output = Buffer({Extent{output, elements}});
  collective.dtype = dtype;
  collective.reduce = reduce;
  Task task = make_task(std::move(collective), operation.sequence);
  task.shown = true;
  run_here(std::move(task));
  return true;
}

void ScheduledGroup::run(Collective collective) {
  if (in_flight_.load() != 0) return submit(std::move(collective)).wait();
  throw_if_aborted();
  Task task = make_task(std::move(collective), next_sequence_);
  ++next_sequence_;
  run_here(std::move(task));
}

void ScheduledGroup::run_here(Task task) {
  in_flight_.fetch_add(1);
  Work work(task.state);
  execute(task);
  work.wait();
}

void ScheduledGroup::abort(const Error& error) {
  AbortNotice notice;
  notice.rank = rank();
  notice.code = error.code();
  notice.message = error.message();
  transport_->raise_abort(notice);
}

void ScheduledGroup::beat() {
  const auto now = std::chrono::duration_cast<Duration>(system_clock().now().time_since_epoch());
  transport_->board().beat(rank(), now.count(), ::getpid());
}

void ScheduledGroup::work() {
  ::pthread_setname_np(::pthread_self(), "convoy-comm");
  while (true) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (queue_.empty()) {
        if (stopping_) return;
        beat();
        changed_.wait_for(mutex_, kIdleBeat);
      }
      task = std::move(queue_.front());
      queue_.pop_front();
      running_ = true;
    }
    execute(task);
  }
}

void ScheduledGroup::execute(Task& task) {
  const std::uint64_t sequence = task.operation.sequence;
  recorder_.begun(sequence, system_clock().now());
  try {
    throw_if_aborted();
    Executor executor(*transport_, executor_options_, pools_, task, sent_bytes_);
    task.small ? executor.run_small(reducer_, task.shown) : executor.run();
  } catch (const Error& error) {
    return fail(task, error);
  } catch (const std::bad_alloc&) {
    return fail(task,
                Error(ErrorCode::kOutOfMemory, fmt::format("{}: no memory for what was received", task.state->what())));
  } catch (const std::exception& error) {
    return fail(task, Error(ErrorCode::kInternal, fmt::format("{}: {}", task.state->what(), error.what())));
  }
  recorder_.ended(sequence, false, system_clock().now(), sent_bytes());
  finish(task, nullptr);
}

void ScheduledGroup::fail(Task& task, const Error& error) {
  failed_ = true;
  if (error.code() != ErrorCode::kAborted) abort(error);
  recorder_.ended(task.operation.sequence, true, system_clock().now(), sent_bytes());
  record_failure(error);
  transport_->withdraw(kWithdrawLimit);
  // A new object, so that the waiting thread shares nothing with the one that this thread still handles.
  finish(task, std::make_exception_ptr(Error(error.code(), error.message(), error.context())));
}

// Once, by whoever meets the group's failure first on this rank.
void ScheduledGroup::record_failure(const Error& error) {
  if (options_.recorder_folder.empty() || recorded_.exchange(true)) return;
  try {
    observe::FlightLog log = observe::make_flight_log(recorder_, transport_->board(), error);
    log.group = options_.name;
    log.generation = options_.generation;
    log.rank = rank();
    log.ranks = size();
    log.host = host_name();
    observe::write_flight_log(local_files(), options_.recorder_folder, log);
  } catch (const std::exception& failure) {
    log_warning("what the newest operations were cannot be written: {}", failure.what());
  }
}

void ScheduledGroup::finish(Task& task, std::exception_ptr error) {
  {
    // Before anybody can learn of it: who has waited for the last work may destroy the group at once.
    MutexLock lock(mutex_);
    running_ = false;
  }
  in_flight_.fetch_sub(1);
  task.state->complete(std::move(error));
}

std::unique_ptr<Group> make_group(std::unique_ptr<Transport> transport, const GroupOptions& options) {
  return std::make_unique<ScheduledGroup>(std::move(transport), options);
}

}  // namespace convoy::comm
