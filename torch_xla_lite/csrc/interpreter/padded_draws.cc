#include "torch_xla_lite/csrc/interpreter/padded_draws.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "torch_xla_lite/csrc/aten/kernel_keys.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ops/op_facts.h"
#include "torch_xla_lite/csrc/ops/op_name.h"
#include "torch_xla_lite/csrc/ops/words.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::interpreter {
namespace {

using ops::Head;
using ops::Tag;

// To draw so many takes 45 and 260 us. Loops draw a few numbers at a time, many times.
constexpr uint64_t kFew = 128;
constexpr uint64_t kMany = 4096;

// The fact `padded` of ops with operands whose elements are parameters of their numbers.
constexpr std::string_view kOperands = "operands";

// The floats at the beginning of a call's arguments, after `self`, with their heads: constants, and
// those that the node has.
std::span<const uint64_t> Floats(std::span<const uint64_t> words) {
  words = words.subspan(ops::TagOf(words[1]) == Tag::kTensor ? 2 : 1);
  size_t count = 0;
  while (count < words.size()) {
    const Tag tag = ops::TagOf(words[count]);
    if (tag != Tag::kDouble && tag != Tag::kScalar) break;
    count += 1 + ops::WordsAfter(words[count]);
  }
  return words.first(count);
}

// A call of an op that draws the same numbers, but of `shape`. The first word tells ops apart and
// has the default dtype.
std::vector<uint64_t> WordsOf(std::string_view op, const ir::Signature& signature,
                              const ir::Shape* shape) {
  constexpr std::array<uint64_t, 4> kStandard = {Head(Tag::kDouble), std::bit_cast<uint64_t>(0.0),
                                                 Head(Tag::kDouble), std::bit_cast<uint64_t>(1.0)};
  std::span<const uint64_t> floats = Floats(signature.words);
  if (floats.empty()) floats = kStandard;
  std::vector<uint64_t> words = {
      (signature.words[0] >> 56 << 56) | reinterpret_cast<uint64_t>(op.data()),
      Head(Tag::kTensor, reinterpret_cast<uint64_t>(shape))};
  words.insert(words.end(), floats.begin(), floats.end());
  words.push_back(Head(Tag::kNone));  // the generator
  return words;
}

// The same call, but of operands of these shapes.
std::vector<uint64_t> WordsOf(const ir::Signature& signature,
                              std::span<const ir::Ref<const ir::Shape>> shapes) {
  const size_t count = ops::FindOp(signature.op)->schema().arguments().size();
  const std::span<const uint64_t> given = signature.words;
  std::vector<uint64_t> words = {given[0]};
  size_t next = 1, operand = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = 1 + ops::WordsAfter(given[next]);
    if (ops::TagOf(given[next]) == Tag::kTensor) {
      const ir::Shape* const shape = shapes[operand++].get();
      words.push_back(Head(Tag::kTensor, reinterpret_cast<uint64_t>(shape)));
    } else {
      words.insert(words.end(), given.begin() + next, given.begin() + next + size);
    }
    next += size;
  }
  return words;
}

// The elements of an operand for each of a result, and ones, which are parameters of all ops.
at::Tensor Padded(const at::Tensor& operand, at::IntArrayRef sizes, int64_t size) {
  at::Tensor padded(at::detail::empty_cpu({size}, operand.scalar_type()));
  const int64_t count = c10::multiply_integers(sizes);
  padded.narrow(0, 0, count).copy_(operand.expand(sizes).reshape({count}));
  padded.narrow(0, count, size - count).fill_(1);
  return padded;
}

int64_t PaddedSize(const ir::Shape& out) {
  const auto count = static_cast<uint64_t>(out.NumElements());
  return static_cast<int64_t>(count <= kFew ? kFew : std::max(kMany, std::bit_ceil(count)));
}

}  // namespace

bool PaddedDraws::Has(std::string_view op) { return !ops::FactsOf(op).padded.empty(); }

std::optional<std::vector<at::Tensor>> PaddedDraws::Run(const ir::Node& call,
                                                        std::span<const at::Tensor> operands) {
  const aten::KernelKeysGuard keys;
  const ir::Signature& wanted = call.signature();
  const std::string_view op = wanted.op, drawn_by = ops::FactsOf(op).padded;
  if (drawn_by.empty()) return std::nullopt;
  if (drawn_by != kOperands) {
    const ir::Shape& out = *wanted.outputs[0];
    const auto shape = ir::Shape::Of(out.dtype(), {PaddedSize(out)});
    // Only its shape matters.
    const at::Tensor self(at::detail::empty_cpu(shape->dims(), tensor::ScalarTypeOf(&out)));
    return RunPadded(call, drawn_by, WordsOf(drawn_by, wanted, shape.get()), {&shape, 1},
                     {&self, 1});
  }
  const ir::Shape& out = *wanted.outputs[0];
  const int64_t size = PaddedSize(out);
  std::vector<at::Tensor> padded;
  std::vector<ir::Ref<const ir::Shape>> shapes;
  for (const at::Tensor& operand : operands) {
    padded.push_back(Padded(operand, out.dims(), size));
    shapes.push_back(tensor::ShapeOf(operand.scalar_type(), {size}, op));
  }
  return RunPadded(call, op, WordsOf(wanted, shapes), shapes, padded);
}

std::vector<at::Tensor> PaddedDraws::RunPadded(const ir::Node& call, std::string_view op,
                                               std::vector<uint64_t> words,
                                               std::span<const ir::Ref<const ir::Shape>> shapes,
                                               std::span<const at::Tensor> operands) {
  const ir::Signature& wanted = call.signature();
  const ir::Signature* signature = signatures_.Find(words);
  if (signature == nullptr) {
    auto larger = ir::MakeRef<ir::Signature>(std::string(op), std::move(words),
                                             std::vector<const ir::Shape*>());
    for (const ir::Shape* const output : wanted.outputs) {
      larger->AddOutput(ir::Shape::Of(output->dtype(), {operands[0].numel()}));
    }
    for (const auto& shape : shapes) larger->Keep(shape.get());
    signature = signatures_.Insert(std::move(larger));
  }
  std::vector<ir::Value> leaves;
  for (const auto& shape : shapes) leaves.push_back({ir::Node::Leaf(shape.get(), {}), 0});
  const auto larger = ir::Node::Create(signature, leaves, call.scalars());
  std::vector<at::Tensor> results = run_lowering_(*larger, operands);
  for (size_t i = 0; i < results.size(); ++i) {
    const ir::Shape& out = *wanted.outputs[i];
    results[i] = results[i].narrow(0, 0, out.NumElements()).clone().view(out.dims());
  }
  return results;
}

}  // namespace torch_xla_lite::interpreter
