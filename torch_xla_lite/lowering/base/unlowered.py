"""Facts of ops without a lowering, which run as torch's CPU kernels."""

from torch_xla_lite.lowering.base.facts import Facts

UNLOWERED: dict[str, Facts] = {
    "aten::_batch_norm_impl_index": Facts(writes_statistics=True),
    "aten::cudnn_batch_norm": Facts(writes_statistics=True),
    "aten::fractional_max_pool2d": Facts(one_dtype="self random_samples"),
    "aten::igamma": Facts(refused_if="no_floats"),
    "aten::igammac": Facts(refused_if="no_floats"),
    "aten::masked_select": Facts(shares="self=nothing mask=nothing"),
    "aten::miopen_batch_norm": Facts(writes_statistics=True),
    "aten::unflatten.int": Facts(dense_operand=True),
}
