#include "torch_xla_lite/csrc/interpreter/kept_parts.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Scalar.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace torch_xla_lite::interpreter {
namespace {

using ops::CallPlan;
using torch::jit::Stack;

constexpr std::string_view kForeach = "aten::_foreach_";

// The op, or the one that takes a tensor where it takes a number.
std::string OpOfTensors(std::string_view op) {
  for (const std::string_view name :
       {"add", "div", "eq", "ge", "gt", "le", "lt", "mul", "ne", "sub"}) {
    const std::string full = "aten::" + std::string(name);
    if (op == full + ".Scalar") return full + ".Tensor";
  }
  return std::string(op);
}

// The op that torch calls for each element of the lists of another; "" if it has no kept kernel.
std::string OpOfElements(std::string_view op) {
  op.remove_prefix(kForeach.size());
  const size_t dot = op.find('.');
  const std::string_view name = op.substr(0, dot);
  const std::string full = "aten::" + std::string(name);
  if (dot == std::string_view::npos) return full;
  const std::string_view overload = op.substr(dot + 1);
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
  };
  if (is_one_of({"add", "sub", "mul", "div"})) return full + ".Tensor";
  if (name == "lerp") return full + (overload == "List" ? ".Tensor" : ".Scalar");
  const bool has_numbers = overload == "Scalar" || overload == "ScalarList";
  return has_numbers && is_one_of({"addcdiv", "addcmul"}) ? full : "";
}

std::vector<Part> Elements(std::string_view op, const Stack& arguments,
                           std::span<const CallPlan::RuntimeNumber> numbers) {
  const std::string op_of_elements = OpOfElements(op);
  if (op_of_elements.empty()) return {};
  std::vector<Part> parts(arguments[0].toTensorList().size());
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    part = {op_of_elements, {}, {}, i};
    for (const c10::IValue& argument : arguments) {
      part.arguments.push_back(argument.isList() ? argument.toListRef()[i] : argument);
    }
    // Of add and sub: alpha.
    const bool scales =
        op_of_elements.ends_with(":add.Tensor") || op_of_elements.ends_with(":sub.Tensor");
    if (scales && part.arguments.size() == 2) part.arguments.emplace_back(c10::Scalar(1));
    for (size_t scalar = 0; scalar < numbers.size(); ++scalar) {
      const auto [argument, item, is_tensor, wrapped] = numbers[scalar];
      if (item && *item != i) continue;
      part.numbers.push_back({argument, scalar, is_tensor, wrapped});
    }
  }
  return parts;
}

// Whether rows of a tensor are those of a matrix that torch multiplies as it is.
bool IsMatrix(const at::Tensor& tensor) {
  const bool is_float = tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
  return is_float && tensor.dim() >= 2 && tensor.is_contiguous() && tensor.numel() > 0;
}

at::Tensor Matrix(const at::Tensor& tensor) { return tensor.flatten(0, -2); }

// (input, weight, bias)
std::vector<Part> PartsOfLinear(const Stack& arguments) {
  const at::Tensor input = arguments[0].toTensor(), weight = arguments[1].toTensor();
  // With more dimensions, torch adds the bias afterwards.
  if (!IsMatrix(input) || input.dim() > 3 || weight.dim() != 2) return {};
  const c10::IValue& bias = arguments[2];
  if (!bias.isTensor() || !bias.toTensor().defined()) {
    return {{"aten::mm", {Matrix(input), weight.t()}, {}, 0, true}};
  }
  const c10::Scalar one = 1;
  return {{"aten::addmm", {bias, Matrix(input), weight.t(), one, one}, {}, 0, true}};
}

// (self, grad_output, weight, mask), as CpuCall computes it.
std::vector<Part> PartsOfLinearBackward(const Stack& arguments) {
  const at::Tensor self = arguments[0].toTensor(), grad = arguments[1].toTensor(),
                   weight = arguments[2].toTensor();
  if (!IsMatrix(self) || !IsMatrix(grad)) return {};
  const auto mask = arguments[3].toBoolList();
  const at::Tensor rows = Matrix(grad);
  std::vector<Part> parts;
  if (mask[0]) parts.push_back({"aten::mm", {rows, weight}, {}, 0, true});
  if (mask[1] || mask[2]) {
    parts.push_back({"aten::mm", {rows.t(), Matrix(self)}, {}, 1});
    const std::vector<int64_t> dims{0};
    parts.push_back({"aten::sum.dim_IntList", {rows, dims, false, c10::IValue()}, {}, 2});
  }
  return parts;
}

}  // namespace

std::vector<Part> PartsOf(std::string_view op, const Stack& arguments,
                          std::span<const CallPlan::RuntimeNumber> numbers) {
  if (op.starts_with(kForeach)) return Elements(op, arguments, numbers);
  if (op == "aten::linear") return PartsOfLinear(arguments);
  if (op == "aten::linear_backward") return PartsOfLinearBackward(arguments);
  Part whole{OpOfTensors(op), arguments, {}, 0};
  for (size_t scalar = 0; scalar < numbers.size(); ++scalar) {
    const auto [argument, item, is_tensor, wrapped] = numbers[scalar];
    if (item) return {};
    whole.numbers.push_back({argument, scalar, is_tensor, wrapped});
  }
  return {std::move(whole)};
}

}  // namespace torch_xla_lite::interpreter
