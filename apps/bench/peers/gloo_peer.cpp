// Gloo's own collectives over its TCP transport.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <utility>

#include "apps/bench/peers/peer_library.h"
#include "convoy/base/error.h"

namespace convoy::bench {
namespace {

// Gloo's rendezvous in the job's store.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(comm::Store& store, Duration limit) : store_(store), limit_(limit) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(kPrefix + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string text = store_.get(kPrefix + key, limit_);
    return {text.begin(), text.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) store_.get(kPrefix + key, limit_);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  inline static const std::string kPrefix = "bench/gloo/";
  comm::Store& store_;
  const Duration limit_;
};

template <typename Call>
auto guarded(Call&& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kPeerLost, std::string("Gloo: ") + error.what());
  }
}

template <typename T>
void all_reduce(const std::shared_ptr<gloo::Context>& context, const std::string& algorithm, const PeerCall& call) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(algorithm == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                            : gloo::AllreduceOptions::Algorithm::RING);
  options.setOutput(reinterpret_cast<T*>(call.input), static_cast<std::size_t>(call.elements));
  void (*const sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<T>;
  options.setReduceFunction(sum);
  gloo::allreduce(options);
}

template <typename T>
void reduce(const std::shared_ptr<gloo::Context>& context, const PeerCall& call, std::byte* everywhere) {
  gloo::ReduceOptions options(context);
  const auto elements = static_cast<std::size_t>(call.elements);
  options.setInput(reinterpret_cast<T*>(call.input), elements);
  // Gloo wants an output on every rank.
  options.setOutput(reinterpret_cast<T*>(everywhere), elements);
  options.setRoot(0);
  void (*const sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<T>;
  options.setReduceFunction(sum);
  gloo::reduce(options);
}

// Calls `body` with a value of the type.
template <typename Body>
void with_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kFloat32: return body(float{});
    case DType::kFloat64: return body(double{});
    case DType::kInt32: return body(std::int32_t{});
    case DType::kInt64: return body(std::int64_t{});
    default: throw Error(ErrorCode::kNotSupported, "Gloo is not measured with elements of this type");
  }
}

class Gloo final : public PeerLibrary {
 public:
  Gloo(comm::Store& store, int rank, int size, Duration timeout) : size_(size) {
    guarded([&] {
      gloo::transport::tcp::attr place("127.0.0.1");
      std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(place);
      auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
      context->setTimeout(std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
      GlooStore meeting(store, timeout);
      context->connectFullMesh(meeting, device);
      context_ = std::move(context);
    });
  }

  std::string name() const override { return "gloo"; }

  std::vector<std::string> algorithms(const std::string& op, DType dtype) const override {
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kInt32 && dtype != DType::kInt64) {
      return {};
    }
    if (op == "all_reduce") return {"ring", "bcube"};
    if (op == "all_gather" || op == "broadcast" || op == "reduce" || op == "all_to_all" || op == "barrier") {
      return {"native"};
    }
    return {};
  }

  void run(const std::string& algorithm, const PeerCall& call) override {
    guarded([&] {
      if (call.op == "barrier") {
        gloo::BarrierOptions options(context_);
        gloo::barrier(options);
        return;
      }
      with_type(call.dtype, [&]<typename T>(T) { run_typed<T>(algorithm, call); });
    });
  }

 private:
  template <typename T>
  void run_typed(const std::string& algorithm, const PeerCall& call) {
    const auto whole = static_cast<std::size_t>(call.elements);
    auto* const input = reinterpret_cast<T*>(call.input);
    auto* const output = reinterpret_cast<T*>(call.output);
    if (call.op == "all_reduce") {
      all_reduce<T>(context_, algorithm, call);
    } else if (call.op == "broadcast") {
      gloo::BroadcastOptions options(context_);
      options.setOutput(input, whole);
      options.setRoot(0);
      gloo::broadcast(options);
    } else if (call.op == "all_gather") {
      gloo::AllgatherOptions options(context_);
      options.setInput(input, whole / static_cast<std::size_t>(size_));
      options.setOutput(output, whole);
      gloo::allgather(options);
    } else if (call.op == "all_to_all") {
      gloo::AlltoallOptions options(context_);
      options.setInput(input, whole);
      options.setOutput(output, whole);
      gloo::alltoall(options);
    } else {
      if (scratch_.size() < whole * sizeof(T)) scratch_.resize(whole * sizeof(T));
      reduce<T>(context_, call, context_->rank == 0 ? call.output : scratch_.data());
    }
  }

  const int size_;
  std::shared_ptr<gloo::Context> context_;
  std::vector<std::byte> scratch_;
};

}  // namespace

bool has_gloo_library() { return true; }

std::unique_ptr<PeerLibrary> make_gloo_library(comm::Store& store, int rank, int size, Duration timeout) {
  return std::make_unique<Gloo>(store, rank, size, timeout);
}

}  // namespace convoy::bench
