#include "test/csrc/runtime/memory_executor.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ir/key.h"

namespace torch_xla_lite::runtime {
namespace {

using ir::toy::Data;
using ir::toy::HostBuffer;

struct MemoryExecutable final : Executable {
  ir::Description description;
};

class MemoryCompilation final : public Compilation {
 public:
  // Without an executable it fails.
  MemoryCompilation(MemoryExecutor* executor, ir::Ref<Executable> executable)
      : executor_(*executor), executable_(std::move(executable)) {}
  bool IsDone() override { return executor_.is_background_done; }
  ir::Ref<Executable> Result() override { return executable_; }

 private:
  MemoryExecutor& executor_;
  ir::Ref<Executable> executable_;
};

class ExclusiveUse {
 public:
  explicit ExclusiveUse(std::atomic<bool>* is_busy) : is_busy_(is_busy) {
    if (is_busy->exchange(true)) throw std::logic_error("two threads use the executor at once");
  }
  ~ExclusiveUse() { is_busy_->store(false); }

 private:
  std::atomic<bool>* is_busy_;
};

std::vector<uint32_t> StepsOf(std::string_view op, const ir::Description& graph) {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < graph.steps.size(); ++i) {
    const ir::Signature* const signature = graph.steps[i].signature;
    if (signature != nullptr && signature->op == op) found.push_back(i);
  }
  return found;
}

ir::Ref<ir::Buffer> BufferOf(Data data) {
  return ir::Ref<ir::Buffer>::Take(new HostBuffer(std::move(data)));
}

}  // namespace

std::optional<std::vector<ir::Ref<ir::Buffer>>> MemoryExecutor::Interpret(
    const ir::Graph& graph, ExecutableCache& /*cache*/, ir::Ref<Plan>* plan) {
  const ExclusiveUse use(&is_busy_);
  if (!interprets) return std::nullopt;
  if (plan != nullptr && !*plan) {
    *plan = ir::MakeRef<Plan>();
    ++num_plans;
  }
  std::vector<ir::Ref<ir::Buffer>> buffers;
  const auto leaves = ir::toy::DataOf(graph.leaves);
  for (Data& data : ir::toy::Interpret(graph.description(), leaves, graph.scalars)) {
    buffers.push_back(BufferOf(std::move(data)));
  }
  return buffers;
}

ir::Ref<Executable> MemoryExecutor::Load(const ir::Graph& graph) {
  return loads ? Compile(graph) : ir::Ref<Executable>();
}

ir::Ref<Executable> MemoryExecutor::Compile(const ir::Graph& graph) {
  const ExclusiveUse use(&is_busy_);
  auto executable = ir::Ref<MemoryExecutable>::Take(new MemoryExecutable);
  executable->description = ir::Describe(graph.key);
  if (auto steps = StepsOf("refuse", executable->description); !steps.empty()) {
    throw StepFailure{std::move(steps),
                      std::make_exception_ptr(std::runtime_error("this op is refused"))};
  }
  return ir::Ref<Executable>::Share(executable.get());
}

ir::Ref<Compilation> MemoryExecutor::StartCompile(const ir::Graph& graph) {
  ++num_started;
  ir::Ref<Executable> executable;
  try {
    executable = Compile(graph);
  } catch (const StepFailure&) {
    // Reported when it is compiled again.
  }
  return ir::Ref<Compilation>::Take(new MemoryCompilation(this, std::move(executable)));
}

std::vector<ir::Ref<ir::Buffer>> MemoryExecutor::Execute(Executable& executable,
                                                         const ir::Graph& graph) {
  const ExclusiveUse use(&is_busy_);
  const ir::Description& description = static_cast<MemoryExecutable&>(executable).description;
  std::vector<Data> results;
  try {
    results = ir::toy::Interpret(description, ir::toy::DataOf(graph.leaves), graph.scalars);
  } catch (const std::runtime_error&) {
    throw StepFailure{StepsOf("fail", description), std::current_exception()};
  }
  if (during_execution) during_execution();
  uint32_t leaf = 0;
  for (const ir::Step& step : description.steps) {
    if (step.kind != ir::StepKind::kLeaf) continue;
    auto* buffer = static_cast<HostBuffer*>(graph.data(leaf));
    const bool is_copied =
        std::ranges::find(graph.copied_leaves, leaf++) != graph.copied_leaves.end();
    if (!step.donated || is_copied) continue;
    buffer->data.clear();
    ++num_donated;
  }
  std::vector<ir::Ref<ir::Buffer>> buffers;
  for (const Data& result : results) buffers.push_back(BufferOf(result));
  return buffers;
}

ir::Ref<ir::Buffer> MemoryExecutor::Upload(const ir::Shape* shape, const void* data) {
  Data copy(static_cast<size_t>(shape->NumElements()));
  std::memcpy(copy.data(), data, copy.size() * sizeof copy[0]);
  return BufferOf(std::move(copy));
}

ir::Ref<ir::Buffer> MemoryExecutor::Zeros(const ir::Shape* shape) {
  return BufferOf(Data(static_cast<size_t>(shape->NumElements())));
}

void MemoryExecutor::Download(ir::Buffer& buffer, void* data, size_t num_bytes) {
  std::memcpy(data, static_cast<HostBuffer&>(buffer).data.data(), num_bytes);
}

}  // namespace torch_xla_lite::runtime
