#include "torch_xla_lite/csrc/aten/out_overload.h"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch_xla_lite::aten {
namespace {

using c10::Argument;
using c10::FunctionSchema;

bool IsOut(const Argument& argument) { return argument.is_out(); }

// All out= overloads of an op. The dispatcher has no index by op name, so one is built at the first
// call.
const std::vector<c10::OperatorHandle>& OutOverloads(const std::string& name) {
  using Index = std::unordered_map<std::string, std::vector<c10::OperatorHandle>>;
  static const Index* index = [] {
    auto* built = new Index();
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& op_name : dispatcher.getAllOpNames()) {
      auto op = dispatcher.findOp(op_name);
      if (!op.has_value() || !op->hasSchema()) continue;
      const auto& arguments = op->schema().arguments();
      if (std::any_of(arguments.begin(), arguments.end(), IsOut)) {
        (*built)[op_name.name].push_back(*op);
      }
    }
    return built;
  }();
  static const auto* none = new std::vector<c10::OperatorHandle>();
  auto found = index->find(name);
  return found == index->end() ? *none : found->second;
}

// Whether `out` takes the arguments of `functional`, then one tensor per result. Overload names
// follow no rule, so schemas are compared.
bool SameCall(const FunctionSchema& functional, const FunctionSchema& out) {
  const auto& ours = functional.arguments();
  const auto& theirs = out.arguments();
  if (theirs.size() != ours.size() + functional.returns().size()) return false;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (IsOut(theirs[i]) || ours[i].name() != theirs[i].name() ||
        *ours[i].type() != *theirs[i].type()) {
      return false;
    }
  }
  for (size_t i = ours.size(); i < theirs.size(); ++i) {
    if (!IsOut(theirs[i]) || theirs[i].type()->kind() != c10::TypeKind::TensorType) return false;
  }
  return true;
}

}  // namespace

std::optional<c10::OperatorHandle> FindOutOverload(const c10::OperatorHandle& op) {
  if (!op.hasTag(at::Tag::pointwise)) return std::nullopt;
  for (const Argument& output : op.schema().returns()) {
    if (output.type()->kind() != c10::TypeKind::TensorType) return std::nullopt;
  }
  for (const c10::OperatorHandle& candidate : OutOverloads(op.operator_name().name)) {
    if (SameCall(op.schema(), candidate.schema()) &&
        candidate.hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
      return candidate;
    }
  }
  return std::nullopt;
}

}  // namespace torch_xla_lite::aten
