// Buckets: which gradients are exchanged together, and in which order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy::parallel {

/// The parameters of one bucket, by their number in the flat space, in the order of arrival.
struct Bucket {
  /// Numbers of parameters in the flat space, in the order of arrival.
  std::vector<std::size_t> slots;
  /// What they take together.
  std::int64_t bytes = 0;
};

/// Divides parameters into buckets. A bucket is closed once it holds at least `bucket_bytes`; the first is closed at a
/// quarter of that, so that the exchange starts early.
/// `order` lists the parameters as their gradients arrive; `bytes` has the size of each parameter.
/// More bytes per bucket: fewer messages, less overlap.
std::vector<Bucket> make_buckets(const std::vector<std::size_t>& order, const std::vector<std::int64_t>& bytes,
                                 std::int64_t bucket_bytes);

}  // namespace convoy::parallel
