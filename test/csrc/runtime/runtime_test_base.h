// The fixture of the runtime's tests: places for recorded values, and an executor in memory.
//
//   TEST_F(RuntimeTest, AValueIsComputedWhenItIsRead) {
//     LiveValue place;
//     Set(place, ir::toy::Call("plus", {ir::toy::Leaf({1})}, {1}));
//     EXPECT_EQ(Read(place), ir::toy::Data{2});
//   }

#ifndef TORCH_XLA_LITE_TEST_CSRC_RUNTIME_RUNTIME_TEST_BASE_H_
#define TORCH_XLA_LITE_TEST_CSRC_RUNTIME_RUNTIME_TEST_BASE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "test/csrc/ir/toy_ops.h"
#include "test/csrc/runtime/memory_executor.h"
#include "torch_xla_lite/csrc/runtime/costs.h"
#include "torch_xla_lite/csrc/runtime/graph_runner.h"
#include "torch_xla_lite/csrc/runtime/live_values.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace torch_xla_lite::runtime {

class RuntimeTest : public testing::Test {
 protected:
  RuntimeTest() {
    runtime.SetExecutor(&executor);
    runtime.ClearCache();
    runtime.set_compile_when(CompileWhen::kFirst);
    // A graph of one op is compiled when it comes back.
    runtime.costs().Set({{CostModel::kOther, {{.call = 1}, {}, 1}}}, {.load = 1e9});
    runtime.counters().interpretations = 0;
    runtime.counters().compiles = 0;
    runtime.counters().executions = 0;
    runtime.counters().cache_hits = 0;
  }

  void Set(LiveValue& place, ir::Value value) {
    ir::Value replaced;
    const RecordScope scope;
    replaced = place.Set(std::move(value));
  }

  ir::Value Get(const LiveValue& place) {
    const RecordScope scope;
    return place.value();
  }

  ir::toy::Data Read(const LiveValue& place) {
    const auto buffer = runtime.Materialize(Get(place));
    return static_cast<const ir::toy::HostBuffer&>(*buffer).data;
  }

  bool IsPending(const LiveValue& place) {
    const RecordScope scope;
    return place.value().buffer() == nullptr;
  }

  uint64_t compiles() const { return runtime.counters().compiles; }
  uint64_t executions() const { return runtime.counters().executions; }
  uint64_t cache_hits() const { return runtime.counters().cache_hits; }
  uint64_t interpretations() const { return runtime.counters().interpretations; }

  Runtime& runtime = Runtime::Get();
  MemoryExecutor executor;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_TEST_CSRC_RUNTIME_RUNTIME_TEST_BASE_H_
