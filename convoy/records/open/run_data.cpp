// Opens the data of a run by its format.
#include "convoy/records/open/run_data.h"

#include <algorithm>
#include <numeric>

#include "convoy/base/error.h"
#include "convoy/records/images/cifar.h"
#include "convoy/records/images/image_dataset.h"
#include "convoy/records/open/open_table.h"

namespace convoy::records {
namespace {

std::vector<std::int64_t> all_of(const Dataset& dataset) {
  std::vector<std::int64_t> indexes(static_cast<std::size_t>(dataset.count()));
  std::iota(indexes.begin(), indexes.end(), 0);
  return indexes;
}

RunData open_images(const spec::DataRecipe& recipe, Files& files, const std::string& record_path, bool may_write) {
  const bool cifar = recipe.format == "cifar10";
  ImageSet images = cifar ? load_cifar_train(files, recipe.path) : load_train(files, recipe.path);
  const SplitOptions options = split_options(recipe, images.count);
  if (options.kind != SplitKind::kOfficial || options.test != 0) {
    throw Error(ErrorCode::kInvalidArgument, "data.split: image files have the split official, and test files");
  }
  Split split = divide(files, record_path, may_write, options, digest(images));
  std::vector<Normalisation> normalisation;
  for (std::int64_t channel = 0; channel < images.channels; ++channel) {
    normalisation.push_back(measure_normalisation(images, split.training, channel));
  }
  const int classes = cifar ? kCifarClasses : images.classes();
  auto training_set = std::make_shared<ImageDataset>(std::move(images), normalisation,
                                                     AugmentOptions{recipe.shift, recipe.flip}, classes);
  const auto open_test = [&files, path = recipe.path, normalisation, classes, cifar] {
    ImageSet test = cifar ? load_cifar_test(files, path) : load_test(files, path);
    const auto dataset = std::make_shared<ImageDataset>(std::move(test), normalisation, AugmentOptions{}, classes);
    return DataPart{dataset, all_of(*dataset)};
  };
  return {std::move(training_set), std::move(split), open_test};
}

}  // namespace

RunData::RunData(std::shared_ptr<const Dataset> training_set, Split split, std::function<DataPart()> open_test)
    : training_set_(std::move(training_set)), split_(std::move(split)), open_test_(std::move(open_test)) {}

const DataPart& RunData::test() {
  if (!test_.dataset) test_ = open_test_();
  return test_;
}

SplitOptions split_options(const spec::DataRecipe& recipe, std::int64_t samples) {
  SplitOptions options;
  options.samples = samples;
  options.validation = recipe.validation;
  options.limit = recipe.limit;
  options.seed = static_cast<std::uint64_t>(recipe.split_seed);
  options.test = recipe.test;
  options.kind = to_split_kind(recipe.split);
  return options;
}

Split divide(Files& files, const std::string& record_path, bool may_write, const SplitOptions& options,
             const std::string& source_digest, const SplitKeys& keys) {
  const bool recorded = !record_path.empty() && files.exists(record_path);
  if (!recorded && (record_path.empty() || !may_write)) return make_split(options, keys);
  return load_or_make_split(files, record_path, options, source_digest, keys);
}

RunData open_data(const spec::DataRecipe& recipe, Files& files, const std::string& record_path, bool may_write) {
  if (recipe.format == "csv") return open_table(recipe, files, record_path, may_write);
  RunData data = open_images(recipe, files, record_path, may_write);
  data.training_set().slices(recipe.slices, {});  // refuses unknown names before anything is trained
  return data;
}

}  // namespace convoy::records
