// Which ops have the same facts; "aten::" is left out. Written by scripts/lowering_table.py.

#ifndef TORCH_XLA_LITE_CSRC_OPS_OP_TABLE_H_
#define TORCH_XLA_LITE_CSRC_OPS_OP_TABLE_H_

#include <string_view>
#include <utility>

#include "torch_xla_lite/csrc/ops/op_facts.h"

namespace torch_xla_lite::ops {

// clang-format off
inline constexpr std::pair<std::string_view, OpFacts> kOpTable[] = {
    {"__lshift__.Scalar __lshift__.Tensor __rshift__.Scalar __rshift__.Tensor bitwise_left_shift.Scalar_Tensor "
     "bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_right_shift.Scalar_Tensor "
     "bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar gcd",
     {.is_lowered = true, .refuses_results = "fhcb"}},
    {"_adaptive_avg_pool2d _upsample_bicubic2d_aa _upsample_bilinear2d_aa upsample_bicubic2d upsample_bilinear2d",
     {.is_lowered = true, .refuses = "biuc", .elements = "self", .channels_last = true}},
    {"_adaptive_avg_pool2d_backward _upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa_backward "
     "_upsample_nearest_exact2d_backward upsample_bicubic2d_backward upsample_bilinear2d_backward "
     "upsample_nearest2d_backward",
     {.is_lowered = true, .elements = "grad_output", .channels_last = true}},
    {"_adaptive_avg_pool3d upsample_linear1d upsample_trilinear3d",
     {.is_lowered = true, .refuses = "biuc", .elements = "self"}},
    {"_adaptive_avg_pool3d_backward _upsample_nearest_exact1d_backward _upsample_nearest_exact3d_backward "
     "upsample_linear1d_backward upsample_nearest1d_backward upsample_nearest3d_backward "
     "upsample_trilinear3d_backward",
     {.is_lowered = true, .elements = "grad_output"}},
    {"_aminmax _aminmax.dim _amp_foreach_non_finite_check_and_unscale _batch_norm_no_update _cdist_backward "
     "_cholesky_solve_helper _conj _conj_copy _conj_physical _convolution _copy_from _efficientzerotensor "
     "_embedding_bag_backward _fft_c2c _fft_c2r _fft_r2c _foreach_abs _foreach_acos _foreach_addcdiv.Tensor "
     "_foreach_addcmul.Tensor _foreach_asin _foreach_atan _foreach_ceil _foreach_clone _foreach_copy _foreach_cos "
     "_foreach_cosh _foreach_erf _foreach_erfc _foreach_exp _foreach_expm1 _foreach_floor _foreach_frac "
     "_foreach_lerp.List _foreach_lerp.Scalar _foreach_lerp.ScalarList _foreach_lgamma _foreach_log _foreach_log10 "
     "_foreach_log1p _foreach_log2 _foreach_max _foreach_neg _foreach_pow.List _foreach_pow.Scalar "
     "_foreach_pow.ScalarAndTensor _foreach_pow.ScalarList _foreach_reciprocal _foreach_round _foreach_rsqrt "
     "_foreach_sigmoid _foreach_sign _foreach_sin _foreach_sinh _foreach_sqrt _foreach_tan _foreach_tanh "
     "_foreach_trunc _foreach_zero _functional_assert_async.msg _fused_dropout _fw_primal _fw_primal_copy "
     "_grid_sampler_2d_cpu_fallback _int_mm _lazy_clone _log_softmax_backward_data _logcumsumexp _masked_scale "
     "_masked_softmax _masked_softmax_backward _native_multi_head_attention _neg_view _neg_view_copy _pdist_backward "
     "_pdist_forward _reshape_alias _reshape_alias_copy _reshape_copy _stack _transform_bias_rescale_qkv "
     "_unsafe_index.Tensor _unsafe_index_put _unsafe_masked_index _weight_norm_interface "
     "_weight_norm_interface_backward acos acosh adaptive_max_pool2d_backward adaptive_max_pool3d_backward "
     "affine_grid_generator alias alias_copy all all.dim all.dims angle any any.dim any.dims asin asinh atan atanh "
     "bmm.dtype constant_pad_nd convolution_backward_overrideable convolution_overrideable copy cos cosh "
     "count_nonzero count_nonzero.dim_IntList detach detach_copy diagonal diagonal_copy div.Scalar eq.Scalar "
     "eq.Tensor exp exp2 expand expand_copy expm1 fft_fftfreq fft_rfftfreq fill.Scalar fill.Tensor frexp.Tensor full "
     "grid_sampler_2d_backward grid_sampler_3d_backward hardsigmoid_backward isin.Scalar_Tensor isin.Tensor_Scalar "
     "isin.Tensor_Tensor lift lift_fresh lift_fresh_copy linalg_lu_solve linalg_matrix_exp log log10 log1p log2 "
     "lu_unpack masked_scatter_backward mm.dtype mul.Scalar ne.Scalar ne.Tensor neg nll_loss2d_backward "
     "nll_loss_backward nonzero_static permute permute_copy prod prod.dim_int reciprocal reflection_pad1d_backward "
     "reflection_pad2d_backward reflection_pad3d_backward repeat_interleave.Tensor replication_pad1d_backward "
     "replication_pad2d_backward replication_pad3d_backward rsqrt scalar_tensor select_copy.int sgn sigmoid sin sinc "
     "sinh slice_copy.Tensor slice_inverse soft_margin_loss_backward softplus_backward special_airy_ai "
     "special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_chebyshev_polynomial_t "
     "special_chebyshev_polynomial_t.n_scalar special_chebyshev_polynomial_t.x_scalar special_chebyshev_polynomial_u "
     "special_chebyshev_polynomial_u.n_scalar special_chebyshev_polynomial_u.x_scalar special_chebyshev_polynomial_v "
     "special_chebyshev_polynomial_v.n_scalar special_chebyshev_polynomial_v.x_scalar special_chebyshev_polynomial_w "
     "special_chebyshev_polynomial_w.n_scalar special_chebyshev_polynomial_w.x_scalar special_hermite_polynomial_h "
     "special_hermite_polynomial_h.n_scalar special_hermite_polynomial_h.x_scalar special_hermite_polynomial_he "
     "special_hermite_polynomial_he.n_scalar special_hermite_polynomial_he.x_scalar special_laguerre_polynomial_l "
     "special_laguerre_polynomial_l.n_scalar special_laguerre_polynomial_l.x_scalar special_legendre_polynomial_p "
     "special_legendre_polynomial_p.n_scalar special_legendre_polynomial_p.x_scalar special_modified_bessel_i0 "
     "special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 "
     "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t "
     "special_shifted_chebyshev_polynomial_t.n_scalar special_shifted_chebyshev_polynomial_t.x_scalar "
     "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_u.n_scalar "
     "special_shifted_chebyshev_polynomial_u.x_scalar special_shifted_chebyshev_polynomial_v "
     "special_shifted_chebyshev_polynomial_v.n_scalar special_shifted_chebyshev_polynomial_v.x_scalar "
     "special_shifted_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_w.n_scalar "
     "special_shifted_chebyshev_polynomial_w.x_scalar special_spherical_bessel_j0 special_zeta.other_scalar "
     "special_zeta.self_scalar split.Tensor split_copy.Tensor split_with_sizes split_with_sizes_copy sqrt squeeze "
     "squeeze.dim squeeze.dims squeeze_copy squeeze_copy.dim squeeze_copy.dims t t_copy tan tanh tanh_backward "
     "threshold_backward transpose.int transpose_copy.int tril tril_indices triu triu_indices unbind.int "
     "unbind_copy.int unfold unfold_backward unfold_copy unsafe_split.Tensor unsafe_split_with_sizes unsqueeze "
     "unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy view_copy.dtype zero torch_xla_lite::constrain",
     {.is_lowered = true}},
    {"_amp_update_scale _foreach_norm.Scalar _foreach_powsum.Scalar dist linalg_vector_norm logit_backward "
     "multi_margin_loss_backward norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype norm.ScalarOpt_dtype range "
     "range.step",
     {.is_lowered = true, .constants = true}},
    {"_assert_async _assert_async.msg _grouped_mm _has_same_storage_numel _linalg_check_errors "
     "_new_zeros_with_same_feature_meta _new_zeros_with_same_feature_meta.out _pin_memory _pin_memory.out "
     "_sample_dirichlet _sample_dirichlet.out allclose arange.start_out as_strided_copy.out as_strided_scatter.out "
     "bincount bincount.out equal eye.m_out eye.out is_pinned linspace.out logspace.out randint_like.Tensor "
     "randint_like.Tensor_generator randperm.generator_out range.out range.out_ rot90",
     {.kernel = "other"}},
    {"_batch_norm_impl_index cudnn_batch_norm miopen_batch_norm", {.writes_statistics = true}},
    {"_cdist_forward", {.is_lowered = true, .one_dtype = "x1 x2", .shape = "distances"}},
    {"_ctc_loss.Tensor", {.is_lowered = true, .completed_by = "ctc_loss", .kernel_needs = "labels"}},
    {"_ctc_loss_backward.Tensor", {.is_lowered = true, .kernel_needs = "labels_of_backward"}},
    {"_embedding_bag _embedding_bag_forward_only",
     {.is_lowered = true, .one_dtype = "weight per_sample_weights", .completed_by = "embedding_bag"}},
    {"_embedding_bag_dense_backward", {.is_lowered = true, .kernel_needs = "rows"}},
    {"_embedding_bag_per_sample_weights_backward", {.is_lowered = true, .kernel_needs = "rows_of_weight"}},
    {"_euclidean_dist", {.is_lowered = true, .shape = "distances"}},
    {"_foreach_add.List _foreach_add.Scalar _foreach_add.ScalarList _foreach_add.Tensor _foreach_sub.List "
     "_foreach_sub.Scalar _foreach_sub.ScalarList add.Scalar add.Tensor sub.Scalar sub.Tensor",
     {.is_lowered = true, .rounds = "numbers"}},
    {"_foreach_addcdiv.Scalar _foreach_addcdiv.ScalarList _foreach_addcmul.Scalar _foreach_addcmul.ScalarList "
     "_foreach_clamp_max.List _foreach_clamp_max.Scalar _foreach_clamp_max.ScalarList _foreach_clamp_min.List "
     "_foreach_clamp_min.Scalar _foreach_clamp_min.ScalarList _foreach_maximum.List _foreach_maximum.Scalar "
     "_foreach_maximum.ScalarList _foreach_minimum.List _foreach_minimum.Scalar _foreach_minimum.ScalarList",
     {.is_lowered = true, .casts_numbers = true}},
    {"_foreach_div.List _foreach_div.Scalar _foreach_div.ScalarList _foreach_div.Tensor _foreach_mul.List "
     "_foreach_mul.Scalar _foreach_mul.ScalarList _foreach_mul.Tensor div.Tensor mul.Tensor",
     {.is_lowered = true, .rounds = "operands"}},
    {"_fused_adagrad _fused_adagrad.tensor_lr",
     {.is_lowered = true, .runtime_floats = "lr lr_decay weight_decay eps"}},
    {"_fused_adam _fused_adam.tensor_lr _fused_adamw _fused_adamw.tensor_lr",
     {.is_lowered = true, .runtime_floats = "lr beta1 beta2 weight_decay eps"}},
    {"_fused_sgd _fused_sgd.tensor_lr",
     {.is_lowered = true, .runtime_floats = "lr weight_decay momentum dampening"}},
    {"_index_put_impl", {.is_lowered = true, .refused_if = "misfit_indices"}},
    {"_is_all_true _is_any_true", {.is_lowered = true, .shape = "truth"}},
    {"_linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd cholesky linalg_cholesky_ex linalg_eig "
     "linalg_inv_ex linalg_lu_factor_ex linalg_qr",
     {.is_lowered = true, .refuses = "biuh"}},
    {"_linalg_eigvals", {.is_lowered = true, .refuses = "biuh", .kernel_needs = "finite"}},
    {"_log_softmax _softmax adaptive_max_pool2d adaptive_max_pool3d elu frac hardsigmoid hypot leaky_relu logaddexp2 "
     "max_unpool2d max_unpool3d mish nextafter round.decimals smooth_l1_loss softplus",
     {.is_lowered = true, .refuses = "biuc"}},
    {"_native_batch_norm_legit.no_stats", {.is_lowered = true, .shape = "batch_norm", .channels_last = true}},
    {"_native_batch_norm_legit_functional",
     {.is_lowered = true, .dtype_of_input = "weight bias running_mean running_var", .shape = "batch_norm", .channels_last = true}},
    {"_native_batch_norm_legit_no_training",
     {.is_lowered = true, .dtype_of_input = "weight bias running_mean running_var", .channels_last = true}},
    {"_prelu_kernel hardswish", {.is_lowered = true, .refuses = "biuc", .shape = "elementwise"}},
    {"_prelu_kernel_backward", {.shape = "prelu_backward"}},
    {"_reshape_from_tensor _saturate_weight_to_fp16 _sobol_engine_draw _sobol_engine_ff_ "
     "_sobol_engine_initialize_state_ _sobol_engine_scramble_ _stack.out choose_qparams_optimized nonzero",
     {.kernel = "cpu"}},
    {"_safe_softmax", {.is_lowered = true, .refuses = "biuc", .shape = "softmax"}},
    {"_scaled_dot_product_flash_attention_for_cpu",
     {.is_lowered = true, .refuses = "biuc", .shape = "flash_attention"}},
    {"_scaled_dot_product_flash_attention_for_cpu_backward",
     {.is_lowered = true, .shape = "flash_attention_backward"}},
    {"_segment_reduce_backward", {.is_lowered = true, .constants = true, .kernel_needs = "segments_of_backward"}},
    {"_softmax_backward_data bartlett_window bartlett_window.periodic blackman_window blackman_window.periodic "
     "cholesky_inverse cholesky_solve hamming_window hamming_window.periodic hamming_window.periodic_alpha "
     "hamming_window.periodic_alpha_beta hann_window hann_window.periodic kaiser_window kaiser_window.beta "
     "kaiser_window.periodic lerp.Scalar lerp.Tensor linalg_householder_product linalg_lu logaddexp silu "
     "triangular_solve",
     {.is_lowered = true, .refuses = "biu"}},
    {"_standard_gamma", {.is_lowered = true, .refuses = "biuc", .shape = "elementwise", .draw = "gamma"}},
    {"_thnn_fused_gru_cell", {.is_lowered = true, .own_kernel = "gru_cell"}},
    {"_thnn_fused_gru_cell_backward", {.is_lowered = true, .own_kernel = "gru_cell_backward"}},
    {"_thnn_fused_lstm_cell", {.is_lowered = true, .own_kernel = "lstm_cell"}},
    {"_thnn_fused_lstm_cell_backward_impl", {.is_lowered = true, .own_kernel = "lstm_cell_backward"}},
    {"_to_copy mean.dim sum.dim_IntList", {.is_lowered = true, .any_strides = true}},
    {"_transformer_encoder_layer_fwd", {.is_lowered = true, .shape = "encoder_layer"}},
    {"_trilinear pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor reflection_pad1d reflection_pad2d reflection_pad3d "
     "replication_pad1d replication_pad2d replication_pad3d trace vdot",
     {.is_lowered = true, .refuses = "b"}},
    {"_unsafe_masked_index_put_accumulate", {.is_lowered = true, .one_dtype = "self values"}},
    {"_unsafe_view as_strided as_strided_copy view view.dtype view_as_complex view_as_real",
     {.is_lowered = true, .dense_operand = true}},
    {"_upsample_nearest_exact1d _upsample_nearest_exact3d upsample_nearest1d upsample_nearest3d",
     {.is_lowered = true, .refuses = "bic", .elements = "self"}},
    {"_upsample_nearest_exact2d upsample_nearest2d",
     {.is_lowered = true, .refuses = "bic", .elements = "self", .channels_last = true}},
    {"abs", {.is_lowered = true, .refuses = "b", .shape = "elementwise"}},
    {"addbmm", {.is_lowered = true, .refuses = "b", .one_dtype = "self batch1 batch2", .shares = "self=same"}},
    {"addcdiv", {.is_lowered = true, .refuses_results = "biu", .rounds = "operands"}},
    {"addcmul", {.is_lowered = true, .refuses = "b", .rounds = "operands"}},
    {"addmm",
     {.is_lowered = true, .one_dtype = "self mat1 mat2", .refused_if = "misfit_addend", .shares = "self=same", .any_strides = true}},
    {"addmm.dtype baddbmm.dtype", {.is_lowered = true, .shares = "self=same"}},
    {"addmv", {.is_lowered = true, .refuses = "b", .one_dtype = "self mat vec", .shares = "self=same"}},
    {"addr", {.one_dtype = "self vec1 vec2", .shares = "self=same vec1=same vec2=same"}},
    {"amax amin aminmax atan2 clamp clamp_max clamp_max.Tensor clamp_min clamp_min.Tensor copysign.Scalar "
     "copysign.Tensor cummax cummin digamma erf erfc erfinv fmax fmin i0 lgamma max.dim maximum min.dim minimum "
     "nansum polygamma sign signbit special_entr special_erfcx special_i0e special_i1 special_i1e special_log_ndtr "
     "special_ndtri special_zeta xlogy.Scalar_Other xlogy.Scalar_Self xlogy.Tensor",
     {.is_lowered = true, .refuses = "c"}},
    {"arange arange.start arange.start_step",
     {.is_lowered = true, .constants = true, .refuses = "bc", .shape = "range"}},
    {"argmax argmin ceil clamp.Tensor floor kthvalue median nanmedian round searchsorted.Scalar searchsorted.Tensor "
     "trunc",
     {.is_lowered = true, .refuses = "bc"}},
    {"as_strided_scatter", {.is_lowered = true, .by_value = false}},
    {"avg_pool2d avg_pool3d max_pool2d_with_indices_backward max_pool3d_with_indices_backward",
     {.is_lowered = true, .refuses = "biuc", .channels_last = true}},
    {"avg_pool2d_backward avg_pool3d_backward", {.is_lowered = true, .channels_last = true}},
    {"baddbmm", {.is_lowered = true, .refuses = "b", .shares = "self=same", .any_strides = true}},
    {"bernoulli", {.is_lowered = true, .refuses = "biuc", .shares = "self=same p=same", .draw = "bernoulli"}},
    {"bernoulli.Tensor", {.is_lowered = true, .refuses = "c", .shares = "self=same p=same", .draw = "bernoulli"}},
    {"bernoulli.p",
     {.is_lowered = true, .refuses = "c", .numbers = "p>=0 p<=1", .shares = "self=same p=same", .draw = "bernoulli_p"}},
    {"binary_cross_entropy",
     {.is_lowered = true, .refuses = "biuc", .one_dtype = "self target weight", .shape = "loss"}},
    {"binary_cross_entropy_backward", {.shape = "loss_backward"}},
    {"binary_cross_entropy_with_logits", {.is_lowered = true, .refuses = "biuc", .shape = "loss"}},
    {"binomial",
     {.is_lowered = true, .refuses = "biuc", .one_dtype = "count prob", .shape = "elementwise", .draw = "binomial"}},
    {"bitwise_and.Scalar bitwise_and.Scalar_Tensor bitwise_and.Tensor bitwise_not bitwise_or.Scalar "
     "bitwise_or.Scalar_Tensor bitwise_or.Tensor bitwise_xor.Scalar bitwise_xor.Scalar_Tensor bitwise_xor.Tensor",
     {.is_lowered = true, .refuses = "fhc"}},
    {"bmm mm", {.is_lowered = true, .refuses = "b", .one_dtype = "self mat2", .any_strides = true}},
    {"bucketize.Scalar bucketize.Tensor", {.is_lowered = true, .refuses = "bc", .refused_if = "boundary_matrix"}},
    {"cat", {.is_lowered = true, .shares = "tensors=nothing", .any_strides = true}},
    {"cauchy",
     {.is_lowered = true, .runtime_floats = "median sigma", .negative = "sigma", .numbers = "sigma>0", .shape = "elementwise", .draw = "cauchy"}},
    {"celu", {.is_lowered = true, .refuses = "biuc", .divides = "all", .shares = "", .shape = "elementwise"}},
    {"clone", {.is_lowered = true, .shares = "", .any_strides = true}},
    {"col2im", {.is_lowered = true, .refuses = "iu"}},
    {"complex", {.is_lowered = true, .one_dtype = "real imag", .shape = "complex"}},
    {"convolution",
     {.is_lowered = true, .refuses = "b", .one_dtype = "input weight bias", .refused_if = "misfit_convolution", .shape = "convolution", .any_strides = true}},
    {"convolution_backward",
     {.is_lowered = true, .shape = "convolution_backward", .completed_by = "convolution_backward", .any_strides = true}},
    {"cumprod cumsum", {.is_lowered = true, .refuses_results = "b", .shares = "self=same"}},
    {"diagonal_backward", {.shape = "diagonal_backward"}},
    {"diagonal_scatter", {.is_lowered = true, .refused_if = "misfit_diagonal"}},
    {"div.Scalar_mode", {.is_lowered = true, .divides = "integers", .kernel_needs = "quotients"}},
    {"div.Tensor_mode",
     {.is_lowered = true, .refuses = "bc", .divides = "integers", .kernel_needs = "quotients", .rounds = "operands"}},
    {"dot", {.is_lowered = true, .refuses = "b", .shape = "dot"}},
    {"embedding", {.is_lowered = true, .elements = "weight", .shape = "embedding"}},
    {"embedding_dense_backward", {.is_lowered = true, .shape = "embedding_backward"}},
    {"embedding_renorm", {.is_lowered = true, .constants = true, .refuses = "biuc"}},
    {"empty.memory_format", {.is_lowered = true, .zeros = true}},
    {"empty_like zeros_like", {.is_lowered = true, .shape = "like", .zeros = true}},
    {"empty_permuted", {.is_lowered = true, .zeros = true, .by_value = false}},
    {"empty_strided", {.is_lowered = true, .zeros = true, .strides = "stride"}},
    {"exponential",
     {.is_lowered = true, .runtime_floats = "lambd", .negative = "lambd", .numbers = "lambd>0", .shape = "elementwise", .draw = "exponential"}},
    {"eye eye.m", {.is_lowered = true, .shape = "eye"}},
    {"flip", {.is_lowered = true, .shape = "flip"}},
    {"floor_divide",
     {.is_lowered = true, .divides = "integers", .shares = "self=same other=same", .shape = "floor_divide", .rounds = "operands"}},
    {"floor_divide.Scalar", {.is_lowered = true, .divides = "integers", .shares = "self=same other=same"}},
    {"fmod.Scalar fmod.Tensor remainder.Scalar remainder.Scalar_Tensor remainder.Tensor",
     {.is_lowered = true, .refuses_results = "bc", .divides = "integers"}},
    {"fractional_max_pool2d", {.one_dtype = "self random_samples"}},
    {"full_like ones_like", {.is_lowered = true, .shape = "like"}},
    {"gather", {.is_lowered = true, .shares = "self=nothing index=same", .any_strides = true}},
    {"ge.Scalar ge.Tensor gt.Scalar gt.Tensor le.Scalar le.Tensor lt.Scalar lt.Tensor",
     {.is_lowered = true, .refused_if = "complex"}},
    {"gelu", {.is_lowered = true, .refuses = "biuc", .refused_if = "unknown_approximation"}},
    {"gelu_backward", {.is_lowered = true, .refused_if = "unknown_approximation"}},
    {"geometric", {.is_lowered = true, .numbers = "p>0 p<1", .shape = "elementwise", .draw = "geometric"}},
    {"glu hardshrink igamma igammac", {.refuses = "biuc"}},
    {"glu_backward", {.shape = "glu_backward"}},
    {"grid_sampler_2d", {.is_lowered = true, .refuses = "biuc", .one_dtype = "input grid", .shape = "grid"}},
    {"grid_sampler_3d", {.is_lowered = true, .refuses = "biuc", .one_dtype = "input grid"}},
    {"hardshrink_backward softshrink_backward", {.is_lowered = true, .negative = "lambd"}},
    {"hardswish_backward hardtanh_backward", {.is_lowered = true, .shape = "elementwise"}},
    {"hardtanh", {.is_lowered = true, .refuses = "c", .shape = "elementwise"}},
    {"heaviside", {.is_lowered = true, .refuses = "c", .one_dtype = "self values"}},
    {"histc", {.is_lowered = true, .constants = true, .refuses = "bc"}},
    {"huber_loss", {.refuses = "biuc", .numbers = "delta>0", .one_dtype = "self target", .shape = "loss"}},
    {"huber_loss_backward mse_loss_backward smooth_l1_loss_backward",
     {.is_lowered = true, .shape = "loss_backward"}},
    {"im2col", {.is_lowered = true, .refuses = "iu", .refused_if = "negative_padding"}},
    {"index.Tensor", {.is_lowered = true, .shares = "self=nothing"}},
    {"index_add", {.is_lowered = true, .one_dtype = "self source", .shares = "self=same source=nothing"}},
    {"index_copy",
     {.is_lowered = true, .one_dtype = "self source", .shares = "self=same source=nothing", .rewrites = true}},
    {"index_fill.int_Scalar index_fill.int_Tensor", {.is_lowered = true, .dtypes = "index=l", .rewrites = true}},
    {"index_put",
     {.is_lowered = true, .one_dtype = "self values", .refused_if = "misfit_indices", .shares = "self=same values=nothing", .rewrites = true}},
    {"index_reduce",
     {.is_lowered = true, .refuses = "bc", .one_dtype = "self source", .shares = "self=same source=nothing"}},
    {"index_select",
     {.is_lowered = true, .elements = "self", .refused_if = "no_rows", .shares = "self=nothing", .shape = "index_select"}},
    {"isinf isnan logical_and logical_not logical_or logical_xor", {.is_lowered = true, .shape = "mask"}},
    {"lcm", {.is_lowered = true, .refuses = "fhcb", .kernel_needs = "multiples"}},
    {"ldexp.Tensor", {.is_lowered = true, .shares = "self=same", .shape = "ldexp"}},
    {"leaky_relu_backward", {.is_lowered = true, .negative = "negative_slope"}},
    {"linalg_cross",
     {.is_lowered = true, .refuses = "b", .one_dtype = "self other", .shares = "self=nothing other=nothing"}},
    {"linalg_solve_triangular", {.is_lowered = true, .refuses = "biu", .shares = "B=same"}},
    {"linear",
     {.is_lowered = true, .kernel = "recorder", .refuses = "b", .one_dtype = "input weight bias", .shape = "linear", .any_strides = true}},
    {"linear.out", {.kernel = "recorder"}},
    {"linear_backward", {.is_lowered = true, .shape = "linear_backward", .own_kernel = "linear_backward"}},
    {"linspace linspace.Scalar_Tensor linspace.Tensor_Scalar linspace.Tensor_Tensor logspace logspace.Scalar_Tensor "
     "logspace.Tensor_Scalar logspace.Tensor_Tensor",
     {.is_lowered = true, .constants = true, .refuses = "b"}},
    {"log_normal",
     {.is_lowered = true, .runtime_floats = "mean std", .negative = "std", .numbers = "std>0", .shape = "elementwise", .draw = "log_normal"}},
    {"log_sigmoid_backward", {.is_lowered = true, .shape = "like_all"}},
    {"log_sigmoid_forward", {.is_lowered = true, .refuses = "biuc", .shape = "like_both"}},
    {"logcumsumexp", {.is_lowered = true, .refuses = "biu", .shares = "self=same"}},
    {"logit", {.is_lowered = true, .constants = true, .refuses = "c"}},
    {"logsumexp", {.is_lowered = true, .shape = "logsumexp"}},
    {"masked_fill.Scalar", {.is_lowered = true, .shares = "mask=same", .shape = "masked_fill"}},
    {"masked_fill.Tensor", {.is_lowered = true, .shares = "mask=same"}},
    {"masked_scatter", {.is_lowered = true, .dtypes = "mask=b", .rewrites = true}},
    {"masked_select", {.shares = "self=nothing mask=nothing"}},
    {"max min", {.is_lowered = true, .refuses = "c", .elements = "self", .shape = "extreme"}},
    {"max_pool2d_with_indices max_pool3d_with_indices",
     {.is_lowered = true, .refuses = "bc", .channels_last = true}},
    {"mean", {.is_lowered = true, .shape = "mean", .any_strides = true}},
    {"median.dim nanmedian.dim", {.is_lowered = true, .refuses = "bc", .elements = "self"}},
    {"mish_backward", {.is_lowered = true, .kernel = "recorder", .shape = "elementwise"}},
    {"mode", {.is_lowered = true, .refuses = "c", .elements = "self"}},
    {"mse_loss", {.is_lowered = true, .refuses = "biuc", .shares = "self=same target=same"}},
    {"multi_margin_loss",
     {.is_lowered = true, .constants = true, .refuses = "biuc", .dtypes = "target=l", .kernel_needs = "any_rows"}},
    {"multinomial",
     {.is_lowered = true, .refused_if = "misfit_sample", .shape = "multinomial", .draw = "multinomial"}},
    {"mv", {.is_lowered = true, .refuses = "b", .one_dtype = "self vec", .shape = "mv"}},
    {"mvlgamma", {.is_lowered = true, .refuses = "bc", .numbers = "p>=1", .shares = ""}},
    {"nan_to_num", {.is_lowered = true, .constants = true, .shape = "elementwise"}},
    {"native_batch_norm",
     {.is_lowered = true, .refuses = "biuc", .dtype_of_input = "weight bias running_mean running_var", .shape = "batch_norm", .channels_last = true, .writes_statistics = true}},
    {"native_batch_norm_backward", {.is_lowered = true, .shape = "batch_norm_backward", .channels_last = true}},
    {"native_dropout",
     {.is_lowered = true, .refuses = "biu", .numbers = "p>=0 p<=1", .shape = "dropout", .draw = "dropout"}},
    {"native_dropout_backward", {.is_lowered = true, .shape = "dropout_backward"}},
    {"native_group_norm",
     {.is_lowered = true, .refuses = "c", .dtype_of_input = "weight bias", .shape = "group_norm"}},
    {"native_group_norm_backward", {.is_lowered = true, .shape = "group_norm_backward"}},
    {"native_layer_norm", {.is_lowered = true, .dtype_of_input = "weight bias", .shape = "layer_norm"}},
    {"native_layer_norm_backward", {.is_lowered = true, .shape = "layer_norm_backward"}},
    {"new_empty new_zeros", {.is_lowered = true, .shape = "new", .zeros = true}},
    {"new_empty_strided", {.is_lowered = true, .zeros = true, .strides = "stride", .by_value = false}},
    {"new_full new_ones", {.is_lowered = true, .shape = "new"}},
    {"nll_loss2d_forward",
     {.is_lowered = true, .refuses = "biuc", .dtypes = "target=lu", .one_dtype = "self weight"}},
    {"nll_loss_forward", {.is_lowered = true, .refuses = "biuc", .one_dtype = "self weight"}},
    {"normal.Tensor_Tensor normal.Tensor_float normal.float_Tensor",
     {.is_lowered = true, .refuses = "biuc", .shares = "mean=same std=same", .shape = "elementwise", .draw = "normal_of"}},
    {"normal.float_float",
     {.is_lowered = true, .runtime_floats = "mean std", .negative = "std", .shares = "mean=same std=same", .draw = "normal_0"}},
    {"normal_functional",
     {.is_lowered = true, .runtime_floats = "mean std", .negative = "std", .numbers = "std>=0", .shape = "elementwise", .draw = "normal_1"}},
    {"one_hot", {.is_lowered = true, .kernel = "recorder", .shape = "one_hot"}},
    {"ones", {.is_lowered = true, .shape = "factory"}},
    {"poisson", {.is_lowered = true, .refuses = "biuc", .shape = "elementwise", .draw = "poisson"}},
    {"polar", {.is_lowered = true, .one_dtype = "abs angle"}},
    {"put",
     {.is_lowered = true, .one_dtype = "self source", .refused_if = "misfit_places", .shares = "source=nothing", .rewrites = true}},
    {"rand", {.is_lowered = true, .refuses_results = "biu", .shape = "random", .draw = "rand"}},
    {"rand.generator", {.is_lowered = true, .refuses_results = "biu", .draw = "rand"}},
    {"rand_like rand_like.generator",
     {.is_lowered = true, .refuses_results = "biu", .shape = "like", .draw = "rand"}},
    {"randint",
     {.is_lowered = true, .refuses_results = "c", .refused_if = "empty_range", .shape = "factory", .draw = "below_0"}},
    {"randint.generator",
     {.is_lowered = true, .refuses_results = "c", .refused_if = "empty_range", .draw = "below_0"}},
    {"randint.low",
     {.is_lowered = true, .refuses_results = "c", .refused_if = "empty_range", .shape = "factory", .draw = "from_0"}},
    {"randint.low_generator",
     {.is_lowered = true, .refuses_results = "c", .refused_if = "empty_range", .draw = "from_0"}},
    {"randint_like randint_like.generator",
     {.is_lowered = true, .refuses_results = "c", .refused_if = "empty_range", .shape = "like", .draw = "below_1"}},
    {"randint_like.low_dtype randint_like.low_generator_dtype",
     {.is_lowered = true, .refuses_results = "c", .refused_if = "empty_range", .shape = "like", .draw = "from_1"}},
    {"randn", {.is_lowered = true, .shape = "random", .draw = "normal"}},
    {"randn.generator", {.is_lowered = true, .draw = "normal"}},
    {"randn_like randn_like.generator",
     {.is_lowered = true, .refuses_results = "biu", .shape = "like", .draw = "normal"}},
    {"random", {.is_lowered = true, .refuses = "c", .draw = "random"}},
    {"random.from", {.is_lowered = true, .refuses = "c", .refused_if = "empty_range", .draw = "from_1"}},
    {"random.to", {.is_lowered = true, .refuses = "c", .refused_if = "empty_range", .draw = "below_1"}},
    {"randperm randperm.generator",
     {.is_lowered = true, .refuses_results = "bc", .refused_if = "inexact_numbers", .draw = "permutation"}},
    {"relu", {.is_lowered = true, .refuses = "bc", .shares = "", .shape = "elementwise"}},
    {"renorm", {.is_lowered = true, .constants = true, .refuses = "biu", .shares = "self=same"}},
    {"repeat", {.is_lowered = true, .shape = "repeat"}},
    {"roll", {.is_lowered = true, .shape = "roll"}},
    {"rrelu_with_noise_functional",
     {.is_lowered = true, .refuses = "biuc", .refused_if = "misfit_noise", .draw = "rrelu"}},
    {"rsub.Scalar rsub.Tensor", {.is_lowered = true, .shape = "elementwise", .rounds = "numbers"}},
    {"scatter.reduce scatter.value_reduce scatter_add scatter_reduce.two",
     {.is_lowered = true, .shares = "self=same src=nothing", .any_strides = true}},
    {"scatter.src scatter.value",
     {.is_lowered = true, .shares = "self=same src=nothing", .any_strides = true, .rewrites = true}},
    {"segment_reduce", {.is_lowered = true, .constants = true, .refuses = "biuc", .kernel_needs = "segments"}},
    {"select.int slice.Tensor", {.is_lowered = true, .indexes = true}},
    {"select_backward", {.is_lowered = true, .indexes = true, .shape = "select_backward"}},
    {"select_scatter", {.is_lowered = true, .indexes = true, .refused_if = "misfit_row"}},
    {"silu_backward", {.is_lowered = true, .kernel = "recorder"}},
    {"slice_backward", {.is_lowered = true, .indexes = true, .shape = "slice_backward"}},
    {"slice_scatter", {.is_lowered = true, .indexes = true, .refused_if = "foreign_slice"}},
    {"soft_margin_loss", {.is_lowered = true, .refuses = "biuc", .shape = "soft_margin_loss"}},
    {"softshrink", {.is_lowered = true, .negative = "lambd", .refuses = "c"}},
    {"sort",
     {.is_lowered = true, .refuses = "c", .refused_if = "foreign_dim", .shares = "self=same", .shape = "sort"}},
    {"sort.stable", {.is_lowered = true, .refuses = "c", .shares = "self=same"}},
    {"special_xlog1py special_xlog1py.other_scalar special_xlog1py.self_scalar", {.refuses = "c"}},
    {"stack", {.is_lowered = true, .shares = "tensors=nothing", .shape = "stack"}},
    {"std.correction var.correction",
     {.is_lowered = true, .constants = true, .refuses = "biu", .shape = "variance"}},
    {"std_mean.correction var_mean.correction",
     {.is_lowered = true, .constants = true, .refuses = "biu", .shape = "variance_and_mean"}},
    {"sum", {.is_lowered = true, .shape = "sum", .any_strides = true}},
    {"take", {.is_lowered = true, .shares = "self=nothing index=nothing"}},
    {"threshold", {.is_lowered = true, .refuses = "bc", .shares = ""}},
    {"topk", {.is_lowered = true, .refuses = "bc", .shares = "self=same"}},
    {"unflatten.int", {.dense_operand = true}},
    {"uniform", {.is_lowered = true, .refuses = "biu", .refused_if = "bad_interval", .draw = "uniform"}},
    {"where.self", {.is_lowered = true, .casts_numbers = true, .shape = "where"}},
    {"zeros", {.is_lowered = true, .shape = "factory", .zeros = true}},
    {"torch_xla_lite::grouped_mm", {.is_lowered = true, .own_kernel = "grouped_mm"}},
    {"torch_xla_lite::log_gamma", {.is_lowered = true, .shape = "elementwise", .draw = "log_gamma"}},
    {"torch_xla_lite::recurrence", {.is_lowered = true, .own_kernel = "recurrence"}},
    {"torch_xla_lite::recurrence_backward", {.is_lowered = true, .own_kernel = "recurrence_backward"}},
};
// clang-format on

}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_OP_TABLE_H_
