#include "torch_xla_lite/csrc/infer/refused_calls.h"

#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "torch_xla_lite/csrc/ops/call.h"
#include "torch_xla_lite/csrc/ops/map_tensors.h"
#include "torch_xla_lite/csrc/ops/named.h"
#include "torch_xla_lite/csrc/ops/op_name.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::infer {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

// Whether the tensors that have to have one dtype do. One that is missing may have any.
bool HaveOneDtype(const ops::OpInfo& info, Arguments arguments) {
  auto dtype = c10::ScalarType::Undefined;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!ops::HasWord(info.facts->one_dtype, info.op.schema().arguments()[i].name())) continue;
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined()) continue;
    const c10::ScalarType own = arguments[i].toTensor().scalar_type();
    if (dtype != c10::ScalarType::Undefined && own != dtype) return false;
    dtype = own;
  }
  return true;
}

// Whether what the words of a fact state is true of the arguments that they name.
template <typename Check>
bool AreAll(std::string_view words, const ops::OpInfo& info, Arguments arguments,
            const Check& check) {
  while (!words.empty()) {
    const std::string_view word = ops::NextWord(&words);
    const std::string name(word.substr(0, word.find_first_of("=<>")));
    const c10::IValue& argument = arguments[*info.op.schema().argumentIndexWithName(name)];
    const bool is_missing =
        argument.isNone() || (argument.isTensor() && !argument.toTensor().defined());
    if (!is_missing && !check(argument, word.substr(name.size()))) return false;
  }
  return true;
}

bool HasDtype(const c10::IValue& argument, std::string_view kinds) {
  return ops::IsOfKind(argument.toTensor().scalar_type(), kinds);
}

bool HasElements(const c10::IValue& argument, std::string_view) {
  return argument.toTensor().numel() > 0;
}

// `limit`: such as ">=0".
bool IsWithin(const c10::IValue& argument, std::string_view limit) {
  const double number = argument.toScalar().toDouble();
  const bool or_equal = limit[1] == '=';
  const double end = std::stod(std::string(limit.substr(or_equal ? 2 : 1)));
  return (or_equal && number == end) || (limit[0] == '>' ? number > end : number < end);
}

struct Limits {
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  int64_t exact = std::numeric_limits<int64_t>::max();  // All integers up to here are exact.

  bool Contain(double number) const { return number >= lowest && number <= highest; }
};

template <typename T>
Limits LimitsOf() {
  using L = std::numeric_limits<T>;
  Limits limits{static_cast<double>(L::lowest()), static_cast<double>(L::max())};
  if (L::digits < 63) limits.exact = int64_t{1} << L::digits;
  if (L::is_integer) limits.exact -= 1;
  return limits;
}

Limits LimitsOf(c10::ScalarType dtype) {
  switch (dtype) {
#define LIMITS(type, name)    \
  case c10::ScalarType::name: \
    return LimitsOf<type>();
    AT_FORALL_SCALAR_TYPES_AND3(Half, BFloat16, Bool, LIMITS)
#undef LIMITS
    default:
      return {};
  }
}

// Integers in [low, high).
bool IsRange(const Limits& limits, int64_t low, int64_t high) {
  return low < high && limits.Contain(static_cast<double>(low)) &&
         limits.Contain(static_cast<double>(high - 1));
}

bool HasBadInterval(const ops::OpInfo&, Arguments arguments, const Limits& limits) {
  const double from = arguments[1].toDouble(), to = arguments[2].toDouble();
  return !(from <= to && limits.Contain(from) && limits.Contain(to) && limits.Contain(to - from));
}

// Integers from `low` or `from`, 0 if there is no such argument, to `high` or `to`.
bool HasEmptyRange(const ops::OpInfo& info, Arguments arguments, const Limits& limits) {
  int64_t low = 0;
  std::optional<int64_t> high;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = info.op.schema().arguments()[i].name();
    if (name == "low" || name == "from") low = arguments[i].toInt();
    if ((name == "high" || name == "to") && !arguments[i].isNone()) high = arguments[i].toInt();
  }
  return high && !IsRange(limits, low, *high);
}

