// A text of each rank: its host's identity, and in the last line the machine.
#include "convoy/comm/rendezvous/topology_exchange.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <sstream>
#include <vector>

#include "convoy/comm/shared_memory/peer_process.h"

namespace convoy::comm {
namespace {

constexpr const char* kTopic = "topology";

// With as many digits as reading the same numbers back needs: all ranks shall compute the same prices.
std::string to_text(const std::optional<law::Machine>& machine) {
  if (!machine) return "";
  return fmt::format("{:.17g} {:.17g} {:.17g} {:.17g} {:.17g} {:.17g}", machine->inside.alpha_s, machine->inside.beta_s,
                     machine->between.alpha_s, machine->between.beta_s, machine->gamma_s, machine->kappa_s);
}

std::optional<law::Machine> machine_from(const std::string& text) {
  law::Machine machine;
  std::istringstream stream(text);
  stream >> machine.inside.alpha_s >> machine.inside.beta_s >> machine.between.alpha_s >> machine.between.beta_s >>
      machine.gamma_s >> machine.kappa_s;
  if (!stream) return std::nullopt;
  return machine;
}

}  // namespace

std::string host_identity() {
  std::array<char, 256> network{};
  const auto length = ::readlink("/proc/self/ns/net", network.data(), network.size());
  return host_memory() + " " + std::string(network.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

void TopologyExchange::settle(Store& store, SelectionOptions& selection) const {
  const Deadline deadline(system_clock(), meeting_.limit);
  const std::string own = host_identity() + "\n" + to_text(selection.machine);
  const std::vector<std::string> texts = meeting_.exchange(store, kTopic, own, deadline);
  std::vector<std::string> hosts;
  for (const std::string& text : texts) hosts.push_back(text.substr(0, text.rfind('\n')));
  if (selection.hosts.empty()) selection.hosts = spec::number_hosts(hosts);
  selection.machine = machine_from(texts.front().substr(texts.front().rfind('\n') + 1));
}

void TopologyExchange::leave(Store& store) const noexcept { meeting_.leave(store, kTopic); }

}  // namespace convoy::comm
