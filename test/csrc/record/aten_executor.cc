#include "test/csrc/record/aten_executor.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <cstring>
#include <utility>

#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::record {
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

struct CpuExecutable final : runtime::Executable {};

}  // namespace

ir::Ref<runtime::Executable> AtenExecutor::Compile(const ir::Graph& /*graph*/) {
  return ir::Ref<runtime::Executable>::Take(new CpuExecutable);
}

std::vector<ir::Ref<ir::Buffer>> AtenExecutor::Execute(runtime::Executable& /*executable*/,
                                                       const ir::Graph& graph) {
  std::vector<interpreter::Interpreter::Leaf> leaves;
  for (size_t i = 0; i < graph.leaves.size(); ++i) leaves.push_back({TensorOf(graph.data(i))});
  std::vector<ir::Ref<ir::Buffer>> buffers;
  for (at::Tensor& root : interpreter_.Run(graph, std::move(leaves))) {
    buffers.push_back(ir::Ref<ir::Buffer>::Take(new CpuBuffer(std::move(root))));
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

}  // namespace torch_xla_lite::record
