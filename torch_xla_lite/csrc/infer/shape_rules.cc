#include "torch_xla_lite/csrc/infer/shape_rules.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/aten/kernel_keys.h"
#include "torch_xla_lite/csrc/infer/meta_function.h"
#include "torch_xla_lite/csrc/ops/map_tensors.h"
#include "torch_xla_lite/csrc/ops/named.h"
#include "torch_xla_lite/csrc/ops/op_name.h"

namespace torch_xla_lite::infer {
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

// Excludes 16-bit floats, whose statistics of normalizations are wider on some devices.
bool IsWideFloat(const Tensor& tensor) {
  return IsFloat(tensor) && !c10::isReducedFloatingType(tensor.scalar_type());
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

// The same for lists, item by item.
bool AreLike(const c10::IValue& values, const c10::IValue& others) {
  if (!values.isList()) return IsLike(values, others.toTensor());
  return std::ranges::equal(values.toListRef(), others.toListRef(), AreLike);
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
Results Elementwise(Arguments arguments) {
  at::DimVector sizes;
  auto dtype = c10::ScalarType::Undefined;
  bool has_dims = false, has_number = false;
  for (const c10::IValue& value : arguments) {
    if (value.isScalar()) {
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
  return {{Meta(sizes, dtype)}};
}

// (self, value if it is full_like, dtype, layout, device, pin_memory, memory_format)
Results FactoryLike(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  const Arguments options = arguments.slice(arguments.size() - 5);
  const bool has_strides =
      !options[4].isNone() && options[4].toMemoryFormat() != at::MemoryFormat::Preserve;
  if (!self.is_meta() || !options[1].isNone() || has_strides) return {};
  return {
      {Meta(self.sizes(), options[0].isNone() ? self.scalar_type() : options[0].toScalarType())}};
}

bool HasNegative(at::IntArrayRef sizes) {
  return std::ranges::any_of(sizes, [](int64_t size) { return size < 0; });
}

// options: (dtype, layout, device, pin_memory)
Results Made(const at::DimVector& sizes, c10::ScalarType dtype, Arguments options) {
  const bool is_strided = options[1].isNone() || options[1].toLayout() == at::kStrided;
  if (!is_strided || HasNegative(sizes)) return {};
  return {{Meta(sizes, options[0].isNone() ? dtype : options[0].toScalarType())}};
}

// What ends with (size, dtype, layout, device, pin_memory).
Results Factory(Arguments arguments) {
  return Made(arguments[arguments.size() - 5].toDimVector(), at::get_default_dtype_as_scalartype(),
              arguments.slice(arguments.size() - 4));
}

// (self, size, value if it is new_full, dtype, layout, device, pin_memory)
Results NewFactory(Arguments arguments) {
  return Made(arguments[1].toDimVector(), arguments[0].toTensor().scalar_type(),
              arguments.slice(arguments.size() - 4));
}

// The same for random numbers, which are no integers.
Results Random(Arguments arguments) {
  auto results = Factory(arguments);
  return results && IsFloat((*results)[0].toTensor()) ? results : Results();
}

// (end or start, end or start, end, step, dtype, layout, device,
// pin_memory)
Results Range(Arguments arguments) {
  const Arguments numbers = arguments.slice(0, arguments.size() - 4);
  const auto number = [&](size_t i, auto missing) {
    const bool is_end = numbers.size() == 1;
    if (is_end ? i != 1 : i >= numbers.size()) return missing;
    return numbers[is_end ? 0 : i].toScalar().to<decltype(missing)>();
  };
  const c10::IValue& option = arguments[numbers.size()];
  if (std::ranges::all_of(numbers, &c10::IValue::isInt)) {
    const int64_t start = number(0, int64_t{0}), end = number(1, int64_t{0});
    const int64_t step = number(2, int64_t{1});
    int64_t size;
    if (step <= 0 || end < start || __builtin_sub_overflow(end, start, &size)) return {};
    const auto dtype = option.isNone() ? at::kLong : option.toScalarType();
    return {{Meta({size / step + (size % step != 0)}, dtype)}};
  }
  const double start = number(0, 0.0), end = number(1, 0.0), step = number(2, 1.0);
  const double size = std::ceil((end - start) / step);
  const auto dtype =
      option.isNone() ? at::get_default_dtype_as_scalartype() : option.toScalarType();
  if (!(step > 0 && end >= start && size < 0x1p53) || !c10::isFloatingType(dtype)) return {};
  return {{Meta({static_cast<int64_t>(size)}, dtype)}};
}

// (n, m if it is not n, dtype, layout, device, pin_memory)
Results Eye(Arguments arguments) {
  const Arguments options = arguments.slice(arguments.size() - 4);
  return Made({arguments[0].toInt(), arguments[arguments.size() - 5].toInt()},
              at::get_default_dtype_as_scalartype(), options);
}

// (real, imag)
Results Complex(Arguments arguments) {
  if (!IsWideFloat(arguments[0].toTensor())) return {};
  const auto parts = Elementwise(arguments);
  if (!parts) return {};
  const Tensor& part = (*parts)[0].toTensor();
  return {{Meta(part.sizes(), c10::toComplexType(part.scalar_type()))}};
}

// (self, mask, value)
Results MaskedFill(Arguments arguments) {
  const bool has_mask = arguments[1].toTensor().scalar_type() == at::kBool;
  return has_mask ? Elementwise(arguments) : Results();
}

// (condition, self, other)
Results Where(Arguments arguments) {
  const bool has_mask = arguments[0].toTensor().scalar_type() == at::kBool;
  const bool same = IsFloat(arguments[1].toTensor()) && IsFloat(arguments[2].toTensor());
  return has_mask && same ? Elementwise(arguments) : Results();
}

// (self, dim, dtype)
Results Softmax(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  if (!IsFloat(self) || !IsDim(arguments[1].toInt(), self) || !arguments[2].isNone()) return {};
  return {{Like(self)}};
}

// (input, weight, bias)
Results Linear(Arguments arguments) {
  const Tensor &input = arguments[0].toTensor(), &weight = arguments[1].toTensor();
  if (!IsFloat(input) || weight.dim() != 2 || input.dim() < 2) return {};
  if (input.scalar_type() != weight.scalar_type() || input.size(-1) != weight.size(1)) return {};
  if (!Fits(arguments[2], input.scalar_type(), {weight.size(0)})) return {};
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  return {{Meta(sizes, input.scalar_type())}};
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Results Convolution(Arguments arguments) {
  const Tensor &input = arguments[0].toTensor(), &weight = arguments[1].toTensor();
  const int64_t rank = input.dim() - 2, groups = arguments[8].toInt();
  if (!IsFloat(input) || input.scalar_type() != weight.scalar_type() || rank < 1) return {};
  if (weight.dim() != input.dim() || input.numel() == 0 || weight.numel() == 0) return {};
  const bool is_transposed = arguments[6].toBool();
  const int64_t taken = is_transposed ? weight.size(0) : weight.size(1) * groups;
  const int64_t given = is_transposed ? weight.size(1) * groups : weight.size(0);
  if (groups < 1 || input.size(1) != taken || weight.size(0) % groups != 0) return {};
  if (!Fits(arguments[2], input.scalar_type(), {given})) return {};
  const auto stride = arguments[3].toDimVector(), padding = arguments[4].toDimVector(),
             dilation = arguments[5].toDimVector(), more = arguments[7].toDimVector();
  for (const auto* numbers : {&stride, &padding, &dilation, &more}) {
    if (std::ssize(*numbers) != rank) return {};
  }
  at::DimVector sizes = {input.size(0), given};
  for (int64_t i = 0; i < rank; ++i) {
    if (stride[i] < 1 || padding[i] < 0 || dilation[i] < 1) return {};
    const int64_t reach = dilation[i] * (weight.size(i + 2) - 1) + 1;
    if (is_transposed && (more[i] < 0 || more[i] >= std::max(stride[i], dilation[i]))) return {};
    const int64_t room = input.size(i + 2) + 2 * padding[i] - reach;
    if (!is_transposed && room < 0) return {};
    const int64_t size =
        is_transposed ? (input.size(i + 2) - 1) * stride[i] - 2 * padding[i] + reach + more[i]
                      : room / stride[i] + 1;
    if (size < 1) return {};
    sizes.push_back(size);
  }
  return {{Meta(sizes, input.scalar_type())}};
}

// Of the gradients of an input, a weight and a bias those that `output_mask` asks for.
std::vector<c10::IValue> Wanted(const c10::IValue& output_mask, std::array<Tensor, 3> gradients) {
  const auto mask = output_mask.toBoolList();
  std::vector<c10::IValue> wanted(gradients.size(), Tensor());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (mask[i]) wanted[i] = std::move(gradients[i]);
  }
  return wanted;
}

// The gradients of the input, the weight and the bias of a layer that gives `result`.
Results LayerGradients(const Results& result, const c10::IValue& grad, const Tensor& input,
                       const Tensor& weight, const c10::IValue& output_mask) {
  if (!result || !IsLike(grad, (*result)[0].toTensor())) return {};
  const Tensor bias = Meta({weight.size(0)}, weight.scalar_type());
  return Wanted(output_mask, {Like(input), Like(weight), bias});
}

// (input, grad_output, weight, output_mask)
Results LinearBackward(Arguments arguments) {
  const c10::IValue &input = arguments[0], &weight = arguments[2];
  const Results result = Linear({input, weight, c10::IValue()});
  return LayerGradients(result, arguments[1], input.toTensor(), weight.toTensor(), arguments[3]);
}

// (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
// groups, output_mask)
Results ConvolutionBackward(Arguments arguments) {
  std::vector<c10::IValue> forward = arguments.slice(1, 9).vec();
  forward[2] = c10::IValue();
  const Tensor &input = arguments[1].toTensor(), &weight = arguments[2].toTensor();
  const bool has_bias = !arguments[3].isNone() && weight.dim() > 0 &&
                        arguments[3].toDimVector() == at::DimVector{weight.size(0)};
  if (arguments[10].toBoolList()[2] && !has_bias) return {};
  return LayerGradients(Convolution(forward), arguments[0], input, weight, arguments[10]);
}

bool IsIndex(const Tensor& tensor) {
  return tensor.is_meta() &&
         (tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt);
}

// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Results EmbeddingBackward(Arguments arguments) {
  const Tensor &grad = arguments[0].toTensor(), &indices = arguments[1].toTensor();
  if (!IsFloat(grad) || !IsIndex(indices) || grad.dim() != indices.dim() + 1) return {};
  if (grad.sizes().slice(0, indices.dim()) != indices.sizes() || arguments[2].toInt() < 0)
    return {};
  return {{Meta({arguments[2].toInt(), grad.size(-1)}, grad.scalar_type())}};
}

// The gradient of a view. (grad_output, input_sizes, the other arguments of the view)
template <const char* view>
Results ViewBackward(Arguments arguments) {
  const Tensor& grad = arguments[0].toTensor();
  const at::DimVector sizes = arguments[1].toDimVector();
  if (!grad.is_meta() || HasNegative(sizes)) return {};
  torch::jit::Stack viewed = {Meta(sizes, grad.scalar_type())};
  viewed.insert(viewed.end(), arguments.begin() + 2, arguments.end());
  ops::FindOp(view)->callBoxed(&viewed);  // Raises torch's error for dimensions that are not there.
  return {{Meta(sizes, grad.scalar_type())}};
}

constexpr char kDiagonal[] = "aten::diagonal", kSelect[] = "aten::select.int",
               kSlice[] = "aten::slice.Tensor";

// (tensors, dim)
Results Stack(Arguments arguments) {
  const auto tensors = arguments[0].toListRef();
  if (tensors.empty() || !tensors[0].toTensor().is_meta()) return {};
  const Tensor& first = tensors[0].toTensor();
  const auto is_like = [&](const c10::IValue& tensor) { return IsLike(tensor, first); };
  const int64_t dim = arguments[1].toInt(), rank = first.dim() + 1;
  if (!std::ranges::all_of(tensors, is_like) || dim < -rank || dim >= rank) return {};
  at::DimVector sizes(first.sizes());
  sizes.insert(sizes.begin() + c10::maybe_wrap_dim(dim, rank), std::ssize(tensors));
  return {{Meta(sizes, first.scalar_type())}};
}

// (self, dim, index)
Results IndexSelect(Arguments arguments) {
  const Tensor &self = arguments[0].toTensor(), &index = arguments[2].toTensor();
  if (!self.is_meta() || !IsIndex(index) || index.dim() > 1) return {};
  if (self.dim() == 0 || !IsDim(arguments[1].toInt(), self)) return {};
  at::DimVector sizes(self.sizes());
  sizes[c10::maybe_wrap_dim(arguments[1].toInt(), self.dim())] = index.numel();
  return {{Meta(sizes, self.scalar_type())}};
}

// Masks of elements, for tensors of any dtypes.
Results Mask(Arguments arguments) {
  at::DimVector sizes;
  for (const c10::IValue& value : arguments) {
    if (!value.toTensor().is_meta() || !Broadcast(value.toTensor().sizes(), &sizes)) return {};
  }
  return {{Meta(sizes, at::kBool)}};
}

// (self, other), of which one may be a number. The result has the dtype that both have together.
Results FloorDivide(Arguments arguments) {
  at::DimVector sizes;
  for (const c10::IValue& value : arguments) {
    const Tensor& tensor = value.toTensor();
    if (tensor.is_meta() ? !Broadcast(tensor.sizes(), &sizes) : tensor.dim() > 0) return {};
  }
  at::native::ResultTypeState state;
  for (const c10::IValue& value : arguments)
    state = at::native::update_result_type_state(value.toTensor(), state);
  const c10::ScalarType dtype = at::native::result_type(state);
  if (dtype == at::kBool || c10::isComplexType(dtype)) return {};
  return {{Meta(sizes, dtype)}};
}

// (self, repeats)
Results Repeat(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  at::DimVector sizes = arguments[1].toDimVector();
  if (!self.is_meta() || HasNegative(sizes) || std::ssize(sizes) < self.dim()) return {};
  for (int64_t i = 1; i <= self.dim(); ++i) sizes[sizes.size() - i] *= self.size(-i);
  return {{Meta(sizes, self.scalar_type())}};
}

// (self, dims)
Results Flip(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  const at::DimVector dims = arguments[1].toDimVector();
  const bool is_one = dims.size() == 1 && self.dim() > 0 && IsDim(dims[0], self);
  return is_one && self.is_meta() ? Results({Like(self)}) : Results();
}

// (self, dim, descending)
Results Sort(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  if (!IsFloat(self) || self.dim() == 0 || !IsDim(arguments[1].toInt(), self)) return {};
  return {{Like(self), Meta(self.sizes(), at::kLong)}};
}

// The largest or smallest element of (self).
Results Extreme(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  const bool is_plain = self.is_meta() && !c10::isComplexType(self.scalar_type());
  return is_plain && self.numel() > 0 ? Results({Meta({}, self.scalar_type())}) : Results();
}

// Products of a vector with (a matrix or vector, it).
template <int rank>
Results VectorProduct(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  if (!IsFloat(self) || self.dim() != rank) return {};
  if (!Fits(arguments[1], self.scalar_type(), {self.size(-1)})) return {};
  return {{Meta(self.sizes().slice(0, self.dim() - 1), self.scalar_type())}};
}

// (weight, indices, padding_idx, scale_grad_by_freq, sparse)
Results Embedding(Arguments arguments) {
  const Tensor &weight = arguments[0].toTensor(), &indices = arguments[1].toTensor();
  if (!IsFloat(weight) || weight.dim() != 2 || !IsIndex(indices)) return {};
  at::DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  return {{Meta(sizes, weight.scalar_type())}};
}

// aten::_scaled_dot_product_flash_attention_for_cpu: (query, key, value, dropout_p, is_causal,
// attn_mask, scale)
Results FlashAttention(Arguments arguments) {
  const Tensor& query = arguments[0].toTensor();
  if (!IsFloat(query) || query.dim() != 4) return {};
  const auto of_sums =
      c10::isReducedFloatingType(query.scalar_type()) ? at::kFloat : query.scalar_type();
  return {{Like(query), Meta(query.sizes().slice(0, 3), of_sums)}};
}

// (grad_out, query, key, value, out, logsumexp, ...)
Results FlashAttentionBackward(Arguments arguments) {
  const Tensor& query = arguments[1].toTensor();
  if (!IsFloat(query) || query.dim() != 4 || !IsLike(arguments[0], query)) return {};
  if (!IsLike(arguments[4], query) || !IsLike(arguments[2], arguments[3].toTensor())) return {};
  return {{Like(query), Like(arguments[2].toTensor()), Like(arguments[3].toTensor())}};
}

// (input, p, train)
Results Dropout(Arguments arguments) {
  const Tensor& input = arguments[0].toTensor();
  const double p = arguments[1].toDouble();
  if (!IsFloat(input) || !(p >= 0 && p <= 1)) return {};
  return {{Like(input), Meta(input.sizes(), at::kBool)}};
}

// (self, num_samples)
Results Multinomial(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  if (!IsFloat(self) || self.dim() == 0 || arguments[1].toInt() <= 0) return {};
  at::DimVector sizes(self.sizes());
  sizes.back() = arguments[1].toInt();
  return {{Meta(sizes, at::kLong)}};
}

// (grad_output, mask, scale)
Results DropoutBackward(Arguments arguments) {
  const Tensor& grad = arguments[0].toTensor();
  if (!IsFloat(grad) || !Fits(arguments[1], at::kBool, grad.sizes())) return {};
  return {{Like(grad)}};
}

// The sizes of the mean of each row, for (input, normalized_shape): nothing if they do not fit.
std::optional<std::vector<int64_t>> RowSizes(const Tensor& input, const c10::IValue& normalized) {
  const auto shape = normalized.toDimVector();
  if (!IsWideFloat(input)) return std::nullopt;
  const auto rank = static_cast<size_t>(input.dim());
  if (shape.empty() || shape.size() > rank) return std::nullopt;
  const size_t rows = rank - shape.size();
  if (input.sizes().slice(rows) != at::IntArrayRef(shape)) return std::nullopt;
  std::vector<int64_t> sizes = input.sizes().slice(0, rows).vec();
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

// The gradients of the input, the weight and the bias of a normalization. Those of parameters have
// a dtype of their own.
Results NormGradients(const Tensor& input, const c10::IValue& weight, at::IntArrayRef sizes,
                      c10::ScalarType dtype, const c10::IValue& output_mask) {
  const auto mask = output_mask.toBoolList();
  if ((mask[1] || mask[2]) && weight.isNone()) return {};
  return Wanted(output_mask, {Like(input), Meta(sizes, dtype), Meta(sizes, dtype)});
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
  return NormGradients(input, arguments[5], shape, dtype, arguments[7]);
}

// (input, weight, bias, running statistics if there are any, training, ...)
Results BatchNorm(Arguments arguments) {
  const Tensor& input = arguments[0].toTensor();
  if (!IsWideFloat(input) || input.dim() < 2 || input.numel() == 0) return {};
  const c10::ScalarType dtype = input.scalar_type();
  const int64_t channels = input.size(1);
  for (const c10::IValue& value : arguments.slice(1)) {
    if (value.isBool()) break;
    if (!Fits(value, dtype, {channels})) return {};
  }
  return {{Like(input), Meta({channels}, dtype), Meta({channels}, dtype)}};
}

// (grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask)
Results BatchNormBackward(Arguments arguments) {
  const Tensor& input = arguments[1].toTensor();
  if (!IsWideFloat(input) || input.dim() < 2 || !IsLike(arguments[0], input)) return {};
  for (const c10::IValue& value : arguments.slice(2, 5)) {
    // In evaluation no statistics are saved.
    if (!Fits(value, input.scalar_type(), {input.size(1)}) &&
        !Fits(value, input.scalar_type(), {0}))
      return {};
  }
  return NormGradients(input, arguments[2], {input.size(1)}, input.scalar_type(), arguments[9]);
}

// Whether (N, C, HxW, group) are the sizes of an input.
bool AreGroups(const Tensor& input, Arguments sizes) {
  const int64_t batch = sizes[0].toInt(), channels = sizes[1].toInt(), groups = sizes[3].toInt();
  return IsFloat(input) && input.dim() >= 2 && input.numel() > 0 && input.size(0) == batch &&
         input.size(1) == channels && input.numel() == batch * channels * sizes[2].toInt() &&
         groups > 0 && channels % groups == 0;
}

// Whether it may be the dtype of the parameters and statistics of a group norm of `input`.
bool IsDtypeOfStatistics(c10::ScalarType dtype, const Tensor& input) {
  const c10::ScalarType own = input.scalar_type();
  return dtype == own || (dtype == at::kFloat && c10::isReducedFloatingType(own));
}

// (input, weight, bias, N, C, HxW, group, eps)
Results GroupNorm(Arguments arguments) {
  const Tensor& input = arguments[0].toTensor();
  if (!AreGroups(input, arguments.slice(3, 4))) return {};
  // That of the parameters: float32 beside 16-bit inputs, too, where torch's meta function says 16
  // bits.
  const c10::IValue& parameter = arguments[arguments[1].isNone() ? 2 : 1];
  const c10::ScalarType dtype = (parameter.isNone() ? input : parameter.toTensor()).scalar_type();
  if (!IsDtypeOfStatistics(dtype, input)) return {};
  if (!Fits(arguments[1], dtype, {input.size(1)}) || !Fits(arguments[2], dtype, {input.size(1)}))
    return {};
  const std::array sizes = {input.size(0), arguments[6].toInt()};
  return {{Like(input), Meta(sizes, dtype), Meta(sizes, dtype)}};
}

// (grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
Results GroupNormBackward(Arguments arguments) {
  const Tensor& input = arguments[1].toTensor();
  if (!AreGroups(input, arguments.slice(5, 4)) || !IsLike(arguments[0], input)) return {};
  const std::array sizes = {input.size(0), arguments[8].toInt()};
  const c10::ScalarType dtype = arguments[2].toTensor().scalar_type();
  if (!IsDtypeOfStatistics(dtype, input)) return {};
  if (!Fits(arguments[2], dtype, sizes) || !Fits(arguments[3], dtype, sizes) ||
      !Fits(arguments[4], dtype, {input.size(1)}))
    return {};
  return NormGradients(input, arguments[4], {input.size(1)}, dtype, arguments[9]);
}

// (input, grid, ...)
Results GridSampler2d(Arguments arguments) {
  const Tensor &input = arguments[0].toTensor(), &grid = arguments[1].toTensor();
  if (!IsFloat(input) || input.dim() != 4 || input.numel() == 0 ||
      !Fits(arguments[1], input.scalar_type(), grid.sizes()) || grid.dim() != 4 ||
      grid.size(0) != input.size(0) || grid.size(3) != 2)
    return {};
  const std::array sizes = {input.size(0), input.size(1), grid.size(1), grid.size(2)};
  return {{Meta(sizes, input.scalar_type())}};
}

// (self, target, optional weights, reduction, ...)
Results Loss(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  const auto* reduction = std::ranges::find_if(arguments, &c10::IValue::isInt);
  const int64_t how = reduction->toInt();
  if (!IsFloat(self) || !IsLike(arguments[1], self) || how < 0 || how > 2) return {};
  for (const c10::IValue* weight = &arguments[2]; weight < reduction; ++weight) {
    if (!Fits(*weight, self.scalar_type(), self.sizes())) return {};
  }
  return {{Meta(how == 0 ? self.sizes() : at::IntArrayRef(), self.scalar_type())}};
}

// (grad_output, self, target, optional weight, reduction, ...)
Results LossBackward(Arguments arguments) {
  const Results loss = Loss(arguments.slice(1));
  if (!loss || !IsLike(arguments[0], (*loss)[0].toTensor())) return {};
  return {{Like(arguments[1].toTensor())}};
}

// As many results like the first as the op has, if all tensors are like this.
template <int count>
Results LikeAll(Arguments arguments) {
  const Tensor& first = arguments[0].toTensor();
  if (!IsFloat(first)) return {};
  for (const c10::IValue& value : arguments) {
    if (value.isTensor() && !IsLike(value, first)) return {};
  }
  return std::vector<c10::IValue>(count, Like(first));
}

// (grad_output, self, weight)
Results PreluBackward(Arguments arguments) {
  const Tensor &self = arguments[1].toTensor(), &weight = arguments[2].toTensor();
  at::DimVector sizes(self.sizes());
  if (!IsFloat(self) || !IsLike(arguments[0], self) || !Broadcast(weight.sizes(), &sizes))
    return {};
  if (self.sizes() != sizes || weight.scalar_type() != self.scalar_type()) return {};
  return {{Like(self), Like(self)}};
}

// (grad_output, self, dim)
Results GluBackward(Arguments arguments) {
  const Tensor& self = arguments[1].toTensor();
  if (!IsFloat(self) || !IsDim(arguments[2].toInt(), self) || self.dim() == 0) return {};
  at::DimVector sizes(self.sizes());
  int64_t& halved = sizes[c10::maybe_wrap_dim(arguments[2].toInt(), self.dim())];
  if (halved % 2 != 0) return {};
  halved /= 2;
  if (!Fits(arguments[0], self.scalar_type(), sizes)) return {};
  return {{Like(self)}};
}

// The results of another op.
Results By(std::string_view op, torch::jit::Stack arguments) {
  if (!CallMetaFunction(*ops::FindOp(op), &arguments)) return {};
  return arguments;
}

// (self, dtype)
Results Sum(Arguments arguments) {
  return By("aten::sum.dim_IntList", {arguments[0], {}, false, arguments[1]});
}

Results Mean(Arguments arguments) {
  return By("aten::mean.dim", {arguments[0], {}, false, arguments[1]});
}

// (self, dim, correction, keepdim)
template <int count>
Results Variance(Arguments arguments) {
  if (!IsFloat(arguments[0].toTensor())) return {};
  const auto mean = By("aten::mean.dim", {arguments[0], arguments[1], arguments[3], {}});
  return mean ? std::vector<c10::IValue>(count, (*mean)[0]) : Results();
}

// (self, dim, keepdim), which is an error for no dimensions
Results LogSumExp(Arguments arguments) {
  if (!IsFloat(arguments[0].toTensor()) || arguments[1].toDimVector().empty()) return {};
  return By("aten::amax", arguments.vec());
}

// The sizes that torch's meta function gives, and the dtype that its CPU kernel gives, where the
// two differ: one element of each operand shows it, whatever it is.
Results ByKernel(std::string_view name, Arguments arguments) {
  const c10::OperatorHandle op = *ops::FindOp(name);
  torch::jit::Stack results = arguments.vec(), on_cpu;
  for (const c10::IValue& argument : arguments) {
    on_cpu.push_back(ops::MapArgument(argument, at::kCPU, [](const Tensor& tensor) {
      const at::DimVector sizes(tensor.dim(), 1);
      return tensor.is_cpu() ? tensor : Tensor(at::detail::empty_cpu(sizes, tensor.scalar_type()));
    }));
  }
  op.callBoxed(&results);
  const aten::KernelKeysGuard keys;
  op.callBoxed(&on_cpu);
  return {{Meta(results[0].toTensor().sizes(), on_cpu[0].toTensor().scalar_type())}};
}

Results Ldexp(Arguments arguments) { return ByKernel("aten::ldexp.Tensor", arguments); }

Results SoftMarginLoss(Arguments arguments) {
  return ByKernel("aten::soft_margin_loss", arguments);
}

// (self, num_classes). The largest class is not known.
Results OneHot(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  const int64_t classes = arguments[1].toInt();
  if (self.scalar_type() != at::kLong || classes <= 0) return {};
  at::DimVector sizes(self.sizes());
  sizes.push_back(classes);
  return {{Meta(sizes, at::kLong)}};
}

// (self, shifts, dims)
Results Roll(Arguments arguments) {
  const Tensor& self = arguments[0].toTensor();
  const auto dims = arguments[2].toDimVector();
  const auto is_dim = [&](int64_t dim) { return IsDim(dim, self); };
  const size_t shifts = std::max<size_t>(1, dims.size());
  if (!std::ranges::all_of(dims, is_dim) || arguments[1].toDimVector().size() != shifts) return {};
  return {{Like(self)}};
}

// (self)
Results Truth(Arguments arguments) {
  return arguments[0].toTensor().scalar_type() == at::kBool ? Results({Meta({}, at::kBool)})
                                                            : Results();
}

// (x1, x2), rows of vectors
Results Distances(Arguments arguments) {
  const Tensor &x1 = arguments[0].toTensor(), &x2 = arguments[1].toTensor();
  if (!IsFloat(x1) || !IsFloat(x2) || x1.scalar_type() != x2.scalar_type()) return {};
  if (x1.dim() < 2 || x2.dim() < 2 || x1.size(-1) != x2.size(-1)) return {};
  at::DimVector sizes(x1.sizes().slice(0, x1.dim() - 2));
  if (!Broadcast(x2.sizes().slice(0, x2.dim() - 2), &sizes)) return {};
  sizes.append({x1.size(-2), x2.size(-2)});
  return {{Meta(sizes, x1.scalar_type())}};
}

// (src, embed_dim, num_heads, qkv_weight, qkv_bias, ...)
Results EncoderLayer(Arguments arguments) {
  const Tensor& src = arguments[0].toTensor();
  const int64_t width = arguments[1].toInt(), heads = arguments[2].toInt();
  if (!IsFloat(src) || src.dim() != 3 || src.size(2) != width || heads < 1) return {};
  if (width % heads != 0 || !Fits(arguments[3], src.scalar_type(), {3 * width, width})) return {};
  return {{Like(src)}};
}

// By the names in the facts of ops.
Rule FindRule(std::string_view name) {
  static constexpr auto kRules = std::to_array<std::pair<std::string_view, Rule>>({
      {"batch_norm", BatchNorm},
      {"batch_norm_backward", BatchNormBackward},
      {"complex", Complex},
      {"convolution", Convolution},
      {"convolution_backward", ConvolutionBackward},
      {"diagonal_backward", ViewBackward<kDiagonal>},
      {"distances", Distances},
      {"dot", VectorProduct<1>},
      {"dropout", Dropout},
      {"dropout_backward", DropoutBackward},
      {"elementwise", Elementwise},
      {"embedding", Embedding},
      {"embedding_backward", EmbeddingBackward},
      {"encoder_layer", EncoderLayer},
      {"extreme", Extreme},
      {"eye", Eye},
      {"factory", Factory},
      {"flash_attention", FlashAttention},
      {"flash_attention_backward", FlashAttentionBackward},
      {"flip", Flip},
      {"floor_divide", FloorDivide},
      {"glu_backward", GluBackward},
      {"grid", GridSampler2d},
      {"group_norm", GroupNorm},
      {"group_norm_backward", GroupNormBackward},
      {"index_select", IndexSelect},
      {"layer_norm", LayerNorm},
      {"layer_norm_backward", LayerNormBackward},
      {"ldexp", Ldexp},
      {"like", FactoryLike},
      {"like_all", LikeAll<1>},
      {"like_both", LikeAll<2>},
      {"linear", Linear},
      {"linear_backward", LinearBackward},
      {"logsumexp", LogSumExp},
      {"loss", Loss},
      {"loss_backward", LossBackward},
      {"mask", Mask},
      {"masked_fill", MaskedFill},
      {"mean", Mean},
      {"multinomial", Multinomial},
      {"mv", VectorProduct<2>},
      {"new", NewFactory},
      {"one_hot", OneHot},
      {"prelu_backward", PreluBackward},
      {"random", Random},
      {"range", Range},
      {"repeat", Repeat},
      {"roll", Roll},
      {"select_backward", ViewBackward<kSelect>},
      {"slice_backward", ViewBackward<kSlice>},
      {"soft_margin_loss", SoftMarginLoss},
      {"softmax", Softmax},
      {"sort", Sort},
      {"stack", Stack},
      {"sum", Sum},
      {"truth", Truth},
      {"variance", Variance<1>},
      {"variance_and_mean", Variance<2>},
      {"where", Where},
  });
  return ops::Named(kRules, name);
}

}  // namespace

bool ApplyShapeRule(const ops::OpInfo& info, torch::jit::Stack* stack) {
  const auto op = ops::FindOp(info.name);
  if (info.has_out || !op) return false;
  torch::jit::Stack results = *stack;
  if (!CallMetaFunction(*op, &results)) {
    const Rule rule = FindRule(info.facts->shape);
    if (rule == nullptr) return false;
    auto found = rule(*stack);
    if (!found) return false;
    // A rule of what writes to its arguments does not count these.
    if (info.mutated.empty() && found->size() < op->schema().returns().size()) return false;
    results = *std::move(found);
  }
  if (!info.mutated.empty()) {
    // In place: the result has to fit the argument that it is written to.
    if (!AreLike(results[0], stack->front())) return false;
    results.resize(info.results.size());
  }
  *stack = std::move(results);
  return true;
}

}  // namespace torch_xla_lite::infer
