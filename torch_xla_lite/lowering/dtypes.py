"""The dtypes that torch's CPU kernels refuse, or compute differently from lowerings.

    operands, results = refused("aten::mse_loss")     # bits: bool, integers, complex dtypes

A lowering computes whatever it is given, and torch's meta kernels refuse few dtypes: without this
table the mean squared error of integers would be a number, where torch raises. An op whose result
has a dtype that is refused here runs on the CPU at once, which then raises as it does for tensors
of its own. The uint8 images that it resizes in fixed point come out as it rounds them.

Floats are refused only by ops on bits, and halves by factorisations too, which no device has for
them. Elsewhere a lowering takes more of them than the CPU, computes in float32 and rounds once.

torch's histc takes integers on CUDA and not on the CPU. Libraries rely on it on every other device,
so it is not refused here.
"""

import functools

import numpy as np

from torch_xla_lite.lowering import promotion, registry

# Kinds as in `numpy.dtype.kind`: bool, signed, unsigned, float, complex; h: 16-bit float. What is
# listed is what the CPU kernels of torch 2.13 said to the sample inputs of PyTorch's op database.
_REFUSED = {
    "biuc": """
        _adaptive_avg_pool2d _adaptive_avg_pool3d _prelu_kernel _standard_gamma
        _upsample_bicubic2d_aa _upsample_bilinear2d_aa adaptive_max_pool2d adaptive_max_pool3d
        avg_pool2d avg_pool3d bernoulli binary_cross_entropy binomial celu elu embedding_renorm frac
        gelu glu grid_sampler_2d grid_sampler_3d hardshrink hardsigmoid hardswish huber_loss hypot
        log_sigmoid_forward max_pool2d_with_indices_backward max_pool3d_with_indices_backward
        max_unpool2d max_unpool3d mish mse_loss multi_margin_loss native_batch_norm nextafter
        nll_loss2d_forward nll_loss_forward normal.Tensor_Tensor normal.Tensor_float
        normal.float_Tensor poisson round.decimals smooth_l1_loss soft_margin_loss softplus
        upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_trilinear3d
    """,
    "bic": """
        _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
        upsample_nearest1d upsample_nearest2d upsample_nearest3d
    """,
    "fhc": """
        __lshift__.Scalar __lshift__.Tensor __rshift__.Scalar __rshift__.Tensor bitwise_and.Scalar
        bitwise_and.Scalar_Tensor bitwise_and.Tensor bitwise_left_shift.Scalar_Tensor
        bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_not bitwise_or.Scalar
        bitwise_or.Scalar_Tensor bitwise_or.Tensor bitwise_right_shift.Scalar_Tensor
        bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar
        bitwise_xor.Scalar_Tensor bitwise_xor.Tensor gcd lcm
    """,
    "biuh": """
        _linalg_det _linalg_eigh _linalg_eigvals _linalg_slogdet _linalg_solve_ex _linalg_svd
        cholesky linalg_cholesky_ex linalg_eig linalg_inv_ex linalg_lu_factor_ex linalg_qr
    """,
    "biu": """
        _log_softmax _softmax _softmax_backward_data addcdiv bartlett_window
        bartlett_window.periodic binary_cross_entropy_with_logits blackman_window
        blackman_window.periodic cholesky_inverse cholesky_solve hamming_window
        hamming_window.periodic hamming_window.periodic_alpha hamming_window.periodic_alpha_beta
        hann_window hann_window.periodic kaiser_window kaiser_window.beta kaiser_window.periodic
        leaky_relu lerp.Scalar lerp.Tensor linalg_householder_product linalg_lu
        linalg_solve_triangular logaddexp logaddexp2 logcumsumexp renorm rrelu_with_noise_functional
        silu std.correction std_mean.correction triangular_solve var.correction var_mean.correction
    """,
    "bc": """
        ceil clamp.Tensor div.Tensor_mode floor fmod.Tensor histc kthvalue max_pool2d_with_indices
        max_pool3d_with_indices median median.dim nanmedian nanmedian.dim remainder.Tensor round
        threshold trunc
    """,
    "iu": """
        col2im im2col
    """,
    "b": """
        __lshift__.Scalar __lshift__.Tensor __rshift__.Scalar __rshift__.Tensor _trilinear abs
        addbmm addcmul addmv argmax argmin baddbmm bitwise_left_shift.Scalar_Tensor
        bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_right_shift.Scalar_Tensor
        bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar bmm bucketize.Scalar
        bucketize.Tensor convolution cumprod cumsum dot fmod.Scalar gcd index_reduce lcm
        linalg_cross linear linspace logspace mm mv mvlgamma pow.Scalar pow.Tensor_Scalar
        pow.Tensor_Tensor reflection_pad1d relu remainder.Scalar remainder.Scalar_Tensor
        replication_pad1d replication_pad2d searchsorted.Scalar searchsorted.Tensor topk trace vdot
    """,
    "c": """
        _log_softmax _safe_softmax _softmax amax amin aminmax arange arange.start arange.start_step
        argmax argmin atan2 binary_cross_entropy_with_logits bucketize.Scalar bucketize.Tensor clamp
        clamp_max clamp_max.Tensor clamp_min clamp_min.Tensor copysign.Scalar copysign.Tensor cummax
        cummin digamma erf erfc erfinv fmax fmin fmod.Scalar hardtanh heaviside i0 index_reduce
        leaky_relu lgamma logaddexp2 logit max max.dim maximum min min.dim minimum mode mvlgamma
        nansum native_group_norm polygamma relu remainder.Scalar remainder.Scalar_Tensor
        rrelu_with_noise_functional searchsorted.Scalar searchsorted.Tensor sign signbit softshrink
        sort sort.stable special_entr special_erfcx special_i0e special_i1 special_i1e
        special_log_ndtr special_ndtri special_xlog1py special_xlog1py.other_scalar
        special_xlog1py.self_scalar special_zeta topk xlogy.Scalar_Other xlogy.Scalar_Self
        xlogy.Tensor
    """,
}


@functools.cache
def _kinds() -> dict[str, str]:
    found: dict[str, str] = {}
    for kinds, names in _REFUSED.items():
        for name in names.split():
            found[f"aten::{name}"] = found.get(f"aten::{name}", "") + kinds
    return found


# These convert their operands to the dtype of their results first.
_BY_RESULT = (
    *("aten::__lshift__", "aten::__rshift__", "aten::addcdiv", "aten::bitwise_left_shift"),
    *("aten::bitwise_right_shift", "aten::cumprod", "aten::cumsum", "aten::fmod", "aten::gcd"),
    "aten::remainder",
)


def refused(op_name: str) -> tuple[int, int]:
    """A bit for each c10::ScalarType that the first operand of the op cannot have, and its first
    result."""
    kinds = _kinds().get(op_name, "")
    bits = sum(1 << code for code, dtype in registry.DTYPES.items() if _kind(dtype) in kinds)
    return 0 if op_name.partition(".")[0] in _BY_RESULT else bits, bits


def _kind(dtype: np.dtype) -> str:
    return "h" if dtype in promotion.HALVES else dtype.kind
