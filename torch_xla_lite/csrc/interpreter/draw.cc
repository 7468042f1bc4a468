#include "torch_xla_lite/csrc/interpreter/draw.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <numeric>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/opmath.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/kernels/distributions.h"
#include "torch_xla_lite/csrc/kernels/random_bits.h"
#include "torch_xla_lite/csrc/ops/named.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::interpreter {
namespace {

using kernels::Distribution;
using kernels::Threefry;
using torch::jit::Stack;
using Results = std::vector<at::Tensor>;

uint64_t Join(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

// Calls take(index, high, low) with the halves of `count` random numbers.
template <typename Take>
void ForEach(const Threefry& key, int64_t count, const Take& take) {
  at::parallel_for(0, count, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += Threefry::kBlock) {
      const auto [high, low] = key.Block(i);
      const auto size = static_cast<int>(std::min<int64_t>(Threefry::kBlock, end - i));
      for (int j = 0; j < size; ++j) take(i + j, high[j], low[j]);
    }
  });
}

// A tensor of the values of `make(high, low)`.
template <typename T, typename Make>
at::Tensor Generate(const Threefry& key, at::IntArrayRef sizes, const Make& make) {
  at::Tensor result(at::detail::empty_cpu(sizes, c10::CppTypeToScalarType<T>::value));
  T* const data = result.mutable_data_ptr<T>();
  ForEach(key, result.numel(),
          [&](int64_t i, uint32_t high, uint32_t low) { data[i] = make(high, low); });
  return result;
}

bool IsDouble(const ir::Shape& out) {
  return c10::toRealValueType(tensor::ScalarTypeOf(&out)) == at::kDouble;
}

// A number in the dtype in which an op computes.
double Rounded(double number, const ir::Shape& out) {
  return IsDouble(out) ? number : static_cast<float>(number);
}

template <typename T>
at::Tensor FillOf(Distribution distribution, const Threefry& key, at::IntArrayRef sizes,
                  std::initializer_list<at::Tensor> parameters) {
  constexpr c10::ScalarType kDtype = c10::CppTypeToScalarType<T>::value;
  std::vector<at::Tensor> dense;
  for (const at::Tensor& each : parameters) {
    dense.push_back(each.to(kDtype).expand(sizes).contiguous());
  }
  kernels::Parameters<T> data{};
  for (size_t i = 0; i < dense.size(); ++i) data[i] = dense[i].const_data_ptr<T>();
  at::Tensor values(at::detail::empty_cpu(sizes, kDtype));
  T* const result = values.mutable_data_ptr<T>();
  at::parallel_for(0, values.numel(), kernels::GrainOf(distribution),
                   [&](int64_t begin, int64_t end) {
                     kernels::Draw(distribution, key, begin, end, data, result);
                   });
  return values;
}

// Numbers of one of the kernels' distributions.
at::Tensor Fill(Distribution distribution, const Threefry& key, at::IntArrayRef sizes,
                bool is_double, std::initializer_list<at::Tensor> parameters = {}) {
  return is_double ? FillOf<double>(distribution, key, sizes, parameters)
                   : FillOf<float>(distribution, key, sizes, parameters);
}

at::Tensor Fill(Distribution distribution, const Threefry& key, const ir::Shape& out,
                std::initializer_list<at::Tensor> parameters = {}) {
  return Fill(distribution, key, out.dims(), IsDouble(out), parameters);
}

// keep_mask of the lowerings.
at::Tensor KeepMask(const Threefry& key, double probability, at::IntArrayRef sizes) {
  if (probability >= 1) return at::full(sizes, true, at::kBool);
  constexpr double kMost = std::numeric_limits<uint32_t>::max();
  const auto threshold = static_cast<uint32_t>(std::min(probability * 0x1p32, kMost));
  at::Tensor mask(at::detail::empty_cpu(sizes, at::kBool));
  bool* const data = mask.mutable_data_ptr<bool>();
  at::parallel_for(0, mask.numel(), kernels::kBitsGrain, [&](int64_t begin, int64_t end) {
    kernels::KeepMask(key, threshold, begin, end, data);
  });
  return mask;
}

