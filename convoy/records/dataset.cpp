// What datasets have in common.
#include "convoy/records/dataset.h"

namespace convoy::records {

std::vector<std::string> Dataset::class_names() const {
  std::vector<std::string> names;
  for (int i = 0; i < classes(); ++i) names.push_back(std::to_string(i));
  return names;
}

std::int64_t Dataset::sample_elements() const {
  std::int64_t elements = 1;
  for (const std::int64_t size : sample_shape()) elements *= size;
  return elements;
}

}  // namespace convoy::records
