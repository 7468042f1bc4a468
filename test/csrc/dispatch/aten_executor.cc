#include "test/csrc/dispatch/aten_executor.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "torch_xla_lite/csrc/dispatch/call.h"
#include "torch_xla_lite/csrc/dispatch/decode.h"
#include "torch_xla_lite/csrc/dispatch/words.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::dispatch {
namespace {

using tensor::ScalarTypeOf;

class CpuBuffer final : public ir::Buffer {
 public:
  explicit CpuBuffer(at::Tensor tensor) : tensor(std::move(tensor)) {}
  bool IsExclusive() const override { return true; }

  const at::Tensor tensor;
};

const at::Tensor& TensorOf(const ir::Buffer* buffer) {
  return static_cast<const CpuBuffer*>(buffer)->tensor;
}

// Skips the first value of the words, and appends the dtypes of its runtime scalars.
void Skip(std::span<const uint64_t>* words, std::vector<c10::ScalarType>* scalars) {
  const uint64_t head = words->front();
  const uint64_t payload = PayloadOf(head);
  size_t size = 1;
  switch (TagOf(head)) {
    case Tag::kInt:
    case Tag::kDouble:
      size = 2;
      break;
    case Tag::kComplex:
      size = 3;
      break;
    case Tag::kString:
      size = 1 + (payload + 7) / 8;
      break;
    case Tag::kIntList:
    case Tag::kDoubleList:
    case Tag::kBoolList:
      size = 1 + payload;
      break;
    case Tag::kScalar:
      scalars->push_back(static_cast<c10::ScalarType>(payload & ~kWrappedNumber));
      break;
    default:
      break;
  }
  *words = words->subspan(size);
  if (TagOf(head) != Tag::kList) return;
  for (uint64_t i = 0; i < payload; ++i) Skip(words, scalars);
}

// One step of a graph: a call of an op, or a write through a view.
class CpuCall {
 public:
  explicit CpuCall(const ir::Signature& signature) : signature_(signature) {
    std::string name = signature.op;
    if (name.starts_with("write:")) {
      const size_t end = name.find(':', 6);
      written_ = std::stoul(name.substr(6, end - 6));
      name = name.substr(end + 1);
    }
    const size_t dot = name.find('.');
    op_ = c10::Dispatcher::singleton().findSchemaOrThrow(
        name.substr(0, dot).c_str(), dot == std::string::npos ? "" : name.substr(dot + 1).c_str());
    // The first word belongs to the recorder; words after the arguments are only part of the key.
    const auto arguments = std::span<const uint64_t>(signature.words).subspan(1);
    auto rest = arguments;
    for (size_t i = 0; i < op_->schema().arguments().size(); ++i) Skip(&rest, &scalar_types_);
    plan_.emplace(op_->schema(), arguments.first(arguments.size() - rest.size()));
  }

  std::vector<at::Tensor> Run(std::vector<at::Tensor> operands,
                              std::span<const uint64_t> words) const {
    std::vector<uint64_t> values;
    for (size_t i = 0; i < scalar_types_.size(); ++i) {
      values.push_back(ValueOf(words[i], scalar_types_[i]));
    }
    std::vector<ScalarView> scalars;
    for (size_t i = 0; i < values.size(); ++i) scalars.push_back({scalar_types_[i], &values[i]});
    at::Tensor value;
    if (written_) {
      value = operands[1];
      operands = {operands[0].clone()};
    }
    torch::jit::Stack stack;
    plan_->Fill(operands, scalars, &stack);
    op_->callBoxed(&stack);
    std::vector<at::Tensor> results;
    for (const c10::IValue& result : stack) {
      ForEachTensor(result, [&](const at::Tensor& tensor) { results.push_back(tensor); });
    }
    if (written_) {
      results.at(*written_).copy_(value);
      results = {operands[0]};
    }
    for (size_t i = 0; i < results.size(); ++i) Check(&results[i], signature_.outputs.at(i));
    return results;
  }

