#include "torch_xla_lite/csrc/interpreter/padded_draws.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "torch_xla_lite/csrc/dispatch/words.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::interpreter {
namespace {

using dispatch::Head;
using dispatch::Tag;

// To draw so many takes 45 and 260 us. Loops draw a few numbers at a time, many times.
constexpr uint64_t kFew = 128;
constexpr uint64_t kMany = 4096;

constexpr std::string_view kNormal = "aten::normal_functional";

// An op, and the one with the arguments (self, floats, generator) that draws the same numbers.
struct Entry {
  std::string_view op;
  std::string_view drawn_by;
};
constexpr std::array<Entry, 11> kEntries = {{
    {"aten::cauchy", "aten::cauchy"},
    {"aten::exponential", "aten::exponential"},
    {"aten::geometric", "aten::geometric"},
    {"aten::log_normal", "aten::log_normal"},
    {"aten::normal.float_float", kNormal},
    {"aten::normal_functional", kNormal},
    {"aten::randn", kNormal},
    {"aten::randn.generator", kNormal},
    {"aten::randn_like", kNormal},
    {"aten::randn_like.generator", kNormal},
    {"aten::uniform", "aten::uniform"},
}};

// The floats at the beginning of a call's arguments, after `self`, with their heads.
std::span<const uint64_t> Floats(std::span<const uint64_t> words) {
  words = words.subspan(dispatch::TagOf(words[1]) == Tag::kTensor ? 2 : 1);
  size_t count = 0;
  while (count < words.size() && dispatch::TagOf(words[count]) == Tag::kDouble) count += 2;
  return words.first(count);
}

// The same call, but of `shape`. The first word tells ops apart and has the default dtype.
std::vector<uint64_t> WordsOf(const Entry& entry, const ir::Signature& signature,
                              const ir::Shape* shape) {
  constexpr std::array<uint64_t, 4> kStandard = {Head(Tag::kDouble), std::bit_cast<uint64_t>(0.0),
                                                 Head(Tag::kDouble), std::bit_cast<uint64_t>(1.0)};
  std::span<const uint64_t> floats = Floats(signature.words);
  if (floats.empty()) floats = kStandard;
  std::vector<uint64_t> words = {
      (signature.words[0] >> 56 << 56) | reinterpret_cast<uint64_t>(entry.drawn_by.data()),
      Head(Tag::kTensor, reinterpret_cast<uint64_t>(shape))};
  words.insert(words.end(), floats.begin(), floats.end());
  words.push_back(Head(Tag::kNone));  // the generator
  return words;
}

}  // namespace

std::optional<at::Tensor> PaddedDraws::Run(const ir::Node& call) {
  const ir::Signature& wanted = call.signature();
  const auto* const entry = std::ranges::find(kEntries, std::string_view(wanted.op), &Entry::op);
  if (entry == kEntries.end()) return std::nullopt;
  const ir::Shape& out = *wanted.outputs[0];
  const auto count = static_cast<uint64_t>(out.NumElements());
  const auto padded =
      static_cast<int64_t>(count <= kFew ? kFew : std::max(kMany, std::bit_ceil(count)));
  const auto padded_shape = ir::Shape::Of(out.dtype(), {padded});
  const ir::Shape* const shape = padded_shape.get();
  std::vector<uint64_t> words = WordsOf(*entry, wanted, shape);
  const ir::Signature* signature = signatures_.Find(words);
  if (signature == nullptr) {
    signature = signatures_.Insert(ir::MakeRef<const ir::Signature>(
        std::string(entry->drawn_by), std::move(words), std::vector<const ir::Shape*>{shape}));
  }
  // Only its shape matters.
  const at::Tensor self(at::detail::empty_cpu({padded}, tensor::ScalarTypeOf(shape)));
  std::array<ir::Value, 1> operands = {ir::Value{ir::Node::Leaf(shape, {}), 0}};
  const auto larger = ir::Node::Create(signature, operands, call.scalars());
  const at::Tensor drawn = run_lowering_(*larger, {&self, 1}).at(0);
  return drawn.narrow(0, 0, static_cast<int64_t>(count)).clone().view(out.dims());
}

}  // namespace torch_xla_lite::interpreter
