#include "convoy/comm/openmpi/native_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string_view>
#include <utility>

#include "convoy/comm/engine/pieces.h"
#include "convoy/comm/engine/reduce.h"
#include "convoy/comm/native_collectives.h"

namespace convoy::comm {
namespace {

using Counts = std::vector<std::int64_t>;

constexpr std::array<std::pair<std::string_view, MpiCollective>, 9> kCollectives{{
    {"all_reduce", MpiCollective::kAllReduce},
    {"reduce_scatter", MpiCollective::kReduceScatter},
    {"all_gather", MpiCollective::kAllGather},
    {"broadcast", MpiCollective::kBroadcast},
    {"reduce", MpiCollective::kReduce},
    {"gather", MpiCollective::kGather},
    {"scatter", MpiCollective::kScatter},
    {"all_to_all", MpiCollective::kAllToAll},
    {"barrier", MpiCollective::kBarrier},
}};

std::optional<MpiCollective> collective_of(const std::string& name) {
  for (const auto& [known, collective] : kCollectives) {
    if (known == name) return collective;
  }
  return std::nullopt;
}

bool reduces(MpiCollective collective) {
  return collective == MpiCollective::kAllReduce || collective == MpiCollective::kReduce ||
         collective == MpiCollective::kReduceScatter;
}

std::vector<int> ints(const Counts& counts) { return {counts.begin(), counts.end()}; }

std::vector<int> begins(const Counts& counts) {
  std::vector<int> all(counts.size(), 0);
  for (std::size_t i = 1; i < counts.size(); ++i) all[i] = all[i - 1] + static_cast<int>(counts[i - 1]);
  return all;
}

std::size_t bytes_of(const Buffer& buffer, std::size_t element_bytes) {
  return static_cast<std::size_t>(buffer.elements()) * element_bytes;
}

std::vector<Extent> pieces_of(const Buffer& buffer) { return {buffer.extents().begin(), buffer.extents().end()}; }

}  // namespace

std::optional<std::string> native_refusal(const MpiLink& link, const Collective& collective) {
  const spec::Schedule& schedule = *collective.schedule;
  MpiCall call;
  const auto known = collective_of(schedule.collective);
  if (!known) return fmt::format("Open MPI has no {}", schedule.collective);
  call.collective = *known;
  call.dtype = collective.dtype;
  call.reduce = collective.reduce;
  const bool sums = reduces(call.collective);
  if (sums && (!link.can(call) || !can_reduce(collective.dtype, collective.reduce))) {
    return fmt::format("Open MPI has no {} of {} elements: choose an algorithm other than native",
                       to_string(collective.reduce), to_string(collective.dtype));
  }
  if (schedule.elements > INT_MAX) {
    return fmt::format("Open MPI counts elements up to {}, here are {}", INT_MAX, schedule.elements);
  }
  return std::nullopt;
}

NativeCall::NativeCall(const Collective& collective, int rank)
    : rank_(rank), element_bytes_(element_bytes(collective.dtype)), output_(collective.output) {
  const spec::Schedule& schedule = *collective.schedule;
  call_.collective = *collective_of(schedule.collective);
  call_.dtype = collective.dtype;
  call_.reduce = collective.reduce;
  call_.root = std::max(0, schedule.root);
  if (reduces(call_.collective) && collective.reduce == ReduceOp::kMean) divisor_ = schedule.contributions;
  place_output(collective);
  place_input(collective);
  describe(schedule);
  call_.input = input_at_;
  call_.output = output_at_;
  allow_in_place(schedule);
}

void NativeCall::place_output(const Collective& collective) {
  const auto extents = collective.output.extents();
  if (extents.size() == 1) output_at_ = extents.front().data;
  if (extents.size() < 2) return;
  output_copy_ = std::make_unique_for_overwrite<std::byte[]>(bytes_of(collective.output, element_bytes_));
  output_at_ = output_copy_.get();
}

void NativeCall::place_input(const Collective& collective) {
  if (collective.inputs.empty()) return;
  const Buffer& input = collective.inputs.front();
  const std::size_t bytes = bytes_of(input, element_bytes_);
  if (call_.collective == MpiCollective::kBroadcast) {
    // MPI sends from where it would receive.
    copy_pieces(pieces_of(input), {Extent{output_at_, input.elements()}}, element_bytes_);
    return;
  }
  const auto extents = input.extents();
  if (extents.size() == 1) input_at_ = extents.front().data;
  const std::size_t output_bytes = bytes_of(collective.output, element_bytes_);
  const bool overlaps = input_at_ != nullptr && output_at_ != nullptr && input_at_ < output_at_ + output_bytes &&
                        output_at_ < input_at_ + bytes;
  // The two ways in which MPI lets them be one, see allow_in_place.
  const bool same = input_at_ == output_at_ &&
                    (call_.collective == MpiCollective::kAllReduce || call_.collective == MpiCollective::kReduce);
  if (extents.size() < 2 && (!overlaps || same)) return;
  input_copy_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  copy_pieces(pieces_of(input), {Extent{input_copy_.get(), input.elements()}}, element_bytes_);
  input_at_ = input_copy_.get();
}

void NativeCall::describe(const spec::Schedule& schedule) {
  const auto me = static_cast<std::size_t>(rank_);
  call_.elements = static_cast<int>(schedule.elements);
  switch (call_.collective) {
    case MpiCollective::kReduceScatter: call_.counts = ints(schedule.output_elements); break;
    case MpiCollective::kAllGather:
    case MpiCollective::kGather:
      call_.elements = static_cast<int>(schedule.input_elements[me]);
      call_.counts = ints(schedule.input_elements);
      call_.offsets = begins(schedule.input_elements);
      break;
    case MpiCollective::kScatter:
      call_.elements = static_cast<int>(schedule.output_elements[me]);
      call_.counts = ints(schedule.output_elements);
      call_.offsets = begins(schedule.output_elements);
      break;
    case MpiCollective::kAllToAll: {
      Counts come;
      for (const Counts& row : schedule.counts) come.push_back(row[me]);
      call_.counts = ints(schedule.counts[me]);
      call_.offsets = begins(schedule.counts[me]);
      call_.from_counts = ints(come);
      call_.from_offsets = begins(come);
      break;
    }
    default: break;
  }
}

// MPI wants to be told where input and output are one; a null pointer without elements means just that it has none.
void NativeCall::allow_in_place(const spec::Schedule& schedule) {
  static std::byte nothing{};
  const bool one = input_at_ != nullptr && input_at_ == output_at_;
  const bool root = rank_ == schedule.root;
  if (one && (call_.collective == MpiCollective::kAllReduce || root)) {
    call_.input = nullptr;
    return;
  }
  if (call_.input == nullptr) call_.input = &nothing;
  if (call_.output == nullptr) call_.output = &nothing;
}

void NativeCall::finish() {
  const std::int64_t elements = output_.elements();
  if (divisor_ > 1 && elements > 0) {
    const std::vector<int> copy{0};
    const std::vector<const std::byte*> sources{output_at_};
    combine(call_.dtype, ReduceOp::kMean, copy, sources, output_at_, elements, divisor_);
  }
  if (output_copy_ != nullptr) copy_pieces({Extent{output_at_, elements}}, pieces_of(output_), element_bytes_);
}

}  // namespace convoy::comm
