// Makes the plan (plan.h) of a graph of which a run was traced (trace.h).
//
//   auto plan = MakePlan(graph, trace, /*keeps=*/[](const ir::Signature&) { return true; });
//
// A result of an operation on elements is where a dead operand was. So the parameters that an
// optimizer updates are updated in place: they are donated leaves (ir/donation.h). So is a buffer
// of which a row is stored. Leaves are only written to where nothing can fail any more, because
// after a failure the graph runs once more, or where it then writes the same again.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_PLAN_MAKER_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_PLAN_MAKER_H_

#include <c10/util/FunctionRef.h>

#include <memory>

#include "torch_xla_lite/csrc/interpreter/plan.h"
#include "torch_xla_lite/csrc/interpreter/trace.h"
#include "torch_xla_lite/csrc/ir/key.h"

namespace torch_xla_lite::interpreter {

// keeps: whether calls of a signature may have a kept kernel.
std::unique_ptr<Plan> MakePlan(const ir::Description& graph, const Trace& trace,
                               c10::function_ref<bool(const ir::Signature&)> keeps);

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_PLAN_MAKER_H_
