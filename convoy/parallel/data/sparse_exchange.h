// The exchange of sparse gradients (of embeddings): ranks send the rows that their replicas touched, and no others.
//
// Each rank gets the rows of all replicas and adds them up along the canonical tree, so sums are those of dense gradients
// to the last bit (zeros count as +0).
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/params/update/divided_update.h"
#include "convoy/params/flat_space.h"
#include "convoy/spec/schedule/schedule.h"

namespace convoy::parallel {

/// Sums the sparse gradients of a step.
/// Threads:    one caller at a time
class SparseExchange {
 public:
  /// Ownership:  borrows space and group while it lives
  SparseExchange(const params::FlatSpace& space, comm::Group& group, const spec::OrderedLayout& layout);

  /// Forgets the last step's gradients.
  void begin_step() { parts_.clear(); }
  /// Takes the gradient of a parameter [rows, ...] from number `place` of the rank's replicas: a sparse tensor over rows,
  /// or a dense one.
  /// Errors:     kNotSupported naming the parameter when it is sparse in another way
  void take(std::size_t place, std::size_t slot, const torch::Tensor& gradient);
  /// Sums the gradients of `slots` over all replicas into the elements of `own` (slices of these parameters) in `sums`;
  /// elements of `own` in rows that nobody touched become 0.
  /// Collective: all ranks, with the same slots
  void run(const std::vector<std::size_t>& slots, const std::vector<params::FlatSlice>& own, const torch::Tensor& sums);
  /// Returns the values that this rank's replicas gave for a parameter.
  std::vector<torch::Tensor> values(std::size_t slot) const;

 private:
  // One replica's gradient: which rows, in order, and their values one after the other.
  struct Rows {
    std::vector<std::int64_t> indexes;
    torch::Tensor values;
  };
  // All replicas' gradients of one parameter: rows by replica.
  struct Gathered {
    std::vector<std::int64_t> counts;
    std::vector<std::int64_t> indexes;
    torch::Tensor values;
  };

  Gathered gather(std::size_t slot, std::span<const std::int64_t> counts);
  template <typename T>
  void sum(std::size_t slot, const Gathered& all, const std::vector<params::FlatSlice>& own, T* sums);

  const params::FlatSpace& space_;
  comm::Group& group_;
  const spec::OrderedLayout layout_;
  const spec::ReplicaRange range_;
  // By parameter, then by place of the replica.
  std::map<std::size_t, std::map<std::size_t, Rows>> parts_;
  // The rows that are not zero in `sums`, by parameter; a parameter that is not here may have any.
  std::map<std::size_t, std::vector<std::int64_t>> touched_;
};

}  // namespace convoy::parallel
