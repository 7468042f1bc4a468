#include "torch_xla_lite/csrc/interpreter/interpreter.h"

#include <ATen/EmptyTensor.h>

#include <cstring>
#include <utility>

#include "torch_xla_lite/csrc/dispatch/kernel_keys.h"
#include "torch_xla_lite/csrc/interpreter/cpu_call.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::interpreter {
namespace {

at::Tensor Zeros(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  at::Tensor zeros(at::detail::empty_cpu(sizes, dtype));
  std::memset(zeros.mutable_data_ptr(), 0, zeros.nbytes());
  return zeros;
}

// The memory of the result holds its values, in row-major order: torch may leave a conjugation or a
// change of sign to the reader, and has zeros without memory.
at::Tensor Dense(const at::Tensor& tensor) {
  const dispatch::KernelKeysGuard keys;
  if (tensor._is_zerotensor()) return Zeros(tensor.sizes(), tensor.scalar_type());
  return tensor.resolve_conj().resolve_neg().contiguous();
}

// The same, in memory that nothing else refers to.
at::Tensor Owned(at::Tensor tensor) {
  const dispatch::KernelKeysGuard keys;
  tensor = Dense(tensor);
  const bool is_shared = tensor.use_count() > 1 || tensor.storage().use_count() > 1;
  return is_shared || tensor.storage_offset() != 0 ? tensor.clone(at::MemoryFormat::Contiguous)
                                                   : tensor;
}

// The steps after which the results of each step are not needed any more; roots are.
std::vector<std::vector<uint32_t>> StepsToFree(const ir::Description& description) {
  std::vector<uint32_t> last_use(description.steps.size());
  for (uint32_t i = 0; i < description.steps.size(); ++i) {
    last_use[i] = i;
    for (const ir::Position operand : description.steps[i].operands) last_use[operand.step] = i;
  }
  std::vector<bool> is_root(description.steps.size());
  for (const ir::Position root : description.roots) is_root[root.step] = true;
  std::vector<std::vector<uint32_t>> freed(description.steps.size());
  for (uint32_t i = 0; i < last_use.size(); ++i) {
    if (!is_root[i]) freed[last_use[i]].push_back(i);
  }
  return freed;
}

}  // namespace

Interpreter::Interpreter(const RunLowering& run_lowering)
    : run_lowering_(run_lowering), padded_draws_(run_lowering) {}

Interpreter::~Interpreter() = default;

std::vector<at::Tensor> Interpreter::Run(const ir::Graph& graph, std::vector<at::Tensor> leaves) {
  const ir::Description description = ir::Describe(graph.key);
  const auto freed = StepsToFree(description);
  std::vector<std::vector<at::Tensor>> results(description.steps.size());
  size_t leaf = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const ir::Step& step = description.steps[i];
    if (step.signature == nullptr) {
      results[i] = {leaves[leaf++]};
      continue;
    }
    std::vector<at::Tensor> operands;
    operands.reserve(step.operands.size());
    for (const ir::Position operand : step.operands) {
      operands.push_back(results[operand.step][operand.output]);
    }
    results[i] = RunCall(*graph.nodes[i], std::move(operands));
    for (const uint32_t done : freed[i]) results[done].clear();
  }
  std::vector<at::Tensor> roots;
  for (const ir::Position root : description.roots) {
    roots.push_back(results[root.step][root.output]);
  }
  results.clear();
  for (at::Tensor& root : roots) root = Owned(std::move(root));
  return roots;
}

std::vector<at::Tensor> Interpreter::RunCall(const ir::Node& node,
                                             std::vector<at::Tensor> operands) {
  const ir::Signature& signature = node.signature();
  // Memory that is not initialised is zeros here.
  if (signature.is_zeros) {
    const ir::Shape* shape = signature.outputs[0];
    return {Zeros(shape->dims(), tensor::ScalarTypeOf(shape))};
  }
  const CpuCall& call = CallOf(signature);
  if (call.is_possible() && !lowered_.contains(signature.op)) {
    try {
      return call.Run(operands, node.scalars());
    } catch (const OtherResults&) {
      UseLowering(signature.op);
    }
  }
  if (auto drawn = padded_draws_.Run(node)) return {*std::move(drawn)};
  for (at::Tensor& operand : operands) operand = Dense(operand);
  return run_lowering_(node, operands);
}

const CpuCall& Interpreter::CallOf(const ir::Signature& signature) {
  auto& call = calls_[&signature];
  if (!call) call = std::make_unique<const CpuCall>(signature);
  return *call;
}

}  // namespace torch_xla_lite::interpreter
