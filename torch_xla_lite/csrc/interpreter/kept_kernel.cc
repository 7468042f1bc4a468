// The only file that names the structured kernels of torch: classes that its code generator
// declares in ATen/ops/*_native.h. Not every `meta` leaves the data alone: that of baddbmm copies.

#include "torch_xla_lite/csrc/interpreter/kept_kernel.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/_log_softmax_backward_data_native.h>
#include <ATen/ops/_log_softmax_native.h>
#include <ATen/ops/_softmax_backward_data_native.h>
#include <ATen/ops/_softmax_native.h>
#include <ATen/ops/add_native.h>
#include <ATen/ops/addcdiv_native.h>
#include <ATen/ops/addcmul_native.h>
#include <ATen/ops/addmm_native.h>
#include <ATen/ops/amax_native.h>
#include <ATen/ops/amin_native.h>
#include <ATen/ops/argmax_native.h>
#include <ATen/ops/argmin_native.h>
#include <ATen/ops/atan2_native.h>
#include <ATen/ops/bitwise_and_native.h>
#include <ATen/ops/bitwise_or_native.h>
#include <ATen/ops/bmm_native.h>
#include <ATen/ops/ceil_native.h>
#include <ATen/ops/clamp_max_native.h>
#include <ATen/ops/clamp_min_native.h>
#include <ATen/ops/clamp_native.h>
#include <ATen/ops/cos_native.h>
#include <ATen/ops/div_native.h>
#include <ATen/ops/elu_backward_native.h>
#include <ATen/ops/elu_native.h>
#include <ATen/ops/eq_native.h>
#include <ATen/ops/erf_native.h>
#include <ATen/ops/erfc_native.h>
#include <ATen/ops/exp2_native.h>
#include <ATen/ops/exp_native.h>
#include <ATen/ops/expm1_native.h>
#include <ATen/ops/floor_native.h>
#include <ATen/ops/ge_native.h>
#include <ATen/ops/gelu_backward_native.h>
#include <ATen/ops/gelu_native.h>
#include <ATen/ops/gt_native.h>
#include <ATen/ops/le_native.h>
#include <ATen/ops/leaky_relu_backward_native.h>
#include <ATen/ops/leaky_relu_native.h>
#include <ATen/ops/lerp_native.h>
#include <ATen/ops/log10_native.h>
#include <ATen/ops/log1p_native.h>
#include <ATen/ops/log2_native.h>
#include <ATen/ops/log_native.h>
#include <ATen/ops/lt_native.h>
#include <ATen/ops/maximum_native.h>
#include <ATen/ops/mean_native.h>
#include <ATen/ops/minimum_native.h>
#include <ATen/ops/mm_native.h>
#include <ATen/ops/mul_native.h>
#include <ATen/ops/ne_native.h>
#include <ATen/ops/neg_native.h>
#include <ATen/ops/pow_native.h>
#include <ATen/ops/reciprocal_native.h>
#include <ATen/ops/round_native.h>
#include <ATen/ops/rsqrt_native.h>
#include <ATen/ops/sigmoid_backward_native.h>
#include <ATen/ops/sigmoid_native.h>
#include <ATen/ops/silu_backward_native.h>
#include <ATen/ops/silu_native.h>
#include <ATen/ops/sin_native.h>
#include <ATen/ops/softplus_backward_native.h>
#include <ATen/ops/softplus_native.h>
#include <ATen/ops/sqrt_native.h>
#include <ATen/ops/sub_native.h>
#include <ATen/ops/sum_native.h>
#include <ATen/ops/tan_native.h>
#include <ATen/ops/tanh_backward_native.h>
#include <ATen/ops/tanh_native.h>
#include <ATen/ops/threshold_backward_native.h>
#include <ATen/ops/trunc_native.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "torch_xla_lite/csrc/interpreter/kept_stub.h"
#include "torch_xla_lite/csrc/interpreter/structured_kernel.h"

namespace torch_xla_lite::interpreter {
namespace {

using torch::jit::Stack;

template <typename Op>
std::unique_ptr<KeptKernel> Make(const Stack& arguments, const at::Tensor& out) {
  return std::make_unique<StructuredKernel<Op>>(arguments, out);
}

// A sum, divided in its place by the number of elements, as torch does.
class KeptMean final : public KeptKernel {
 public:
  KeptMean(std::unique_ptr<KeptKernel> sum, std::unique_ptr<KeptKernel> quotient)
      : sum_(std::move(sum)), quotient_(std::move(quotient)), num_summed_(sum_->places().size()) {}

