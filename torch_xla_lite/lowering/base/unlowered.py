"""Facts of ops without a lowering, which torch decomposes or its CPU kernels compute."""

from torch_xla_lite.lowering.base.facts import Facts

# Compositions that compute in the memory of their arguments, which is not there. That of _stack.out
# and its meta function concatenate. How much nonzero gives depends on values.
_ON_CPU = """
    _reshape_from_tensor _saturate_weight_to_fp16 _sobol_engine_draw _sobol_engine_ff_
    _sobol_engine_initialize_state_ _sobol_engine_scramble_ _stack.out choose_qparams_optimized
    nonzero
"""
# Composed in composites.py and random_ops.py; and those that torch's kernels do: some call resize_,
# some know where their tensor is in its storage, the last use host memory.
_OTHERS = """
    _assert_async _assert_async.msg _grouped_mm _linalg_check_errors _sample_dirichlet
    _sample_dirichlet.out allclose arange.start_out bincount bincount.out equal eye.m_out eye.out
    linspace.out logspace.out randperm.generator_out range.out rot90
    range.out_ as_strided_copy.out as_strided_scatter.out
    randint_like.Tensor randint_like.Tensor_generator _pin_memory _pin_memory.out is_pinned
    _has_same_storage_numel _new_zeros_with_same_feature_meta
    _new_zeros_with_same_feature_meta.out
"""

# torch's decompositions of these are as fast as code of this project would be. Their kernels and
# decompositions refuse other dtypes than floats.
_OF_FLOATS = "glu hardshrink"

UNLOWERED: dict[str, Facts] = {
    **{f"aten::{name}": Facts(kernel="cpu") for name in _ON_CPU.split()},
    **{f"aten::{name}": Facts(kernel="other") for name in _OTHERS.split()},
    **{f"aten::{name}": Facts(refuses="biuc") for name in _OF_FLOATS.split()},
    "aten::_prelu_kernel_backward": Facts(shape="prelu_backward"),
    "aten::binary_cross_entropy_backward": Facts(shape="loss_backward"),
    "aten::diagonal_backward": Facts(shape="diagonal_backward"),
    "aten::glu_backward": Facts(shape="glu_backward"),
    "aten::huber_loss": Facts(
        refuses="biuc", one_dtype="self target", numbers="delta>0", shape="loss"
    ),
    "aten::_batch_norm_impl_index": Facts(writes_statistics=True),
    "aten::addr": Facts(one_dtype="self vec1 vec2", shares="self=same vec1=same vec2=same"),
    "aten::cudnn_batch_norm": Facts(writes_statistics=True),
    "aten::fractional_max_pool2d": Facts(one_dtype="self random_samples"),
    "aten::igamma": Facts(refuses="biuc"),
    "aten::igammac": Facts(refuses="biuc"),
    "aten::linear.out": Facts(kernel="recorder"),
    "aten::masked_select": Facts(shares="self=nothing mask=nothing"),
    "aten::miopen_batch_norm": Facts(writes_statistics=True),
    **{
        f"aten::special_xlog1py{overload}": Facts(refuses="c")
        for overload in ("", ".self_scalar", ".other_scalar")
    },
    "aten::unflatten.int": Facts(dense_operand=True),
}
