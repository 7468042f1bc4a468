#include "torch_xla_lite/csrc/ops/mixed_devices.h"

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <string_view>

namespace torch_xla_lite::ops {
namespace {

// Where a tensor is among the arguments of a call.
struct Place {
  size_t argument = 0;
  std::string name = "other";  // As in the schema; `tensors[1]` for an item of a list.
};

Place Find(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments, const at::Tensor& tensor) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = info.op.schema().arguments()[i].name();
    if (arguments[i].isTensor() && arguments[i].toTensor().is_same(tensor)) return {i, name};
    if (!arguments[i].isList()) continue;
    const auto items = arguments[i].toListRef();
    for (size_t k = 0; k < items.size(); ++k) {
      if (items[k].isTensor() && items[k].toTensor().is_same(tensor)) {
        return {i, name + "[" + std::to_string(k) + "]"};
      }
    }
  }
  return {};
}

// Frozen ones do not require a gradient, and neither do buffers; their names tell them.
bool BelongsToModule(const at::Tensor& tensor, std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"weight", "bias", "running_mean",
                                                      "running_var"};
  return (tensor.requires_grad() && tensor.is_leaf()) || std::ranges::count(kNames, name) > 0;
}

std::string TypeOf(const at::Tensor& tensor) {
  std::ostringstream text;
  text << c10::getDtypeNames(tensor.scalar_type()).first << "[";
  for (int64_t i = 0; i < tensor.dim(); ++i) text << (i == 0 ? "" : ",") << tensor.size(i);
  text << "]";
  return text.str();
}

}  // namespace

void RefuseMixedDevices(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                        const at::Tensor& foreign) {
  const Place place = Find(info, arguments, foreign);
  const bool is_parameter = BelongsToModule(foreign, place.name);
  const std::string moved = is_parameter ? "model" : place.name == "self" ? "tensor" : place.name;
  TORCH_CHECK(false, "expected all tensors on one device, found jax:0 and ", foreign.device(),
              " (in ", info.op.operator_name().name, ").\nArgument ", place.argument + 1, " (",
              place.name, ", ", TypeOf(foreign), ") is ", is_parameter ? "a parameter " : "", "on ",
              foreign.device(), ". Move ", is_parameter ? "its module" : "it", " first:  ", moved,
              ".to('jax')");
}

}  // namespace torch_xla_lite::ops
