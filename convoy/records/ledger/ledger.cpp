// The writer of ledger files, and the numbering of generations.
#include "convoy/records/ledger/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/error.h"
#include "convoy/records/ledger/ledger_file.h"

namespace convoy::records {
namespace {

void check_header(const LedgerHeader& header) {
  if (makes_sense(header)) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("there can be no ledger of generation {} for rank {} of {} (replicas: {}) after step {} of "
                          "generation {}",
                          header.generation, header.rank, header.ranks,
                          header.owners.empty() ? "even" : spec::describe_owners(header.owners), header.parent.step,
                          header.parent.generation));
}

}  // namespace

LedgerWriter::LedgerWriter(Files& files, const std::string& run_dir, const LedgerHeader& header)
    : files_(files), header_(header) {
  check_header(header);
  steps_per_epoch_ = spec::SamplePlan(header.plan).steps_per_epoch();
  const std::string folder = ledger_folder(run_dir);
  path_ = fmt::format("{}/{}", folder, ledger_file_name(header.generation, header.rank));
  if (files.exists(path_)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} is there already: generation {} belongs to another run", path_, header.generation));
  }
  files.make_directories(folder);
  add_line(header_body(header, steps_per_epoch_));
  const std::string_view line = pending_;
  files.write(path_, std::span(&line, 1));
  pending_.clear();
}

void LedgerWriter::add_line(const std::string& body) {
  CONVOY_CHECK(!finished_, "nothing may be added to a ledger after its end line");
  chain_ = chain_hash(chain_, body);
  pending_ += seal_line(body, chain_);
}

// Runs a change of the file. After a failure half a line may be there, so nothing must ever follow it.
template <typename Change>
void LedgerWriter::change(Change change) {
  if (broken_) throw Error(ErrorCode::kIo, fmt::format("{} could not be written earlier", path_));
  broken_ = true;
  change();
  broken_ = false;
}

void LedgerWriter::append(std::int64_t step, int replica, std::span<const std::int64_t> samples) {
  add_line(entry_body(step, step / steps_per_epoch_, replica, samples));
}

void LedgerWriter::commit() {
  change([this] {
    if (!pending_.empty()) files_.append(path_, pending_);
    pending_.clear();
  });
}

void LedgerWriter::sync() {
  change([this] { files_.sync(path_); });
}

void LedgerWriter::finish(std::int64_t steps) {
  add_line(end_body(steps));
  finished_ = true;
  commit();
  sync();
}

int next_generation(Files& files, const std::string& run_dir) {
  int newest = 0;
  for (const std::string& name : files.list(ledger_folder(run_dir))) {
    const auto parts = try_ledger_name(name);
    if (parts) newest = std::max(newest, parts->generation);
  }
  return newest + 1;
}

}  // namespace convoy::records