 private:
  // The bits of a scalar in the representation of its dtype.
  static uint64_t ValueOf(uint64_t word, c10::ScalarType dtype) {
    if (dtype != at::kFloat) return word;
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(word)));
  }

  // Values are dense, with the shape and dtype of the signature.
  static void Check(at::Tensor* result, const ir::Shape* shape) {
    TORCH_CHECK(result->defined() == (shape != nullptr), "a result is undefined");
    if (shape == nullptr) return;
    TORCH_CHECK(result->scalar_type() == ScalarTypeOf(shape), "a result of another dtype");
    TORCH_CHECK(result->sizes() == at::IntArrayRef(shape->dims()), "a result of another shape");
    *result = result->contiguous();
  }

  const ir::Signature& signature_;
  std::optional<c10::OperatorHandle> op_;
  std::optional<size_t> written_;
  std::vector<c10::ScalarType> scalar_types_;
  std::optional<CallPlan> plan_;
};

struct CpuExecutable final : runtime::Executable {
  ir::Description description;
  std::vector<std::optional<CpuCall>> calls;  // One for each step that is not a leaf.
};

}  // namespace

ir::Ref<runtime::Executable> AtenExecutor::Compile(const ir::Graph& graph) {
  auto executable = ir::Ref<CpuExecutable>::Take(new CpuExecutable);
  executable->description = ir::Describe(graph.key);
  for (const ir::Step& step : executable->description.steps) {
    auto& call = executable->calls.emplace_back();
    if (step.signature != nullptr) call.emplace(*step.signature);
  }
  return ir::Ref<runtime::Executable>::Share(executable.get());
}

std::vector<ir::Ref<ir::Buffer>> AtenExecutor::Execute(runtime::Executable& executable,
                                                       const ir::Graph& graph) {
  const auto& description = static_cast<const CpuExecutable&>(executable).description;
  const auto& calls = static_cast<const CpuExecutable&>(executable).calls;
  std::vector<std::vector<at::Tensor>> results;
  const auto at = [&](ir::Position position) { return results[position.step][position.output]; };
  size_t leaf = 0;
  std::span<const uint64_t> scalars = graph.scalars;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i]) {
      results.push_back({TensorOf(graph.leaves[leaf++].buffer())});
      continue;
    }
    const ir::Step& step = description.steps[i];
    std::vector<at::Tensor> operands;
    for (const ir::Position operand : step.operands) operands.push_back(at(operand));
    results.push_back(calls[i]->Run(std::move(operands), scalars.first(step.num_scalars)));
    scalars = scalars.subspan(step.num_scalars);
  }
  std::vector<ir::Ref<ir::Buffer>> buffers;
  for (const ir::Position root : description.roots) {
    buffers.push_back(ir::Ref<ir::Buffer>::Take(new CpuBuffer(at(root))));
  }
  return buffers;
}

ir::Ref<ir::Buffer> AtenExecutor::Upload(const ir::Shape* shape, const void* data) {
  const at::Tensor copy(at::detail::empty_cpu(shape->dims(), ScalarTypeOf(shape)));
  std::memcpy(copy.mutable_data_ptr(), data, copy.nbytes());
  return ir::Ref<ir::Buffer>::Take(new CpuBuffer(copy));
}

ir::Ref<ir::Buffer> AtenExecutor::Zeros(const ir::Shape* shape) {
  const at::Tensor zeros(at::detail::empty_cpu(shape->dims(), ScalarTypeOf(shape)));
  std::memset(zeros.mutable_data_ptr(), 0, zeros.nbytes());
  return ir::Ref<ir::Buffer>::Take(new CpuBuffer(zeros));
}

void AtenExecutor::Download(ir::Buffer& buffer, void* data, size_t num_bytes) {
  std::memcpy(data, TensorOf(&buffer).const_data_ptr(), num_bytes);
}

}  // namespace torch_xla_lite::dispatch
