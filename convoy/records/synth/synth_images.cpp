// Images that a small network can learn and a mean image cannot tell apart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "convoy/base/error.h"
#include "convoy/base/random.h"
#include "convoy/records/images/cifar.h"
#include "convoy/records/images/idx.h"
#include "convoy/records/synth/synth.h"

namespace convoy::records {
namespace {

constexpr int kClasses = 10;
constexpr int kWaves = 4;

// A pattern: a sum of waves over the plane, between about -1 and 1.
struct Wave {
  double down, right, phase;
};
using Pattern = std::vector<Wave>;

// The patterns of all classes and channels of one seed.
std::vector<Pattern> make_patterns(std::int64_t channels, std::uint64_t seed) {
  RandomStream stream(StreamPurpose::kSynthesis, {seed, 0});
  std::vector<Pattern> patterns(static_cast<std::size_t>(kClasses * channels));
  for (Pattern& pattern : patterns) {
    for (int i = 0; i < kWaves; ++i) {
      const double down = 1.0 + 2.0 * stream.uniform();
      const double right = (1.0 + 2.0 * stream.uniform()) * (stream.below(2) == 0 ? 1.0 : -1.0);
      pattern.push_back({down, right, stream.uniform()});
    }
  }
  return patterns;
}

double value_at(const Pattern& pattern, double row, double column) {
  double sum = 0.0;
  for (const Wave& wave : pattern) {
    sum += std::cos(2.0 * std::numbers::pi * (wave.down * row + wave.right * column + wave.phase));
  }
  return sum / 2.0;
}

// Where and how strong a pattern lies in an image.
struct Placed {
  int pattern_class;
  double strength, down, right;
};

Placed place(int pattern_class, double least, double most, RandomStream& stream) {
  const double strength = least + (most - least) * stream.uniform();
  const double down = (stream.uniform() - 0.5) / 4.0;
  const double right = (stream.uniform() - 0.5) / 4.0;
  return {pattern_class, strength, down, right};
}

void draw_image(const std::vector<Pattern>& patterns, std::int64_t channels, std::int64_t side, std::int64_t number,
                std::uint64_t seed, ImageSet& set) {
  RandomStream stream(StreamPurpose::kSynthesis, {seed, 1, static_cast<std::uint64_t>(number)});
  const int label = static_cast<int>(stream.below(kClasses));
  const int other = (label + 1 + static_cast<int>(stream.below(kClasses - 1))) % kClasses;
  const Placed layers[2] = {place(label, 0.5, 1.0, stream), place(other, 0.0, 0.45, stream)};
  set.labels.push_back(static_cast<std::uint8_t>(label));
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t at = 0; at < side * side; ++at) {
      const double row = static_cast<double>(at / side) / static_cast<double>(side);
      const double column = static_cast<double>(at % side) / static_cast<double>(side);
      double value = 128.0 + 36.0 * stream.normal();
      for (const Placed& layer : layers) {
        const Pattern& pattern = patterns[static_cast<std::size_t>(layer.pattern_class * channels + channel)];
        value += 56.0 * layer.strength * value_at(pattern, row + layer.down, column + layer.right);
      }
      set.pixels.push_back(static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L)));
    }
  }
}

}  // namespace

ImageSet synth_images(std::int64_t channels, std::int64_t side, std::int64_t first, std::int64_t count,
                      std::uint64_t seed) {
  const std::vector<Pattern> patterns = make_patterns(channels, seed);
  ImageSet set;
  set.count = count;
  set.rows = set.columns = side;
  set.channels = channels;
  for (std::int64_t number = first; number < first + count; ++number) {
    draw_image(patterns, channels, side, number, seed, set);
  }
  return set;
}

std::vector<std::string> synth_idx(Files& files, const std::string& folder, const SynthOptions& options) {
  files.make_directories(folder);
  const auto write = [&](const std::string& part, std::int64_t first, std::int64_t count) {
    const std::string images = part + "-images-idx3-ubyte.gz";
    const std::string labels = part + "-labels-idx1-ubyte.gz";
    write_idx(files, synth_images(1, 28, first, count, options.seed), fmt::format("{}/{}", folder, images),
              fmt::format("{}/{}", folder, labels), IdxPacking::kGzip);
    return std::vector<std::string>{images, labels};
  };
  std::vector<std::string> names = write("train", 0, options.samples);
  for (std::string& name : write("t10k", options.samples, options.test)) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> synth_cifar10(Files& files, const std::string& folder, const SynthOptions& options) {
  write_cifar(files, folder, synth_images(3, 32, 0, options.samples, options.seed),
              synth_images(3, 32, options.samples, options.test, options.seed));
  return files.list(folder);
}

}  // namespace convoy::records
