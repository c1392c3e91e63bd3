#include "convoy/eval/confusion_matrix.h"

#include <fmt/format.h>

#include <numeric>

#include "convoy/base/error.h"

namespace convoy::eval {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(int classes) : classes_(classes) {
  if (classes < 1) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("a confusion matrix of {} classes", classes));
  }
  counts_.assign(static_cast<std::size_t>(classes) * static_cast<std::size_t>(classes), 0);
}

std::size_t ConfusionMatrix::place(std::int64_t truth, std::int64_t predicted) const {
  for (const std::int64_t number : {truth, predicted}) {
    if (number >= 0 && number < classes_) continue;
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} class {} is not among 0 to {}",
                                                         number == truth ? "true" : "predicted", number, classes_ - 1));
  }
  return static_cast<std::size_t>(truth * classes_ + predicted);
}

void ConfusionMatrix::add(std::int64_t truth, std::int64_t predicted, std::int64_t samples) {
  counts_[place(truth, predicted)] += samples;
}

void ConfusionMatrix::merge(const ConfusionMatrix& other) {
  if (other.classes_ != classes_) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("confusion matrices of {} and {} classes cannot be merged", classes_, other.classes_));
  }
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

std::int64_t ConfusionMatrix::count(int truth, int predicted) const { return counts_[place(truth, predicted)]; }

std::int64_t ConfusionMatrix::samples() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

double ConfusionMatrix::accuracy() const {
  std::int64_t right = 0;
  for (int i = 0; i < classes_; ++i) right += count(i, i);
  return ratio(right, samples());
}

ClassRates ConfusionMatrix::rates(int of_class) const {
  const std::int64_t right = count(of_class, of_class);
  std::int64_t predicted = 0;
  ClassRates rates;
  for (int other = 0; other < classes_; ++other) {
    rates.support += count(of_class, other);
    predicted += count(other, of_class);
  }
  rates.precision = ratio(right, predicted);
  rates.recall = ratio(right, rates.support);
  rates.f1 = ratio(2 * right, predicted + rates.support);
  return rates;
}

double ConfusionMatrix::macro_f1() const {
  double sum = 0.0;
  for (int i = 0; i < classes_; ++i) sum += rates(i).f1;
  return sum / classes_;
}

}  // namespace convoy::eval
