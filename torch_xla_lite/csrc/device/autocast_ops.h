// The ops that torch.autocast('jax') casts, by policy: the lists of torch's CUDA autocast.
//
// Names are those of the dispatcher, without the namespace "aten::". An op that is in none of the
// lists runs in the dtype of its inputs.

#ifndef TORCH_XLA_LITE_CSRC_DEVICE_AUTOCAST_OPS_H_
#define TORCH_XLA_LITE_CSRC_DEVICE_AUTOCAST_OPS_H_

#include <string_view>

namespace torch_xla_lite::device {

// Floating inputs are cast to the autocast dtype: matrix products and convolutions, which become
// much faster and lose little precision.
inline constexpr std::string_view kLowerPrecisionOps[] = {
    "_convolution.deprecated",
    "_convolution",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d.input",
    "conv_transpose3d.input",
    "convolution",
    "prelu",
    "addmm",
    "addmv",
    "addr",
    "matmul",
    "einsum",
    "mm",
    "mv",
    "linalg_vecdot",
    "linear",
    "addbmm",
    "baddbmm",
    "bmm",
    "chain_matmul",
    "linalg_multi_dot",
    "_thnn_fused_lstm_cell",
    "_thnn_fused_gru_cell",
    "lstm_cell",
    "gru_cell",
    "rnn_tanh_cell",
    "rnn_relu_cell",
    "_scaled_dot_product_flash_attention",
    "scaled_dot_product_attention",
};

// Floating inputs are cast to float32: functions whose results need more range or precision than 16
// bits have.
inline constexpr std::string_view kFloat32Ops[] = {
    "acos",
    "asin",
    "cosh",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log10",
    "log2",
    "log1p",
    "reciprocal",
    "rsqrt",
    "sinh",
    "tan",
    "pow.Tensor_Scalar",
    "pow.Tensor_Tensor",
    "pow.Scalar",
    "softplus",
    "layer_norm",
    "native_layer_norm",
    "rms_norm",
    "group_norm",
    "frobenius_norm.dim",
    "nuclear_norm",
    "nuclear_norm.dim",
    "cosine_similarity",
    "poisson_nll_loss",
    "cosine_embedding_loss",
    "nll_loss",
    "nll_loss2d",
    "hinge_embedding_loss",
    "kl_div",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "mse_loss",
    "margin_ranking_loss",
    "multilabel_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "multi_margin_loss",
    "binary_cross_entropy_with_logits",
    "dist",
    "pdist",
    "cdist",
    "renorm",
    "logsumexp",
    "upsample_nearest1d",
    "_upsample_nearest_exact1d",
    "upsample_nearest2d",
    "_upsample_nearest_exact2d",
    "upsample_nearest3d",
    "_upsample_nearest_exact3d",
    "upsample_linear1d",
    "upsample_bilinear2d",
    "_upsample_bilinear2d_aa",
    "upsample_trilinear3d",
    "upsample_bicubic2d",
    "_upsample_bicubic2d_aa",
};

// The op has an argument `ScalarType? dtype`: it is set to float32 if the caller left it out.
inline constexpr std::string_view kFloat32DtypeOps[] = {
    "prod",
    "prod.dim_int",
    "softmax.int",
    "log_softmax.int",
    "cumprod",
    "cumsum",
    "linalg_vector_norm",
    "linalg_matrix_norm",
    "linalg_matrix_norm.str_ord",
    "sum",
    "sum.dim_IntList",
};

// The op has an overload that takes the dtype as its last argument: that overload is called with
// float32.
struct DtypeOverload {
  std::string_view op;
  std::string_view with_dtype;  // overload name
};
inline constexpr DtypeOverload kFloat32OverloadOps[] = {
    {"norm.Scalar", "ScalarOpt_dtype"},
    {"norm.ScalarOpt_dim", "ScalarOpt_dim_dtype"},
};

// Floating inputs are cast to the widest dtype among them: ops that mix their inputs without
// promoting them.
inline constexpr std::string_view kPromoteOps[] = {
    "addcdiv", "addcmul",      "atan2",     "bilinear",  "cross",       "dot",
    "vdot",    "grid_sampler", "index_put", "tensordot", "scatter_add",
};

}  // namespace torch_xla_lite::device

#endif  // TORCH_XLA_LITE_CSRC_DEVICE_AUTOCAST_OPS_H_