  std::vector<const void*> places() const override {
    std::vector<const void*> found = sum_->places();
    for (const void* const place : quotient_->places()) found.push_back(place);
    return found;
  }
  void Move(size_t operand, void* data) override {
    const bool is_of_sum = operand < num_summed_;
    (is_of_sum ? sum_ : quotient_)->Move(is_of_sum ? operand : operand - num_summed_, data);
  }
  void SetNumber(size_t /*argument*/, const c10::Scalar& /*value*/) override {}
  void Run() override {
    sum_->Run();
    quotient_->Run();
  }

 private:
  const std::unique_ptr<KeptKernel> sum_;
  const std::unique_ptr<KeptKernel> quotient_;
  const size_t num_summed_;
};

std::unique_ptr<KeptKernel> KeepMean(const Stack& arguments, const at::Tensor& out) {
  auto sum = KeepStub("aten::sum.dim_IntList", arguments, out);
  if (sum == nullptr || out.numel() == 0) return nullptr;
  at::Tensor count = at::detail::scalar_tensor_static(arguments[0].toTensor().numel() / out.numel(),
                                                      at::kLong, at::kCPU);
  count.unsafeGetTensorImpl()->set_wrapped_number(true);
  return std::make_unique<KeptMean>(std::move(sum),
                                    Make<at::native::structured_div_out>({out, count}, out));
}

struct Row {
  std::string_view op;
  std::unique_ptr<KeptKernel> (*make)(const Stack&, const at::Tensor&);
};

// In the order of their names.
constexpr Row kRows[] = {
    {"aten::_log_softmax", Make<at::native::structured_log_softmax_cpu_out>},
    {"aten::_log_softmax_backward_data", Make<at::native::structured_log_softmax_backward_cpu_out>},
    {"aten::_softmax", Make<at::native::structured_softmax_cpu_out>},
    {"aten::_softmax_backward_data", Make<at::native::structured_softmax_backward_cpu_out>},
    {"aten::add.Tensor", Make<at::native::structured_ufunc_add_CPU>},
    {"aten::addcdiv", Make<at::native::structured_addcdiv_out>},
    {"aten::addcmul", Make<at::native::structured_addcmul_out>},
    {"aten::addmm", Make<at::native::structured_addmm_out_cpu>},
    {"aten::amax", Make<at::native::structured_amax_out>},
    {"aten::amin", Make<at::native::structured_amin_out>},
    {"aten::argmax", Make<at::native::structured_argmax_out>},
    {"aten::argmin", Make<at::native::structured_argmin_out>},
    {"aten::atan2", Make<at::native::structured_atan2_out>},
    {"aten::bitwise_and.Tensor", Make<at::native::structured_bitwise_and_out>},
    {"aten::bitwise_or.Tensor", Make<at::native::structured_bitwise_or_out>},
    {"aten::bmm", Make<at::native::structured_bmm_out_cpu>},
    {"aten::ceil", Make<at::native::structured_ceil_out>},
    {"aten::clamp", Make<at::native::structured_clamp_out>},
    {"aten::clamp_max", Make<at::native::structured_clamp_max_out>},
    {"aten::clamp_min", Make<at::native::structured_clamp_min_out>},
    {"aten::cos", Make<at::native::structured_cos_out>},
    {"aten::div.Tensor", Make<at::native::structured_div_out>},
    {"aten::elu", Make<at::native::structured_elu_out>},
    {"aten::elu_backward", Make<at::native::structured_elu_backward_out>},
    {"aten::eq.Tensor", Make<at::native::structured_eq_Tensor_out>},
    {"aten::erf", Make<at::native::structured_erf_out>},
    {"aten::erfc", Make<at::native::structured_erfc_out>},
    {"aten::exp", Make<at::native::structured_exp_out>},
    {"aten::exp2", Make<at::native::structured_exp2_out>},
    {"aten::expm1", Make<at::native::structured_expm1_out>},
    {"aten::floor", Make<at::native::structured_floor_out>},
    {"aten::ge.Tensor", Make<at::native::structured_ge_Tensor_out>},
    {"aten::gelu", Make<at::native::structured_gelu_out_cpu>},
    {"aten::gelu_backward", Make<at::native::structured_gelu_backward_out_cpu>},
    {"aten::gt.Tensor", Make<at::native::structured_gt_Tensor_out>},
    {"aten::le.Tensor", Make<at::native::structured_le_Tensor_out>},
    {"aten::leaky_relu", Make<at::native::structured_leaky_relu_out>},
    {"aten::leaky_relu_backward", Make<at::native::structured_leaky_relu_backward_out>},
    {"aten::lerp.Scalar", Make<at::native::structured_lerp_Scalar>},
    {"aten::lerp.Tensor", Make<at::native::structured_lerp_Tensor>},
    {"aten::log", Make<at::native::structured_log_out>},
    {"aten::log10", Make<at::native::structured_log10_out>},
    {"aten::log1p", Make<at::native::structured_log1p_out>},
    {"aten::log2", Make<at::native::structured_log2_out>},
    {"aten::lt.Tensor", Make<at::native::structured_lt_Tensor_out>},
    {"aten::maximum", Make<at::native::structured_maximum_out>},
    {"aten::mean.dim", Make<at::native::structured_mean_out>},
    {"aten::minimum", Make<at::native::structured_minimum_out>},
    {"aten::mm", Make<at::native::structured_mm_out_cpu>},
    {"aten::mul.Tensor", Make<at::native::structured_mul_out>},
    {"aten::ne.Tensor", Make<at::native::structured_ne_Tensor_out>},
    {"aten::neg", Make<at::native::structured_neg_out>},
    {"aten::pow.Tensor_Scalar", Make<at::native::structured_pow_Tensor_Scalar_out>},
    {"aten::pow.Tensor_Tensor", Make<at::native::structured_pow_Tensor_Tensor_out>},
    {"aten::reciprocal", Make<at::native::structured_reciprocal_out>},
    {"aten::round", Make<at::native::structured_round_out>},
    {"aten::rsqrt", Make<at::native::structured_rsqrt_out>},
    {"aten::sigmoid", Make<at::native::structured_sigmoid_out>},
    {"aten::sigmoid_backward", Make<at::native::structured_sigmoid_backward_out>},
    {"aten::silu", Make<at::native::structured_silu_out>},
    {"aten::silu_backward", Make<at::native::structured_silu_backward_out>},
    {"aten::sin", Make<at::native::structured_sin_out>},
    {"aten::softplus", Make<at::native::structured_softplus_out>},
    {"aten::softplus_backward", Make<at::native::structured_softplus_backward_out>},
    {"aten::sqrt", Make<at::native::structured_sqrt_out>},
    {"aten::sub.Tensor", Make<at::native::structured_sub_out>},
    {"aten::sum.dim_IntList", Make<at::native::structured_sum_out>},
    {"aten::tan", Make<at::native::structured_tan_out>},
    {"aten::tanh", Make<at::native::structured_tanh_out>},
    {"aten::tanh_backward", Make<at::native::structured_tanh_backward_out>},
    {"aten::threshold_backward", Make<at::native::structured_threshold_backward_out>},
    {"aten::trunc", Make<at::native::structured_trunc_out>},
};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::op));

// Ops that torch makes of another one.
std::string_view Simplified(std::string_view op, Stack* arguments) {
  if (op == "aten::relu") {
    arguments->emplace_back(c10::Scalar(0));
    return "aten::clamp_min";
  }
  if (op == "aten::sum" || op == "aten::mean") {
    arguments->insert(arguments->begin() + 1, {std::vector<int64_t>(), false});
    return op == "aten::sum" ? "aten::sum.dim_IntList" : "aten::mean.dim";
  }
  return op;
}

}  // namespace

std::unique_ptr<KeptKernel> KeepKernel(std::string_view op, Stack arguments,
                                       const at::Tensor& out) {
  op = Simplified(op, &arguments);
  const auto* const row = std::ranges::lower_bound(kRows, op, {}, &Row::op);
  try {
    auto special = op == "aten::mean.dim" ? KeepMean(arguments, out) : KeepStub(op, arguments, out);
    if (special != nullptr || row == std::end(kRows) || row->op != op) return special;
    return row->make(arguments, out);
  } catch (const OtherResult&) {
    return nullptr;
  } catch (const c10::Error&) {
    // The call of today says what is wrong.
    return nullptr;
  }
}

}  // namespace torch_xla_lite::interpreter
