// The picture of a step: what every rank does when, as text for a terminal and as an SVG file.
//
// Passes stand in the proportion of their samples, a backward pass twice as long as the forward one; everything else is drawn
// large enough to be seen. So the picture shows order, waiting and who waits for whom. How long a step takes is measured.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/spec/document/step_story.h"

namespace convoy::spec {

/// What a bar stands for: a forward pass, a backward pass, several passes of both kinds, a bucket from its launch until its
/// sum is there; waiting for the slowest rank, waiting for buckets; the exchange of facts, the norm, the update, the
/// barrier.
enum class BarKind {
  kForward,
  kBackward,
  kPasses,
  kBucket,
  kWaitSlowest,
  kWaitBuckets,
  kFacts,
  kNorm,
  kUpdate,
  kBarrier
};

/// Returns a kind's name: "forward", "wait_slowest" ...
std::string_view to_string(BarKind kind);

/// One bar of the picture.
struct PictureBar {
  /// What it stands for.
  BarKind kind = BarKind::kForward;
  /// From where to where, in the unit of the picture's length.
  double begin = 0.0, end = 0.0;
  /// Forward, backward: the replica. Passes: how many. Bucket: its number, counted from 1. Otherwise 0.
  int number = 0;
};

/// One rank of the picture.
struct PictureRow {
  /// The rank.
  int rank = 0;
  /// What its own thread does, and what the thread does that exchanges buckets; each in order, without overlaps.
  std::vector<PictureBar> own, exchange;
};

/// A step drawn.
struct StepPicture {
  /// What is shown.
  std::string title;
  /// The ranks; of many the first and the last.
  std::vector<PictureRow> rows;
  /// How many ranks there are.
  int ranks = 0;
  /// Where the last bar ends.
  double length = 0.0;
  /// How many buckets there are, as far as known, and how many of them one bar stands for.
  int buckets = 0, buckets_a_bar = 1;
};

/// Draws a step.
StepPicture draw_step(const StepStory& story);

/// Returns the picture as text of about so many columns, with a legend of what occurs in it.
std::string picture_text(const StepPicture& picture, int columns = 96);

/// Returns the picture as an SVG file that needs nothing else.
std::string picture_svg(const StepPicture& picture);

/// Returns whether a file's text is such a picture.
bool is_step_svg(std::string_view text);

/// Returns {length, rows: [{rank, own: [{kind, begin, end, number}], exchange}]}.
nlohmann::ordered_json to_json(const StepPicture& picture);

}  // namespace convoy::spec
