// Bytes to elements, elements to shapes.
#include "convoy/plan/collective_size.h"

#include <algorithm>

namespace convoy::plan {

std::int64_t CollectiveSize::bytes() const { return elements * static_cast<std::int64_t>(element_bytes(dtype)); }

spec::CollectiveShape CollectiveSize::shape(const std::vector<int>& hosts, std::int64_t chunk_bytes) const {
  spec::CollectiveShape shape;
  shape.ranks = ranks;
  shape.elements = elements;
  shape.hosts = hosts;
  const auto width = static_cast<std::int64_t>(element_bytes(dtype));
  shape.options.chunk_elements = (chunk_bytes + width - 1) / width;
  return shape;
}

CollectiveSize collective_size(const std::string& collective, int ranks, std::int64_t bytes, DType dtype) {
  CollectiveSize size{collective, ranks, 0, dtype};
  if (collective == "barrier") return size;
  size.elements = std::max<std::int64_t>(1, bytes / static_cast<std::int64_t>(element_bytes(dtype)));
  const bool whole = collective == "all_reduce" || collective == "broadcast" || collective == "reduce";
  if (!whole) size.elements = (size.elements + ranks - 1) / ranks * ranks;
  return size;
}

double bus_factor(const std::string& collective, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  if (collective == "all_reduce") return 2 * share;
  return collective == "broadcast" || collective == "reduce" ? 1 : share;
}

}  // namespace convoy::plan
