// Link over Gloo's TCP transport. Facts about Gloo that shape this file (each met in its source or by a test):
// - A wait that runs into its own timeout breaks all pairs of the context, so waits here have none; who waits is woken
//   by abort() or by the end of the connection.
// - Gloo neither ignores SIGPIPE nor asks for MSG_NOSIGNAL. Its thread inherits the mask of the thread that makes it.
// - A frame that nobody posted a buffer for ends the process (a failed check in Gloo's own thread). Frames come only
//   from whoever connected first to a listening socket, which takes one connection and then closes.
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/comm/gloo/link.h"

namespace convoy::comm {
namespace {

// The tag of all messages: a pair delivers messages of one tag in order.
constexpr std::uint64_t kTag = 1;
// Longer than any group lives: see above.
constexpr std::chrono::milliseconds kNever = std::chrono::hours(24 * 365);

// Takes Gloo's own place in the source off the front of a message.
std::string plain(const std::string& text) {
  const auto end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

// Calls Gloo and turns what it throws into an Error.
template <typename Call>
auto guarded(Call&& call) {
  const SigpipeGuard no_sigpipe;
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kPeerLost, plain(error.what()));
  }
}

class GlooBuffer final : public LinkBuffer {
 public:
  explicit GlooBuffer(std::unique_ptr<gloo::transport::UnboundBuffer> buffer) : buffer_(std::move(buffer)) {}
  void send(int peer, std::size_t bytes) override {
    guarded([&] { buffer_->send(peer, kTag, 0, bytes); });
  }
  void receive(int peer) override {
    guarded([&] { buffer_->recv(peer, kTag, 0, buffer_->size); });
  }
  bool wait_received() override {
    return guarded([&] { return buffer_->waitRecv(nullptr, kNever); });
  }
  void wait_sent() override {
    guarded([&] { buffer_->waitSend(nullptr, kNever); });
  }
  void abort() override {
    buffer_->abortWaitRecv();
    buffer_->abortWaitSend();
  }

 private:
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

class GlooLink final : public Link {
 public:
  GlooLink(const std::string& host, int rank, int size, Duration connect_limit) : rank_(rank), size_(size) {
    const SigpipeGuard no_sigpipe;  // the device's thread inherits it
    gloo::transport::tcp::attr attributes;
    attributes.hostname = host;
    try {
      device_ = gloo::transport::tcp::CreateDevice(attributes);
      context_ = device_->createContext(rank, size);
      // Gloo waits five times its timeout for a connection.
      const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(connect_limit) / 5;
      context_->setTimeout(std::max(limit, std::chrono::milliseconds(1)));
      for (int peer = 0; peer < size; ++peer) {
        if (peer != rank) context_->createPair(peer);
      }
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kInvalidArgument, "cannot listen at '" + host + "': " + plain(error.what()));
    }
  }
  ~GlooLink() override { close(); }

  std::string address(int peer) const override {
    const std::vector<char> bytes = context_->getPair(peer)->address().bytes();
    return std::string(bytes.begin(), bytes.end());
  }
  void connect(int peer, const std::string& address) override {
    guarded([&] { context_->getPair(peer)->connect(std::vector<char>(address.begin(), address.end())); });
  }
  std::unique_ptr<LinkBuffer> buffer(void* memory, std::size_t bytes) override {
    return std::make_unique<GlooBuffer>(context_->createUnboundBuffer(memory, bytes));
  }
  void close() override {
    const SigpipeGuard no_sigpipe;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) context_->getPair(peer)->close();
    }
  }

 private:
  const int rank_;
  const int size_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
};

}  // namespace

bool has_gloo() { return true; }

std::unique_ptr<Link> make_link(const std::string& host, int rank, int size, Duration connect_limit) {
  return std::make_unique<GlooLink>(host, rank, size, connect_limit);
}

}  // namespace convoy::comm
