// An executor that interprets all graphs (interpreter/interpreter.h).
//
// With it, tests compare recorded ops with torch without a compiler. An op without a kernel for the
// CPU fails.
//
//   AtenExecutor executor;
//   runtime::Runtime::Get().SetExecutor(&executor);

#ifndef TORCH_XLA_LITE_TEST_CSRC_RECORD_ATEN_EXECUTOR_H_
#define TORCH_XLA_LITE_TEST_CSRC_RECORD_ATEN_EXECUTOR_H_

#include <span>
#include <stdexcept>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/interpreter.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/runtime/executor.h"

namespace torch_xla_lite::record {

class AtenExecutor final : public runtime::Executor {
 public:
  ir::Ref<runtime::Executable> Compile(const ir::Graph& graph) override;
  std::vector<ir::Ref<ir::Buffer>> Execute(runtime::Executable& executable,
                                           const ir::Graph& graph) override;
  ir::Ref<ir::Buffer> Upload(const ir::Shape* shape, const void* data) override;
  ir::Ref<ir::Buffer> Zeros(const ir::Shape* shape) override;
  void Download(ir::Buffer& buffer, void* data, size_t num_bytes) override;
  void AwaitAll() override {}

 private:
  interpreter::Interpreter interpreter_{
      [](const ir::Node& call, std::span<const at::Tensor>) -> std::vector<at::Tensor> {
        throw std::runtime_error("the CPU has no kernel for " + call.signature().op);
      },
      [] { return true; }};
};

}  // namespace torch_xla_lite::record

#endif  // TORCH_XLA_LITE_TEST_CSRC_RECORD_ATEN_EXECUTOR_H_
