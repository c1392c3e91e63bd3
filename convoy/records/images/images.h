// Labelled images in memory, and where the official training and test sets are found.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "convoy/base/files.h"

namespace convoy::records {

/// A file that images came from.
struct ImageSource {
  /// Its name, without folders.
  std::string name;
  /// The first of the set's images that is from this file.
  std::int64_t first = 0;
};

/// Images of one size with a label each.
struct ImageSet {
  /// How many images there are.
  std::int64_t count = 0;
  /// The height of each image.
  std::int64_t rows = 0;
  /// The width of each image.
  std::int64_t columns = 0;
  /// The images one after the other, channel by channel, each row by row from the top.
  /// Shapes:     [count, channels, rows, columns]
  std::vector<std::uint8_t> pixels;
  /// The label of each image.
  std::vector<std::uint8_t> labels;
  /// Colours of each pixel: 1 for grey, 3 for red, green and blue.
  std::int64_t channels = 1;
  /// The files that the images came from, in order; may be empty.
  std::vector<ImageSource> sources = {};
  /// What the classes are called; may be empty.
  std::vector<std::string> class_names = {};

  /// Returns how many bytes one image has.
  std::int64_t image_size() const { return channels * rows * columns; }
  /// Returns one image; the caller keeps the index inside [0, count).
  std::span<const std::uint8_t> image(std::int64_t index) const {
    return std::span(pixels).subspan(static_cast<std::size_t>(index * image_size()),
                                     static_cast<std::size_t>(image_size()));
  }
  /// Returns the highest label + 1. A part of the set may lack a class, so a run asks its whole training set.
  int classes() const;
  /// Returns which of `sources` an image came from; 0 when there are none.
  std::size_t source_of(std::int64_t index) const;
  /// Returns an image's file and its number there, for example "train-images-idx3-ubyte image 17".
  std::string key_of(std::int64_t index) const;
};

/// Where Debian's package dataset-fashion-mnist puts its files: the folder that "" stands for.
inline constexpr const char* kDefaultImageFolder = "/usr/share/datasets/fashion-mnist";

/// Reads the official training set from a folder: train-images-idx3-ubyte and train-labels-idx1-ubyte, plain or .gz.
/// Errors:     kInvalidArgument naming the folder and the file that it lacks, and whatever read_idx finds wrong
/// Cost:       unpacks everything: about 0.3 s for the 60,000 images of Fashion-MNIST, 47 MB kept
ImageSet load_train(Files& files, const std::string& folder);

/// Reads the official test set: t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte. Touched once, when training is over.
/// Errors:     as load_train
ImageSet load_test(Files& files, const std::string& folder);

/// Returns a digest (xxh3-128) of the unpacked images and labels: equal for the plain and the packed form of a set.
std::string digest(const ImageSet& images);

}  // namespace convoy::records
