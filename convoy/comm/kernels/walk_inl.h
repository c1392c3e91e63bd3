// The kernels' loop for one element type, compiled once for each instruction set (see Highway's foreach_target.h).
#if defined(CONVOY_COMM_KERNELS_WALK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVOY_COMM_KERNELS_WALK_INL_H
#undef CONVOY_COMM_KERNELS_WALK_INL_H
#else
#define CONVOY_COMM_KERNELS_WALK_INL_H
#endif

#include <hwy/cache_control.h>

#include "convoy/comm/kernels/operations_inl.h"
#include "convoy/comm/kernels/steps.h"
#include "convoy/comm/kernels/vectors_inl.h"

HWY_BEFORE_NAMESPACE();
namespace convoy::comm::kernels {
namespace HWY_NAMESPACE {

/// The length of a cache's line in bytes.
inline constexpr std::size_t kLine = 64;

/// Above so many steps, elements are worked on in panels.
inline constexpr std::size_t kManySteps = 3;

/// How many elements a panel has.
inline constexpr std::size_t kPanel = 512;

/// Returns what a step takes, `at` bytes beyond the first element.
template <class G, class Op, class D>
HWY_INLINE G take(D d, const Step& step, std::size_t at, Take what) {
  const G first = G::read(d, step.from[0] + at);
  if (what == Take::kOne) return first;
  const G pair = first.template with<Op>(G::read(d, step.from[1] + at));
  if (what == Take::kPair) return pair;
  const G second = G::read(d, step.from[2] + at);
  return pair.template with<Op>(second.template with<Op>(G::read(d, step.from[3] + at)));
}

/// Returns the value of all steps, `at` bytes beyond the first element.
template <class G, class Op, class D, typename Lane>
HWY_INLINE G evaluate(D d, std::span<const Step> steps, std::size_t at, Lane* stack) {
  const std::size_t slot = G::kVectors * hn::Lanes(d);
  G top = take<G, Op>(d, steps[0], at, steps[0].take);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.put == Put::kJoin) {
      stack -= slot;
      top = G::load(d, stack).template with<Op>(top);
      continue;
    }
    const G taken = take<G, Op>(d, step, at, step.take);
    if (step.put == Put::kFold) {
      top = top.template with<Op>(taken);
    } else {
      top.store(d, stack);
      stack += slot;
      top = taken;
    }
  }
  return top;
}

/// Divides a value where it has to be, and hands it to the target.
template <class E, class G, class D>
HWY_INLINE void finish(D d, G value, const Reduction& reduction, std::size_t at) {
  if constexpr (hwy::IsFloat<typename E::Lane>()) {
    if (reduction.divisor != 1) value = value.divided(hn::Set(d, static_cast<typename E::Lane>(reduction.divisor)));
  }
  if (reduction.stream) {
    value.stream(d, reduction.target + at);
    if (reduction.also != nullptr) value.stream(d, reduction.also + at);
  } else {
    value.write(d, reduction.target + at);
    if (reduction.also != nullptr) value.write(d, reduction.also + at);
  }
}

/// Returns how many bytes lie before an element.
template <class E>
HWY_INLINE std::size_t offset_of(std::int64_t element) {
  return static_cast<std::size_t>(element) * E::kBytes;
}

/// Loops over one step that takes several sources, the commonest reduction: nothing is decided inside the loop.
/// Returns the first element that is left.
template <class E, class G, class Op, Take what, class D>
HWY_INLINE std::int64_t walk_one_step(D d, const Reduction& reduction, std::int64_t begin) {
  const Step step = reduction.steps[0];
  const auto turn = static_cast<std::int64_t>(G::kVectors * hn::Lanes(d));
  for (; begin + turn <= reduction.count; begin += turn) {
    const std::size_t at = offset_of<E>(begin);
    finish<E>(d, take<G, Op>(d, step, at, what), reduction, at);
  }
  return begin;
}

/// Loops over any steps. Returns the first element that is left, `end` or one near it.
template <class E, class G, class Op, class D>
HWY_INLINE std::int64_t walk(D d, const Reduction& reduction, std::int64_t begin, std::int64_t end) {
  HWY_ALIGN typename E::Lane stack[static_cast<std::size_t>(kMaxDepth) * G::kVectors * hn::MaxLanes(D())];
  const auto turn = static_cast<std::int64_t>(G::kVectors * hn::Lanes(d));
  for (; begin + turn <= end; begin += turn) {
    const std::size_t at = offset_of<E>(begin);
    finish<E>(d, evaluate<G, Op>(d, reduction.steps, at, stack), reduction, at);
  }
  return begin;
}

