#include "torch_xla_lite/csrc/ops/call.h"

#include <ATen/EmptyTensor.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ops/op_info.h"
#include "torch_xla_lite/csrc/ops/words.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::ops {
namespace {

using tensor::XTensorImpl;
using Words = std::vector<uint64_t>;
using Arguments = std::vector<c10::IValue>;

// Never destroyed: keys contain the addresses of infos.
const OpInfo& KeptInfoOf(const std::string& name) {
  static auto* infos = new std::map<std::string, OpInfo>;
  const size_t dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      ("aten::" + name.substr(0, dot)).c_str(), overload.c_str());
  return infos->try_emplace(name, op, RegisteredOps()).first->second;
}

at::Tensor Jax(std::vector<int64_t> sizes, c10::ScalarType dtype = at::kFloat) {
  const auto shape = tensor::ShapeOf(dtype, sizes, "");
  const runtime::RecordScope scope;
  return at::Tensor(tensor::MakeTensor(
      {ir::Node::Leaf(shape.get(), ir::Ref<ir::Buffer>::Take(new ir::toy::HostBuffer({}))), 0}));
}

// A view that is not contiguous.
at::Tensor Strided(std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  const at::Tensor base = Jax(sizes);
  return at::detail::make_tensor<XTensorImpl>(
      *XTensorImpl::From(base), nullptr, XTensorImpl::From(base)->shape(),
      tensor::Layout{std::move(strides), 0}, /*storage_offset=*/0);
}

at::Tensor Cpu(std::vector<int64_t> sizes, c10::ScalarType dtype = at::kFloat) {
  return at::Tensor(at::detail::empty_cpu(sizes, dtype));
}

Call CallOf(const std::string& op, const Arguments& arguments) {
  Call call;
  EXPECT_EQ(call.Read(KeptInfoOf(op), arguments), Call::Status::kOk);
  return call;
}

Words KeyOf(const std::string& op, const Arguments& arguments) {
  const Call call = CallOf(op, arguments);
  return Words(call.key().begin(), call.key().end());
}

// The words after the op.
Words WordsOf(const std::string& op, const Arguments& arguments) {
  Words words = KeyOf(op, arguments);
  words.erase(words.begin());
  return words;
}

Words ScalarsOf(const std::string& op, const Arguments& arguments) {
  const Call call = CallOf(op, arguments);
  return Words(call.scalars.begin(), call.scalars.end());
}

uint64_t TensorWord(const at::Tensor& tensor) {
  return Head(Tag::kTensor, reinterpret_cast<uint64_t>(XTensorImpl::From(tensor)->shape()));
}

uint64_t ScalarWord(c10::ScalarType dtype, uint64_t flags = 0) {
  return Head(Tag::kScalar, static_cast<uint64_t>(dtype) | flags);
}

uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }

