// Agreement: a step that each rank does for itself, after which all ranks know whether it worked on all of them.
#pragma once

#include <exception>
#include <string>

#include "convoy/comm/group.h"

namespace convoy::elastic {

/// Does `work` on this rank and returns when it has worked on all ranks; `what` ends the sentence "while ...".
/// Collective: all ranks of the group
/// Errors:     what `work` threw on this rank; else kAborted naming the lowest rank on which it threw; what the group
///             throws when a rank is silent
template <typename Work>
void together(comm::Group& group, const std::string& what, Work work);

/// Waits for all ranks and throws as `together` does; `own` is null where this rank succeeded.
void agree(comm::Group& group, const std::string& what, std::exception_ptr own);

template <typename Work>
void together(comm::Group& group, const std::string& what, Work work) {
  std::exception_ptr own;
  try {
    work();
  } catch (...) {
    own = std::current_exception();
  }
  agree(group, what, own);
}

/// Combines one number of each rank; where that fails and this rank has an error of its own, the own one is thrown.
double reduce_or_throw(comm::Group& group, double value, ReduceOp reduce, const std::exception_ptr& own);

}  // namespace convoy::elastic
