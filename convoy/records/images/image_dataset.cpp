// Prepares images and tells them apart.
#include "convoy/records/images/image_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/error.h"

namespace convoy::records {
namespace {

void check(bool condition, const std::string& message) {
  if (!condition) throw Error(ErrorCode::kInvalidArgument, message);
}

}  // namespace

ImageDataset::ImageDataset(ImageSet images, std::vector<Normalisation> normalisation, const AugmentOptions& augment,
                           int classes)
    : images_(std::move(images)), normalisation_(std::move(normalisation)), augment_(augment), classes_(classes) {
  check(images_.labels.size() == static_cast<std::size_t>(images_.count) &&
            images_.pixels.size() == static_cast<std::size_t>(images_.count * images_.image_size()),
        fmt::format("the image set lacks pixels or labels of its {} images", images_.count));
  check(static_cast<std::int64_t>(normalisation_.size()) == images_.channels,
        fmt::format("{} normalisations do not fit {} channels", normalisation_.size(), images_.channels));
  check(augment.shift >= 0 && augment.shift < std::min(images_.rows, images_.columns),
        fmt::format("data.shift = {} moves images of {} x {} out of sight", augment.shift, images_.rows,
                    images_.columns));
  for (std::int64_t i = 0; i < images_.count; ++i) {
    check(label(i) < classes_,
          fmt::format("{}: label {}, but the training set has only {} classes", key_of(i), label(i), classes_));
  }
}

std::string ImageDataset::content_of(std::int64_t sample) const {
  const auto image = images_.image(sample);
  std::string content(image.begin(), image.end());
  content += static_cast<char>(images_.labels[static_cast<std::size_t>(sample)]);
  return content;
}

void ImageDataset::prepare(std::int64_t sample, const SampleUse& use, std::span<float> out) const {
  Variation variation;
  if (use.training) variation = draw_variation(augment_, use.seed, use.epoch, use.draw);
  const auto image = images_.image(sample);
  const auto plane = static_cast<std::size_t>(images_.rows * images_.columns);
  for (std::size_t channel = 0; channel < normalisation_.size(); ++channel) {
    prepare_image(image.subspan(channel * plane, plane), images_.rows, images_.columns, variation,
                  normalisation_[channel], out.subspan(channel * plane, plane));
  }
}

std::vector<std::string> ImageDataset::class_names() const {
  return images_.class_names.empty() ? Dataset::class_names() : images_.class_names;
}

std::vector<SliceColumn> ImageDataset::slices(std::span<const std::string> names,
                                              std::span<const std::int64_t> part) const {
  for (const std::string& name : names) {
    check(name == kSourceFileSlice,
          fmt::format("data.slices: images have no column '{}', only \"{}\"", name, kSourceFileSlice));
  }
  if (images_.sources.empty() || (names.empty() && images_.sources.size() < 2)) return {};
  SliceColumn files{kSourceFileSlice, {}, {}};
  for (const ImageSource& source : images_.sources) files.values.push_back(source.name);
  for (const std::int64_t index : part) files.value_of.push_back(static_cast<std::int32_t>(images_.source_of(index)));
  return {std::move(files)};
}

}  // namespace convoy::records
