"""Which module has the lowering of each op. Written by scripts/lowering_table.py.

MODULES: module -> its ops.
"""

MODULES: dict[str, str] = {
    "activation": """
        aten::celu aten::elu aten::gelu aten::gelu_backward aten::hardshrink_backward
        aten::hardsigmoid aten::hardsigmoid_backward aten::hardswish aten::hardswish_backward
        aten::hardtanh aten::hardtanh_backward aten::leaky_relu aten::leaky_relu_backward
        aten::log_sigmoid_backward aten::log_sigmoid_forward aten::mish aten::mish_backward
        aten::silu aten::silu_backward aten::softplus aten::softplus_backward aten::softshrink
        aten::softshrink_backward aten::tanh_backward aten::threshold aten::threshold_backward
    """,
    "adaptive_pool": """
        aten::_adaptive_avg_pool2d aten::_adaptive_avg_pool2d_backward aten::_adaptive_avg_pool3d
        aten::_adaptive_avg_pool3d_backward aten::adaptive_max_pool2d
        aten::adaptive_max_pool2d_backward aten::adaptive_max_pool3d
        aten::adaptive_max_pool3d_backward
    """,
    "amp": """
        aten::_amp_foreach_non_finite_check_and_unscale aten::_amp_update_scale
    """,
    "attention": """
        aten::_native_multi_head_attention aten::_scaled_dot_product_flash_attention_for_cpu
        aten::_scaled_dot_product_flash_attention_for_cpu_backward aten::_transform_bias_rescale_qkv
        aten::_transformer_encoder_layer_fwd
    """,
    "binary": """
        aten::__lshift__.Scalar aten::__lshift__.Tensor aten::__rshift__.Scalar
        aten::__rshift__.Tensor aten::_prelu_kernel aten::add.Scalar aten::add.Tensor aten::atan2
        aten::bitwise_and.Scalar aten::bitwise_and.Scalar_Tensor aten::bitwise_and.Tensor
        aten::bitwise_left_shift.Scalar_Tensor aten::bitwise_left_shift.Tensor
        aten::bitwise_left_shift.Tensor_Scalar aten::bitwise_or.Scalar
        aten::bitwise_or.Scalar_Tensor aten::bitwise_or.Tensor
        aten::bitwise_right_shift.Scalar_Tensor aten::bitwise_right_shift.Tensor
        aten::bitwise_right_shift.Tensor_Scalar aten::bitwise_xor.Scalar
        aten::bitwise_xor.Scalar_Tensor aten::bitwise_xor.Tensor aten::clamp_max
        aten::clamp_max.Tensor aten::clamp_min aten::clamp_min.Tensor aten::complex
        aten::copysign.Scalar aten::copysign.Tensor aten::div.Scalar aten::div.Scalar_mode
        aten::div.Tensor aten::div.Tensor_mode aten::eq.Scalar aten::eq.Tensor aten::floor_divide
        aten::floor_divide.Scalar aten::fmax aten::fmin aten::fmod.Scalar aten::fmod.Tensor
        aten::gcd aten::ge.Scalar aten::ge.Tensor aten::gt.Scalar aten::gt.Tensor aten::heaviside
        aten::hypot aten::lcm aten::ldexp.Tensor aten::le.Scalar aten::le.Tensor aten::logaddexp
        aten::logaddexp2 aten::logical_and aten::logical_or aten::logical_xor aten::lt.Scalar
        aten::lt.Tensor aten::maximum aten::minimum aten::mul.Scalar aten::mul.Tensor
        aten::ne.Scalar aten::ne.Tensor aten::nextafter aten::polar aten::pow.Scalar
        aten::pow.Tensor_Scalar aten::pow.Tensor_Tensor aten::remainder.Scalar
        aten::remainder.Scalar_Tensor aten::remainder.Tensor aten::rsub.Scalar aten::rsub.Tensor
        aten::special_zeta aten::special_zeta.other_scalar aten::special_zeta.self_scalar
        aten::sub.Scalar aten::sub.Tensor aten::xlogy.Scalar_Other aten::xlogy.Scalar_Self
        aten::xlogy.Tensor
    """,
    "constrain": """
        torch_xla_lite::constrain
    """,
    "convolution": """
        aten::_convolution aten::convolution aten::convolution_backward
        aten::convolution_backward_overrideable aten::convolution_overrideable
    """,
    "ctc": """
        aten::_ctc_loss.Tensor aten::_ctc_loss_backward.Tensor
    """,
    "distance": """
        aten::_cdist_backward aten::_cdist_forward aten::_euclidean_dist aten::_pdist_backward
        aten::_pdist_forward
    """,
    "embedding": """
        aten::_embedding_bag aten::_embedding_bag_backward aten::_embedding_bag_dense_backward
        aten::_embedding_bag_forward_only aten::_embedding_bag_per_sample_weights_backward
        aten::embedding aten::embedding_dense_backward aten::embedding_renorm aten::one_hot
    """,
    "factories": """
        aten::_copy_from aten::_efficientzerotensor aten::_fw_primal aten::_fw_primal_copy
        aten::_lazy_clone aten::_to_copy aten::alias aten::alias_copy aten::arange
        aten::arange.start aten::arange.start_step aten::bartlett_window
        aten::bartlett_window.periodic aten::blackman_window aten::blackman_window.periodic
        aten::clone aten::copy aten::detach aten::detach_copy aten::empty.memory_format
        aten::empty_like aten::empty_permuted aten::empty_strided aten::eye aten::eye.m
        aten::fft_fftfreq aten::fft_rfftfreq aten::fill.Scalar aten::fill.Tensor aten::full
        aten::full_like aten::hamming_window aten::hamming_window.periodic
        aten::hamming_window.periodic_alpha aten::hamming_window.periodic_alpha_beta
        aten::hann_window aten::hann_window.periodic aten::kaiser_window aten::kaiser_window.beta
        aten::kaiser_window.periodic aten::lift aten::lift_fresh aten::lift_fresh_copy
        aten::linspace aten::linspace.Scalar_Tensor aten::linspace.Tensor_Scalar
        aten::linspace.Tensor_Tensor aten::logspace aten::logspace.Scalar_Tensor
        aten::logspace.Tensor_Scalar aten::logspace.Tensor_Tensor aten::new_empty
        aten::new_empty_strided aten::new_full aten::new_ones aten::new_zeros aten::ones
        aten::ones_like aten::range aten::range.step aten::scalar_tensor aten::tril_indices
        aten::triu_indices aten::zero aten::zeros aten::zeros_like
    """,
    "fft": """
        aten::_fft_c2c aten::_fft_c2r aten::_fft_r2c
    """,
    "foreach": """
        aten::_foreach_abs aten::_foreach_acos aten::_foreach_add.List aten::_foreach_add.Scalar
        aten::_foreach_add.ScalarList aten::_foreach_add.Tensor aten::_foreach_addcdiv.Scalar
        aten::_foreach_addcdiv.ScalarList aten::_foreach_addcdiv.Tensor
        aten::_foreach_addcmul.Scalar aten::_foreach_addcmul.ScalarList
        aten::_foreach_addcmul.Tensor aten::_foreach_asin aten::_foreach_atan aten::_foreach_ceil
        aten::_foreach_clamp_max.List aten::_foreach_clamp_max.Scalar
        aten::_foreach_clamp_max.ScalarList aten::_foreach_clamp_min.List
        aten::_foreach_clamp_min.Scalar aten::_foreach_clamp_min.ScalarList aten::_foreach_clone
        aten::_foreach_copy aten::_foreach_cos aten::_foreach_cosh aten::_foreach_div.List
        aten::_foreach_div.Scalar aten::_foreach_div.ScalarList aten::_foreach_div.Tensor
        aten::_foreach_erf aten::_foreach_erfc aten::_foreach_exp aten::_foreach_expm1
        aten::_foreach_floor aten::_foreach_frac aten::_foreach_lerp.List aten::_foreach_lerp.Scalar
        aten::_foreach_lerp.ScalarList aten::_foreach_lgamma aten::_foreach_log aten::_foreach_log10
        aten::_foreach_log1p aten::_foreach_log2 aten::_foreach_max aten::_foreach_maximum.List
        aten::_foreach_maximum.Scalar aten::_foreach_maximum.ScalarList aten::_foreach_minimum.List
        aten::_foreach_minimum.Scalar aten::_foreach_minimum.ScalarList aten::_foreach_mul.List
        aten::_foreach_mul.Scalar aten::_foreach_mul.ScalarList aten::_foreach_mul.Tensor
        aten::_foreach_neg aten::_foreach_norm.Scalar aten::_foreach_pow.List
        aten::_foreach_pow.Scalar aten::_foreach_pow.ScalarAndTensor aten::_foreach_pow.ScalarList
        aten::_foreach_powsum.Scalar aten::_foreach_reciprocal aten::_foreach_round
        aten::_foreach_rsqrt aten::_foreach_sigmoid aten::_foreach_sign aten::_foreach_sin
        aten::_foreach_sinh aten::_foreach_sqrt aten::_foreach_sub.List aten::_foreach_sub.Scalar
        aten::_foreach_sub.ScalarList aten::_foreach_tan aten::_foreach_tanh aten::_foreach_trunc
        aten::_foreach_zero
    """,
    "index": """
        aten::_functional_assert_async.msg aten::_index_put_impl aten::_unsafe_index.Tensor
        aten::_unsafe_index_put aten::_unsafe_masked_index aten::_unsafe_masked_index_put_accumulate
        aten::gather aten::index.Tensor aten::index_add aten::index_copy aten::index_fill.int_Scalar
        aten::index_fill.int_Tensor aten::index_put aten::index_reduce aten::index_select
        aten::masked_scatter aten::masked_scatter_backward aten::nonzero_static aten::put
        aten::scatter.reduce aten::scatter.src aten::scatter.value aten::scatter.value_reduce
        aten::scatter_add aten::scatter_reduce.two aten::take
    """,
    "linalg": """
        aten::_cholesky_solve_helper aten::_linalg_det aten::_linalg_eigh aten::_linalg_eigvals
        aten::_linalg_slogdet aten::_linalg_solve_ex aten::_linalg_svd aten::cholesky
        aten::cholesky_inverse aten::cholesky_solve aten::linalg_cholesky_ex aten::linalg_cross
        aten::linalg_eig aten::linalg_householder_product aten::linalg_inv_ex aten::linalg_lu
        aten::linalg_lu_factor_ex aten::linalg_lu_solve aten::linalg_matrix_exp aten::linalg_qr
        aten::linalg_solve_triangular aten::lu_unpack aten::triangular_solve
    """,
    "loss": """
        aten::binary_cross_entropy aten::binary_cross_entropy_with_logits aten::huber_loss_backward
        aten::mse_loss aten::mse_loss_backward aten::multi_margin_loss
        aten::multi_margin_loss_backward aten::nll_loss2d_backward aten::nll_loss2d_forward
        aten::nll_loss_backward aten::nll_loss_forward aten::smooth_l1_loss
        aten::smooth_l1_loss_backward aten::soft_margin_loss aten::soft_margin_loss_backward
    """,
    "matmul": """
        aten::_int_mm aten::_trilinear aten::addbmm aten::addmm aten::addmm.dtype aten::addmv
        aten::baddbmm aten::baddbmm.dtype aten::bmm aten::bmm.dtype aten::dot aten::linear
        aten::linear_backward aten::mm aten::mm.dtype aten::mv aten::vdot torch_xla_lite::grouped_mm
    """,
    "norm": """
        aten::_batch_norm_no_update aten::_native_batch_norm_legit.no_stats
        aten::_native_batch_norm_legit_functional aten::_native_batch_norm_legit_no_training
        aten::_weight_norm_interface aten::_weight_norm_interface_backward aten::native_batch_norm
        aten::native_batch_norm_backward aten::native_group_norm aten::native_group_norm_backward
        aten::native_layer_norm aten::native_layer_norm_backward
    """,
    "optimizer": """
        aten::_fused_adagrad aten::_fused_adagrad.tensor_lr aten::_fused_adam
        aten::_fused_adam.tensor_lr aten::_fused_adamw aten::_fused_adamw.tensor_lr aten::_fused_sgd
        aten::_fused_sgd.tensor_lr
    """,
    "pool": """
        aten::avg_pool2d aten::avg_pool2d_backward aten::avg_pool3d aten::avg_pool3d_backward
        aten::max_pool2d_with_indices aten::max_pool2d_with_indices_backward
        aten::max_pool3d_with_indices aten::max_pool3d_with_indices_backward aten::max_unpool2d
        aten::max_unpool3d
    """,
    "random": """
        aten::_fused_dropout aten::_standard_gamma aten::bernoulli aten::bernoulli.Tensor
        aten::bernoulli.p aten::binomial aten::cauchy aten::exponential aten::geometric
        aten::log_normal aten::native_dropout aten::native_dropout_backward
        aten::normal.Tensor_Tensor aten::normal.Tensor_float aten::normal.float_Tensor
        aten::normal.float_float aten::normal_functional aten::poisson aten::rand
        aten::rand.generator aten::rand_like aten::rand_like.generator aten::randint
        aten::randint.generator aten::randint.low aten::randint.low_generator aten::randint_like
        aten::randint_like.generator aten::randint_like.low_dtype
        aten::randint_like.low_generator_dtype aten::randn aten::randn.generator aten::randn_like
        aten::randn_like.generator aten::random aten::random.from aten::random.to aten::randperm
        aten::randperm.generator aten::rrelu_with_noise_functional aten::uniform
        torch_xla_lite::log_gamma
    """,
    "recurrent": """
        aten::_thnn_fused_gru_cell aten::_thnn_fused_gru_cell_backward aten::_thnn_fused_lstm_cell
        aten::_thnn_fused_lstm_cell_backward_impl torch_xla_lite::recurrence
        torch_xla_lite::recurrence_backward
    """,
    "reduction": """
        aten::_aminmax aten::_aminmax.dim aten::_is_all_true aten::_is_any_true aten::all
        aten::all.dim aten::all.dims aten::amax aten::amin aten::aminmax aten::any aten::any.dim
        aten::any.dims aten::argmax aten::argmin aten::count_nonzero aten::count_nonzero.dim_IntList
        aten::dist aten::linalg_vector_norm aten::logsumexp aten::max aten::max.dim aten::mean
        aten::mean.dim aten::min aten::min.dim aten::nansum aten::norm.Scalar
        aten::norm.ScalarOpt_dim aten::norm.ScalarOpt_dim_dtype aten::norm.ScalarOpt_dtype
        aten::prod aten::prod.dim_int aten::renorm aten::std.correction aten::std_mean.correction
        aten::sum aten::sum.dim_IntList aten::trace aten::var.correction aten::var_mean.correction
    """,
    "scan": """
        aten::_logcumsumexp aten::cummax aten::cummin aten::cumprod aten::cumsum aten::logcumsumexp
    """,
    "segment": """
        aten::_segment_reduce_backward aten::segment_reduce
    """,
    "shape": """
        aten::_stack aten::cat aten::col2im aten::constant_pad_nd aten::flip aten::im2col
        aten::reflection_pad1d aten::reflection_pad1d_backward aten::reflection_pad2d
        aten::reflection_pad2d_backward aten::reflection_pad3d aten::reflection_pad3d_backward
        aten::repeat aten::repeat_interleave.Tensor aten::replication_pad1d
        aten::replication_pad1d_backward aten::replication_pad2d aten::replication_pad2d_backward
        aten::replication_pad3d aten::replication_pad3d_backward aten::roll aten::stack aten::tril
        aten::triu
    """,
    "softmax": """
        aten::_log_softmax aten::_log_softmax_backward_data aten::_masked_softmax
        aten::_masked_softmax_backward aten::_safe_softmax aten::_softmax
        aten::_softmax_backward_data
    """,
    "sort": """
        aten::bucketize.Scalar aten::bucketize.Tensor aten::histc aten::isin.Scalar_Tensor
        aten::isin.Tensor_Scalar aten::isin.Tensor_Tensor aten::kthvalue aten::median
        aten::median.dim aten::mode aten::nanmedian aten::nanmedian.dim aten::searchsorted.Scalar
        aten::searchsorted.Tensor aten::sort aten::sort.stable aten::topk
    """,
    "special": """
        aten::special_airy_ai aten::special_bessel_j0 aten::special_bessel_j1
        aten::special_bessel_y0 aten::special_bessel_y1 aten::special_chebyshev_polynomial_t
        aten::special_chebyshev_polynomial_t.n_scalar aten::special_chebyshev_polynomial_t.x_scalar
        aten::special_chebyshev_polynomial_u aten::special_chebyshev_polynomial_u.n_scalar
        aten::special_chebyshev_polynomial_u.x_scalar aten::special_chebyshev_polynomial_v
        aten::special_chebyshev_polynomial_v.n_scalar aten::special_chebyshev_polynomial_v.x_scalar
        aten::special_chebyshev_polynomial_w aten::special_chebyshev_polynomial_w.n_scalar
        aten::special_chebyshev_polynomial_w.x_scalar aten::special_hermite_polynomial_h
        aten::special_hermite_polynomial_h.n_scalar aten::special_hermite_polynomial_h.x_scalar
        aten::special_hermite_polynomial_he aten::special_hermite_polynomial_he.n_scalar
        aten::special_hermite_polynomial_he.x_scalar aten::special_laguerre_polynomial_l
        aten::special_laguerre_polynomial_l.n_scalar aten::special_laguerre_polynomial_l.x_scalar
        aten::special_legendre_polynomial_p aten::special_legendre_polynomial_p.n_scalar
        aten::special_legendre_polynomial_p.x_scalar aten::special_modified_bessel_i0
        aten::special_modified_bessel_i1 aten::special_modified_bessel_k0
        aten::special_modified_bessel_k1 aten::special_scaled_modified_bessel_k0
        aten::special_scaled_modified_bessel_k1 aten::special_shifted_chebyshev_polynomial_t
        aten::special_shifted_chebyshev_polynomial_t.n_scalar
        aten::special_shifted_chebyshev_polynomial_t.x_scalar
        aten::special_shifted_chebyshev_polynomial_u
        aten::special_shifted_chebyshev_polynomial_u.n_scalar
        aten::special_shifted_chebyshev_polynomial_u.x_scalar
        aten::special_shifted_chebyshev_polynomial_v
        aten::special_shifted_chebyshev_polynomial_v.n_scalar
        aten::special_shifted_chebyshev_polynomial_v.x_scalar
        aten::special_shifted_chebyshev_polynomial_w
        aten::special_shifted_chebyshev_polynomial_w.n_scalar
        aten::special_shifted_chebyshev_polynomial_w.x_scalar aten::special_spherical_bessel_j0
    """,
    "ternary": """
        aten::_masked_scale aten::addcdiv aten::addcmul aten::clamp aten::clamp.Tensor
        aten::lerp.Scalar aten::lerp.Tensor aten::masked_fill.Scalar aten::masked_fill.Tensor
        aten::where.self
    """,
    "unary": """
        aten::_conj aten::_conj_copy aten::_conj_physical aten::abs aten::acos aten::acosh
        aten::angle aten::asin aten::asinh aten::atan aten::atanh aten::bitwise_not aten::ceil
        aten::cos aten::cosh aten::digamma aten::erf aten::erfc aten::erfinv aten::exp aten::exp2
        aten::expm1 aten::floor aten::frac aten::frexp.Tensor aten::i0 aten::isinf aten::isnan
        aten::lgamma aten::log aten::log10 aten::log1p aten::log2 aten::logical_not aten::logit
        aten::logit_backward aten::mvlgamma aten::nan_to_num aten::neg aten::polygamma
        aten::reciprocal aten::relu aten::round aten::round.decimals aten::rsqrt aten::sgn
        aten::sigmoid aten::sign aten::signbit aten::sin aten::sinc aten::sinh aten::special_entr
        aten::special_erfcx aten::special_i0e aten::special_i1 aten::special_i1e
        aten::special_log_ndtr aten::special_ndtri aten::sqrt aten::tan aten::tanh aten::trunc
        aten::view_as_complex aten::view_as_complex_copy aten::view_as_real aten::view_as_real_copy
    """,
    "upsample": """
        aten::_grid_sampler_2d_cpu_fallback aten::_upsample_bicubic2d_aa
        aten::_upsample_bicubic2d_aa_backward aten::_upsample_bilinear2d_aa
        aten::_upsample_bilinear2d_aa_backward aten::_upsample_nearest_exact1d
        aten::_upsample_nearest_exact1d_backward aten::_upsample_nearest_exact2d
        aten::_upsample_nearest_exact2d_backward aten::_upsample_nearest_exact3d
        aten::_upsample_nearest_exact3d_backward aten::affine_grid_generator aten::grid_sampler_2d
        aten::grid_sampler_2d_backward aten::grid_sampler_3d aten::grid_sampler_3d_backward
        aten::upsample_bicubic2d aten::upsample_bicubic2d_backward aten::upsample_bilinear2d
        aten::upsample_bilinear2d_backward aten::upsample_linear1d aten::upsample_linear1d_backward
        aten::upsample_nearest1d aten::upsample_nearest1d_backward aten::upsample_nearest2d
        aten::upsample_nearest2d_backward aten::upsample_nearest3d aten::upsample_nearest3d_backward
        aten::upsample_trilinear3d aten::upsample_trilinear3d_backward
    """,
    "views": """
        aten::_neg_view aten::_neg_view_copy aten::_reshape_alias aten::_reshape_alias_copy
        aten::_reshape_copy aten::_unsafe_view aten::as_strided aten::as_strided_copy
        aten::as_strided_scatter aten::diagonal aten::diagonal_copy aten::diagonal_scatter
        aten::expand aten::expand_copy aten::permute aten::permute_copy aten::select.int
        aten::select_backward aten::select_copy.int aten::select_scatter aten::slice.Tensor
        aten::slice_backward aten::slice_copy.Tensor aten::slice_inverse aten::slice_scatter
        aten::split.Tensor aten::split_copy.Tensor aten::split_with_sizes
        aten::split_with_sizes_copy aten::squeeze aten::squeeze.dim aten::squeeze.dims
        aten::squeeze_copy aten::squeeze_copy.dim aten::squeeze_copy.dims aten::t aten::t_copy
        aten::transpose.int aten::transpose_copy.int aten::unbind.int aten::unbind_copy.int
        aten::unfold aten::unfold_backward aten::unfold_copy aten::unsafe_split.Tensor
        aten::unsafe_split_with_sizes aten::unsqueeze aten::unsqueeze_copy aten::view
        aten::view.dtype aten::view_copy aten::view_copy.dtype
    """,
}
