// Lets all ranks learn of the failure of any of them.
#include "convoy/elastic/checkpoint/agree.h"

#include <fmt/format.h>

#include "convoy/base/error.h"

namespace convoy::elastic {

double reduce_or_throw(comm::Group& group, double value, ReduceOp reduce, const std::exception_ptr& own) {
  try {
    return comm::all_reduce_number(group, value, reduce);
  } catch (...) {
    if (own != nullptr) std::rethrow_exception(own);
    throw;
  }
}

void agree(comm::Group& group, const std::string& what, std::exception_ptr own) {
  const int failed = own != nullptr ? group.rank() : group.size();
  const double lowest = reduce_or_throw(group, failed, ReduceOp::kMin, own);
  if (own != nullptr) std::rethrow_exception(own);
  if (lowest >= group.size()) return;
  throw Error(ErrorCode::kAborted, fmt::format("rank {} failed while {}", static_cast<int>(lowest), what));
}

}  // namespace convoy::elastic
