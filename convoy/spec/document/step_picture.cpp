// Lays the bars out, then paints them: letters into columns, or rectangles.
#include "convoy/spec/document/step_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace convoy::spec {
namespace {

using Json = nlohmann::ordered_json;

// How many ranks are drawn at each end of the list.
constexpr std::size_t kShownRanks = 4;
// With more passes than this on a rank, all but the last are one bar, which is drawn at most as long as so many.
constexpr std::int64_t kShownPasses = 8;
constexpr double kMergedPasses = 6.0;
// A bar for each of so many buckets; with more buckets a bar stands for several.
constexpr int kShownBuckets = 9;
// Drawn when nobody knows how many buckets there are.
constexpr int kUnknownBuckets = 3;

// Lengths beside those of the longest rank's passes.
constexpr double kAllBuckets = 0.10;
constexpr double kFacts = 0.04;
constexpr double kNorm = 0.03;
constexpr double kUpdate = 0.12;
constexpr double kBarrier = 0.02;

struct KindLook {
  BarKind kind;
  std::string_view name;
  char letter;
  std::string_view colour;
  std::string_view legend;
};

constexpr KindLook kLooks[] = {
    {BarKind::kForward, "forward", 'F', "#7fb3d5", "forward pass of a replica"},
    {BarKind::kBackward, "backward", 'B', "#2e6f9e", "backward pass"},
    {BarKind::kPasses, "passes", '~', "#5691ba", "several passes, forward and backward, drawn shorter than they are"},
    {BarKind::kBucket, "bucket", '#', "#e59866", "buckets, each from its launch until its sum is there"},
    {BarKind::kWaitSlowest, "wait_slowest", '.', "#e8e8e8", "waits for the slowest rank (wait_slowest)"},
    {BarKind::kWaitBuckets, "wait_buckets", '-', "#f6ddcc", "waits for buckets"},
    {BarKind::kFacts, "facts", 'E', "#f4d03f", "exchange of facts"},
    {BarKind::kNorm, "norm", 'N', "#c39bd3", "norm and check"},
    {BarKind::kUpdate, "update", 'U', "#58a55c", "update"},
    {BarKind::kBarrier, "barrier", '|', "#444444", "barrier"},
};

const KindLook& look_of(BarKind kind) {
  return *std::find_if(std::begin(kLooks), std::end(kLooks),
                       [kind](const KindLook& look) { return look.kind == kind; });
}

// The samples of the rank's last replica's last micro-batch, under whose backward buckets are launched.
std::int64_t last_samples(const StepStory& story, const RankShare& share) {
  const std::int64_t samples = even_part(story.samples, story.work.replicas, share.replicas.end - 1);
  for (std::int64_t i = story.accumulation; i-- > 0;) {
    if (const std::int64_t size = even_part(samples, story.accumulation, i); size > 0) return size;
  }
  return 0;
}

// How much shorter than it is the bar of merged passes is drawn: the same on all ranks, so that waiting shows.
double merged_scale(const StepStory& story) {
  double longest = 0;
  std::int64_t last = 0;
  for (const RankShare& share : story.work.ranks) {
    if (share.replicas.size() * story.accumulation <= kShownPasses) continue;
    longest = std::max(longest, static_cast<double>(share.samples - last_samples(story, share)));
    last = std::max(last, last_samples(story, share));
  }
  return longest > 0 ? std::min(1.0, kMergedPasses * static_cast<double>(last) / longest) : 1.0;
}

// A rank's passes; a sample's forward is 1 long, its backward 2.
std::vector<PictureBar> passes_of(const StepStory& story, const RankShare& share, double merged) {
  std::vector<PictureBar> bars;
  double at = 0;
  const auto add = [&](BarKind kind, double length, int number) {
    if (length > 0) bars.push_back({kind, at, at + length, number});
    at += length;
  };
  const auto pass = [&](std::int64_t samples, int replica) {
    add(BarKind::kForward, static_cast<double>(samples), replica);
    add(BarKind::kBackward, 2.0 * static_cast<double>(samples), replica);
  };
  const std::int64_t passes = share.replicas.size() * story.accumulation;
  if (passes > kShownPasses) {
    const std::int64_t last = last_samples(story, share);
    add(BarKind::kPasses, merged * 3.0 * static_cast<double>(share.samples - last), static_cast<int>(passes - 1));
    pass(last, share.replicas.end - 1);
    return bars;
  }
  const auto size_of = [&](int replica, std::int64_t i) {
    return even_part(even_part(story.samples, story.work.replicas, replica), story.accumulation, i);
  };
  if (!story.lockstep) {
    for (int replica = share.replicas.begin; replica < share.replicas.end; ++replica) {
      for (std::int64_t i = 0; i < story.accumulation; ++i) pass(size_of(replica, i), replica);
    }
    return bars;
  }
  // In truth they take turns at each meeting inside a pass.
  for (std::int64_t i = 0; i < story.accumulation; ++i) {
    for (const auto& [kind, length] : {std::pair(BarKind::kForward, 1.0), std::pair(BarKind::kBackward, 2.0)}) {
      for (int replica = share.replicas.begin; replica < share.replicas.end; ++replica) {
        add(kind, length * static_cast<double>(size_of(replica, i)), replica);
      }
    }
  }
  return bars;
}

double end_of(const std::vector<PictureBar>& bars) { return bars.empty() ? 0.0 : bars.back().end; }

// The share of the gradient that each drawn bucket has.
std::vector<double> bucket_shares(const StepStory& story, int a_bar) {
  if (story.buckets.empty()) return std::vector<double>(kUnknownBuckets, 1.0 / kUnknownBuckets);
  std::vector<double> shares;
  for (std::size_t i = 0; i < story.buckets.size(); ++i) {
    if (i % static_cast<std::size_t>(a_bar) == 0) shares.push_back(0.0);
    shares.back() += static_cast<double>(story.buckets[i]) / static_cast<double>(story.parameters);
  }
  return shares;
}

// When each of a rank's buckets is launched: with overlap as the last backward pass has made its gradients.
std::vector<double> launches_of(const StepStory& story, const RankShare& share,
                                const std::vector<double>& bucket_shares, double backward_ends) {
  const double backward = 2.0 * static_cast<double>(last_samples(story, share));
  std::vector<double> launches;
  double done = 0;
  for (const double bucket : bucket_shares) {
    done += bucket;
    launches.push_back(story.overlap ? backward_ends - backward * std::max(0.0, 1.0 - done) : backward_ends);
  }
  return launches;
}

// Draws buckets on all rows, and returns when the last sum is there: a bucket moves when all ranks have launched it.
double draw_buckets(const StepStory& story, StepPicture& picture, double longest, double merged) {
  const std::vector<double> shares = bucket_shares(story, picture.buckets_a_bar);
  std::vector<double> all_launched(shares.size(), 0.0);
  std::vector<std::vector<double>> launches;
  for (const RankShare& share : story.work.ranks) {
    launches.push_back(launches_of(story, share, shares, end_of(passes_of(story, share, merged))));
    for (std::size_t b = 0; b < shares.size(); ++b) all_launched[b] = std::max(all_launched[b], launches.back()[b]);
  }
  double finished = 0;
  for (std::size_t b = 0; b < shares.size(); ++b) {
    const double before = finished;
    finished = std::max(all_launched[b], finished) + kAllBuckets * longest * shares[b];
    for (PictureRow& row : picture.rows) {
      const double launched = launches[static_cast<std::size_t>(row.rank)][b];
      row.exchange.push_back({BarKind::kBucket, std::max(launched, before), finished, static_cast<int>(b) + 1});
    }
  }
  return finished;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

void paint(std::string& line, const PictureBar& bar, double scale) {
  const KindLook& look = look_of(bar.kind);
  const auto begin = static_cast<std::size_t>(std::lround(bar.begin * scale));
  const auto end = std::max(begin + 1, static_cast<std::size_t>(std::lround(bar.end * scale)));
  if (line.size() < end) line.resize(end, ' ');
  const bool bucket = bar.kind == BarKind::kBucket;
  std::fill(line.begin() + static_cast<std::ptrdiff_t>(begin), line.begin() + static_cast<std::ptrdiff_t>(end),
            bucket ? static_cast<char>('0' + bar.number) : look.letter);
  if (bar.kind != BarKind::kForward) return;
  const std::string number = fmt::to_string(bar.number);
  if (number.size() < end - begin) line.replace(begin, number.size(), number);
}

std::vector<BarKind> kinds_in(const StepPicture& picture) {
  std::vector<BarKind> kinds;
  for (const KindLook& look : kLooks) {
    const auto has = [&look](const std::vector<PictureBar>& bars) {
      return std::any_of(bars.begin(), bars.end(), [&look](const PictureBar& bar) { return bar.kind == look.kind; });
    };
    if (std::any_of(picture.rows.begin(), picture.rows.end(),
                    [&has](const PictureRow& row) { return has(row.own) || has(row.exchange); })) {
      kinds.push_back(look.kind);
    }
  }
  return kinds;
}

std::string bar_words(const StepPicture& picture, const PictureBar& bar) {
  const std::string name(look_of(bar.kind).name);
  switch (bar.kind) {
    case BarKind::kForward:
    case BarKind::kBackward: return fmt::format("{}, replica {}", name, bar.number);
    case BarKind::kPasses: return fmt::format("{} passes, forward and backward", bar.number);
    case BarKind::kBucket: {
      if (picture.buckets_a_bar == 1) return fmt::format("bucket {}", bar.number);
      const int first = (bar.number - 1) * picture.buckets_a_bar + 1;
      return fmt::format("buckets {} to {}", first, std::min(picture.buckets, first + picture.buckets_a_bar - 1));
    }
    default: return std::string(look_of(bar.kind).legend);
  }
}

std::string buckets_words(const StepPicture& picture) {
  if (picture.buckets == 0) return "; drawn as 3, since their number is not known";
  return picture.buckets_a_bar == 1
             ? ""
             : fmt::format("; a bar stands for up to {} of {}", picture.buckets_a_bar, picture.buckets);
}

std::string rank_gap_words(const StepPicture& picture) {
  return fmt::format("... {} more ranks ...", static_cast<std::size_t>(picture.ranks) - picture.rows.size());
}

bool follows_gap(const StepPicture& picture, std::size_t row) {
  return row > 0 && picture.rows[row].rank != picture.rows[row - 1].rank + 1;
}

Json bars_json(const std::vector<PictureBar>& bars) {
  Json json = Json::array();
  for (const PictureBar& bar : bars) {
    json.push_back(
        {{"kind", std::string(to_string(bar.kind))}, {"begin", bar.begin}, {"end", bar.end}, {"number", bar.number}});
  }
  return json;
}

}  // namespace

std::string_view to_string(BarKind kind) { return look_of(kind).name; }

StepPicture draw_step(const StepStory& story) {
  StepPicture picture;
  const std::vector<RankShare>& shares = story.work.ranks;
  picture.ranks = static_cast<int>(shares.size());
  picture.title = fmt::format("One step of {} on {} rank{}", story.task, shares.size(), shares.size() == 1 ? "" : "s");
  picture.buckets = static_cast<int>(story.buckets.size());
  picture.buckets_a_bar = std::max(1, (picture.buckets + kShownBuckets - 1) / kShownBuckets);
  const double merged = merged_scale(story);
  double longest = 0;
  for (const RankShare& share : shares) longest = std::max(longest, end_of(passes_of(story, share, merged)));
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    if (rank == kShownRanks && shares.size() > 2 * kShownRanks) rank = shares.size() - kShownRanks;
    picture.rows.push_back({static_cast<int>(rank), passes_of(story, shares[rank], merged), {}});
  }
  const bool alone = shares.size() == 1;
  const double gathered = alone ? longest : draw_buckets(story, picture, longest, merged);
  for (PictureRow& row : picture.rows) {
    double at = end_of(row.own);
    const auto until = [&](BarKind kind, double end) {
      if (end > at) row.own.push_back({kind, at, end, 0});
      at = std::max(at, end);
    };
    until(BarKind::kWaitSlowest, longest);
    until(BarKind::kWaitBuckets, gathered);
    if (!alone) until(BarKind::kFacts, at + kFacts * longest);
    until(BarKind::kNorm, at + kNorm * longest);
    const RankShare& share = shares[static_cast<std::size_t>(row.rank)];
    const auto together = std::count_if(shares.begin(), shares.end(),
                                        [&share](const RankShare& other) { return other.host == share.host; });
    const bool divided = story.update != UpdateDivision::kNone;
    until(BarKind::kUpdate, at + kUpdate * longest / (divided ? static_cast<double>(together) : 1.0));
    picture.length = std::max(picture.length, at);
  }
  if (story.update == UpdateDivision::kNone) return picture;
  // On a host with fewer ranks the shares are longer: the barrier waits for all of them.
  picture.length += kBarrier * longest;
  for (PictureRow& row : picture.rows) row.own.push_back({BarKind::kBarrier, end_of(row.own), picture.length, 0});
  return picture;
}