bool HasInexactNumbers(const ops::OpInfo&, Arguments arguments, const Limits& limits) {
  // torch allows one more than the integers that are exact in a dtype of floats.
  return arguments[0].toInt() - 1 > limits.exact;
}

// (self, dim, ...). Most meta functions check that a dimension is one of the tensor.
bool HasForeignDim(const ops::OpInfo&, Arguments arguments, const Limits&) {
  const int64_t count = std::max<int64_t>(arguments[0].toTensor().dim(), 1);
  const int64_t dim = arguments[1].toInt();
  return dim < -count || dim >= count;
}

// Whether there is a number for each dimension, or one for all, and none is below `least`.
bool AreSizes(const c10::IValue& values, int64_t dims, int64_t least) {
  const auto sizes = values.toDimVector();
  return (sizes.size() == 1 || static_cast<int64_t>(sizes.size()) == dims) &&
         std::ranges::all_of(sizes, [&](int64_t size) { return size >= least; });
}

bool IsPaddedTooFar(Arguments arguments) {
  const auto stride = arguments[3].toDimVector(), dilation = arguments[5].toDimVector();
  const auto output_padding = arguments[7].toDimVector();
  for (size_t i = 0; i < output_padding.size(); ++i) {
    const int64_t s = stride[std::min(i, stride.size() - 1)];
    const int64_t d = dilation[std::min(i, dilation.size() - 1)];
    if (output_padding[i] >= std::max(s, d)) return true;
  }
  return false;
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
bool IsMisfitConvolution(const ops::OpInfo&, Arguments arguments, const Limits&) {
  const at::Tensor &input = arguments[0].toTensor(), &weight = arguments[1].toTensor();
  const int64_t dims = weight.dim() - 2, groups = arguments[8].toInt();
  if (dims < 1 || input.dim() != weight.dim() || groups < 1 || weight.numel() == 0) return true;
  if (!AreSizes(arguments[3], dims, 1) || !AreSizes(arguments[4], dims, 0) ||
      !AreSizes(arguments[5], dims, 1) || !AreSizes(arguments[7], dims, 0))
    return true;
  const auto image = input.sizes().slice(2);
  if (weight.size(0) % groups != 0 || std::ranges::count(image, 0) != 0) return true;
  const bool is_transposed = arguments[6].toBool();
  const int64_t channels = is_transposed ? weight.size(0) : weight.size(1) * groups;
  const int64_t results = is_transposed ? weight.size(1) * groups : weight.size(0);
  if (input.size(1) != channels) return true;
  if (arguments[2].isTensor() && arguments[2].toTensor().defined() &&
      arguments[2].toTensor().sizes() != c10::IntArrayRef(results))
    return true;
  // The kernel takes int64; its gradient, which is what is compiled, has no integers.
  return is_transposed && (IsPaddedTooFar(arguments) ||
                           c10::isIntegralType(input.scalar_type(), /*includeBool=*/true));
}

bool HasComplex(const ops::OpInfo&, Arguments arguments, const Limits&) {
  return std::ranges::any_of(arguments, [](const c10::IValue& argument) {
    return argument.isTensor() ? argument.toTensor().is_complex() : argument.isComplexDouble();
  });
}

// Makes of sizes those that both have together. False if two of the same dimension differ, and none
// of them is 1.
bool Broadcast(at::IntArrayRef other, at::DimVector* sizes) {
  const size_t rank = std::max(other.size(), sizes->size());
  sizes->insert(sizes->begin(), rank - sizes->size(), 1);
  int64_t* const same = sizes->end() - other.size();
  for (size_t i = 0; i < other.size(); ++i) {
    if (same[i] != other[i] && same[i] != 1 && other[i] != 1) return false;
    if (same[i] == 1) same[i] = other[i];
  }
  return true;
}

// The sizes of self[indices], without masks: those of all indices stand where the first index is,
// or in front if dimensions that have none are between them. Nothing if they do not fit together.
std::optional<at::DimVector> SizesOfIndexed(const at::Tensor& self,
                                            c10::ArrayRef<c10::IValue> indices) {
  at::DimVector places, sizes;
  size_t first = 0, number = 0, num_runs = 0;
  bool was_index = false;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    const bool is_index = dim < static_cast<int64_t>(indices.size()) && indices[dim].isTensor() &&
                          indices[dim].toTensor().defined();
    if (!is_index) {
      sizes.push_back(self.size(dim));
    } else {
      if (number++ == 0) first = sizes.size();
      if (!was_index) ++num_runs;
      if (!Broadcast(indices[dim].toTensor().sizes(), &places)) return std::nullopt;
    }
    was_index = is_index;
  }
  sizes.insert(sizes.begin() + (num_runs > 1 ? 0 : first), places.begin(), places.end());
  return sizes;
}

