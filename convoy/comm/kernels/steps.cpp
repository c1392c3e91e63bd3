// Groups a program: pairs and quads of sources are taken at once, so that balanced trees need few stack slots or none.
#include "convoy/comm/kernels/steps.h"

#include <fmt/format.h>

#include <array>

#include "convoy/base/error.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::comm::kernels {
namespace {

// A value of the program that is open: not yet combined with another one. While it waits it is a step that takes up to
// four sources; once a step has been written for it, it is on the kernels' stack.
struct Open {
  bool written = false;
  Step step;
};

class Grouping {
 public:
  explicit Grouping(std::size_t program_length) { steps_.reserve(program_length); }

  void push(const std::byte* source) {
    if (depth_ == kMaxDepth) {
      throw Error(ErrorCode::kNotSupported, fmt::format("a reduction with more than {} open values", kMaxDepth));
    }
    open_[depth_++] = Open{false, Step{Take::kOne, Put::kPush, {source, nullptr, nullptr, nullptr}}};
  }

  void combine() {
    Open& upper = open_[depth_ - 1];
    Open& lower = open_[depth_ - 2];
    --depth_;
    if (!lower.written && !upper.written && lower.step.take == upper.step.take && lower.step.take != Take::kQuad) {
      if (lower.step.take == Take::kPair) {
        lower.step.from[2] = upper.step.from[0];
        lower.step.from[3] = upper.step.from[1];
        lower.step.take = Take::kQuad;
      } else {
        lower.step.from[1] = upper.step.from[0];
        lower.step.take = Take::kPair;
      }
      return;
    }
    // The upper value may be written only if all below it were: they were, or are now.
    write_all();
    if (upper.written) {
      steps_.push_back(Step{});
    } else {
      upper.step.put = Put::kFold;
      steps_.push_back(upper.step);
    }
  }

  std::vector<Step> finish() {
    write_all();
    return std::move(steps_);
  }

  std::size_t depth() const { return depth_; }

 private:
  void write_all() {
    for (std::size_t i = 0; i < depth_; ++i) {
      if (!open_[i].written) steps_.push_back(open_[i].step);
      open_[i].written = true;
    }
  }

  std::array<Open, kMaxDepth> open_;
  std::size_t depth_ = 0;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> steps_of(std::span<const int> program, std::span<const std::byte* const> sources) {
  Grouping grouping(program.size());
  for (const int step : program) {
    const bool adds = step == spec::kAdd;
    CONVOY_CHECK(adds ? grouping.depth() >= 2 : step >= 0 && static_cast<std::size_t>(step) < sources.size(),
                 "a reduction's program takes what is there");
    if (adds) {
      grouping.combine();
    } else {
      grouping.push(sources[static_cast<std::size_t>(step)]);
    }
  }
  CONVOY_CHECK(grouping.depth() == 1, "a reduction's program leaves one value");
  return grouping.finish();
}

}  // namespace convoy::comm::kernels