Results NativeDropout(const Stack& arguments, const Threefry& key, const ir::Shape& /*out*/) {
  const at::Tensor& input = arguments[0].toTensor();
  const double p = arguments[1].toDouble();
  const bool is_off = arguments[2].isBool() && !arguments[2].toBool();
  if (is_off || p == 0) return {input, at::full(input.sizes(), true, at::kBool)};
  if (p == 1) {
    return {at::full(input.sizes(), 0, input.scalar_type()),
            at::full(input.sizes(), false, at::kBool)};
  }
  const at::Tensor mask = KeepMask(key, 1 - p, input.sizes());
  const at::Tensor scaled = ToOpmath(input).mul(1 / (1 - p));
  return {at::where(mask, scaled, at::full({}, 0, scaled.scalar_type())), mask};
}

Results Bernoulli(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const bool is_of_other = arguments[1].isTensor();
  at::Tensor probability = arguments[is_of_other ? 1 : 0].toTensor();
  probability = ToOpmath(probability);
  TORCH_CHECK(probability.ge(0).logical_and(probability.le(1)).all().item<bool>(),
              "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  const at::Tensor uniform = FillOf<float>(Distribution::kUniform, key, out.dims(), {});
  return {uniform.to(probability.scalar_type()).lt(probability)};
}

Results BernoulliP(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  return {KeepMask(key, arguments[1].toDouble(), out.dims())};
}

// make(key) of a tensor, or of the two parts of a complex one.
template <typename Make>
at::Tensor Parts(const Threefry& key, const ir::Shape& out, const Make& make) {
  const c10::ScalarType dtype = tensor::ScalarTypeOf(&out);
  if (!c10::isComplexType(dtype)) return make(key);
  return make(key.Fold(0)).to(dtype).add_(make(key.Fold(1)), c10::complex<double>(0, 1));
}

Results Rand(const Stack& /*arguments*/, const Threefry& key, const ir::Shape& out) {
  const c10::ScalarType dtype = tensor::ScalarTypeOf(&out);
  // Rounding to 16 bits must not reach 1.
  const float most = dtype == at::kHalf ? 1 - 0x1p-11F : dtype == at::kBFloat16 ? 1 - 0x1p-8F : 1;
  return {Parts(key, out, [&](const Threefry& part) {
    at::Tensor values = Fill(Distribution::kUniform, part, out);
    return most < 1 ? values.clamp_max_(most) : values;
  })};
}

// The product of two floats is exact in doubles, so that the sum is the same whether or not a
// compiler fuses the two.
at::Tensor Between(double low, double range, const at::Tensor& unit) {
  return unit.to(at::kDouble).mul_(range).add_(low).to(unit.scalar_type());
}

Results StandardNormal(const Stack& /*arguments*/, const Threefry& key, const ir::Shape& out) {
  const bool is_complex = c10::isComplexType(tensor::ScalarTypeOf(&out));
  return {Parts(key, out, [&](const Threefry& part) {
    const at::Tensor values = Fill(Distribution::kNormal, part, out);
    return is_complex ? values.mul(std::numbers::sqrt2 / 2) : values;
  })};
}

// Numbers times the second of two arguments, and the first of them added.
Results Scaled(const at::Tensor& values, const Stack& arguments, size_t first,
               const ir::Shape& out) {
  const double low = Rounded(arguments[first].toScalar().toDouble(), out);
  const double range = Rounded(arguments[first + 1].toScalar().toDouble(), out);
  return {low == 0 && range == 1 ? values : Between(low, range, values)};
}

// The mean is argument kAt, and the deviation the next one.
template <int kAt>
Results Normal(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  return Scaled(Fill(Distribution::kNormal, key, out), arguments, kAt, out);
}

Results Cauchy(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  return Scaled(Fill(Distribution::kCauchy, key, out), arguments, 1, out);
}

Results LogNormal(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const auto number = [&](int i) { return at::full({}, arguments[i].toScalar(), at::kDouble); };
  return {Fill(Distribution::kLogNormal, key, out, {number(1), number(2)})};
}

// Of a mean and a deviation, of which one is a tensor.
Results NormalOf(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const auto wide = [&](const c10::IValue& x) {
    return x.isTensor() ? x.toTensor().to(at::kDouble)
                        : at::full({}, Rounded(x.toScalar().toDouble(), out), at::kDouble);
  };
  const at::Tensor mean = wide(arguments[0]), deviation = wide(arguments[1]);
  TORCH_CHECK(deviation.ge(0).all().item<bool>(), "normal expects all elements of std >= 0.0");
  return {Fill(Distribution::kNormal, key, out).to(at::kDouble).mul_(deviation).add_(mean)};
}

// Of the rate `lambda`.
Results Exponential(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const double rate = Rounded(arguments[1].toScalar().toDouble(), out);
  return {Fill(Distribution::kExponential, key, out).mul_(Rounded(1 / rate, out))};
}

Results Geometric(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const double scale = -1 / std::log1p(-arguments[1].toDouble());
  const at::Tensor drawn = Fill(Distribution::kExponential, key, out).mul_(Rounded(scale, out));
  return {drawn.ceil().to(tensor::ScalarTypeOf(&out))};
}

// The least normal number of a dtype. As in torch, no gamma number is less, or NaN.
double LeastOf(const ir::Shape& out) {
  const c10::ScalarType dtype = tensor::ScalarTypeOf(&out);
  return dtype == at::kDouble ? std::numeric_limits<double>::min()
         : dtype == at::kHalf ? 0x1p-14
                              : std::numeric_limits<float>::min();
}

Results Gamma(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const at::Tensor drawn = Fill(Distribution::kGamma, key, out, {arguments[0].toTensor()});
  const at::Tensor least = at::full({}, LeastOf(out), drawn.scalar_type());
  return {at::where(drawn.gt(least), drawn, least)};
}

Results LogGamma(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  return {Fill(Distribution::kLogGamma, key, out, {arguments[0].toTensor()})};
}

Results Poisson(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const at::Tensor& rate = arguments[0].toTensor();
  TORCH_CHECK(rate.ge(0).all().item<bool>(),
              "invalid Poisson rate, expected rate to be non-negative");
  return {Fill(Distribution::kPoisson, key, out, {rate})};
}

Results Binomial(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const at::Tensor count = arguments[0].toTensor().clamp_min(0);
  return {Fill(Distribution::kBinomial, key, out, {count, arguments[1].toTensor().clamp(0, 1)})};
}

// The category of each part of the sum of its row's weights.
template <typename T>
at::Tensor CategoriesOf(const at::Tensor& sums, const at::Tensor& parts) {
  at::Tensor result(at::detail::empty_cpu(parts.sizes(), at::kLong));
  const int64_t categories = sums.size(-1), count = parts.size(-1);
  const T* const part = parts.const_data_ptr<T>();
  int64_t* const category = result.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < parts.numel(); ++i) {
    const T* const row = sums.const_data_ptr<T>() + i / count * categories;
    const T* const end = row + categories;
    category[i] = std::upper_bound(row, end, part[i] * end[-1]) - row;
  }
  return result;
}