// (self, indices[, values, ...])
bool HasMisfitIndices(const ops::OpInfo&, Arguments arguments, const Limits&) {
  const at::Tensor& self = arguments[0].toTensor();
  int64_t dim = 0;
  bool selects_of_nothing = false, selects_nothing = false, has_mask = false;
  for (const c10::IValue& item : arguments[1].toListRef()) {
    const at::Tensor index = item.isTensor() ? item.toTensor() : at::Tensor();
    if (!index.defined()) {
      ++dim;
    } else if (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte) {
      // A mask is not broadcast.
      has_mask = true;
      if (dim + index.dim() > self.dim() || self.sizes().slice(dim, index.dim()) != index.sizes())
        return true;
      dim += index.dim();
    } else {
      if (dim >= self.dim()) return true;
      selects_of_nothing |= self.size(dim) == 0;
      selects_nothing |= index.numel() == 0;
      ++dim;
    }
  }
  if (has_mask) return false;
  const std::optional<at::DimVector> sizes = SizesOfIndexed(self, arguments[1].toListRef());
  if (!sizes || (selects_of_nothing && !selects_nothing)) return true;
  if (arguments.size() == 2) return false;
  at::DimVector all = *sizes;
  return !Broadcast(arguments[2].toTensor().sizes(), &all) || all != *sizes;
}

// (self, index, source, ...)
bool HasMisfitPlaces(const ops::OpInfo&, Arguments arguments, const Limits&) {
  const int64_t places = arguments[1].toTensor().numel();
  return arguments[2].toTensor().numel() != places ||
         (places != 0 && arguments[0].toTensor().numel() == 0);
}

// (self, kernel_size, dilation, padding, stride)
bool HasNegativePadding(const ops::OpInfo&, Arguments arguments, const Limits&) {
  const auto padding = arguments[3].toDimVector();
  return std::ranges::any_of(padding, [](int64_t size) { return size < 0; });
}

bool HasBoundaryMatrix(const ops::OpInfo&, Arguments arguments, const Limits&) {
  return arguments[1].toTensor().dim() != 1;
}

// Whether parameters that have the dtype of the input have another one. Those of halves may be
// float32.
bool HasMixedDtypes(const ops::OpInfo& info, Arguments arguments) {
  if (info.facts->dtype_of_input.empty()) return false;
  const c10::ScalarType input = arguments[0].toTensor().scalar_type();
  bool all_same = true, all_floats = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!ops::HasWord(info.facts->dtype_of_input, info.op.schema().arguments()[i].name())) continue;
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined()) continue;
    const c10::ScalarType own = arguments[i].toTensor().scalar_type();
    all_same &= own == input;
    all_floats &= own == at::kFloat;
  }
  return !all_same && !(c10::isReducedFloatingType(input) && all_floats);
}

// (self, mat1, mat2, ...). The sum is broadcast.
bool HasMisfitAddend(const ops::OpInfo&, Arguments arguments, const Limits&) {
  const at::Tensor &self = arguments[0].toTensor(), &left = arguments[1].toTensor();
  const std::array sizes = {left.size(0), arguments[2].toTensor().size(1)};
  const auto fits = [&](int64_t dim) {
    return self.size(-dim) == 1 || self.size(-dim) == sizes[2 - dim];
  };
  return self.dim() > 2 || (self.dim() > 1 && !fits(2)) || (self.dim() > 0 && !fits(1));
}

// (.., self, approximate, optional out)
bool HasUnknownApproximation(const ops::OpInfo& info, Arguments arguments, const Limits&) {
  const auto place = *info.op.schema().argumentIndexWithName("approximate");
  const std::string_view form = arguments[place].toStringView();
  return form != "none" && form != "tanh";
}

