"""Which module has the lowering of each op. Written by scripts/lowering_table.py.

MODULES: module -> its ops, of whose names "aten::" is left out.
"""

MODULES: dict[str, str] = {
    "activation": """
        celu elu gelu gelu_backward hardshrink_backward hardsigmoid hardsigmoid_backward hardswish
        hardswish_backward hardtanh hardtanh_backward leaky_relu leaky_relu_backward
        log_sigmoid_backward log_sigmoid_forward mish mish_backward silu silu_backward softplus
        softplus_backward softshrink softshrink_backward tanh_backward threshold threshold_backward
    """,
    "adaptive_pool": """
        _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
        _adaptive_avg_pool3d_backward adaptive_max_pool2d adaptive_max_pool2d_backward
        adaptive_max_pool3d adaptive_max_pool3d_backward
    """,
    "amp": """
        _amp_foreach_non_finite_check_and_unscale _amp_update_scale
    """,
    "attention": """
        _native_multi_head_attention _scaled_dot_product_flash_attention_for_cpu
        _scaled_dot_product_flash_attention_for_cpu_backward _transform_bias_rescale_qkv
        _transformer_encoder_layer_fwd
    """,
    "binary": """
        __lshift__.Scalar __lshift__.Tensor __rshift__.Scalar __rshift__.Tensor _prelu_kernel
        add.Scalar add.Tensor atan2 bitwise_and.Scalar bitwise_and.Scalar_Tensor bitwise_and.Tensor
        bitwise_left_shift.Scalar_Tensor bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar
        bitwise_or.Scalar bitwise_or.Scalar_Tensor bitwise_or.Tensor
        bitwise_right_shift.Scalar_Tensor bitwise_right_shift.Tensor
        bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar bitwise_xor.Scalar_Tensor
        bitwise_xor.Tensor clamp_max clamp_max.Tensor clamp_min clamp_min.Tensor complex
        copysign.Scalar copysign.Tensor div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode
        eq.Scalar eq.Tensor floor_divide floor_divide.Scalar fmax fmin fmod.Scalar fmod.Tensor gcd
        ge.Scalar ge.Tensor gt.Scalar gt.Tensor heaviside hypot lcm ldexp.Tensor le.Scalar le.Tensor
        logaddexp logaddexp2 logical_and logical_or logical_xor lt.Scalar lt.Tensor maximum minimum
        mul.Scalar mul.Tensor ne.Scalar ne.Tensor nextafter polar pow.Scalar pow.Tensor_Scalar
        pow.Tensor_Tensor remainder.Scalar remainder.Scalar_Tensor remainder.Tensor rsub.Scalar
        rsub.Tensor special_zeta special_zeta.other_scalar special_zeta.self_scalar sub.Scalar
        sub.Tensor xlogy.Scalar_Other xlogy.Scalar_Self xlogy.Tensor
    """,
    "constrain": """
        torch_xla_lite::constrain
    """,
    "convolution": """
        _convolution convolution convolution_backward convolution_backward_overrideable
        convolution_overrideable
    """,
    "ctc": """
        _ctc_loss.Tensor _ctc_loss_backward.Tensor
    """,
    "distance": """
        _cdist_backward _cdist_forward _euclidean_dist _pdist_backward _pdist_forward
    """,
    "embedding": """
        _embedding_bag _embedding_bag_backward _embedding_bag_dense_backward
        _embedding_bag_forward_only _embedding_bag_per_sample_weights_backward embedding
        embedding_dense_backward embedding_renorm one_hot
    """,
    "factories": """
        _copy_from _efficientzerotensor _fw_primal _fw_primal_copy _lazy_clone _to_copy alias
        alias_copy arange arange.start arange.start_step bartlett_window bartlett_window.periodic
        blackman_window blackman_window.periodic clone copy detach detach_copy empty.memory_format
        empty_like empty_permuted empty_strided eye eye.m fft_fftfreq fft_rfftfreq fill.Scalar
        fill.Tensor full full_like hamming_window hamming_window.periodic
        hamming_window.periodic_alpha hamming_window.periodic_alpha_beta hann_window
        hann_window.periodic kaiser_window kaiser_window.beta kaiser_window.periodic lift lift_fresh
        lift_fresh_copy linspace linspace.Scalar_Tensor linspace.Tensor_Scalar
        linspace.Tensor_Tensor logspace logspace.Scalar_Tensor logspace.Tensor_Scalar
        logspace.Tensor_Tensor new_empty new_empty_strided new_full new_ones new_zeros ones
        ones_like range range.step scalar_tensor tril_indices triu_indices zero zeros zeros_like
    """,
    "fft": """
        _fft_c2c _fft_c2r _fft_r2c
    """,
    "foreach": """
        _foreach_abs _foreach_acos _foreach_add.List _foreach_add.Scalar _foreach_add.ScalarList
        _foreach_add.Tensor _foreach_addcdiv.Scalar _foreach_addcdiv.ScalarList
        _foreach_addcdiv.Tensor _foreach_addcmul.Scalar _foreach_addcmul.ScalarList
        _foreach_addcmul.Tensor _foreach_asin _foreach_atan _foreach_ceil _foreach_clamp_max.List
        _foreach_clamp_max.Scalar _foreach_clamp_max.ScalarList _foreach_clamp_min.List
        _foreach_clamp_min.Scalar _foreach_clamp_min.ScalarList _foreach_clone _foreach_copy
        _foreach_cos _foreach_cosh _foreach_div.List _foreach_div.Scalar _foreach_div.ScalarList
        _foreach_div.Tensor _foreach_erf _foreach_erfc _foreach_exp _foreach_expm1 _foreach_floor
        _foreach_frac _foreach_lerp.List _foreach_lerp.Scalar _foreach_lerp.ScalarList
        _foreach_lgamma _foreach_log _foreach_log10 _foreach_log1p _foreach_log2 _foreach_max
        _foreach_maximum.List _foreach_maximum.Scalar _foreach_maximum.ScalarList
        _foreach_minimum.List _foreach_minimum.Scalar _foreach_minimum.ScalarList _foreach_mul.List
        _foreach_mul.Scalar _foreach_mul.ScalarList _foreach_mul.Tensor _foreach_neg
        _foreach_norm.Scalar _foreach_pow.List _foreach_pow.Scalar _foreach_pow.ScalarAndTensor
        _foreach_pow.ScalarList _foreach_powsum.Scalar _foreach_reciprocal _foreach_round
        _foreach_rsqrt _foreach_sigmoid _foreach_sign _foreach_sin _foreach_sinh _foreach_sqrt
        _foreach_sub.List _foreach_sub.Scalar _foreach_sub.ScalarList _foreach_tan _foreach_tanh
        _foreach_trunc _foreach_zero
    """,
    "index": """
        _functional_assert_async.msg _index_put_impl _unsafe_index.Tensor _unsafe_index_put
        _unsafe_masked_index _unsafe_masked_index_put_accumulate gather index.Tensor index_add
        index_copy index_fill.int_Scalar index_fill.int_Tensor index_put index_reduce index_select
        masked_scatter masked_scatter_backward nonzero_static put scatter.reduce scatter.src
        scatter.value scatter.value_reduce scatter_add scatter_reduce.two take
    """,
    "linalg": """
        _cholesky_solve_helper _linalg_det _linalg_eigh _linalg_eigvals _linalg_slogdet
        _linalg_solve_ex _linalg_svd cholesky cholesky_inverse cholesky_solve linalg_cholesky_ex
        linalg_cross linalg_eig linalg_householder_product linalg_inv_ex linalg_lu
        linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp linalg_qr linalg_solve_triangular
        lu_unpack triangular_solve
    """,
    "loss": """
        binary_cross_entropy binary_cross_entropy_with_logits huber_loss_backward mse_loss
        mse_loss_backward multi_margin_loss multi_margin_loss_backward nll_loss2d_backward
        nll_loss2d_forward nll_loss_backward nll_loss_forward smooth_l1_loss smooth_l1_loss_backward
        soft_margin_loss soft_margin_loss_backward
    """,
    "matmul": """
        _int_mm _trilinear addbmm addmm addmm.dtype addmv baddbmm baddbmm.dtype bmm bmm.dtype dot
        linear linear_backward mm mm.dtype mv vdot torch_xla_lite::grouped_mm
    """,
    "norm": """
        _batch_norm_no_update _native_batch_norm_legit.no_stats _native_batch_norm_legit_functional
        _native_batch_norm_legit_no_training _weight_norm_interface _weight_norm_interface_backward
        native_batch_norm native_batch_norm_backward native_group_norm native_group_norm_backward
        native_layer_norm native_layer_norm_backward
    """,
    "optimizer": """
        _fused_adagrad _fused_adagrad.tensor_lr _fused_adam _fused_adam.tensor_lr _fused_adamw
        _fused_adamw.tensor_lr _fused_sgd _fused_sgd.tensor_lr
    """,
    "pool": """
        avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward max_pool2d_with_indices
        max_pool2d_with_indices_backward max_pool3d_with_indices max_pool3d_with_indices_backward
        max_unpool2d max_unpool3d
    """,
    "random": """
        _fused_dropout _standard_gamma bernoulli bernoulli.Tensor bernoulli.p binomial cauchy
        exponential geometric log_normal multinomial native_dropout native_dropout_backward
        normal.Tensor_Tensor normal.Tensor_float normal.float_Tensor normal.float_float
        normal_functional poisson rand rand.generator rand_like rand_like.generator randint
        randint.generator randint.low randint.low_generator randint_like randint_like.generator
        randint_like.low_dtype randint_like.low_generator_dtype randn randn.generator randn_like
        randn_like.generator random random.from random.to randperm randperm.generator
        rrelu_with_noise_functional uniform torch_xla_lite::log_gamma
    """,
    "recurrent": """
        _thnn_fused_gru_cell _thnn_fused_gru_cell_backward _thnn_fused_lstm_cell
        _thnn_fused_lstm_cell_backward_impl torch_xla_lite::recurrence
        torch_xla_lite::recurrence_backward
    """,
    "reduction": """
        _aminmax _aminmax.dim _is_all_true _is_any_true all all.dim all.dims amax amin aminmax any
        any.dim any.dims argmax argmin count_nonzero count_nonzero.dim_IntList dist
        linalg_vector_norm logsumexp max max.dim mean mean.dim min min.dim nansum norm.Scalar
        norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype norm.ScalarOpt_dtype prod prod.dim_int renorm
        std.correction std_mean.correction sum sum.dim_IntList trace var.correction
        var_mean.correction
    """,
    "scan": """
        _logcumsumexp cummax cummin cumprod cumsum logcumsumexp
    """,
    "segment": """
        _segment_reduce_backward segment_reduce
    """,
    "shape": """
        _stack cat col2im constant_pad_nd flip im2col reflection_pad1d reflection_pad1d_backward
        reflection_pad2d reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward repeat
        repeat_interleave.Tensor replication_pad1d replication_pad1d_backward replication_pad2d
        replication_pad2d_backward replication_pad3d replication_pad3d_backward roll stack tril triu
    """,
    "softmax": """
        _log_softmax _log_softmax_backward_data _masked_softmax _masked_softmax_backward
        _safe_softmax _softmax _softmax_backward_data
    """,
    "sort": """
        bucketize.Scalar bucketize.Tensor histc isin.Scalar_Tensor isin.Tensor_Scalar
        isin.Tensor_Tensor kthvalue median median.dim mode nanmedian nanmedian.dim
        searchsorted.Scalar searchsorted.Tensor sort sort.stable topk
    """,
    "special": """
        special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
        special_chebyshev_polynomial_t special_chebyshev_polynomial_t.n_scalar
        special_chebyshev_polynomial_t.x_scalar special_chebyshev_polynomial_u
        special_chebyshev_polynomial_u.n_scalar special_chebyshev_polynomial_u.x_scalar
        special_chebyshev_polynomial_v special_chebyshev_polynomial_v.n_scalar
        special_chebyshev_polynomial_v.x_scalar special_chebyshev_polynomial_w
        special_chebyshev_polynomial_w.n_scalar special_chebyshev_polynomial_w.x_scalar
        special_hermite_polynomial_h special_hermite_polynomial_h.n_scalar
        special_hermite_polynomial_h.x_scalar special_hermite_polynomial_he
        special_hermite_polynomial_he.n_scalar special_hermite_polynomial_he.x_scalar
        special_laguerre_polynomial_l special_laguerre_polynomial_l.n_scalar
        special_laguerre_polynomial_l.x_scalar special_legendre_polynomial_p
        special_legendre_polynomial_p.n_scalar special_legendre_polynomial_p.x_scalar
        special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
        special_modified_bessel_k1 special_scaled_modified_bessel_k0
        special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t
        special_shifted_chebyshev_polynomial_t.n_scalar
        special_shifted_chebyshev_polynomial_t.x_scalar special_shifted_chebyshev_polynomial_u
        special_shifted_chebyshev_polynomial_u.n_scalar
        special_shifted_chebyshev_polynomial_u.x_scalar special_shifted_chebyshev_polynomial_v
        special_shifted_chebyshev_polynomial_v.n_scalar
        special_shifted_chebyshev_polynomial_v.x_scalar special_shifted_chebyshev_polynomial_w
        special_shifted_chebyshev_polynomial_w.n_scalar
        special_shifted_chebyshev_polynomial_w.x_scalar special_spherical_bessel_j0
    """,
    "ternary": """
        _masked_scale addcdiv addcmul clamp clamp.Tensor lerp.Scalar lerp.Tensor masked_fill.Scalar
        masked_fill.Tensor where.self
    """,
    "unary": """
        _conj _conj_copy _conj_physical abs acos acosh angle asin asinh atan atanh bitwise_not ceil
        cos cosh digamma erf erfc erfinv exp exp2 expm1 floor frac frexp.Tensor i0 isinf isnan
        lgamma log log10 log1p log2 logical_not logit logit_backward mvlgamma nan_to_num neg
        polygamma reciprocal relu round round.decimals rsqrt sgn sigmoid sign signbit sin sinc sinh
        special_entr special_erfcx special_i0e special_i1 special_i1e special_log_ndtr special_ndtri
        sqrt tan tanh trunc view_as_complex view_as_complex_copy view_as_real view_as_real_copy
    """,
    "upsample": """
        _grid_sampler_2d_cpu_fallback _upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward
        _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward _upsample_nearest_exact1d
        _upsample_nearest_exact1d_backward _upsample_nearest_exact2d
        _upsample_nearest_exact2d_backward _upsample_nearest_exact3d
        _upsample_nearest_exact3d_backward affine_grid_generator grid_sampler_2d
        grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward upsample_bicubic2d
        upsample_bicubic2d_backward upsample_bilinear2d upsample_bilinear2d_backward
        upsample_linear1d upsample_linear1d_backward upsample_nearest1d upsample_nearest1d_backward
        upsample_nearest2d upsample_nearest2d_backward upsample_nearest3d
        upsample_nearest3d_backward upsample_trilinear3d upsample_trilinear3d_backward
    """,
    "views": """
        _neg_view _neg_view_copy _reshape_alias _reshape_alias_copy _reshape_copy _unsafe_view
        as_strided as_strided_copy as_strided_scatter diagonal diagonal_copy diagonal_scatter expand
        expand_copy permute permute_copy select.int select_backward select_copy.int select_scatter
        slice.Tensor slice_backward slice_copy.Tensor slice_inverse slice_scatter split.Tensor
        split_copy.Tensor split_with_sizes split_with_sizes_copy squeeze squeeze.dim squeeze.dims
        squeeze_copy squeeze_copy.dim squeeze_copy.dims t t_copy transpose.int transpose_copy.int
        unbind.int unbind_copy.int unfold unfold_backward unfold_copy unsafe_split.Tensor
        unsafe_split_with_sizes unsqueeze unsqueeze_copy view view.dtype view_copy view_copy.dtype
    """,
}