std::string picture_text(const StepPicture& picture, int columns) {
  const double scale = picture.length > 0 ? columns / picture.length : 0.0;
  const std::size_t digits = fmt::to_string(picture.ranks - 1).size();
  std::string text;
  for (std::size_t i = 0; i < picture.rows.size(); ++i) {
    const PictureRow& row = picture.rows[i];
    if (follows_gap(picture, i)) text += rank_gap_words(picture) + "\n";
    std::string own;
    std::string exchange;
    for (const PictureBar& bar : row.own) paint(own, bar, scale);
    for (const PictureBar& bar : row.exchange) paint(exchange, bar, scale);
    text += fmt::format("rank {:<{}}  {}\n", row.rank, digits, own);
    if (!exchange.empty()) text += fmt::format("{:{}}{}\n", "", digits + 7, exchange);
  }
  for (const BarKind kind : kinds_in(picture)) {
    const KindLook& look = look_of(kind);
    if (kind == BarKind::kBucket) {
      text += fmt::format("  1 2 3  {}{}\n", look.legend, buckets_words(picture));
    } else {
      text += fmt::format("  {}  {}{}\n", look.letter, look.legend,
                          kind == BarKind::kForward ? ", which its number names" : "");
    }
  }
  return text + "  Passes are drawn by their samples, all else large enough to be seen: the picture is not to scale.\n";
}

