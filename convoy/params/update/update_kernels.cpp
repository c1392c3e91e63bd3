#include "convoy/params/update/update_kernels.h"

#include <algorithm>
#include <cmath>

#include "convoy/base/simd.h"
#include "convoy/spec/blocks.h"

namespace convoy::params {
namespace {

template <typename T>
struct SgdNumbers {
  T count, clip, rate, momentum, keep, decay;
  SgdNumbers(const GradientScale& scale, const SgdCoefficients& c)
      : count(static_cast<T>(scale.count)),
        clip(static_cast<T>(scale.clip)),
        rate(static_cast<T>(c.rate)),
        momentum(static_cast<T>(c.momentum)),
        keep(static_cast<T>(1.0 - c.dampening)),
        decay(static_cast<T>(c.weight_decay)) {}
};

// always_inline: the loops must be compiled inside the functions that are cloned for each instruction set.
template <typename T>
[[gnu::always_inline]] inline void plain_sgd(T* w, const T* s, std::int64_t n, const SgdNumbers<T>& k) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = s[i] / k.count * k.clip + k.decay * w[i];
    w[i] -= k.rate * g;
  }
}

template <typename T>
[[gnu::always_inline]] inline void momentum_sgd(T* w, const T* s, T* m, std::int64_t n, const SgdNumbers<T>& k,
                                                bool nesterov, bool first) {
  const T old_share = first ? T(0) : k.momentum;
  const T new_share = first ? T(1) : k.keep;
  const T gradient_share = nesterov ? T(1) : T(0);
  const T momentum_share = nesterov ? k.momentum : T(1);
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = s[i] / k.count * k.clip + k.decay * w[i];
    m[i] = old_share * m[i] + new_share * g;
    w[i] -= k.rate * (gradient_share * g + momentum_share * m[i]);
  }
}

template <typename T>
[[gnu::always_inline]] inline void adam(T* w, const T* s, T* m, T* v, std::int64_t n, const GradientScale& scale,
                                        const AdamCoefficients& c) {
  const T count = static_cast<T>(scale.count);
  const T clip = static_cast<T>(scale.clip);
  const T beta1 = static_cast<T>(c.beta1);
  const T beta2 = static_cast<T>(c.beta2);
  const T new1 = static_cast<T>(1.0 - c.beta1);
  const T new2 = static_cast<T>(1.0 - c.beta2);
  const T epsilon = static_cast<T>(c.epsilon);
  const T added_decay = static_cast<T>(c.decoupled ? 0.0 : c.weight_decay);
  const T kept = static_cast<T>(c.decoupled ? 1.0 - c.rate * c.weight_decay : 1.0);
  const auto step = static_cast<double>(c.step);
  const T rate = static_cast<T>(c.rate / (1.0 - std::pow(c.beta1, step)));
  const T correction = static_cast<T>(std::sqrt(1.0 - std::pow(c.beta2, step)));
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = s[i] / count * clip + added_decay * w[i];
    m[i] = beta1 * m[i] + new1 * g;
    v[i] = beta2 * v[i] + new2 * g * g;
    w[i] = w[i] * kept - rate * m[i] / (std::sqrt(v[i]) / correction + epsilon);
  }
}

// Eight running sums, joined in a fixed order, so that the order does not depend on the width of registers.
template <typename T>
[[gnu::always_inline]] inline double block_square_sum(const T* values, std::int64_t n) {
  double lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      lanes[lane] += value * value;
    }
  }
  for (; i < n; ++i) lanes[i % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

CONVOY_SIMD_CLONES void sgd_f32(float* w, const float* s, std::int64_t n, const SgdNumbers<float>& k) {
  plain_sgd(w, s, n, k);
}
CONVOY_SIMD_CLONES void sgd_f64(double* w, const double* s, std::int64_t n, const SgdNumbers<double>& k) {
  plain_sgd(w, s, n, k);
}
CONVOY_SIMD_CLONES void momentum_f32(float* w, const float* s, float* m, std::int64_t n, const SgdNumbers<float>& k,
                                     bool nesterov, bool first) {
  momentum_sgd(w, s, m, n, k, nesterov, first);
}
CONVOY_SIMD_CLONES void momentum_f64(double* w, const double* s, double* m, std::int64_t n,
                                     const SgdNumbers<double>& k, bool nesterov, bool first) {
  momentum_sgd(w, s, m, n, k, nesterov, first);
}
CONVOY_SIMD_CLONES void adam_f32(float* w, const float* s, float* m, float* v, std::int64_t n,
                                 const GradientScale& scale, const AdamCoefficients& c) {
  adam(w, s, m, v, n, scale, c);
}
CONVOY_SIMD_CLONES void adam_f64(double* w, const double* s, double* m, double* v, std::int64_t n,
                                 const GradientScale& scale, const AdamCoefficients& c) {
  adam(w, s, m, v, n, scale, c);
}
CONVOY_SIMD_CLONES double square_f32(const float* values, std::int64_t n) { return block_square_sum(values, n); }
CONVOY_SIMD_CLONES double square_f64(const double* values, std::int64_t n) { return block_square_sum(values, n); }

double square_block(const float* values, std::int64_t n) { return square_f32(values, n); }
double square_block(const double* values, std::int64_t n) { return square_f64(values, n); }

}  // namespace

template <>
void sgd_update<float>(float* values, const float* sums, float* momentum, std::int64_t n, const GradientScale& scale,
                       const SgdCoefficients& c) {
  const SgdNumbers<float> numbers(scale, c);
  if (c.momentum == 0.0) return sgd_f32(values, sums, n, numbers);
  momentum_f32(values, sums, momentum, n, numbers, c.nesterov, c.first);
}

template <>
void sgd_update<double>(double* values, const double* sums, double* momentum, std::int64_t n,
                        const GradientScale& scale, const SgdCoefficients& c) {
  const SgdNumbers<double> numbers(scale, c);
  if (c.momentum == 0.0) return sgd_f64(values, sums, n, numbers);
  momentum_f64(values, sums, momentum, n, numbers, c.nesterov, c.first);
}

template <>
void adam_update<float>(float* values, const float* sums, float* first_moment, float* second_moment, std::int64_t n,
                        const GradientScale& scale, const AdamCoefficients& c) {
  adam_f32(values, sums, first_moment, second_moment, n, scale, c);
}

template <>
void adam_update<double>(double* values, const double* sums, double* first_moment, double* second_moment,
                         std::int64_t n, const GradientScale& scale, const AdamCoefficients& c) {
  adam_f64(values, sums, first_moment, second_moment, n, scale, c);
}

template <typename T>
void block_square_sums(const T* values, std::int64_t n, double* sums) {
  for (std::int64_t begin = 0; begin < n; begin += spec::kBlockElements) {
    *sums++ = square_block(values + begin, std::min(spec::kBlockElements, n - begin));
  }
}

template void block_square_sums<float>(const float*, std::int64_t, double*);
template void block_square_sums<double>(const double*, std::int64_t, double*);

}  // namespace convoy::params
