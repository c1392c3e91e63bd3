// Digests are XXH3's own, so that other tools can recompute them, and do not depend on how bytes were fed.
#include "convoy/base/hash.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace convoy {
namespace {

std::string sample_bytes() {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes.push_back(static_cast<char>(i % 251));
  return bytes;
}

TEST(Hash64, IsXxh3) {
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2u);
  EXPECT_EQ(hash64("convoy"), 0xc6572b87d8a424abu);
  EXPECT_EQ(hash64(sample_bytes()), 0x33ef703fb2b20ed1u);
}

TEST(Hash64, DependsOnTheSeed) {
  EXPECT_EQ(hash64("", 7), 0x913ae0873e9b7eb8u);
  EXPECT_EQ(hash64("convoy", 7), 0xcc44cfec8b63d03au);
  EXPECT_EQ(hash64(sample_bytes(), 7), 0x88c710a69b531698u);
}

TEST(Hash128, IsXxh3WithTheHighHalfFirst) {
  EXPECT_EQ(hash128_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash128_hex("convoy"), "ca1b729d91207a2816b8fc3ef51886af");
  EXPECT_EQ(hash128_hex(sample_bytes()), "18bf41bc8229e27733ef703fb2b20ed1");
}

TEST(Hash128, SeesZeroBytesAndLength) {
  EXPECT_NE(hash128_hex(std::string(3, '\0')), hash128_hex(std::string(4, '\0')));
}

TEST(Hasher, OfNothingIsTheHashOfNothing) { EXPECT_EQ(Hasher().hex(), hash128_hex("")); }

TEST(Hasher, GoesOnAfterADigestWasTaken) {
  Hasher hasher;
  hasher.update("con");
  EXPECT_EQ(hasher.hex(), hash128_hex("con"));
  hasher.update("");
  hasher.update("voy");
  EXPECT_EQ(hasher.hex(), hash128_hex("convoy"));
}

TEST(Hasher, KeepsItsStateWhenMoved) {
  Hasher first;
  first.update("con");
  Hasher second = std::move(first);
  second.update("voy");
  EXPECT_EQ(second.hex(), hash128_hex("convoy"));
}

RC_GTEST_PROP(Hasher, GivesTheSameDigestForAnyPieces, (const std::vector<std::string>& pieces)) {
  std::string whole = sample_bytes();
  Hasher hasher;
  hasher.update(whole);
  for (const std::string& piece : pieces) {
    hasher.update(piece);
    whole += piece;
  }
  RC_ASSERT(hasher.hex() == hash128_hex(whole));
}

}  // namespace
}  // namespace convoy
