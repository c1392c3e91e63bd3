#include "convoy/parallel/data/buckets.h"

namespace convoy::parallel {

std::vector<Bucket> make_buckets(const std::vector<std::size_t>& order, const std::vector<std::int64_t>& bytes,
                                 std::int64_t bucket_bytes) {
  std::vector<Bucket> buckets;
  bool open = false;
  for (const std::size_t slot : order) {
    if (!open) buckets.emplace_back();
    Bucket& bucket = buckets.back();
    bucket.slots.push_back(slot);
    bucket.bytes += bytes[slot];
    open = bucket.bytes < (buckets.size() == 1 ? bucket_bytes / 4 : bucket_bytes);
  }
  return buckets;
}

}  // namespace convoy::parallel
