// An executor that interprets graphs of toy ops in memory (test/csrc/ir/toy_ops.h).
//
// It is as strict as a device: it erases the memory of donated leaves, throws if erased memory is
// read, and detects concurrent use by two threads.
//
//   MemoryExecutor executor;
//   Runtime::Get().SetExecutor(&executor);
//   Runtime::Get().Sync();
//   executor.num_donated;

#ifndef TORCH_XLA_LITE_TEST_CSRC_RUNTIME_MEMORY_EXECUTOR_H_
#define TORCH_XLA_LITE_TEST_CSRC_RUNTIME_MEMORY_EXECUTOR_H_

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/runtime/executor.h"

namespace torch_xla_lite::runtime {

class MemoryExecutor final : public Executor {
 public:
  std::optional<std::vector<ir::Ref<ir::Buffer>>> Interpret(const ir::Graph& graph,
                                                            ExecutableCache& cache,
                                                            ir::Ref<Plan>* plan) override;
  ir::Ref<Executable> Load(const ir::Graph& graph) override;
  ir::Ref<Executable> Compile(const ir::Graph& graph) override;
  ir::Ref<Compilation> StartCompile(const ir::Graph& graph) override;
  std::vector<ir::Ref<ir::Buffer>> Execute(Executable& executable, const ir::Graph& graph) override;
  // Of int64 vectors.
  ir::Ref<ir::Buffer> Upload(const ir::Shape* shape, const void* data) override;
  ir::Ref<ir::Buffer> Zeros(const ir::Shape* shape) override;
  void Download(ir::Buffer& buffer, void* data, size_t num_bytes) override;
  void AwaitAll() override {}

  // Called during each execution, to simulate another thread.
  std::function<void()> during_execution;
  // Whether graphs can be interpreted.
  bool interprets = true;
  // Whether the program of each graph is on disk.
  bool loads = false;
  // Whether what was started in the background is done.
  bool is_background_done = false;
  int num_donated = 0;
  int num_plans = 0;  // Made.
  int num_started = 0;

 private:
  std::atomic<bool> is_busy_ = false;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_TEST_CSRC_RUNTIME_MEMORY_EXECUTOR_H_
