// Schedules, other libraries and the limit behind one seam.
#include "apps/bench/collective/contender.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/base/simd.h"
#include "convoy/comm/native_schedule.h"
#include "convoy/spec/collectives/registry.h"

namespace convoy::bench {
namespace {

comm::Buffer buffer_of(std::byte* data, std::int64_t elements) {
  return comm::Buffer(std::vector<comm::Extent>{{data, elements}});
}

class ScheduleContender final : public Contender {
 public:
  ScheduleContender(Team& team, const Request& request, spec::Schedule schedule)
      : group_(team.group()), transport_(request.transport), dtype_(request.dtype) {
    layout_ = layout_of(schedule, team.rank());
    inputs_ = schedule.inputs[static_cast<std::size_t>(team.rank())];
    algorithm_ = schedule.algorithm;
    schedule_ = std::make_shared<const spec::Schedule>(std::move(schedule));
  }
  std::string library() const override { return "convoy"; }
  std::string transport() const override { return transport_; }
  std::string algorithm() const override { return algorithm_; }
  const Layout& layout() const override { return layout_; }
  void run(const Slot& slot) override {
    comm::Collective collective;
    collective.schedule = schedule_;
    if (inputs_ > 0) collective.inputs.push_back(buffer_of(slot.input, layout_.input));
    collective.output = buffer_of(layout_.in_place ? slot.input : slot.output, layout_.output_elements());
    collective.dtype = dtype_;
    collective.reduce = ReduceOp::kSum;
    group_.run(std::move(collective));
  }

 private:
  comm::Group& group_;
  const std::string transport_;
  const DType dtype_;
  std::string algorithm_;
  Layout layout_;
  int inputs_ = 1;
  std::shared_ptr<const spec::Schedule> schedule_;
};

// The functions of the group, which choose for themselves.
class DefaultContender final : public Contender {
 public:
  DefaultContender(Team& team, const Request& request, const plan::CollectiveSize& size)
      : group_(team.group()), transport_(request.transport), size_(size) {
    layout_ = even_layout(size.collective, team.rank(), team.size(), size.elements);
    if (size.collective != "reduce_scatter") return;
    // Its shards end on canonical blocks.
    layout_ = layout_of(spec::build(size.collective, "ordered_exchange", size.shape({}, 0)), team.rank());
  }
  static bool knows(const std::string& op) {
    return op == "all_reduce" || op == "reduce_scatter" || op == "all_gather" || op == "broadcast" || op == "barrier";
  }
  std::string library() const override { return "convoy"; }
  std::string transport() const override { return transport_; }
  std::string algorithm() const override { return "default"; }
  const Layout& layout() const override { return layout_; }
  void run(const Slot& slot) override {
    const comm::Buffer input = buffer_of(slot.input, layout_.input);
    const comm::Buffer output = buffer_of(slot.output, layout_.output_elements());
    if (size_.collective == "all_reduce") {
      comm::all_reduce(group_, slot.input, slot.input, size_.elements, size_.dtype);
    } else if (size_.collective == "reduce_scatter") {
      comm::reduce_scatter_async(group_, input, output, size_.dtype).wait();
    } else if (size_.collective == "all_gather") {
      const std::vector<std::int64_t> parts(static_cast<std::size_t>(size_.ranks), layout_.input);
      comm::all_gather_async(group_, input, output, parts, size_.dtype).wait();
    } else if (size_.collective == "broadcast") {
      comm::broadcast_async(group_, buffer_of(slot.input, size_.elements), 0, size_.dtype).wait();
    } else {
      comm::barrier(group_);
    }
  }

 private:
  comm::Group& group_;
  const std::string transport_;
  const plan::CollectiveSize size_;
  Layout layout_;
};

class PeerContender final : public Contender {
 public:
  PeerContender(Team& team, const plan::CollectiveSize& size, PeerLibrary& library, std::string algorithm)
      : library_(library), algorithm_(std::move(algorithm)) {
    layout_ = even_layout(size.collective, team.rank(), team.size(), size.elements);
    call_.op = size.collective;
    call_.dtype = size.dtype;
    call_.elements = size.elements;
  }
  std::string library() const override { return library_.name(); }
  std::string transport() const override { return library_.name(); }
  std::string algorithm() const override { return algorithm_; }
  const Layout& layout() const override { return layout_; }
  void run(const Slot& slot) override {
    call_.input = slot.input;
    call_.output = slot.output;
    library_.run(algorithm_, call_);
  }

