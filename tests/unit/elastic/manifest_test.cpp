// Manifests: what they say survives writing and reading, and one that is damaged or contradicts itself is refused.
#include "convoy/elastic/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"

namespace convoy::elastic {
namespace {

using ::testing::HasSubstr;

Manifest make_manifest() {
  Manifest manifest;
  manifest.meta.step = 17;
  manifest.meta.epoch = 2;
  manifest.meta.generation = 3;
  manifest.meta.world = 2;
  manifest.meta.replicas = 8;
  manifest.meta.recipe_digest = "0123abcd";
  manifest.meta.facts = {{"learning_rate.position", "17"}, {"odd \"name\"", "line\nbreak, \xc3\xa9"}};
  manifest.files = {ManifestFile{"rank-0000.safetensors", FileDigest{100, "aa"}},
                    ManifestFile{"rank-0001.safetensors", FileDigest{UINT64_MAX, "bb"}}};
  ManifestTensor shard{DType::kFloat64, {3, 4}, spec::Placement::kShard, {}};
  shard.pieces = {StoredPiece{1, "w[0:5]", 0, 5}, StoredPiece{0, "w[5:12]", 5, 7}};
  manifest.tensors["w"] = shard;
  manifest.tensors["empty"] =
      ManifestTensor{DType::kUInt8, {0}, spec::Placement::kOwned, {StoredPiece{0, "empty", 0, 0}}};
  return manifest;
}

// Closes a text that ends before its hash, as the docs describe it.
std::string with_hash(const std::string& before) { return before + ",\"xxh3\":\"" + hash128_hex(before) + "\"}\n"; }

// The manifest with one part of its text replaced and a hash that fits.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = to_text(make_manifest(), "m");
  text = text.substr(0, text.rfind(",\"xxh3\":\""));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return with_hash(text.replace(at, from.size(), to));
}

std::string refusal(const std::string& text) {
  try {
    parse_manifest(text, "folder/manifest.json");
    return "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
    EXPECT_THAT(error.message(), HasSubstr("folder/manifest.json"));
    return error.message();
  }
}

TEST(Manifest, SaysWhatWasWritten) { EXPECT_EQ(parse_manifest(to_text(make_manifest(), "m"), "m"), make_manifest()); }

TEST(Manifest, RefusesEverySingleFlippedBitAndEveryCut) {
  const std::string text = to_text(make_manifest(), "m");
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      ASSERT_NE(refusal(damaged), "accepted") << "byte " << at << " bit " << bit;
    }
    ASSERT_NE(refusal(text.substr(0, at)), "accepted") << "cut at " << at;
  }
}

TEST(Manifest, PassesOverKeysThatItDoesNotKnow) {
  EXPECT_EQ(parse_manifest(edited("\"files\":", "\"mesh\":{\"dp\":2},\"files\":"), "m"), make_manifest());
}

TEST(Manifest, NamesBothVersionsOfANewerFormat) {
  EXPECT_THAT(refusal(edited("\"format_version\":1", "\"format_version\":2")),
              HasSubstr("format version 2; this version of Convoy reads up to version 1"));
  // A newer format may end otherwise: its version is what counts.
  EXPECT_THAT(refusal("{\"format\":\"convoy-checkpoint\",\"format_version\":7}"), HasSubstr("format version 7"));
}

TEST(Manifest, RefusesContradictionsUnderAHashThatFits) {
  EXPECT_THAT(refusal(edited("\"count\":5", "\"count\":4")), HasSubstr("'w': elements [4, 5) are in no file"));
  EXPECT_THAT(refusal(edited("\"count\":5", "\"count\":6")), HasSubstr("'w': elements [5, 6) are in"));
  EXPECT_THAT(refusal(edited("\"count\":7", "\"count\":6")), HasSubstr("'w': elements [11, 12) are in no file"));
  EXPECT_THAT(refusal(edited("\"count\":7", "\"count\":8")), HasSubstr("'count' is 8"));
  EXPECT_THAT(refusal(edited("\"file\":1", "\"file\":2")), HasSubstr("'w' is said to be in file 2 of 2"));
  EXPECT_THAT(refusal(edited("rank-0001", "../rank-1")), HasSubstr("no name of a file"));
  EXPECT_THAT(refusal(edited("\"float64\"", "\"float8\"")), HasSubstr("'dtype' is float8"));
  EXPECT_THAT(refusal(edited("[3,4]", "[3,-4]")), HasSubstr("'shape' holds -4"));
  EXPECT_THAT(refusal(edited("[3,4]", "[9223372036854775807,4]")), HasSubstr("too many elements"));
  EXPECT_THAT(refusal(edited("\"step\":17", "\"step\":\"17\"")), HasSubstr("'step' is \"17\""));
  EXPECT_THAT(refusal(edited("\"step\":17", "\"stop\":17")), HasSubstr("'step' is missing"));
  EXPECT_THAT(refusal(edited("\"epoch\":2", "\"step\":2")), HasSubstr("\"step\" stands twice"));
  EXPECT_THAT(refusal(edited("convoy-checkpoint", "convoi-checkpoint")), HasSubstr("no part of a checkpoint"));
}

