// Converts the names of ops to and from text such as "aten::add.Tensor".
//
//   FindOp("aten::add.Tensor")->operator_name();   // {"aten::add", "Tensor"}
//   FullName({"aten::relu", ""});                  // "aten::relu"

#ifndef TORCH_XLA_LITE_CSRC_OPS_OP_NAME_H_
#define TORCH_XLA_LITE_CSRC_OPS_OP_NAME_H_

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <string_view>

namespace torch_xla_lite::ops {

inline std::string FullName(const c10::OperatorName& op) {
  return op.overload_name.empty() ? op.name : op.name + "." + op.overload_name;
}

// Nothing if torch has no op of this name, or it has no schema.
inline std::optional<c10::OperatorHandle> FindOp(std::string_view name) {
  const size_t dot = name.find('.');
  const auto overload = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchema(
      {std::string(name.substr(0, dot)), std::string(overload)});
}

}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_OP_NAME_H_