 private:
  PeerLibrary& library_;
  const std::string algorithm_;
  Layout layout_;
  PeerCall call_;
};

// Adds up the buffers and stores the sums into all of them.
template <typename T>
[[gnu::always_inline]] inline void add_into(const std::vector<T*>& buffers, std::int64_t begin, std::int64_t end) {
  if (buffers.size() == 2) {
    T* const a = buffers[0];
    T* const b = buffers[1];
    for (std::int64_t i = begin; i < end; ++i) {
      const T sum = static_cast<T>(a[i] + b[i]);
      a[i] = sum;
      b[i] = sum;
    }
    return;
  }
  // A block at a time, so that the sum stays in the cache while it is stored.
  constexpr std::int64_t kBlock = 1024;
  T sums[kBlock];
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t count = std::min(kBlock, end - at);
    for (std::int64_t i = 0; i < count; ++i) sums[i] = buffers[0][at + i];
    for (std::size_t rank = 1; rank < buffers.size(); ++rank) {
      for (std::int64_t i = 0; i < count; ++i) sums[i] = static_cast<T>(sums[i] + buffers[rank][at + i]);
    }
    for (T* const buffer : buffers) std::copy_n(sums, count, buffer + at);
  }
}

CONVOY_SIMD_CLONES void add_all(const std::vector<float*>& buffers, std::int64_t begin, std::int64_t end) {
  add_into(buffers, begin, end);
}
CONVOY_SIMD_CLONES void add_all(const std::vector<double*>& buffers, std::int64_t begin, std::int64_t end) {
  add_into(buffers, begin, end);
}
CONVOY_SIMD_CLONES void add_all(const std::vector<std::int32_t*>& buffers, std::int64_t begin, std::int64_t end) {
  add_into(buffers, begin, end);
}
CONVOY_SIMD_CLONES void add_all(const std::vector<std::int64_t*>& buffers, std::int64_t begin, std::int64_t end) {
  add_into(buffers, begin, end);
}

class Limit final : public Contender {
 public:
  Limit(Team& team, const plan::CollectiveSize& size) : dtype_(size.dtype) {
    layout_ = even_layout("all_reduce", team.rank(), team.size(), size.elements);
    begin_ = size.elements * team.rank() / team.size();
    end_ = size.elements * (team.rank() + 1) / team.size();
  }
  std::string library() const override { return "limit"; }
  std::string transport() const override { return "memory"; }
  std::string algorithm() const override { return "copy_add"; }
  const Layout& layout() const override { return layout_; }
  void run(const Slot& slot) override {
    switch (dtype_) {
      case DType::kFloat32: return add<float>(slot);
      case DType::kFloat64: return add<double>(slot);
      case DType::kInt32: return add<std::int32_t>(slot);
      case DType::kInt64: return add<std::int64_t>(slot);
      default: throw Error(ErrorCode::kNotSupported, fmt::format("no sum of {} elements", to_string(dtype_)));
    }
  }

 private:
  template <typename T>
  void add(const Slot& slot) const {
    std::vector<T*> buffers;
    for (std::byte* const input : slot.all_inputs) buffers.push_back(reinterpret_cast<T*>(input));
    add_all(buffers, begin_, end_);
  }

  const DType dtype_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  Layout layout_;
};

}  // namespace

std::unique_ptr<Contender> make_our_contender(Team& team, const Request& request, const plan::CollectiveSize& size,
                                              const std::string& algorithm) {
  if (algorithm != "default") {
    const spec::CollectiveShape shape = size.shape(request.hosts, request.chunk_bytes);
    return std::make_unique<ScheduleContender>(team, request,
                                               algorithm == comm::kNative
                                                   ? comm::native_schedule(size.collective, shape)
                                                   : spec::build(size.collective, algorithm, shape));
  }
  if (DefaultContender::knows(size.collective)) return std::make_unique<DefaultContender>(team, request, size);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("a group has no function for {}: name an algorithm", size.collective));
}

std::unique_ptr<Contender> make_peer_contender(Team& team, const plan::CollectiveSize& size, PeerLibrary& library,
                                               const std::string& algorithm) {
  return std::make_unique<PeerContender>(team, size, library, algorithm);
}

std::unique_ptr<Contender> make_limit(Team& team, const plan::CollectiveSize& size) {
  return std::make_unique<Limit>(team, size);
}

}  // namespace convoy::bench
