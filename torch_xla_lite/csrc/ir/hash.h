// Hashes a sequence of 64-bit words, for tables whose keys are such sequences.
//
//   uint64_t h = HashWords(words);
//
// Tables compare the words themselves on a hit, so a collision costs time but never gives a wrong
// result.

#ifndef TORCH_XLA_LITE_CSRC_IR_HASH_H_
#define TORCH_XLA_LITE_CSRC_IR_HASH_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace torch_xla_lite::ir {

// One multiplication per word: folding the 128-bit product in half spreads each input bit over all
// output bits.
inline uint64_t MixWord(uint64_t hash, uint64_t word) {
  const unsigned __int128 product =
      static_cast<unsigned __int128>(hash ^ word) * 0xd6e8feb86659fd93ULL + 0xa0761d6478bd642fULL;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t HashWords(std::span<const uint64_t> words, uint64_t seed = 0) {
  // Two independent chains, because a processor can start a multiplication of one while that of the
  // other is still running.
  uint64_t even = seed ^ (words.size() * 0x9e3779b97f4a7c15ULL);
  uint64_t odd = ~even;
  size_t i = 0;
  for (; i + 2 <= words.size(); i += 2) {
    even = MixWord(even, words[i]);
    odd = MixWord(odd, words[i + 1]);
  }
  if (i < words.size()) even = MixWord(even, words[i]);
  return MixWord(even, odd);
}

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_HASH_H_
