// jax's default generator: Threefry 2x32 with a counter for each number.
//
//   Threefry key = Threefry::Of(seed, offset);    // fold_in(key(seed), offset)
//   key.Bits32(i);                                // bits(key, shape, uint32), element i
//
// A number depends on the key and on its index in row-major order alone, not on the shape.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_THREEFRY_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_THREEFRY_H_

#include <bit>
#include <cstdint>
#include <utility>

namespace torch_xla_lite::interpreter {

class Threefry {
 public:
  static Threefry Of(uint64_t seed, uint64_t offset) {
    // fold_in takes 32 bits.
    return Threefry(Split(seed)).Fold(static_cast<uint32_t>(offset));
  }

  // The key of a number in split(key).
  Threefry Fold(uint64_t number) const { return Threefry(Hash(Split(number))); }

  uint32_t Bits32(uint64_t index) const {
    const Pair bits = Hash(Split(index));
    return bits.first ^ bits.second;
  }
  uint64_t Bits64(uint64_t index) const {
    const Pair bits = Hash(Split(index));
    return uint64_t{bits.first} << 32 | bits.second;
  }

 private:
  using Pair = std::pair<uint32_t, uint32_t>;

  explicit Threefry(Pair key) : keys_{key.first, key.second, key.first ^ key.second ^ 0x1BD11BDA} {}

  static Pair Split(uint64_t value) {
    return {static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(value)};
  }

  // Five times four rounds, as in Salmon et al., "Parallel random numbers: as easy as 1, 2, 3".
  Pair Hash(Pair count) const {
    constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    auto [x, y] = count;
    x += keys_[0];
    y += keys_[1];
    for (uint32_t group = 0; group < 5; ++group) {
      for (const int rotation : kRotations[group % 2]) {
        x += y;
        y = std::rotl(y, rotation) ^ x;
      }
      x += keys_[(group + 1) % 3];
      y += keys_[(group + 2) % 3] + group + 1;
    }
    return {x, y};
  }

  uint32_t keys_[3];
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_THREEFRY_H_
