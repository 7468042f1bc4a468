// The hash of a run of words, for the tables that are keyed by them.
//
//   uint64_t h = HashWords(words);
//
// Tables compare the words themselves on a hit, so a collision costs time and never a wrong answer.

#ifndef TORCH_XLA_LITE_CSRC_IR_HASH_H_
#define TORCH_XLA_LITE_CSRC_IR_HASH_H_

#include <cstdint>
#include <span>

namespace torch_xla_lite::ir {

inline uint64_t HashWords(std::span<const uint64_t> words, uint64_t seed = 0) {
  uint64_t hash = seed ^ (words.size() * 0x9e3779b97f4a7c15ULL);
  for (uint64_t word : words) {
    // One multiplication a word; the 128-bit product folded in half spreads each input bit over all
    // output bits.
    const unsigned __int128 product =
        static_cast<unsigned __int128>(hash ^ word) * 0xd6e8feb86659fd93ULL + 0xa0761d6478bd642fULL;
    hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  return hash;
}

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_HASH_H_
