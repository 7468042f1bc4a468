// jax's default generator: Threefry 2x32 with a counter for each number.
//
//   Threefry key = Threefry::Of(seed, offset);    // fold_in(key(seed), offset)
//   const auto [high, low] = key.Block(i);        // i to i + 3 of bits(key, shape, uint64)
//
// A number depends on the key and on its index in row-major order alone, not on the shape.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_THREEFRY_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_THREEFRY_H_

#include <cstdint>
#include <utility>

namespace torch_xla_lite::kernels {

class Threefry {
 public:
  static Threefry Of(uint64_t seed, uint64_t offset) {
    // fold_in takes 32 bits.
    return Threefry(Split(seed)).Fold(static_cast<uint32_t>(offset));
  }

  // From key_data(key), and to it.
  static Threefry Of(const uint32_t* key) { return Threefry({key[0], key[1]}); }
  void Store(uint32_t* key) const { key[0] = keys_[0], key[1] = keys_[1]; }

  // The key of a number in split(key).
  Threefry Fold(uint64_t number) const { return Threefry(Hash(Split(number))); }

  // With `number` added to the last word: the key of a round in lowering/rejection.py.
  Threefry Round(uint32_t number) const { return Threefry({keys_[0], keys_[1] + number}); }

  // So many at a time take 0.4 times as long: the compiler makes vector instructions of them.
  static constexpr int kBlock = 4;
  using Words = uint32_t __attribute__((vector_size(kBlock * sizeof(uint32_t))));
  template <typename Word>
  using Pair = std::pair<Word, Word>;

  Pair<Words> Block(uint64_t begin) const {
    const auto [high, low] = Split(begin);
    const Words lows = low + Words{0, 1, 2, 3};
    // All bits of a comparison that holds are ones, which is -1.
    return Hash(Pair<Words>(high - (Words)(lows < low), lows));
  }

  // Of number high * 2^32 + low, for loops that the compiler makes vector instructions of.
  Pair<uint32_t> At(uint32_t high, uint32_t low) const { return Hash(Pair<uint32_t>(high, low)); }

 private:
  explicit Threefry(Pair<uint32_t> key)
      : keys_{key.first, key.second, key.first ^ key.second ^ 0x1BD11BDA} {}

  static Pair<uint32_t> Split(uint64_t value) {
    return {static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(value)};
  }

  // Five times four rounds, as in Salmon et al., "Parallel random numbers: as easy as 1, 2, 3".
  template <typename Word>
  Pair<Word> Hash(Pair<Word> count) const {
    auto& [x, y] = count;
    x += keys_[0];
    y += keys_[1];
    Rounds<13, 15, 26, 6>(1, &x, &y);
    Rounds<17, 29, 16, 24>(2, &x, &y);
    Rounds<13, 15, 26, 6>(3, &x, &y);
    Rounds<17, 29, 16, 24>(4, &x, &y);
    Rounds<13, 15, 26, 6>(5, &x, &y);
    return count;
  }

  template <int... rotations, typename Word>
  void Rounds(uint32_t number, Word* x, Word* y) const {
    ((*x += *y, *y = (*y << rotations | *y >> (32 - rotations)) ^ *x), ...);
    *x += keys_[number % 3];
    *y += keys_[(number + 1) % 3] + number;
  }

  uint32_t keys_[3];
};

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_THREEFRY_H_