// multinomial(self, num_samples, replacement, ...)
Results Multinomial(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const at::Tensor weights = ToOpmath(arguments[0].toTensor());
  if (weights.numel() == 0) return {at::full(out.dims(), 0, at::kLong)};
  // The compiled graph says which.
  TORCH_CHECK(weights.min().item<double>() >= 0 && std::isfinite(weights.max().item<double>()) &&
                  weights.amax(-1).min().item<double>() > 0,
              "invalid multinomial distribution");
  const bool is_double = weights.scalar_type() == at::kDouble;
  const int64_t count = arguments[1].toInt();
  if (count == 1 || !arguments[2].toBool()) {
    const at::Tensor rates =
        weights.div(Fill(Distribution::kExponential, key, weights.sizes(), is_double));
    if (count == 1) return {rates.argmax(-1, /*keepdim=*/true)};
    return {std::get<1>(rates.topk(count))};
  }
  const at::Tensor sums = weights.cumsum(-1).contiguous();
  const at::Tensor parts = Fill(Distribution::kUniform, key, out.dims(), is_double);
  return {is_double ? CategoriesOf<double>(sums, parts) : CategoriesOf<float>(sums, parts)};
}

Results Uniform(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const double from = arguments[1].toDouble(), to = arguments[2].toDouble();
  const at::Tensor unit = Rand(arguments, key, out)[0];
  if (from == 0 && to == 1) return {unit};
  return {Between(Rounded(from, out), Rounded(to - from, out), unit)};
}

