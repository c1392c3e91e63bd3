// Images as a dataset: varied for training, normalised by the training part's mean and deviation of each channel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/records/dataset.h"
#include "convoy/records/images/augment.h"
#include "convoy/records/images/images.h"

namespace convoy::records {

/// Images, and how they become values.
/// Ownership:  owns the images
class ImageDataset final : public Dataset {
 public:
  /// Takes images, one normalisation for each channel, and the number of classes: at least the highest label + 1.
  /// Errors:     kInvalidArgument when pixels, labels or normalisations do not fit together, a shift would move whole
  ///             images out of sight, or a label is not among the classes (names file and image)
  ImageDataset(ImageSet images, std::vector<Normalisation> normalisation, const AugmentOptions& augment, int classes);

  std::int64_t count() const override { return images_.count; }
  std::vector<std::int64_t> sample_shape() const override { return {images_.channels, images_.rows, images_.columns}; }
  int classes() const override { return classes_; }
  std::int64_t label(std::int64_t sample) const override { return images_.labels[static_cast<std::size_t>(sample)]; }
  std::string key_of(std::int64_t sample) const override { return images_.key_of(sample); }
  std::string content_of(std::int64_t sample) const override;
  void prepare(std::int64_t sample, const SampleUse& use, std::span<float> out) const override;
  std::vector<std::string> class_names() const override;
  std::vector<SliceColumn> slices(std::span<const std::string> names,
                                  std::span<const std::int64_t> part) const override;

  /// Returns the images as they were read.
  const ImageSet& images() const { return images_; }
  /// Returns the normalisation of each channel.
  const std::vector<Normalisation>& normalisation() const { return normalisation_; }

 private:
  const ImageSet images_;
  const std::vector<Normalisation> normalisation_;
  const AugmentOptions augment_;
  const int classes_;
};

}  // namespace convoy::records
