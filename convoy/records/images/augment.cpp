// Shift, flip and normalisation of one image.
#include "convoy/records/images/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/base/error.h"
#include "convoy/base/random.h"

namespace convoy::records {

Variation draw_variation(const AugmentOptions& options, std::uint64_t seed, std::int64_t epoch, std::int64_t sample) {
  Variation variation;
  if (options.shift == 0 && !options.flip) return variation;
  RandomStream stream(StreamPurpose::kAugmentation,
                      {seed, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(sample)});
  // All is drawn whatever is switched on, the flip first, so that no option changes what another one draws.
  const bool flip = stream.below(2) == 1;
  const std::uint64_t places = 2 * static_cast<std::uint64_t>(options.shift) + 1;
  variation.down = static_cast<std::int64_t>(stream.below(places)) - options.shift;
  variation.right = static_cast<std::int64_t>(stream.below(places)) - options.shift;
  variation.flipped = options.flip && flip;
  return variation;
}

Normalisation::Normalisation(double mean, double deviation) : mean_(mean), deviation_(deviation) {
  if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation <= 0.0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("pixels cannot be normalised with mean {} and deviation {}", mean, deviation));
  }
  for (std::size_t pixel = 0; pixel < values_.size(); ++pixel) {
    values_[pixel] = static_cast<float>((static_cast<double>(pixel) - mean) / deviation);
  }
}

Normalisation measure_normalisation(const ImageSet& images, std::span<const std::int64_t> indexes,
                                    std::int64_t channel) {
  CONVOY_CHECK(channel >= 0 && channel < images.channels, "there is no such channel");
  const auto plane = static_cast<std::size_t>(images.rows * images.columns);
  if (indexes.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "an empty training part has no mean to normalise with");
  }
  __extension__ typedef unsigned __int128 Wide;
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;  // 65025 a pixel: enough for 2.8e14 pixels
  for (const std::int64_t index : indexes) {
    if (index < 0 || index >= images.count) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no image {} of {}", index, images.count));
    }
    std::uint64_t image_sum = 0;
    std::uint64_t image_squares = 0;
    for (const std::uint32_t pixel : images.image(index).subspan(static_cast<std::size_t>(channel) * plane, plane)) {
      image_sum += pixel;
      image_squares += pixel * pixel;
    }
    sum += image_sum;
    squares += image_squares;
  }
  const auto pixels = static_cast<std::uint64_t>(indexes.size()) * plane;
  const Wide spread = static_cast<Wide>(pixels) * squares - static_cast<Wide>(sum) * sum;
  const double count = static_cast<double>(pixels);
  const double deviation = std::sqrt(static_cast<double>(spread)) / count;
  return Normalisation(static_cast<double>(sum) / count, deviation > 0.0 ? deviation : 1.0);
}

void prepare_image(std::span<const std::uint8_t> image, std::int64_t rows, std::int64_t columns,
                   const Variation& variation, const Normalisation& normalisation, std::span<float> out) {
  const auto size = static_cast<std::size_t>(rows * columns);
  CONVOY_CHECK(image.size() == size && out.size() == size, "an image and its buffer must have rows x columns elements");
  if (variation == Variation{}) {
    std::transform(image.begin(), image.end(), out.begin(), normalisation);
    return;
  }
  std::fill(out.begin(), out.end(), normalisation(0));
  // The part of the result that the moved image covers; empty when it moves out of sight.
  const std::int64_t first_row = std::max<std::int64_t>(0, variation.down);
  const std::int64_t last_row = std::min(rows, rows + variation.down);
  const std::int64_t first_column = std::max<std::int64_t>(0, variation.right);
  const std::int64_t last_column = std::min(columns, columns + variation.right);
  for (std::int64_t row = first_row; row < last_row; ++row) {
    const std::uint8_t* source = image.data() + (row - variation.down) * columns;
    float* target = out.data() + row * columns;
    for (std::int64_t column = first_column; column < last_column; ++column) {
      const std::int64_t from = column - variation.right;
      target[column] = normalisation(source[variation.flipped ? columns - 1 - from : from]);
    }
  }
}

}  // namespace convoy::records