// rrelu_with_noise_functional(self, noise, lower, upper, training, ...): the noise is the slopes.
Results Rrelu(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const at::Tensor x = ToOpmath(arguments[0].toTensor()), negative = x.le(0);
  const double lower = Rounded(arguments[2].toScalar().toDouble(), out);
  const double upper = Rounded(arguments[3].toScalar().toDouble(), out);
  if (!arguments[4].toBool()) {
    const double slope = Rounded(Rounded(lower + upper, out) / 2, out);
    return {at::where(negative, x.mul(slope), x), arguments[1].toTensor()};
  }
  const at::Tensor unit = Fill(Distribution::kUniform, key, out);
  const at::Tensor drawn = Between(lower, Rounded(upper - lower, out), unit);
  const at::Tensor slope = at::where(negative, drawn, at::full({}, 1, drawn.scalar_type()));
  return {x.mul(slope), slope};
}

// In [low, high).
Results Integers(const Threefry& key, const ir::Shape& out, int64_t low, int64_t high) {
  const Threefry upper = key.Fold(0), lower = key.Fold(1);
  const uint64_t begin = static_cast<uint64_t>(low);
  const uint64_t span = high > low ? static_cast<uint64_t>(high) - begin : 1;
  uint64_t scale = (uint64_t{1} << 32) % span;
  scale = scale * scale % span;  // 2^64 % span, with jax's overflow
  at::Tensor result = Generate<int64_t>(upper, out.dims(), [&](uint32_t high, uint32_t low) {
    return static_cast<int64_t>(Join(high, low) % span * scale);
  });
  int64_t* const data = result.mutable_data_ptr<int64_t>();
  ForEach(lower, result.numel(), [&](int64_t i, uint32_t high, uint32_t low) {
    const uint64_t offset = static_cast<uint64_t>(data[i]) + Join(high, low) % span;
    data[i] = static_cast<int64_t>(begin + offset % span);
  });
  return {result};
}

// One more than the largest integer of a dtype, or the end of the integers that it has exactly.
int64_t EndOf(const ir::Shape& out) {
  const c10::ScalarType dtype = tensor::ScalarTypeOf(&out);
  switch (dtype) {
    case at::kBool:
      return 2;
    case at::kHalf:
      return 1 << 11;
    case at::kBFloat16:
      return 1 << 8;
    case at::kFloat:
      return 1 << 24;
    case at::kDouble:
      return int64_t{1} << 53;
    default: {
      const int bits = static_cast<int>(8 * c10::elementSize(dtype)) - c10::isSignedType(dtype);
      return bits < 63 ? int64_t{1} << bits : std::numeric_limits<int64_t>::max();
    }
  }
}

// randint(high, ...) and random.to(self, to): the bound is argument kAt.
template <int kAt>
Results BelowHigh(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  return Integers(key, out, 0, arguments[kAt].toInt());
}

// randint.low(low, high, ...) and random.from(self, from, to).
template <int kAt>
Results FromLow(const Stack& arguments, const Threefry& key, const ir::Shape& out) {
  const c10::IValue& high = arguments[kAt + 1];
  return Integers(key, out, arguments[kAt].toInt(), high.isNone() ? EndOf(out) : high.toInt());
}

Results Random(const Stack& /*arguments*/, const Threefry& key, const ir::Shape& out) {
  return {Integers(key, out, 0, EndOf(out))[0].to(tensor::ScalarTypeOf(&out))};
}

