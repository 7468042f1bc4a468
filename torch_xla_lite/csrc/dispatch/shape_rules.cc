#include "torch_xla_lite/csrc/dispatch/shape_rules.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_xla_lite::dispatch {
namespace {

using at::Tensor;
using Arguments = c10::ArrayRef<c10::IValue>;
using Results = std::optional<std::vector<c10::IValue>>;
using Rule = Results (*)(Arguments arguments);

Tensor Meta(at::IntArrayRef sizes, c10::ScalarType dtype) {
  return Tensor(at::detail::empty_meta(sizes, dtype));
}

Tensor Like(const Tensor& tensor) { return Meta(tensor.sizes(), tensor.scalar_type()); }

bool IsFloat(const Tensor& tensor) {
  const c10::ScalarType dtype = tensor.scalar_type();
  return tensor.is_meta() && (dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf ||
                              dtype == at::kBFloat16);
}

// Whether an optional tensor is missing, or has this dtype and these sizes.
bool Fits(const c10::IValue& value, c10::ScalarType dtype, at::IntArrayRef sizes) {
  if (value.isNone() || !value.toTensor().defined()) return true;
  const Tensor& tensor = value.toTensor();
  return tensor.is_meta() && tensor.scalar_type() == dtype && tensor.sizes() == sizes;
}

bool IsLike(const c10::IValue& value, const Tensor& other) {
  return value.isTensor() && value.toTensor().defined() &&
         Fits(value, other.scalar_type(), other.sizes());
}

bool IsDim(int64_t dim, const Tensor& tensor) { return dim >= -tensor.dim() && dim < tensor.dim(); }

// Widens `sizes` to the sizes of both. False if they do not fit.
bool Broadcast(at::IntArrayRef other, at::DimVector* sizes) {
  if (other.size() > sizes->size()) sizes->insert(sizes->begin(), other.size() - sizes->size(), 1);
  for (size_t i = 1; i <= other.size(); ++i) {
    int64_t& size = (*sizes)[sizes->size() - i];
    const int64_t wanted = other[other.size() - i];
    if (size != wanted && size != 1 && wanted != 1) return false;
    if (size == 1) size = wanted;
  }
  return true;
}

// Element-wise ops of floats of one dtype, with numbers and masks.
template <bool kGivesBool>
Results Elementwise(Arguments arguments) {
  at::DimVector sizes;
  auto dtype = c10::ScalarType::Undefined;
  bool has_dims = false, has_number = false;
  for (const c10::IValue& value : arguments) {
    if (value.isString()) {
      // Of gelu.
      if (value.toStringView() != "none" && value.toStringView() != "tanh") return {};
    } else if (value.isScalar()) {
      if (value.isComplexDouble()) return {};
    } else if (value.isTensor() && value.toTensor().defined()) {
      const Tensor& tensor = value.toTensor();
      const bool is_bool = tensor.scalar_type() == at::kBool;
      if (tensor.device().is_cpu()) {
        if (c10::isComplexType(tensor.scalar_type())) return {};
        has_number = true;
        continue;
      }
      if (!is_bool && !IsFloat(tensor)) return {};
      if (!Broadcast(tensor.sizes(), &sizes)) return {};
      if (is_bool) continue;
      if (dtype != c10::ScalarType::Undefined && dtype != tensor.scalar_type()) return {};
      dtype = tensor.scalar_type();
      has_dims |= tensor.dim() > 0;
    } else if (!value.isNone()) {
      return {};
    }
  }
  // A number counts for the dtype beside tensors without dimensions.
  if (dtype == c10::ScalarType::Undefined || (has_number && !has_dims)) return {};
  return {{Meta(sizes, kGivesBool ? at::kBool : dtype)}};
}

Results Clamp(Arguments arguments) {
  // One without bounds is an error.
  return arguments[1].isNone() ? Results() : Elementwise<false>(arguments);
}

// (self, mask, value)
Results MaskedFill(Arguments arguments) {
  const bool has_mask = arguments[1].toTensor().scalar_type() == at::kBool;
  return has_mask ? Elementwise<false>(arguments) : Results();
}

// (condition, self, other)
Results Where(Arguments arguments) {
  const bool has_mask = arguments[0].toTensor().scalar_type() == at::kBool;
  const bool same = IsFloat(arguments[1].toTensor()) && IsFloat(arguments[2].toTensor());
  return has_mask && same ? Elementwise<false>(arguments) : Results();
}

// (self, dim, half_to_float), or (self, dim, dtype)
Results Softmax(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  const bool is_wider =
      !arguments[2].isNone() && !(arguments[2].isBool() && !arguments[2].toBool());
  if (!IsFloat(self) || !IsDim(arguments[1].toInt(), self) || is_wider) return {};
  return {{Like(self)}};
}

// (grad_output, output, dim, input_dtype)
Results SoftmaxBackward(Arguments arguments) {
  const Tensor& grad = arguments[0].toTensor();
  const bool is_same = arguments[3].toScalarType() == grad.scalar_type();
  if (!IsFloat(grad) || !IsLike(arguments[1], grad) || !IsDim(arguments[2].toInt(), grad))
    return {};
  return is_same ? Results({Like(grad)}) : Results();
}

// (input, weight, bias)
Results Linear(Arguments arguments) {
  const Tensor &input = arguments[0].toTensor(), &weight = arguments[1].toTensor();
  if (!IsFloat(input) || weight.dim() != 2 || input.dim() < 2) return {};
  if (input.scalar_type() != weight.scalar_type() || input.size(-1) != weight.size(1)) return {};
  if (!Fits(arguments[2], input.scalar_type(), {weight.size(0)})) return {};
  at::DimVector sizes(input.sizes());
  sizes.back() = weight.size(0);
  return {{Meta(sizes, input.scalar_type())}};
}

// (self, mat1, mat2, beta, alpha)
Results Addmm(Arguments arguments) {
  const Tensor &left = arguments[1].toTensor(), &right = arguments[2].toTensor();
  if (!IsFloat(left) || left.dim() != 2 || right.dim() != 2) return {};
  if (left.scalar_type() != right.scalar_type() || left.size(1) != right.size(0)) return {};
  const at::DimVector sizes = {left.size(0), right.size(1)};
  const c10::ScalarType dtype = left.scalar_type();
  if (!Fits(arguments[0], dtype, {sizes[1]}) && !Fits(arguments[0], dtype, sizes)) return {};
  const bool is_complex = arguments[3].isComplexDouble() || arguments[4].isComplexDouble();
  return is_complex ? Results() : Results({Meta(sizes, dtype)});
}

bool IsLoss(const Tensor& self, const c10::IValue& target, const c10::IValue& weight) {
  return IsFloat(self) && self.dim() == 2 && Fits(target, at::kLong, {self.size(0)}) &&
         Fits(weight, self.scalar_type(), {self.size(1)});
}

// (self, target, weight, reduction, ignore_index)
Results NllLoss(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  const int64_t reduction = arguments[3].toInt();
  if (!IsLoss(self, arguments[1], arguments[2]) || reduction < 0 || reduction > 2) return {};
  at::DimVector sizes;
  if (reduction == 0) sizes.push_back(self.size(0));
  return {{Meta(sizes, self.scalar_type()), Meta({}, self.scalar_type())}};
}

// (grad_output, self, target, weight, reduction, ignore_index, total_weight)
Results NllLossBackward(Arguments arguments) {
  const Tensor& self = arguments[1].toTensor();
  const bool reduces = arguments[4].toInt() != 0;
  if (!IsLoss(self, arguments[2], arguments[3]) ||
      !Fits(arguments[0], self.scalar_type(), self.sizes().slice(0, reduces ? 0 : 1)) ||
      !Fits(arguments[6], self.scalar_type(), {})) {
    return {};
  }
  return {{Like(self)}};
}

// (input, p, train)
Results Dropout(Arguments arguments) {
  const Tensor& input = arguments[0].toTensor();
  const double p = arguments[1].toDouble();
  if (!IsFloat(input) || !(p >= 0 && p <= 1)) return {};
  return {{Like(input), Meta(input.sizes(), at::kBool)}};
}

// (grad_output, mask, scale)
Results DropoutBackward(Arguments arguments) {
  const Tensor& grad = arguments[0].toTensor();
  if (!IsFloat(grad) || !Fits(arguments[1], at::kBool, grad.sizes())) return {};
  return {{Like(grad)}};
}

// The sizes of the mean of each row, for (input, normalized_shape): nothing if they do not fit.
std::optional<at::DimVector> RowSizes(const Tensor& input, const c10::IValue& normalized) {
  const auto shape = normalized.toDimVector();
  // Statistics of 16-bit floats are wider on some devices.
  if (!IsFloat(input) || c10::isReducedFloatingType(input.scalar_type())) return std::nullopt;
  const auto rank = static_cast<size_t>(input.dim());
  if (shape.empty() || shape.size() > rank) return std::nullopt;
  const size_t rows = rank - shape.size();
  if (input.sizes().slice(rows) != at::IntArrayRef(shape)) return std::nullopt;
  at::DimVector sizes(input.sizes().slice(0, rows));
  sizes.resize(rank, 1);
  return sizes;
}

// (input, normalized_shape, weight, bias, eps)
Results LayerNorm(Arguments arguments) {
  const Tensor& input = arguments[0].toTensor();
  const auto rows = RowSizes(input, arguments[1]);
  if (!rows) return {};
  const auto shape = arguments[1].toDimVector();
  const c10::ScalarType dtype = input.scalar_type();
  if (!Fits(arguments[2], dtype, shape) || !Fits(arguments[3], dtype, shape)) return {};
  return {{Like(input), Meta(*rows, dtype), Meta(*rows, dtype)}};
}

// (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
Results LayerNormBackward(Arguments arguments) {
  const Tensor& input = arguments[1].toTensor();
  const auto rows = RowSizes(input, arguments[2]);
  if (!rows || !IsLike(arguments[0], input)) return {};
  const auto shape = arguments[2].toDimVector();
  const c10::ScalarType dtype = input.scalar_type();
  const bool fit = Fits(arguments[3], dtype, *rows) && Fits(arguments[4], dtype, *rows) &&
                   Fits(arguments[5], dtype, shape) && Fits(arguments[6], dtype, shape);
  if (!fit || arguments[5].isNone() || arguments[6].isNone()) return {};
  const auto mask = arguments[7].toBoolList();
  std::vector<c10::IValue> results(3, Tensor());
  if (mask[0]) results[0] = Like(input);
  for (size_t i = 1; i < 3; ++i) {
    if (mask[i]) results[i] = Meta(shape, dtype);
  }
  return results;
}

// Lists of tensors, with numbers: the tensors of a place have one dtype and size.
Results Foreach(Arguments arguments) {
  const auto first = arguments[0].toTensorVector();
  for (const Tensor& tensor : first) {
    if (!IsFloat(tensor)) return {};
  }
  for (const c10::IValue& value : arguments.slice(1)) {
    if (value.isTensor() || value.isComplexDouble()) return {};
    if (value.isTensorList()) {
      const auto others = value.toTensorVector();
      const auto same = [](const Tensor& a, const Tensor& b) { return IsLike(a, b); };
      if (!std::ranges::equal(others, first, same)) return {};
    } else if (value.isList()) {
      const auto is_complex = [](const c10::IValue& item) { return item.isComplexDouble(); };
      const auto numbers = value.toListRef();
      if (numbers.size() != first.size() || std::ranges::any_of(numbers, is_complex)) return {};
    }
  }
  std::vector<Tensor> results;
  for (const Tensor& tensor : first) results.push_back(Like(tensor));
  return {{results}};
}

Rule FindRule(const std::string& op) {
  static const auto* rules = [] {
    auto* table = new std::unordered_map<std::string, Rule>{
        {"aten::_log_softmax", Softmax},
        {"aten::_log_softmax_backward_data", SoftmaxBackward},
        {"aten::_safe_softmax", Softmax},
        {"aten::_softmax", Softmax},
        {"aten::_softmax_backward_data", SoftmaxBackward},
        {"aten::addmm", Addmm},
        {"aten::clamp", Clamp},
        {"aten::linear", Linear},
        {"aten::masked_fill.Scalar", MaskedFill},
        {"aten::native_dropout", Dropout},
        {"aten::native_dropout_backward", DropoutBackward},
        {"aten::native_layer_norm", LayerNorm},
        {"aten::native_layer_norm_backward", LayerNormBackward},
        {"aten::nll_loss_backward", NllLossBackward},
        {"aten::nll_loss_forward", NllLoss},
        {"aten::where.self", Where},
    };
    for (const char* op : {"abs",
                           "add.Scalar",
                           "add.Tensor",
                           "clamp_max",
                           "clamp_min",
                           "cos",
                           "div.Scalar",
                           "div.Tensor",
                           "exp",
                           "gelu",
                           "gelu_backward",
                           "log",
                           "maximum",
                           "minimum",
                           "mul.Scalar",
                           "mul.Tensor",
                           "neg",
                           "pow.Tensor_Scalar",
                           "relu",
                           "rsqrt",
                           "sigmoid",
                           "sigmoid_backward",
                           "sin",
                           "sqrt",
                           "sub.Scalar",
                           "sub.Tensor",
                           "tanh",
                           "tanh_backward",
                           "threshold_backward"}) {
      table->emplace(std::string("aten::") + op, Elementwise<false>);
    }
    for (const char* op : {"eq", "ge", "gt", "le", "lt", "ne"}) {
      for (const char* overload : {".Scalar", ".Tensor"}) {
        table->emplace(std::string("aten::") + op + overload, Elementwise<true>);
      }
    }
    for (const char* op : {"add.List",
                           "add.Scalar",
                           "add.ScalarList",
                           "addcdiv.Scalar",
                           "addcdiv.ScalarList",
                           "addcmul.Scalar",
                           "addcmul.ScalarList",
                           "div.List",
                           "div.Scalar",
                           "div.ScalarList",
                           "lerp.List",
                           "lerp.Scalar",
                           "mul.List",
                           "mul.Scalar",
                           "mul.ScalarList",
                           "neg",
                           "sqrt",
                           "sub.List",
                           "sub.Scalar",
                           "sub.ScalarList"}) {
      table->emplace(std::string("aten::_foreach_") + op, Foreach);
    }
    return table;
  }();
  const auto found = rules->find(op);
  return found == rules->end() ? nullptr : found->second;
}

}  // namespace

bool ApplyShapeRule(const OpInfo& info, torch::jit::Stack* stack) {
  const Rule rule = info.has_out ? nullptr : FindRule(info.name);
  if (rule == nullptr) return false;
  Results results = rule(*stack);
  if (!results) return false;
  if (!info.mutated.empty()) {
    // In place: the result has to fit the argument that it is written to.
    const c10::IValue& self = stack->front();
    if (self.isTensor() && !IsLike((*results)[0], self.toTensor())) return false;
    results->resize(info.results.size());
  }
  *stack = *std::move(results);
  return true;
}

}  // namespace torch_xla_lite::dispatch
