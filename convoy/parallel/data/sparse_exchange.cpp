#include "convoy/parallel/data/sparse_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::parallel {
namespace {

std::int64_t row_elements(const params::ParameterSlot& slot) {
  return slot.shape.empty() || slot.shape[0] == 0 ? 0 : slot.elements / slot.shape[0];
}

// Calls f(first element of the row, first element of the flat space, how many) for the part of a row in each slice.
template <typename F>
void for_own_parts(const params::ParameterSlot& slot, std::size_t number, std::int64_t row, std::int64_t width,
                   const std::vector<params::FlatSlice>& own, const F& f) {
  const std::int64_t row_begin = slot.offset + row * width;
  for (const params::FlatSlice& slice : own) {
    if (slice.slot != number) continue;
    const std::int64_t begin = std::max(row_begin, slice.begin);
    const std::int64_t end = std::min(row_begin + width, slice.begin + slice.count);
    if (begin < end) f(begin - row_begin, begin, end - begin);
  }
}

// Sums one row over the replicas that have it along the canonical tree; null pointers stand for rows of zeros.
template <typename T>
class RowSum {
 public:
  RowSum(int replicas, std::int64_t width) : width_(static_cast<std::size_t>(width)) {
    std::vector<spec::ReplicaRange> leaves;
    for (int replica = 0; replica < replicas; ++replica) leaves.push_back({replica, replica + 1});
    program_ = spec::tree_program(replicas, leaves);
    stack_.resize(static_cast<std::size_t>(spec::stack_depth(program_)));
  }

  const std::vector<T>& operator()(const std::vector<const T*>& rows) {
    std::size_t depth = 0;
    for (const int step : program_) {
      if (step != spec::kAdd) {
        const T* const row = rows[static_cast<std::size_t>(step)];
        row == nullptr ? stack_[depth].assign(width_, T(0)) : stack_[depth].assign(row, row + width_);
        ++depth;
        continue;
      }
      --depth;
      for (std::size_t i = 0; i < width_; ++i) stack_[depth - 1][i] += stack_[depth][i];
    }
    return stack_.front();
  }

 private:
  const std::size_t width_;
  std::vector<int> program_;
  std::vector<std::vector<T>> stack_;
};

}  // namespace

SparseExchange::SparseExchange(const params::FlatSpace& space, comm::Group& group, const spec::OrderedLayout& layout)
    : space_(space), group_(group), layout_(layout), range_(layout.owners[static_cast<std::size_t>(group.rank())]) {}

void SparseExchange::take(std::size_t place, std::size_t slot, const torch::Tensor& gradient) {
  const params::ParameterSlot& parameter = space_.slots()[slot];
  const torch::Tensor sparse = (gradient.is_sparse() ? gradient : gradient.to_sparse(1)).coalesce();
  if (sparse.sparse_dim() != 1) {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("the gradient of '{}' is sparse in {} dimensions: only rows are exchanged sparsely",
                            parameter.name, sparse.sparse_dim()));
  }
  const torch::Tensor indexes = sparse.indices().contiguous();
  Rows rows;
  rows.indexes.assign(indexes.data_ptr<std::int64_t>(), indexes.data_ptr<std::int64_t>() + indexes.numel());
  rows.values = sparse.values().contiguous();
  parts_[slot][place] = std::move(rows);
}

std::vector<torch::Tensor> SparseExchange::values(std::size_t slot) const {
  std::vector<torch::Tensor> found;
  const auto parts = parts_.find(slot);
  if (parts == parts_.end()) return found;
  for (const auto& [place, rows] : parts->second) found.push_back(rows.values);
  return found;
}

void SparseExchange::run(const std::vector<std::size_t>& slots, const std::vector<params::FlatSlice>& own,
                         const torch::Tensor& sums) {
  if (slots.empty()) return;
  // How many rows each replica has of each parameter; every number is filled by one rank.
  const auto replicas = static_cast<std::size_t>(layout_.leaves);
  std::vector<std::int64_t> counts(slots.size() * replicas, 0);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    for (const auto& [place, rows] : parts_[slots[i]]) {
      counts[i * replicas + static_cast<std::size_t>(range_.begin) + place] = static_cast<std::int64_t>(rows.indexes.size());
    }
  }
  comm::all_reduce(group_, counts.data(), counts.data(), static_cast<std::int64_t>(counts.size()), DType::kInt64);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Gathered all = gather(slots[i], std::span(counts).subspan(i * replicas, replicas));
    if (space_.dtype() == DType::kFloat32) {
      sum<float>(slots[i], all, own, sums.data_ptr<float>());
    } else {
      sum<double>(slots[i], all, own, sums.data_ptr<double>());
    }
  }
}