// (self, noise, ...)
bool HasMisfitNoise(const ops::OpInfo&, Arguments arguments, const Limits&) {
  return arguments[0].toTensor().sizes() != arguments[1].toTensor().sizes();
}

// The dimension that is meant, or -1.
int64_t DimOf(const at::Tensor& tensor, const c10::IValue& value) {
  const int64_t dim = value.toInt() + (value.toInt() < 0 ? tensor.dim() : 0);
  return dim < tensor.dim() ? std::max<int64_t>(dim, -1) : -1;
}

// (self, src, dim, index)
bool HasMisfitRow(const ops::OpInfo&, Arguments arguments, const Limits&) {
  const at::Tensor& self = arguments[0].toTensor();
  const int64_t dim = DimOf(self, arguments[2]), index = arguments[3].toInt();
  if (dim < 0 || index < -self.size(dim) || index >= self.size(dim)) return true;
  at::DimVector sizes(self.sizes());
  sizes.erase(sizes.begin() + dim);
  return arguments[1].toTensor().sizes() != sizes;
}

// (self, src, dim, start, end, step)
bool HasForeignSlice(const ops::OpInfo&, Arguments arguments, const Limits&) {
  return DimOf(arguments[0].toTensor(), arguments[2]) < 0;
}

// (self, src, offset, dim1, dim2)
bool HasMisfitDiagonal(const ops::OpInfo&, Arguments arguments, const Limits&) {
  const at::Tensor& self = arguments[0].toTensor();
  const int64_t offset = arguments[2].toInt();
  const int64_t dim1 = DimOf(self, arguments[3]), dim2 = DimOf(self, arguments[4]);
  if (dim1 < 0 || dim2 < 0 || dim1 == dim2) return true;
  at::DimVector sizes(self.sizes());
  const int64_t length = std::min(sizes[dim1] + std::min<int64_t>(offset, 0),
                                  sizes[dim2] - std::max<int64_t>(offset, 0));
  sizes.erase(sizes.begin() + std::max(dim1, dim2));
  sizes.erase(sizes.begin() + std::min(dim1, dim2));
  sizes.push_back(std::max<int64_t>(length, 0));
  return arguments[1].toTensor().sizes() != sizes;
}

// (self, dim, index). A 0-d tensor has no dimension to index; its kernel decides.
bool HasNoRows(const ops::OpInfo&, Arguments arguments, const Limits&) {
  return arguments[0].toTensor().dim() == 0 || arguments[2].toTensor().dim() > 1;
}

// (self, num_samples, replacement)
bool HasMisfitSample(const ops::OpInfo&, Arguments arguments, const Limits&) {
  const at::Tensor& self = arguments[0].toTensor();
  const int64_t count = arguments[1].toInt();
  if (!self.is_floating_point() || self.dim() < 1 || self.dim() > 2) return true;
  constexpr int64_t kMostCategories = 1 << 24;  // Of torch's kernels.
  const int64_t categories = self.size(-1), most = arguments[2].toBool() ? count : categories;
  return categories == 0 || categories > kMostCategories || count <= 0 || count > most;
}

using Predicate = bool (*)(const ops::OpInfo& info, Arguments arguments, const Limits& limits);

Predicate FindPredicate(std::string_view name) {
  static constexpr auto kPredicates = std::to_array<std::pair<std::string_view, Predicate>>({
      {"bad_interval", HasBadInterval},
      {"boundary_matrix", HasBoundaryMatrix},
      {"complex", HasComplex},
      {"empty_range", HasEmptyRange},
      {"foreign_dim", HasForeignDim},
      {"foreign_slice", HasForeignSlice},
      {"inexact_numbers", HasInexactNumbers},
      {"misfit_addend", HasMisfitAddend},
      {"misfit_convolution", IsMisfitConvolution},
      {"misfit_diagonal", HasMisfitDiagonal},
      {"misfit_indices", HasMisfitIndices},
      {"misfit_noise", HasMisfitNoise},
      {"misfit_places", HasMisfitPlaces},
      {"misfit_row", HasMisfitRow},
      {"misfit_sample", HasMisfitSample},
      {"negative_padding", HasNegativePadding},
      {"no_rows", HasNoRows},
      {"unknown_approximation", HasUnknownApproximation},
  });
  if (name.empty()) return nullptr;
  return ops::Named(kPredicates, name);
}

