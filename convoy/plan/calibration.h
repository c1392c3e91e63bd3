// Calibration: what messages, sums and copies cost on this machine, as `convoy bench` measured it. The file's form is in
// docs/cli/bench.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/law/price.h"
#include "convoy/plan/link_fit.h"
#include "convoy/spec/recipe.h"

namespace convoy::plan {

/// Messages between two ranks over one transport.
struct LinkCalibration {
  /// The transport.
  std::string transport;
  /// Where messages lie: "shared" or "private".
  std::string buffers;
  /// How many ranks the job had.
  int ranks = 2;
  /// What a message costs, and how well that is known.
  LinkFit fit;
  /// When it was measured, UTC.
  std::string date;
};

/// A collective as it was measured.
struct CollectiveCalibration {
  /// The operation, the algorithm and the transport.
  std::string op, algorithm, transport;
  /// Where data lie: "shared" or "private".
  std::string buffers;
  /// How many ranks.
  int ranks = 2;
  /// Bytes of the operation.
  std::int64_t bytes = 0;
  /// Half of the measurements were at most this.
  double median_s = 0;
  /// 19 of 20 were at most this.
  double p95_s = 0;
};

/// What is known of one machine.
struct Calibration {
  /// The host's name, its processor and how many of these can be used.
  std::string host, cpu;
  /// How many processors can be used.
  int cores = 0;
  /// When it was last written, UTC.
  std::string date;
  /// Links by transport, ranks and buffers, each once.
  std::vector<LinkCalibration> links;
  /// Seconds a byte of a sum's second source, and of a copy; 0 when not measured.
  double gamma_s = 0, kappa_s = 0;
  /// Collectives, each once.
  std::vector<CollectiveCalibration> collectives;

  /// Replaces what is known of the same link, or adds it.
  void put(LinkCalibration link);
  /// Replaces what is known of the same collective, or adds it.
  void put(CollectiveCalibration collective);
  /// Returns what is known of a transport: measured with this many ranks, or else with the nearest number.
  const LinkCalibration* link(std::string_view transport, std::string_view buffers, int ranks) const;
};

/// Returns where the machine's calibration is kept: $XDG_CACHE_HOME/convoy/calibration.json, or below ~/.cache; ""
/// without a home.
std::string calibration_path();

/// Returns this machine, of which nothing is known yet.
Calibration this_machine();

/// Returns what a file says, or nothing when there is none.
/// Errors:     kCorrupt naming the file when it is no calibration
std::optional<Calibration> read_calibration(Files& files, const std::string& path);

/// Returns what the file says if it was measured on this machine; nothing when there is none or it is another one's.
/// Errors:     as read_calibration
std::optional<Calibration> read_own_calibration(Files& files, const std::string& path);

/// Writes the file, making its folder.
void write_calibration(Files& files, const std::string& path, const Calibration& calibration);

/// Returns the machine that prices are for: links of `transport` inside a host, and of gloo between hosts where that was
/// measured (else the same). Nothing when the transport was not measured.
std::optional<law::Machine> machine_of(const Calibration& calibration, std::string_view transport, int ranks);

/// Returns the machine that a recipe's run chooses algorithms by: the calibration, where there is one, with the links that
/// the recipe writes. Nothing when a link is neither measured nor written.
std::optional<law::Machine> machine_of(const std::optional<Calibration>& calibration, const spec::CommRecipe& comm,
                                       int ranks);

}  // namespace convoy::plan