SparseExchange::Gathered SparseExchange::gather(std::size_t slot, std::span<const std::int64_t> counts) {
  const std::int64_t width = row_elements(space_.slots()[slot]);
  Gathered all;
  all.counts.assign(counts.begin(), counts.end());
  std::vector<std::int64_t> rows_of_rank;
  std::vector<std::int64_t> elements_of_rank;
  for (const spec::ReplicaRange& owner : layout_.owners) {
    rows_of_rank.push_back(std::accumulate(counts.begin() + owner.begin, counts.begin() + owner.end, std::int64_t{0}));
    elements_of_rank.push_back(rows_of_rank.back() * width);
  }
  const std::int64_t rows = std::accumulate(rows_of_rank.begin(), rows_of_rank.end(), std::int64_t{0});
  all.indexes.resize(static_cast<std::size_t>(rows));
  all.values = torch::empty({rows * width}, space_.values().options());
  std::vector<comm::Extent> own_indexes;
  std::vector<comm::Extent> own_values;
  for (auto& [place, part] : parts_[slot]) {
    own_indexes.push_back({reinterpret_cast<std::byte*>(part.indexes.data()), static_cast<std::int64_t>(part.indexes.size())});
    own_values.push_back({static_cast<std::byte*>(part.values.data_ptr()), part.values.numel()});
  }
  std::vector<comm::Work> works;
  works.push_back(comm::all_gather_async(group_, comm::Buffer(std::move(own_indexes)),
                                         comm::Buffer(std::span<std::int64_t>(all.indexes)), rows_of_rank, DType::kInt64));
  works.push_back(comm::all_gather_async(
      group_, comm::Buffer(std::move(own_values)),
      comm::Buffer({comm::Extent{static_cast<std::byte*>(all.values.data_ptr()), all.values.numel()}}), elements_of_rank,
      space_.dtype()));
  comm::wait_all(works);
  return all;
}

template <typename T>
void SparseExchange::sum(std::size_t slot, const Gathered& all, const std::vector<params::FlatSlice>& own, T* sums) {
  const params::ParameterSlot& parameter = space_.slots()[slot];
  const std::int64_t width = row_elements(parameter);
  const auto clear = [sums](std::int64_t, std::int64_t at, std::int64_t n) { std::fill_n(sums + at, n, T(0)); };
  const auto before = touched_.find(slot);
  if (before == touched_.end()) {
    for (const params::FlatSlice& slice : own) {
      if (slice.slot == slot) clear(0, slice.begin, slice.count);
    }
  } else {
    for (const std::int64_t row : before->second) for_own_parts(parameter, slot, row, width, own, clear);
  }
  // Rows in order, each with its replicas: (row, replica, where its values are).
  std::vector<std::tuple<std::int64_t, int, const T*>> rows;
  const T* values = all.values.data_ptr<T>();
  std::size_t at = 0;
  for (std::size_t replica = 0; replica < all.counts.size(); ++replica) {
    for (std::int64_t i = 0; i < all.counts[replica]; ++i, values += width) {
      rows.emplace_back(all.indexes[at++], static_cast<int>(replica), values);
    }
  }
  std::sort(rows.begin(), rows.end());
  RowSum<T> row_sum(layout_.leaves, width);
  std::vector<std::int64_t>& touched = touched_[slot];
  touched.clear();
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::int64_t row = std::get<0>(rows[begin]);
    std::vector<const T*> of_replica(static_cast<std::size_t>(layout_.leaves), nullptr);
    for (; begin < rows.size() && std::get<0>(rows[begin]) == row; ++begin) {
      of_replica[static_cast<std::size_t>(std::get<1>(rows[begin]))] = std::get<2>(rows[begin]);
    }
    touched.push_back(row);
    const std::vector<T>& total = row_sum(of_replica);
    for_own_parts(parameter, slot, row, width, own, [&](std::int64_t from, std::int64_t to, std::int64_t n) {
      std::copy_n(total.begin() + from, n, sums + to);
    });
  }
}

}  // namespace convoy::parallel
