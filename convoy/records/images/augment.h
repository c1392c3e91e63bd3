// What happens to an image on its way into a batch: a random shift and flip (training only), then normalisation.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "convoy/records/images/images.h"

namespace convoy::records {

/// How training images are varied. The default leaves them as they are.
struct AugmentOptions {
  /// Shifts by up to this many pixels each way, down and right alike; the border fills with zeros (black).
  std::int64_t shift = 0;
  /// Flips half of the images left to right.
  bool flip = false;
};

/// What was drawn for one image.
struct Variation {
  /// Pixels that the image moves down.
  std::int64_t down = 0;
  /// Pixels that the image moves right, after the flip.
  std::int64_t right = 0;
  /// Whether it is flipped left to right, before the shift.
  bool flipped = false;
  friend bool operator==(const Variation&, const Variation&) = default;
};

/// Draws the variation of one sample in one epoch. Its random stream belongs to the sample, so it is the same on
/// whatever rank and in whatever batch the sample is prepared; and the flip is the same whether shifts are on or off.
Variation draw_variation(const AugmentOptions& options, std::uint64_t seed, std::int64_t epoch, std::int64_t sample);

/// Turns pixels into floats of mean 0 and deviation 1 over the training part.
class Normalisation {
 public:
  /// Makes the map (pixel - mean) / deviation, with mean and deviation in pixels of 0 to 255.
  /// Errors:     kInvalidArgument unless the mean is finite and the deviation finite and positive
  Normalisation(double mean, double deviation);

  /// Returns the mean, in pixels.
  double mean() const { return mean_; }
  /// Returns the deviation, in pixels.
  double deviation() const { return deviation_; }
  /// Returns the value of a pixel.
  float operator()(std::uint8_t pixel) const { return values_[pixel]; }

 private:
  double mean_;
  double deviation_;
  std::array<float, 256> values_;
};

/// Returns the normalisation of one channel of the given images, usually the training part: never of validation or test
/// images.
/// Mean and deviation come from integer sums, so they are equal bit for bit however the list is ordered. Images of one
/// single colour get deviation 1.
/// Errors:     kInvalidArgument when the list is empty or names an image that is not there
Normalisation measure_normalisation(const ImageSet& images, std::span<const std::int64_t> indexes,
                                    std::int64_t channel = 0);

/// Writes one channel of an image, varied and normalised, into floats. Zeros that a shift brings in are normalised too.
/// Shapes:     image and out [rows, columns]
void prepare_image(std::span<const std::uint8_t> image, std::int64_t rows, std::int64_t columns,
                   const Variation& variation, const Normalisation& normalisation, std::span<float> out);

}  // namespace convoy::records
