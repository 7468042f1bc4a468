// The encoding of the arguments of an op call as 64-bit words.
//
// The words of a call are its cache key. An AtenCall decodes them into a call of ATen's kernel, and
// torch_xla_lite/compiler/words.py into the arguments of a lowering;
// torch_xla_lite/lowering/base/tags.py has the tags for Python. Each value is one head word `tag |
// payload << 8`, followed by the words that the tag requires:
//
//   kNone                  None, an undefined tensor, a generator
//   kTensor    (anything)  the next operand; the recorder puts its shape there, readers skip it
//   kBool      (0 or 1)
//   kInt                   + 1 word; also ScalarType, Layout and MemoryFormat arguments
//   kDouble                + 1 word, the bits
//   kComplex               + 2 words, the bits of both parts
//   kString    (length)    + length/8 words rounded up, little endian, zero padded
//   kList      (count)     then the items, each with its own head
//   kScalar    (see below) the next runtime scalar
//   kDevice    (0)
//   kIntList, kDoubleList, kBoolList   (count)   + count words
//
// In parentheses: the payload. That of kScalar is a c10::ScalarType, plus kWrappedNumber for a
// Python number in the place of a tensor.
//
//   std::vector<uint64_t> words;
//   words.push_back(Head(Tag::kInt));  words.push_back(3);
//   TagOf(words[0]) == Tag::kInt;      // true

#ifndef TORCH_XLA_LITE_CSRC_OPS_WORDS_H_
#define TORCH_XLA_LITE_CSRC_OPS_WORDS_H_

#include <cstdint>

namespace torch_xla_lite::ops {

enum class Tag : uint8_t {
  kNone = 0,
  kTensor = 1,
  kBool = 2,
  kInt = 3,
  kDouble = 4,
  kComplex = 5,
  kString = 6,
  kList = 7,
  kScalar = 8,
  kDevice = 9,
  kIntList = 10,
  kDoubleList = 11,
  kBoolList = 12,
};

inline constexpr uint64_t kWrappedNumber = 1 << 7;

inline constexpr uint64_t Head(Tag tag, uint64_t payload = 0) {
  return static_cast<uint64_t>(tag) | payload << 8;
}
inline constexpr Tag TagOf(uint64_t word) { return static_cast<Tag>(word & 0xff); }
inline constexpr uint64_t PayloadOf(uint64_t word) { return word >> 8; }

// How many words a head requires. The items of a kList have heads of their own.
inline constexpr uint64_t WordsAfter(uint64_t head) {
  const uint64_t payload = PayloadOf(head);
  switch (TagOf(head)) {
    case Tag::kInt:
    case Tag::kDouble:
      return 1;
    case Tag::kComplex:
      return 2;
    case Tag::kString:
      return payload / 8 + (payload % 8 != 0);
    case Tag::kIntList:
    case Tag::kDoubleList:
    case Tag::kBoolList:
      return payload;
    default:
      return 0;
  }
}

}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_WORDS_H_
