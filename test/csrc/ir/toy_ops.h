// Toy ops for tests: names, shapes of results, and an interpreter.
//
// Values are vectors of 64-bit integers with wrap-around, so that results can be compared exactly.
//
//   Value x = Leaf({1, 2});
//   Value y = Call("add", {x, x});
//   Value minus = Result(Call("sum_difference", {x, y}), 1);
//   std::vector<Data> results = Interpret(graph.description(), leaves, graph.scalars);
//
//   add, multiply     (a, b) of one shape
//   plus              (a), one scalar: added to each element
//   sum_difference    (a, b) -> a + b, a - b
//   append            (a, b) -> a and then b
//   element           (a), one scalar: the element at that index, as a vector of one; a view
//   reversed          (a); a view
//   halves            (a) -> both halves; a view
//   zeros             (a) -> zeros of its shape
//   fail              (a); throws when it is run
//   lack              (a); throws std::bad_alloc when it is run
//   refuse            (a); throws when it is compiled
//
// The views can be written through.

#ifndef TORCH_XLA_LITE_TEST_CSRC_IR_TOY_OPS_H_
#define TORCH_XLA_LITE_TEST_CSRC_IR_TOY_OPS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"

namespace torch_xla_lite::ir::toy {

using Data = std::vector<uint64_t>;

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(Data data) : data(std::move(data)) {}
  bool IsExclusive() const override { return is_exclusive; }

  Data data;
  bool is_exclusive = true;
};

// int64, as torch's number for it.
inline constexpr DType kInt64{4};
// It is never freed.
const Shape* Vector(size_t size);

Value Leaf(Data data);
// The first result of a pending call.
Value Call(std::string_view op, std::vector<Value> operands, std::vector<uint64_t> scalars = {});
Value Result(const Value& value, uint32_t output);

// The data of a value that is not pending. Without the lock: it does not change any more.
const Data& DataOf(const Value& value) LITE_NO_THREAD_SAFETY_ANALYSIS;
std::vector<Data> DataOf(std::span<const Value> values);

// The shapes of an op's results for operands of these shapes.
std::vector<const Shape*> Outputs(const std::string& op, std::span<const Shape* const> operands);
// The new base after a write of a value through the result of a view.
Data Written(const std::string& op, uint32_t output, Data base, const Data& value,
             std::span<const uint64_t> scalars);
// The results of an op.
std::vector<Data> Compute(const std::string& op, std::span<const Data> operands,
                          std::span<const uint64_t> scalars);
// The values of the roots. Checks that each value has the shape in its signature.
std::vector<Data> Interpret(const Description& description, std::span<const Data> leaves,
                            std::span<const uint64_t> scalars);

}  // namespace torch_xla_lite::ir::toy

#endif  // TORCH_XLA_LITE_TEST_CSRC_IR_TOY_OPS_H_