bool IsBool(const c10::IValue& value) {
  return value.isBool() || (value.isTensor() && value.toTensor().scalar_type() == at::kBool);
}

bool HasRefusedBool(const ops::OpInfo& info, Arguments arguments, c10::ScalarType result) {
  const bool subtracts = info.name.starts_with("aten::sub.") ||
                         info.name.starts_with("aten::rsub.") ||
                         info.name.starts_with("aten::_foreach_sub.");
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_alpha = info.op.schema().arguments()[i].name() == "alpha";
    if (is_alpha ? arguments[i].isBool() && result != at::kBool : subtracts && IsBool(arguments[i]))
      return true;
  }
  return false;
}

// Whether torch's kernels have no dtype for the result, where its meta functions have one: beside
// other integers, for unsigned ones of more than 8 bits and Python numbers beyond int64.
bool HasRefusedPromotion(const ops::OpInfo& info, Arguments arguments) {
  const auto functional = ops::FindOp(info.name);
  const bool promotes = (functional && functional->hasTag(at::Tag::pointwise)) ||
                        info.name == "aten::cat" || info.name.starts_with("aten::floor_divide") ||
                        info.name.starts_with("aten::_foreach_");
  if (!promotes) return false;
  at::native::ResultTypeState state;
  try {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string& name = info.op.schema().arguments()[i].name();
      if (name == "condition" || name == "mask") continue;
      if (arguments[i].isScalar() || arguments[i].isUnsigned()) {
        state = at::native::update_result_type_state(arguments[i].toScalar(), state);
      } else {
        ops::ForEachTensor(arguments[i], [&](const at::Tensor& tensor) {
          state = at::native::update_result_type_state(tensor, state);
        });
      }
    }
    at::native::result_type(state);
  } catch (const c10::Error&) {
    return true;
  }
  return false;
}

// Whether the op raises for matrices that it cannot factorise.
bool ChecksErrors(const ops::OpInfo& info, Arguments arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.op.schema().arguments()[i].name() == "check_errors") return arguments[i].toBool();
  }
  return false;
}

// 2 ** -1 is no integer.
bool HasNegativeExponent(const ops::OpInfo& info, Arguments arguments, c10::ScalarType result) {
  if (!c10::isIntegralType(result, /*includeBool=*/true)) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i].negative_is_constant && arguments[i].isInt() && arguments[i].toInt() < 0)
      return true;
  }
  return false;
}

}  // namespace

bool IsRefused(const ops::OpInfo& info, Arguments arguments, const ir::Shape* operand,
               const tensor::OpSignature& signature) {
  if (signature.outputs.empty() || signature.outputs[0] == nullptr) return false;
  const ops::OpFacts& facts = *info.facts;
  const auto dtype = tensor::ScalarTypeOf(signature.outputs[0]);
  // Some meta functions return float for integers, which the kernel rejects.
  if (ops::IsOfKind(dtype, facts.refuses) || ops::IsOfKind(dtype, facts.refuses_results))
    return true;
  if (operand != nullptr && ops::IsOfKind(tensor::ScalarTypeOf(operand), facts.refuses))
    return true;
  if (HasRefusedBool(info, arguments, dtype) || HasNegativeExponent(info, arguments, dtype) ||
      HasRefusedPromotion(info, arguments) || ChecksErrors(info, arguments))
    return true;
  if (!HaveOneDtype(info, arguments) || HasMixedDtypes(info, arguments) ||
      !AreAll(facts.dtypes, info, arguments, HasDtype) ||
      !AreAll(facts.elements, info, arguments, HasElements) ||
      !AreAll(facts.numbers, info, arguments, IsWithin))
    return true;
  const Predicate predicate = FindPredicate(facts.refused_if);
  return predicate != nullptr && predicate(info, arguments, LimitsOf(dtype));
}

}  // namespace torch_xla_lite::infer
