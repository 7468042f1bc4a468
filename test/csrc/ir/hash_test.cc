#include "torch_xla_lite/csrc/ir/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <vector>

namespace torch_xla_lite::ir {
namespace {

using Words = std::vector<uint64_t>;

TEST(HashWords, TheOrderOfWordsMatters) {
  EXPECT_NE(HashWords(Words{1, 2, 3}), HashWords(Words{1, 3, 2}));
}

TEST(HashWords, TheNumberOfWordsMatters) {
  EXPECT_NE(HashWords(Words{}), HashWords(Words{0}));
  EXPECT_NE(HashWords(Words{0}), HashWords(Words{0, 0}));
}

TEST(HashWords, TheSeedMatters) { EXPECT_NE(HashWords(Words{1}, 6), HashWords(Words{1}, 7)); }

// Tables use the low bits of the hash, and words are addresses, which differ in few bits and never
// in the lowest ones.
TEST(HashWords, AddressesSpreadOverTheLowBits) {
  std::set<uint64_t> low_bits;
  for (uint64_t i = 0; i < 1024; ++i) {
    low_bits.insert(HashWords(Words{0x7f1200000000 + i * 64, 3}) % 1024);
  }
  // A random function would hit 1 - 1/e of the 1024 slots.
  EXPECT_GT(low_bits.size(), 600u);
}

TEST(HashWords, EachBitOfAWordTurnsAboutHalfOfTheHash) {
  const uint64_t hash = HashWords(Words{0x0123456789abcdef, 5});
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t other = HashWords(Words{0x0123456789abcdef ^ uint64_t{1} << bit, 5});
    EXPECT_GE(std::popcount(hash ^ other), 12) << "bit " << bit;
  }
}

}  // namespace
}  // namespace torch_xla_lite::ir
