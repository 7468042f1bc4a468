// Chooses how scaled_dot_product_attention is recorded: as one op or decomposed.
//
// torch calls a function that is registered here. "flash" is recorded as one op, plus one for its
// gradient; "math" as the two dozen ops that it is made of. XLA compiles both to the same program;
// fewer ops are faster to record.

#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>

#include <cstdint>
#include <optional>

// The stub is declared in namespace at::native.
namespace at::native {
namespace {

int64_t ChooseAttention(const Tensor& query, const Tensor& key, const Tensor& value,
                        const std::optional<Tensor>& mask, double dropout, bool /*is_causal*/,
                        std::optional<double> /*scale*/, bool enable_gqa) {
  TORCH_CHECK_NOT_IMPLEMENTED(!query.is_nested(),
                              "device jax has no attention of nested tensors.\nPad them, and mask "
                              "what is padded:  x.to_padded_tensor(0.0)");
  const bool plain = query.dim() == 4 && key.dim() == 4 && value.dim() == 4;
  const auto have_heads = [&] {
    const int64_t heads = query.size(1), groups = key.size(1);
    return heads == groups ||
           (enable_gqa && groups == value.size(1) && groups > 0 && heads % groups == 0);
  };
  // The fused op has no dropout and no gradient for the mask.
  const bool fused = plain && dropout == 0 && query.size(0) == key.size(0) && have_heads() &&
                     query.size(3) == value.size(3) && !(mask.has_value() && mask->requires_grad());
  return static_cast<int64_t>(fused ? SDPBackend::flash_attention : SDPBackend::math);
}

}  // namespace

REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &ChooseAttention)

}  // namespace at::native
