#include "torch_xla_lite/csrc/interpreter/interpreter.h"

#include <ATen/core/stack.h>
#include <c10/core/DefaultDtype.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "test/csrc/record/recorder_test_base.h"
#include "torch_xla_lite/csrc/device/block_allocator.h"
#include "torch_xla_lite/csrc/interpreter/completion.h"
#include "torch_xla_lite/csrc/interpreter/cpu_call.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ops/op_name.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::interpreter {
namespace {

using record::Iota;
using record::Upload;

// The results are those of recorded ops, which the fixture computes by an interpreter.
class InterpreterTest : public record::RecorderTest {
 protected:
  // The ops of the graph of a tensor that run their lowering.
  static std::vector<std::string> Lowered(const at::Tensor& tensor) {
    std::vector<std::string> found;
    const auto run = [&](const ir::Node& call, std::span<const at::Tensor> operands) {
      found.push_back(call.signature().op);
      std::vector<at::Tensor> results;
      for (const ir::Shape* shape : call.signature().outputs) {
        EXPECT_TRUE(operands.empty() || operands[0].is_contiguous());
        results.push_back(shape == nullptr ? at::Tensor() : Iota({shape->dims()}));
      }
      return results;
    };
    Interpreter interpreter(run, nullptr);
    Run(interpreter, tensor);
    return found;
  }

  static at::Tensor Run(Interpreter& interpreter, const at::Tensor& tensor) {
    const ir::Value value = tensor::XTensorImpl::From(tensor)->Read();
    const ir::Root root{&value};
    const ir::Graph graph = ir::Linearize({&root, 1});
    std::vector<Interpreter::Leaf> leaves;
    for (const ir::Value& leaf : graph.leaves) leaves.push_back({Iota({leaf.shape()->dims()})});
    return interpreter.Run(graph, std::move(leaves)).at(0);
  }
};

TEST_F(InterpreterTest, ChannelsThatAreLastStayLastButNotThoseOfAGradientOfAWeight) {
  constexpr auto kLast = at::MemoryFormat::ChannelsLast;
  const std::vector<int64_t> none{0, 0}, two{2, 2};
  torch::jit::Stack pooled{Upload(Iota({2, 3, 4, 4})), two, two, none, false, true, {}};
  ops::FindOp("aten::avg_pool2d")->callBoxed(&pooled);
  const ir::Value value = tensor::XTensorImpl::From(pooled[0].toTensor())->Read();
  std::vector<at::Tensor> operands{Iota({2, 3, 4, 4}).contiguous(kLast)};
  const CpuCall& call = CpuCall::Of(value.node->signature());
  EXPECT_TRUE(call.Run(operands, {}, false).at(0).is_contiguous(kLast));
  torch::jit::Stack results{{}, operands[0].contiguous(kLast), {}};
  FindCompletion("convolution_backward")({{}, {}, Iota({2, 3, 4, 4})}, &results);
  EXPECT_TRUE(results[1].toTensor().is_contiguous());
}

TEST_F(InterpreterTest, AWriteThroughElementsThatShareMemoryIsLeftToTheLowering) {
  const at::Tensor apart = Upload(Iota({6})), shared = Upload(Iota({6}));
  apart.as_strided({2, 2}, {3, 1}).fill_(1);
  EXPECT_EQ(Lowered(apart), std::vector<std::string>{});
  shared.as_strided({2, 2}, {1, 1}).fill_(1);
  EXPECT_EQ(Lowered(shared), std::vector<std::string>{"aten::as_strided"});
}

TEST_F(InterpreterTest, AResultIsFreedWhileAnotherOfItsCallIsNeeded) {
  constexpr int64_t kSize = 1 << 16;
  size_t used = 0;
  const auto run = [&](const ir::Node&, std::span<const at::Tensor> operands) {
    used = device::CountBlockBytes().used;
    return std::vector<at::Tensor>{operands[0].clone()};
  };
  Interpreter interpreter(run, nullptr);
  interpreter.UseLowering("aten::exp");
  const auto [values, indices] = Upload(Iota({kSize})).sort();
  Run(interpreter, values.sum().exp().add(indices));
  EXPECT_EQ(used, kSize * sizeof(int64_t));
}

TEST_F(InterpreterTest, TheDefaultDtypeIsThatOfTheRecording) {
  const auto before = c10::get_default_dtype();
  const at::Tensor x = Upload(Iota({2}, at::kLong));
  const at::Tensor quotient = x.div(2);
  c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
  const std::vector<std::string> lowered = Lowered(quotient);
  c10::set_default_dtype(before);
  EXPECT_EQ(lowered, std::vector<std::string>{"aten::div.Scalar"});
}

TEST_F(InterpreterTest, ARootHasItsMemoryForItself) {
  const at::Tensor x = Upload(Iota({6}));
  const at::Tensor leaf = Iota({6});
  Interpreter interpreter(nullptr, nullptr);
  const ir::Value value = tensor::XTensorImpl::From(x.view({2, 3}))->Read();
  const ir::Root root{&value};
  const at::Tensor result = interpreter.Run(ir::Linearize({&root, 1}), {{leaf}}).at(0);
  EXPECT_TRUE(result.is_contiguous());
  EXPECT_NE(result.const_data_ptr(), leaf.const_data_ptr());
}

TEST_F(InterpreterTest, StridesThatAreArgumentsBelongToADenseValue) {
  const auto part = [](const at::Tensor& x) {
    return x.select(0, 1).clone().as_strided({2, 2}, {1, 2}, 0).contiguous();
  };
  ExpectEqual(part(Upload(Iota({3, 4}))), part(Iota({3, 4})));
}

}  // namespace
}  // namespace torch_xla_lite::interpreter