/// Reads what a step takes for a whole panel, and stores it at `top` or combines it with what lies there.
template <class E, class G, class Op, Take what, class D>
HWY_INLINE void take_panel(D d, const Step& given, std::size_t at, typename E::Lane* top) {
  const Step step = given;
  constexpr std::size_t kTurn = G::kVectors * hn::MaxLanes(D());
  for (std::size_t i = 0; i < kPanel; i += kTurn) {
    const G taken = take<G, Op>(d, step, at + i * E::kBytes, what);
    if (step.put == Put::kFold) {
      G::load(d, top + i).template with<Op>(taken).store(d, top + i);
    } else {
      taken.store(d, top + i);
    }
  }
}

/// Loops over many sources, a panel of elements at a time: too many sources side by side are slow to read, so each is
/// read for a stretch, and what is open lies in the nearest cache. Returns the first element that is left.
template <class E, class G, class Op, class D>
HWY_INLINE std::int64_t walk_panels(D d, const Reduction& reduction, std::int64_t begin) {
  HWY_ALIGN typename E::Lane stack[static_cast<std::size_t>(kMaxDepth) * kPanel];
  constexpr std::size_t kTurn = G::kVectors * hn::MaxLanes(D());
  for (; begin + static_cast<std::int64_t>(kPanel) <= reduction.count; begin += static_cast<std::int64_t>(kPanel)) {
    const std::size_t at = offset_of<E>(begin);
    typename E::Lane* top = stack;
    for (std::size_t k = 0; k < reduction.steps.size(); ++k) {
      const Step& step = reduction.steps[k];
      if (step.put == Put::kJoin) {
        top -= kPanel;
        for (std::size_t i = 0; i < kPanel; i += kTurn) {
          G::load(d, top + i).template with<Op>(G::load(d, top + kPanel + i)).store(d, top + i);
        }
        continue;
      }
      if (step.put == Put::kPush && k > 0) top += kPanel;
      if (step.take == Take::kOne) take_panel<E, G, Op, Take::kOne>(d, step, at, top);
      if (step.take == Take::kPair) take_panel<E, G, Op, Take::kPair>(d, step, at, top);
      if (step.take == Take::kQuad) take_panel<E, G, Op, Take::kQuad>(d, step, at, top);
    }
    for (std::size_t i = 0; i < kPanel; i += kTurn) {
      finish<E>(d, G::load(d, stack + i), reduction, at + i * E::kBytes);
    }
  }
  return begin;
}

/// Reduces all elements: four vectors at a time, then one, then one element.
template <class E, class Op>
HWY_NOINLINE void walk_all(const Reduction& given) {
  const hn::ScalableTag<typename E::Lane> wide;
  const hn::CappedTag<typename E::Lane, 1> narrow;
  using Four = Fourfold<E, decltype(wide)>;
  using One = Single<E, decltype(narrow)>;
  Reduction reduction = given;
  std::int64_t done = 0;
  if (given.stream) {
    // Stores past the caches begin at a whole line.
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(given.target) % kLine;
    const bool alike = given.also == nullptr || reinterpret_cast<std::uintptr_t>(given.also) % kLine == beyond;
    reduction.stream = beyond % E::kBytes == 0 && alike;
    const auto head = static_cast<std::int64_t>((kLine - beyond) % kLine / E::kBytes);
    if (reduction.stream) done = walk<E, One, Op>(narrow, reduction, 0, head < given.count ? head : given.count);
  }
  if (reduction.steps.size() > kManySteps) {
    done = walk_panels<E, Four, Op>(wide, reduction, done);
    done = walk<E, Four, Op>(wide, reduction, done, reduction.count);
  } else if (reduction.steps.size() > 1) {
    done = walk<E, Four, Op>(wide, reduction, done, reduction.count);
  } else if (reduction.steps[0].take == Take::kPair) {
    done = walk_one_step<E, Four, Op, Take::kPair>(wide, reduction, done);
  } else if (reduction.steps[0].take == Take::kQuad) {
    done = walk_one_step<E, Four, Op, Take::kQuad>(wide, reduction, done);
  } else {
    done = walk_one_step<E, Four, Op, Take::kOne>(wide, reduction, done);
  }
  done = walk<E, Single<E, decltype(wide)>, Op>(wide, reduction, done, reduction.count);
  walk<E, One, Op>(narrow, reduction, done, reduction.count);
  if (reduction.stream) hwy::FlushStream();
}

/// Reduces elements of kind E.
template <class E>
HWY_INLINE void reduce_as(const Reduction& reduction) {
  switch (reduction.reduce) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return walk_all<E, Sum>(reduction);
    case ReduceOp::kMin: return walk_all<E, Min>(reduction);
    case ReduceOp::kMax: return walk_all<E, Max>(reduction);
    case ReduceOp::kProduct: return walk_all<E, Product>(reduction);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convoy::comm::kernels
HWY_AFTER_NAMESPACE();

#endif
