// Turns started ranks into a group.
#include "convoy/comm/rendezvous/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include "convoy/base/log.h"
#include "convoy/comm/engine/selection.h"
#include "convoy/comm/gloo/gloo_transport.h"
#include "convoy/comm/in_process_transport.h"
#include "convoy/comm/meeting.h"
#include "convoy/comm/openmpi/mpi_link.h"
#include "convoy/comm/openmpi/openmpi_transport.h"
#include "convoy/comm/rendezvous/host_port.h"
#include "convoy/comm/rendezvous/sockets.h"
#include "convoy/comm/rendezvous/store_client.h"
#include "convoy/comm/rendezvous/store_server.h"
#include "convoy/comm/rendezvous/topology_exchange.h"
#include "convoy/comm/shared_memory/peer_process.h"
#include "convoy/comm/shared_memory/shared_memory_transport.h"

namespace convoy::comm {
namespace {

constexpr Duration kOthersLeave = std::chrono::seconds(30);
constexpr Duration kOthersFail = std::chrono::seconds(2);
constexpr Duration kLook = std::chrono::milliseconds(10);
constexpr std::size_t kMostChunkBytes = std::size_t{16} << 20;

// A store that this rank serves to the others; it is the last to leave.
class ServedStore final : public Store {
 public:
  ServedStore(const std::string& token, const std::string& address) : server_(token, address) {}
  ~ServedStore() override {
    // Who fails does not wait for ranks that may be gone.
    const Deadline deadline(system_clock(), std::uncaught_exceptions() > 0 ? kOthersFail : kOthersLeave);
    while (server_.clients() > 0 && !deadline.expired()) system_clock().sleep_for(kLook);
    if (server_.clients() > 0) log_warning("the store at {} ends before all ranks have left it", server_.address());
  }
  void set(const std::string& key, const std::string& value) override { server_.store().set(key, value); }
  std::string get(const std::string& key, Duration limit) override { return server_.store().get(key, limit); }
  std::optional<std::string> try_get(const std::string& key) override { return server_.store().try_get(key); }
  std::int64_t add(const std::string& key, std::int64_t delta) override { return server_.store().add(key, delta); }
  void remove(const std::string& key) override { server_.store().remove(key); }

 private:
  StoreServer server_;
};

void check_one_host(Store& store, const Meeting& meeting) {
  const Deadline deadline(system_clock(), meeting.limit);
  const std::string own = host_name() + "\n" + host_memory();
  const std::vector<std::string> all = meeting.exchange(store, "host", own, deadline);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all.front()) continue;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("shared memory needs all ranks on one host, but rank 0 is on '{}' and rank {} on '{}': set "
                    "comm.transport to \"gloo\"",
                    all.front().substr(0, all.front().find('\n')), rank, all[rank].substr(0, all[rank].find('\n'))));
  }
}

std::unique_ptr<Transport> make_shared_memory(const JobEnvironment& job, Store& store, const GroupOptions& options) {
  // A unix-domain socket has brought them together already, so they are on one host.
  if (job.store_address.starts_with(kTcpPrefix)) {
    check_one_host(store, Meeting{options.name, options.generation, job.rank, job.world_size, options.timeout});
  }
  SharedMemoryOptions shared;
  shared.group = options.name;
  shared.generation = options.generation;
  shared.limit = options.timeout;
  return make_shared_memory_transport(store, job.rank, job.world_size, shared);
}

std::size_t chunk_bytes_of(const GroupOptions& options) {
  return std::min(std::max<std::size_t>(static_cast<std::size_t>(options.chunk_bytes), 8), kMostChunkBytes);
}

std::unique_ptr<Transport> make_gloo(const JobEnvironment& job, Store& store, const GroupOptions& options,
                                     const std::vector<std::string>& interfaces) {
  GlooOptions gloo;
  gloo.group = options.name;
  gloo.generation = options.generation;
  gloo.limit = options.timeout;
  gloo.interfaces = interfaces;
  if (interfaces.empty() && job.store_address.starts_with(kTcpPrefix)) {
    const HostPort place = HostPort::parse(std::string_view(job.store_address).substr(kTcpPrefix.size()));
    gloo.interfaces.push_back(local_address_towards(place.host));
  }
  gloo.chunk_bytes = chunk_bytes_of(options);
  return make_gloo_transport(store, job.rank, job.world_size, gloo);
}

std::unique_ptr<Transport> make_openmpi(const JobEnvironment& job, Store& store, const GroupOptions& options) {
  OpenMpiOptions mpi;
  mpi.group = options.name;
  mpi.generation = options.generation;
  mpi.limit = options.timeout;
  mpi.chunk_bytes = chunk_bytes_of(options);
  return make_openmpi_transport(store, job.rank, job.world_size, mpi);
}

// Before anybody waits for other ranks.
void check_transport(const std::string& name, const JobEnvironment& job) {
  if (name == "openmpi") check_started_by_mpi(job.rank, job.world_size);
  if (name == "shared_memory" || name == "gloo" || name == "openmpi") return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("there is no transport '{}': there are shared_memory, gloo and openmpi", name));
}

std::unique_ptr<Transport> make_transport(const JobEnvironment& job, Store& store, const GroupOptions& options,
                                          const TransportChoice& transport) {
  if (transport.name == "shared_memory") return make_shared_memory(job, store, options);
  if (transport.name == "gloo") return make_gloo(job, store, options, transport.interfaces);
  return make_openmpi(job, store, options);
}

}  // namespace

std::unique_ptr<Store> connect_store(const JobEnvironment& job, Duration limit) {
  if (job.store_address.empty() && job.world_size == 1) return std::make_unique<MemoryStore>();
  if (job.serves_store) return std::make_unique<ServedStore>(job.token, job.store_address);
  return std::make_unique<StoreClient>(job.store_address, job.token, limit);
}

std::unique_ptr<Group> join_group(const JobEnvironment& job, Store& store, const GroupOptions& wanted,
                                  const TransportChoice& transport) {
  GroupOptions options = wanted;
  const char* const recorder = std::getenv("CONVOY_RECORDER");
  if (options.recorder_folder.empty() && recorder != nullptr) options.recorder_folder = recorder;
  check_selection(options.selection, job.world_size);
  if (job.world_size == 1) return make_group(std::move(make_in_process_transports(1).front()), options);
  check_transport(transport.name, job);
  if (transport.name == "shared_memory" && options.selection.hosts.empty()) {
    options.selection.machine.reset();  // on one host nobody looks at it, so the ranks need not agree on it
    return make_group(make_transport(job, store, options, transport), options);
  }
  const TopologyExchange topology({options.name, options.generation, job.rank, job.world_size, options.timeout});
  topology.settle(store, options.selection);
  auto made = make_transport(job, store, options, transport);
  topology.leave(store);
  return make_group(std::move(made), options);
}

}  // namespace convoy::comm