std::string ErrorOf(const std::string& op, const Arguments& arguments) {
  try {
    Call().Read(KeptInfoOf(op), arguments);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(Call, TensorsOfOneShapeAreTheSameToTheKey) {
  const at::Tensor x = Jax({2}), y = Jax({2}), z = Jax({2}, at::kDouble);
  EXPECT_EQ(KeyOf("neg", {x}), KeyOf("neg", {y}));
  EXPECT_NE(KeyOf("neg", {x}), KeyOf("neg", {z}));
}

// Scalars.

TEST(Call, AListOfScalarsIsAListOfParameters) {
  const at::Tensor x = Jax({2});
  c10::impl::GenericList scalars(c10::AnyType::get());
  scalars.push_back(3);
  scalars.push_back(0.5);
  const Arguments arguments{c10::List<at::Tensor>({x, x}), scalars};
  EXPECT_EQ(WordsOf("_foreach_add.ScalarList", arguments),
            (Words{Head(Tag::kList, 2), TensorWord(x), TensorWord(x), Head(Tag::kList, 2),
                   ScalarWord(at::kLong), ScalarWord(at::kDouble)}));
  EXPECT_EQ(ScalarsOf("_foreach_add.ScalarList", arguments), (Words{3, Bits(0.5)}));
}

// Other arguments.

TEST(Call, AListMayMissTensors) {
  const at::Tensor x = Jax({2, 3}), index = Jax({4}, at::kLong);
  const c10::List<std::optional<at::Tensor>> indices({std::nullopt, index});
  EXPECT_EQ(WordsOf("index.Tensor", {x, indices}),
            (Words{TensorWord(x), Head(Tag::kList, 2), Head(Tag::kNone), TensorWord(index)}));
}

TEST(Call, TheShapesOfOutArgumentsAreInTheKeyThoughTheyAreNoOperands) {
  const at::Tensor x = Jax({2});
  EXPECT_NE(KeyOf("add.out", {x, x, 1, Jax({2})}), KeyOf("add.out", {x, x, 1, Jax({0})}));
  EXPECT_EQ(CallOf("add.out", {x, x, 1, Jax({2})}).operands.size(), 2u);
}

// Layouts.

TEST(Call, StridesAreInTheKeysOfViews) {
  const at::Tensor strided = Strided({2, 3}, {1, 2});
  EXPECT_NE(KeyOf("t", {strided}), KeyOf("t", {Jax({2, 3})}));
  EXPECT_NE(KeyOf("t", {strided}), KeyOf("t", {Strided({2, 3}, {1, 4})}));
  EXPECT_EQ(KeyOf("t", {strided}), KeyOf("t", {Strided({2, 3}, {1, 2})}));
}

TEST(Call, StridesAreInNoOtherKeys) {
  EXPECT_EQ(KeyOf("neg", {Strided({2, 3}, {1, 2})}), KeyOf("neg", {Jax({2, 3})}));
}

// Indices.

TEST(Call, AnIndexSaysHowFarTheViewLiesBehindItsOperand) {
  const at::Tensor x = Jax({8, 3});
  EXPECT_EQ(CallOf("select.int", {x, 0, 5}).runtime_offset, 15);
  EXPECT_EQ(CallOf("select.int", {x, 1, 2}).runtime_offset, 2);
  EXPECT_EQ(CallOf("select.int", {Strided({2, 3}, {1, 2}), 1, 2}).runtime_offset, 4);
}

TEST(Call, AnIndexOutOfRangeStaysAsItIs) {
  const at::Tensor x = Jax({8, 3});
  EXPECT_EQ(WordsOf("select.int", {x, 0, 8}).back(), 8u);
  EXPECT_EQ(WordsOf("select.int", {x, 0, -9}).back(), static_cast<uint64_t>(-9));
  EXPECT_EQ(WordsOf("select.int", {x, 2, 1}).back(), 1u);
}

// Devices.

TEST(Call, ATensorOfAnotherKindIsForeign) {
  Call call;
  const at::Tensor meta(at::detail::empty_meta({2}, at::kFloat));
  EXPECT_EQ(call.Read(KeptInfoOf("add.Tensor"), Arguments{Jax({2}), meta, 1}),
            Call::Status::kForeign);
}

TEST(Call, OtherArgumentsOfIndexingMayNot) {
  const c10::List<std::optional<at::Tensor>> indices({Jax({4}, at::kLong)});
  EXPECT_NE(
      ErrorOf("index_put", {Jax({8}, at::kLong), indices, Cpu({4}, at::kLong), false}).find("cpu"),
      std::string::npos);
  EXPECT_NE(ErrorOf("index_select", {Jax({8}), 0, Cpu({4}, at::kLong)}).find("cpu"),
            std::string::npos);
}

TEST(Call, ASliceEndsWhereItsTensorEnds) {
  const at::Tensor x = Jax({8, 3});
  EXPECT_EQ(KeyOf("slice.Tensor", {x, 0, 5, 100, 1}), KeyOf("slice.Tensor", {x, 0, 1, 4, 1}));
  EXPECT_EQ(KeyOf("slice.Tensor", {x, 0, 5, c10::IValue(), 1}),
            KeyOf("slice.Tensor", {x, 0, 1, 4, 1}));
  EXPECT_EQ(WordsOf("slice.Tensor", {x, 0, 100, 200, 1}).back(), 0u);
  EXPECT_EQ(WordsOf("slice.Tensor", {x, 0, 5, 2, 1}).back(), 0u);
}

}  // namespace
}  // namespace torch_xla_lite::ops