TEST(Manifest, RefusesWhatItCouldNotReadBack) {
  Manifest manifest = make_manifest();
  manifest.meta.facts["bad"] = "\xff\xfe";
  EXPECT_THROW(to_text(manifest, "m"), Error);
}

// Two ranks that each hold a part of w; the second rank's elements are [begin, end).
std::vector<PartList> two_lists(std::int64_t begin, std::int64_t end) {
  std::vector<PartList> lists(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    lists[rank].meta = make_manifest().meta;
    lists[rank].file = ManifestFile{"rank-" + std::to_string(rank), FileDigest{8, "x"}};
    lists[rank].tensors["w"] = ManifestTensor{DType::kFloat32, {10}, spec::Placement::kShard, {}};
  }
  lists[0].tensors["w"].pieces = {StoredPiece{0, "w[0:4]", 0, 4}};
  if (begin < end) lists[1].tensors["w"].pieces = {StoredPiece{0, "key", begin, end - begin}};
  return lists;
}

std::string merge_refusal(const std::vector<PartList>& lists, ErrorCode code) {
  try {
    merge_part_lists(lists);
    return "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.message();
  }
}

TEST(PartLists, JoinToAManifestThatCoversEachElementOnce) {
  std::vector<PartList> lists = two_lists(4, 10);
  for (PartList& list : lists) list = parse_part_list(to_text(list, "p"), "p");
  const Manifest manifest = merge_part_lists(lists);
  EXPECT_EQ(manifest.tensors.at("w").pieces,
            (std::vector<StoredPiece>{StoredPiece{0, "w[0:4]", 0, 4}, StoredPiece{1, "key", 4, 6}}));
  EXPECT_EQ(parse_manifest(to_text(manifest, "m"), "m"), manifest);
}

TEST(PartLists, NameElementsThatNobodyOrTwoRanksSave) {
  EXPECT_THAT(merge_refusal(two_lists(5, 10), ErrorCode::kInvalidArgument),
              HasSubstr("'w' cannot be saved: elements [4, 5)"));
  EXPECT_THAT(merge_refusal(two_lists(4, 9), ErrorCode::kInvalidArgument),
              HasSubstr("elements [9, 10) are in no file"));
  EXPECT_THAT(merge_refusal(two_lists(2, 10), ErrorCode::kInvalidArgument),
              HasSubstr("elements [2, 4) are in rank-0 and in rank-1"));
  EXPECT_THAT(merge_refusal(two_lists(1, 2), ErrorCode::kInvalidArgument),
              HasSubstr("elements [1, 2) are in rank-0 and in rank-1"));
  std::vector<PartList> nobody = two_lists(0, 0);
  nobody[0].tensors["w"].pieces.clear();
  EXPECT_THAT(merge_refusal(nobody, ErrorCode::kInvalidArgument), HasSubstr("its 10 elements are in no file"));
}

TEST(PartLists, NameRanksThatDisagree) {
  std::vector<PartList> lists = two_lists(4, 10);
  lists[1].meta.facts["learning_rate.position"] = "18";
  EXPECT_THAT(merge_refusal(lists, ErrorCode::kDesync), HasSubstr("facts is"));
  lists = two_lists(4, 10);
  lists[1].meta.step = 18;
  EXPECT_THAT(merge_refusal(lists, ErrorCode::kDesync), HasSubstr("step is 17 on rank 0 and 18 on rank 1"));
  lists = two_lists(4, 10);
  lists[1].tensors["w"].shape = {2, 5};
  EXPECT_THAT(merge_refusal(lists, ErrorCode::kDesync), HasSubstr("'w' has another shape or type on rank 1"));
}

}  // namespace
}  // namespace convoy::elastic