std::string picture_svg(const StepPicture& picture) {
  constexpr double kLeft = 90;
  constexpr double kWidth = 900;
  constexpr double kRowHeight = 56;
  constexpr double kTop = 48;
  const double scale = picture.length > 0 ? kWidth / picture.length : 0.0;
  std::string body;
  double y = kTop;
  const auto bar_of = [&](const PictureBar& bar, double top, double height) {
    const double x = kLeft + bar.begin * scale;
    const double width = std::max(1.0, (bar.end - bar.begin) * scale);
    const std::string_view colour = look_of(bar.kind).colour;
    body += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" stroke=\"white\" "
        "stroke-width=\"0.5\"><title>{}</title></rect>\n",
        x, top, width, height, colour, bar_words(picture, bar));
    const bool numbered = bar.kind == BarKind::kForward || bar.kind == BarKind::kBucket;
    if (!numbered || width < 16) return;
    body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x + width / 2,
                        top + height / 2 + 4, bar.number);
  };
  for (std::size_t i = 0; i < picture.rows.size(); ++i) {
    const PictureRow& row = picture.rows[i];
    if (follows_gap(picture, i)) {
      body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kLeft, y + 14, rank_gap_words(picture));
      y += 24;
    }
    body += fmt::format("<text x=\"8\" y=\"{:.1f}\">rank {}</text>\n", y + 18, row.rank);
    for (const PictureBar& bar : row.own) bar_of(bar, y, 26);
    for (const PictureBar& bar : row.exchange) bar_of(bar, y + 28, 16);
    y += kRowHeight;
  }
  y += 8;
  for (const BarKind kind : kinds_in(picture)) {
    const KindLook& look = look_of(kind);
    body += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" fill=\"{}\"/>\n", kLeft, y,
                        look.colour);
    body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}{}</text>\n", kLeft + 22, y + 12, look.legend,
                        kind == BarKind::kBucket ? buckets_words(picture) : "");
    y += 20;
  }
  body += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\">Passes are drawn by their samples, all else large enough to be seen: "
      "the picture is not to scale.</text>\n",
      kLeft, y + 14);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" data-made-by=\"convoy explain\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"8\" y=\"24\" "
      "font-size=\"16\">{2}</text>\n{3}</svg>\n",
      kLeft + kWidth + 20, y + 30, escaped(picture.title), body);
}

bool is_step_svg(std::string_view text) {
  return text.starts_with("<svg ") &&
         text.substr(0, text.find('>')).find("data-made-by=\"convoy explain\"") != std::string_view::npos;
}

nlohmann::ordered_json to_json(const StepPicture& picture) {
  Json json = {{"length", picture.length}, {"rows", Json::array()}};
  for (const PictureRow& row : picture.rows) {
    json["rows"].push_back({{"rank", row.rank}, {"own", bars_json(row.own)}, {"exchange", bars_json(row.exchange)}});
  }
  return json;
}

}  // namespace convoy::spec