// Sorts words by their upper halves, and keeps the order of equal ones. Byte after byte, which
// takes a tenth of the time of comparisons. other: as many words, which are overwritten.
void SortByUpperHalf(std::span<uint64_t> words, std::span<uint64_t> other) {
  for (int shift = 32; shift < 64; shift += 8) {
    const auto byte_of = [&](uint64_t word) { return (word >> shift) & 255; };
    std::array<size_t, 256> places{};
    for (const uint64_t word : words) ++places[byte_of(word)];
    std::exclusive_scan(places.begin(), places.end(), places.begin(), size_t{0});
    for (const uint64_t word : words) other[places[byte_of(word)]++] = word;
    std::swap(words, other);
  }
}

// jax.random.permutation: sorts by random keys until equal ones are unlikely to have mattered.
Results Permutation(const Stack& /*arguments*/, const Threefry& key, const ir::Shape& out) {
  const int64_t size = out.dims()[0];
  TORCH_CHECK_NOT_IMPLEMENTED(size <= std::numeric_limits<uint32_t>::max(),
                              "randperm of 2**32 numbers or more");
  at::Tensor result(at::detail::empty_cpu(out.dims(), at::kLong));
  const at::Tensor other(at::detail::empty_cpu(out.dims(), at::kLong));
  const auto words_of = [&](const at::Tensor& tensor) {
    return std::span(static_cast<uint64_t*>(tensor.mutable_data_ptr()), size);
  };
  const std::span<uint64_t> words = words_of(result);
  std::iota(words.begin(), words.end(), 0);
  const double rounds = std::ceil(3 * std::log(std::max<double>(1, static_cast<double>(size))) /
                                  std::log(std::numeric_limits<uint32_t>::max()));
  Threefry next = key;
  for (int round = 0; round < static_cast<int>(rounds); ++round) {
    const Threefry bits = next.Fold(1);
    next = next.Fold(0);
    ForEach(bits, size, [&](int64_t i, uint32_t high, uint32_t low) {
      words[i] |= uint64_t{high ^ low} << 32;
    });
    SortByUpperHalf(words, words_of(other));
    for (uint64_t& word : words) word = static_cast<uint32_t>(word);
  }
  return {result};
}

Draw Find(std::string_view name) {
  static constexpr auto kDraws = std::to_array<std::pair<std::string_view, Draw>>({
      {"below_0", BelowHigh<0>},
      {"below_1", BelowHigh<1>},
      {"bernoulli", Bernoulli},
      {"bernoulli_p", BernoulliP},
      {"binomial", Binomial},
      {"cauchy", Cauchy},
      {"dropout", NativeDropout},
      {"exponential", Exponential},
      {"from_0", FromLow<0>},
      {"from_1", FromLow<1>},
      {"gamma", Gamma},
      {"geometric", Geometric},
      {"log_gamma", LogGamma},
      {"log_normal", LogNormal},
      {"multinomial", Multinomial},
      {"normal", StandardNormal},
      {"normal_0", Normal<0>},
      {"normal_1", Normal<1>},
      {"normal_of", NormalOf},
      {"permutation", Permutation},
      {"poisson", Poisson},
      {"rand", Rand},
      {"random", Random},
      {"rrelu", Rrelu},
      {"uniform", Uniform},
  });
  return ops::Named(kDraws, name);
}

// Whether the lowering gives the same numbers in this dtype.
bool IsExact(Draw draw, c10::ScalarType dtype) {
  if (dtype == at::kComplexFloat || dtype == at::kComplexDouble) {
    return draw == Rand || draw == StandardNormal;
  }
  return dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf ||
         dtype == at::kBFloat16 || c10::isIntegralType(dtype, /*includeBool=*/true);
}

}  // namespace

Draw FindDraw(std::string_view name, const ir::Shape* out) {
  const Draw draw = Find(name);
  const bool is_exact =
      draw != nullptr && out != nullptr && IsExact(draw, tensor::ScalarTypeOf(out));
  return is_exact ? draw : nullptr;
}

}  // namespace torch_xla_lite::interpreter
