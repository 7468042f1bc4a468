"""The shapes that csrc/infer finds without torch's Python are those of torch's kernels."""

import functools
import sys
from collections.abc import Callable

import pytest
import torch

import torch_xla_lite  # noqa: F401  device jax

aten = torch.ops.aten
F32, F64, BF16, I64, BOOL = torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool


class Shape(tuple):
    """A tensor to be made on a device: Shape(3, 4), or Shape(3, 4, dtype=I64)."""

    dtype: torch.dtype

    def __new__(cls, *sizes: int, dtype: torch.dtype = F32) -> "Shape":
        shape = super().__new__(cls, sizes)
        shape.dtype = dtype
        return shape

    def __repr__(self) -> str:
        return f"{str(self.dtype)[6:]}{list(self)}"


# Stands for the device that a call is tried on.
DEVICE = object()


def on(device: str, arguments):
    """The same with tensors in the places of shapes."""
    if arguments is DEVICE:
        return device
    if isinstance(arguments, dict):
        return {name: on(device, value) for name, value in arguments.items()}
    if isinstance(arguments, Shape):
        return torch.ones(tuple(arguments), dtype=arguments.dtype, device=device)
    if isinstance(arguments, (list, tuple)):
        return type(arguments)(on(device, item) for item in arguments)
    return arguments


def shapes_of(results):
    """Dtypes and sizes of all results, or nothing where there is no tensor."""
    if isinstance(results, torch.Tensor):
        return results.dtype, tuple(results.shape)
    if isinstance(results, (list, tuple)):
        return [shapes_of(result) for result in results]
    return results


def found_on(device: str, op: Callable, arguments: tuple, keywords: dict):
    try:
        tensors = on(device, arguments)
        results = op(*tensors, **on(device, keywords))
    except (RuntimeError, ValueError, LookupError, TypeError, AssertionError, ArithmeticError):
        return "an error"
    return shapes_of(results), shapes_of(tensors)


def python_calls(function: Callable, *arguments) -> list[str]:
    """The functions of torch, in Python, that a call enters."""
    entered = []

    def note(frame, event, _):
        if event == "call" and "/torch/_" in frame.f_code.co_filename:
            entered.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return [name for name in entered if "/torch/_ops.py" not in name]


X = Shape(3, 4)
BINARY_ARGUMENTS = [
    *((X, other) for other in (X, Shape(4), Shape(3, 1), Shape(2, 1, 4), Shape(), Shape(0, 3, 4))),
    *((X, Shape(*sizes)) for sizes in ((3,), (4, 3), (2, 3, 5))),
    *((X, Shape(3, 4, dtype=dtype)) for dtype in (F64, BF16, I64, BOOL, torch.complex64)),
    *((Shape(3, 4, dtype=dtype),) * 2 for dtype in (F64, BF16, I64, BOOL)),
    (Shape(), Shape(3, dtype=BF16)),
    *((X, number) for number in (2, 2.5, True, 1j)),
    *((Shape(3, dtype=BF16), torch.tensor(2, dtype=dtype)) for dtype in (F64, I64)),
    *((Shape(), torch.tensor(2, dtype=dtype)) for dtype in (F64, I64)),
    (Shape(3, dtype=I64), 2.5),
]
SCALAR_ARGUMENTS = [
    (Shape(*sizes, dtype=dtype), number)
    for sizes in ((3, 4), ())
    for dtype in (F32, BF16, I64, BOOL)
    for number in (2, 2.5, True, 1j)
]
BINARY = ["add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge"]
UNARY = [
    *("abs", "ceil", "cos", "elu", "erf", "exp", "expm1", "floor", "gelu", "hardsigmoid"),
    *("hardswish", "hardtanh", "leaky_relu", "log", "log1p", "log2", "mish", "neg", "reciprocal"),
    *("relu", "round", "rsqrt", "sgn", "sigmoid", "sign", "silu", "sin", "sqrt", "tanh", "trunc"),
]
UNARY_ARGUMENTS = [(Shape(3, 4, dtype=dtype),) for dtype in (F32, F64, BF16, I64, BOOL)]
# Gradients of element-wise functions, and what comes after (grad_output, self).
GRADIENTS = {
    aten.gelu_backward: (),
    aten.hardsigmoid_backward: (),
    aten.hardswish_backward: (),
    aten.hardtanh_backward: (-1, 1),
    aten.leaky_relu_backward: (0.1, False),
    aten.mish_backward: (),
    aten.sigmoid_backward: (),
    aten.silu_backward: (),
    aten.softplus_backward: (1, 20),
    aten.tanh_backward: (),
    aten.threshold_backward: (0,),
}
BACKWARD_ARGUMENTS = [*BINARY_ARGUMENTS[:10], (X, Shape(3, 4, dtype=F64))]
FOREACH_LISTS = [
    [X, Shape(2)],
    [X, Shape(2, dtype=F64)],
    [X, Shape(2, dtype=I64)],
    [X],
    [Shape(4), Shape(2)],
]
BATCH = Shape(5, 4)
LABELS = Shape(5, dtype=I64)
ROW, ROWS, ONE = Shape(4), Shape(5, 1), Shape()
ALL = [True, True, True]
MASKS = (ALL, [True, False, False], [False, True, True])
IMAGE = Shape(2, 4, 5, 6)
REDUCED_DIMS = (None, [], [1], [-1, 0], [0, 0], [3])
# amax and amin take no None, and logsumexp no empty list.
FIRST_DIMS = {aten.amax: 1, aten.amin: 1, aten.logsumexp: 2}

CASES = [
    *((getattr(aten, name).Tensor, args) for name in BINARY for args in BINARY_ARGUMENTS),
    *((getattr(aten, name).Scalar, args) for name in BINARY for args in SCALAR_ARGUMENTS),
    *((getattr(aten, f"{name}_").Tensor, args) for name in BINARY for args in BINARY_ARGUMENTS),
    *((getattr(aten, f"{name}_").Scalar, args) for name in BINARY for args in SCALAR_ARGUMENTS),
    *((op, args) for op in (aten.maximum, aten.minimum) for args in BINARY_ARGUMENTS[:18]),
    *((aten.pow.Tensor_Scalar, args) for args in SCALAR_ARGUMENTS if args[0].dtype != BOOL),
    *((op, args) for op in (aten.clamp_min, aten.clamp_max) for args in SCALAR_ARGUMENTS),
    *((aten.clamp, (X, *bounds)) for bounds in ((), (None, 1.0), (0, 1), (0.5, None))),
    *((getattr(aten, name).default, args) for name in UNARY for args in UNARY_ARGUMENTS),
    *((getattr(aten, f"{name}_").default, args) for name in UNARY for args in UNARY_ARGUMENTS),
    *((aten.gelu, (X,), {"approximate": text}) for text in ("tanh", "none", "other")),
    *((op, (*args, *more)) for op, more in GRADIENTS.items() for args in BACKWARD_ARGUMENTS),
    *((aten.elu_backward, (a, 1, 1, 1, False, b)) for a, b in BACKWARD_ARGUMENTS),
    *((aten.softplus, (*args, 1, 20)) for args in UNARY_ARGUMENTS),
    *((aten.threshold, (*args, 1, 20)) for args in UNARY_ARGUMENTS),
    *((aten.rsub.Scalar, args) for args in SCALAR_ARGUMENTS),
    *(
        (op, args)
        for op in (aten.atan2, aten.clamp_max.Tensor, aten.clamp_min.Tensor)
        for args in BINARY_ARGUMENTS[:20]
    ),
    *((aten.pow.Tensor_Tensor, args) for args in BINARY_ARGUMENTS[:20]),
    *((aten._prelu_kernel, args) for args in BINARY_ARGUMENTS[:18]),
    *((op, (X, *a)) for op in (aten.addcmul, aten.addcdiv) for a in BINARY_ARGUMENTS[:18]),
    *(
        (aten.where.self, (Shape(*mask, dtype=BOOL), *args))
        for mask in ((3, 4), (3, 1), (5, 1, 1), (2,))
        for args in BINARY_ARGUMENTS[:20]
    ),
    (aten.where.self, (Shape(3, 4, dtype=I64), X, X)),
    *(
        (op, (X, Shape(*sizes, dtype=dtype), value))
        for op in (aten.masked_fill.Scalar, aten.masked_fill_.Scalar)
        for sizes in ((3, 4), (4,), (2, 3, 4), (3,))
        for dtype in (BOOL, F32)
        for value in (1, 1j)
    ),
    *(
        (op, (Shape(*sizes, dtype=dtype), dim, wider))
        for op in (aten._softmax, aten._log_softmax)
        for sizes in ((3, 4), ())
        for dtype in (F32, BF16, I64)
        for dim in (-1, 0, 2)
        for wider in (False, True)
    ),
    *((aten._safe_softmax, (X, dim, dtype)) for dim in (-1, 5) for dtype in (None, F64)),
    *(
        (op, (X, Shape(*sizes), dim, dtype))
        for op in (aten._softmax_backward_data, aten._log_softmax_backward_data)
        for sizes in ((3, 4), (4,))
        for dim in (1, 2)
        for dtype in (F32,)
    ),
    *(
        (aten.linear, (Shape(*sizes, dtype=dtype), Shape(*weight), *bias))
        for sizes in ((5, 4), (2, 5, 4), (4,), (5, 3))
        for dtype in (F32, F64)
        for weight in ((6, 4), (4,))
        for bias in ((), (Shape(6),), (Shape(5),), (Shape(6, dtype=F64),))
    ),
    *(
        (aten.addmm, (Shape(*bias, dtype=dtype), Shape(5, 4), Shape(*right)))
        for bias in ((6,), (5, 6), (5, 1), (), (5,))
        for dtype in (F32, I64)
        for right in ((4, 6), (3, 6), (4,))
    ),
    *(
        (aten.nll_loss_forward, (Shape(*sizes), target, weight, reduction, -100))
        for sizes in ((5, 4), (4,))
        for target in (LABELS, Shape(3, dtype=I64), Shape(5))
        for weight in (None, ROW, Shape(3))
        for reduction in (0, 1, 2)
    ),
    *(
        (aten.nll_loss_backward, (grad, BATCH, LABELS, weight, reduction, -100, ONE))
        for grad in (ONE, Shape(5), Shape(3))
        for weight in (None, ROW)
        for reduction in (0, 1, 2)
    ),
    *(
        (aten.native_dropout, (Shape(3, 4, dtype=dtype), p, train))
        for dtype in (F32, BF16)
        for p in (0.0, 0.5, 1.0)
        for train in (True, False)
    ),
    *((aten.native_dropout_backward, (X, Shape(3, 4, dtype=dtype), 2.0)) for dtype in (BOOL, F32)),
    *(
        (aten.native_layer_norm, (Shape(*sizes, dtype=dtype), shape, weight, weight, 1e-5))
        for sizes in ((5, 4), (2, 5, 4), (5, 3))
        for dtype in (F32, F64)
        for shape, weight in (([4], ROW), ([4], None), ([5, 4], Shape(5, 4)), ([], None))
    ),
    *(
        (aten.native_layer_norm_backward, (BATCH, BATCH, [4], ROWS, ROWS, weight, weight, mask))
        for weight in (ROW, None)
        for mask in MASKS
    ),
    *(
        (aten.native_batch_norm, (x, weight, weight, *statistics, True, 0.1, 1e-5))
        for x in (IMAGE, Shape(5, 4), ROW, Shape(2, 4, 5, dtype=BF16), Shape(0, 4, 5))
        for weight in (ROW, None)
        for statistics in ((ROW, ROW), (None, None))
    ),
    *(
        (aten._native_batch_norm_legit.no_stats, (x, weight, weight, True, 0.1, 1e-5))
        for x in (IMAGE, ROW, Shape(2, 4, 5, dtype=F64))
        for weight in (ROW, None)
    ),
    *(
        (
            aten.native_batch_norm_backward,
            (IMAGE, IMAGE, weight, ROW, ROW, saved, saved, is_training, 1e-5, mask),
        )
        for weight in (ROW, None)
        for saved, is_training in ((ROW, True), (Shape(0), False))
        for mask in MASKS[:2]
    ),
    *(
        (aten.native_group_norm, (Shape(2, 4, 5, 6, dtype=dtype), weight, weight, *sizes, 1e-5))
        for dtype in (F32, BF16)
        for weight in (Shape(4, dtype=dtype), None, Shape(3))
        for sizes in ((2, 4, 30, 2), (2, 4, 30, 3), (2, 4, 29, 2), (4, 2, 30, 2))
    ),
    *(
        (aten.convolution, (x, w, bias, *sizes, transposed, [0], groups))
        for x, w in (
            (IMAGE, Shape(6, 4, 3, 3)),
            (IMAGE, Shape(6, 2, 3, 3)),
            (IMAGE, Shape(4, 6, 1, 1)),
            (IMAGE, Shape(6, 4, 3)),
            (Shape(2, 4, 9), Shape(6, 4, 3)),
            (Shape(2, 4, 5, 6, 7), Shape(6, 4, 3, 2, 1)),
            (Shape(0, 4, 5, 6), Shape(6, 4, 3, 3)),
            (Shape(2, 4, 5, 6, dtype=BF16), Shape(6, 4, 3, 3, dtype=BF16)),
            (IMAGE, Shape(6, 4, 3, 3, dtype=F64)),
        )
        for bias in (None, Shape(6), Shape(5))
        for numbers in ((1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 0, 3), (0, 0, 1), (1, -1, 1))
        for sizes in ([[number] * (len(x) - 2) for number in numbers],)
        for transposed in (False, True)
        for groups in (1, 2)
    ),
    *(
        (aten.embedding, (Shape(*table, dtype=dtype), indices))
        for table in ((5, 4), (0, 4), (5,), (5, 0))
        for dtype in (F32, BF16, I64)
        for indices in (LABELS, Shape(dtype=I64), Shape(2, 3, dtype=torch.int32), Shape(3))
    ),
    *(
        (aten._scaled_dot_product_flash_attention_for_cpu, (Shape(*sizes, dtype=dtype), keys, keys))
        for sizes in ((2, 3, 5, 8), (2, 3, 8))
        for dtype in (F32, BF16)
        for keys in (Shape(2, 3, 7, 8, dtype=dtype),)
    ),
    *(
        (op, (*numbers, sizes), {"device": DEVICE, "dtype": dtype, "layout": layout})
        for op, *numbers in (
            *((op,) for op in (aten.zeros, aten.ones, aten.rand, aten.randn)),
            *((aten.randint, 3), (aten.randint.low, 1, 3)),
        )
        for sizes in ([], [2, 3], [0], [-1])
        for dtype in (None, F64, BF16, I64)
        for layout in (None, torch.strided)
    ),
    *(
        (
            aten.native_group_norm_backward,
            (IMAGE, IMAGE, Shape(2, 2), Shape(2, 2), weight, 2, 4, 30, 2, mask),
        )
        for weight in (ROW, None)
        for mask in MASKS
    ),
    *(
        (getattr(aten, f"upsample_{mode}"), (Shape(2, 3, *sizes, dtype=dtype), output, *aligned))
        for mode, rank, aligned in (
            ("linear1d", 1, (True,)),
            ("bilinear2d", 2, (True,)),
            ("bicubic2d", 2, (False,)),
            ("trilinear3d", 3, (False,)),
            *((f"nearest{rank}d", rank, ()) for rank in (1, 2, 3)),
        )
        for sizes in ((5,) * rank, (5,) * (rank + 1), (0,) * rank)
        for dtype in (F32, BF16)
        for output in ([7] * rank, [7] * (rank + 1), [0] * rank)
    ),
    *(
        (aten.grid_sampler_2d, (IMAGE, Shape(*grid, dtype=dtype), 0, 0, False))
        for grid in ((2, 7, 8, 2), (2, 7, 8, 3), (3, 7, 8, 2), (2, 7, 2))
        for dtype in (F32, F64)
    ),
    *(
        (op, (X, target, *weights, reduction))
        for op, weights in (
            *((op, ()) for op in (aten.mse_loss, aten.smooth_l1_loss, aten.huber_loss)),
            *((aten.binary_cross_entropy, (weight,)) for weight in (None, X, ROW)),
            *((aten.binary_cross_entropy_with_logits, (None, w)) for w in (None, X, ROW)),
        )
        for target in (X, ROW, Shape(3, 4, dtype=F64), Shape(3))
        for reduction in (0, 1, 2)
    ),
    *(
        (op, (grad, X, target, *more))
        for reduction in (0, 1, 2)
        for op, more in (
            (aten.mse_loss_backward, (reduction,)),
            (aten.smooth_l1_loss_backward, (reduction, 1.0)),
            (aten.huber_loss_backward, (reduction, 1.0)),
            (aten.binary_cross_entropy_backward, (None, reduction)),
        )
        for grad in (X, ONE)
        for target in (X, ROW)
    ),
    *(
        (op, (Shape(*sizes, dtype=dtype), dims, keeps_dims))
        for op in (aten.sum.dim_IntList, aten.mean.dim, aten.amax, aten.amin, aten.logsumexp)
        for sizes in ((3, 4), (), (0, 4))
        for dtype in (F32, BF16, I64)
        for dims in REDUCED_DIMS[FIRST_DIMS.get(op, 0) :]
        for keeps_dims in (False, True)
    ),
    *((op, (Shape(3, 4, dtype=d),)) for op in (aten.sum, aten.mean) for d in (F32, BF16, I64)),
    *((op, (X,), {"dtype": F64}) for op in (aten.sum, aten.mean)),
    *((aten.linalg_vector_norm, (X, 2, dims, True)) for dims in REDUCED_DIMS),
    *(
        (op, (Shape(*sizes, dtype=dtype), dim))
        for op in (aten.cumsum, aten.cumprod)
        for sizes in ((3, 4), ())
        for dtype in (F32, I64)
        for dim in (0, -1, 2)
    ),
    *(
        (aten.cat, ([X, *others], dim))
        for others in (
            *([], [X], [Shape(2, 4), Shape(1, 4)], [Shape(3, 1)], [Shape(0)], [ROW]),
            *([Shape(3, 4, dtype=dtype)] for dtype in (F64, I64)),
        )
        for dim in (0, 1, -1, 2)
    ),
    *((aten.cat, ([Shape(2, dtype=I64), Shape(3, dtype=I64)], dim)) for dim in (0, -1)),
    *(
        (op, (Shape(*sizes, dtype=dtype), 1))
        for op in (aten.tril, aten.triu)
        for sizes in ((3, 4), (2, 3, 4), (4,))
        for dtype in (F32, BOOL, I64)
    ),
    *(
        (op, (Shape(*sizes, dtype=dtype), *value), options)
        for op, *value in (
            *((aten.zeros_like,), (aten.ones_like,), (aten.empty_like,)),
            *((aten.full_like, 2), (aten.full_like, 2.5)),
        )
        for sizes in ((), (3, 4), (2, 3, 4, 5))
        for dtype in (F32, BF16, I64, BOOL)
        for options in (
            *({}, {"dtype": F64}, {"dtype": BOOL}, {"memory_format": torch.channels_last}),
            *({"layout": torch.sparse_coo}, {"memory_format": torch.preserve_format}),
        )
    ),
    *(
        (getattr(getattr(aten, f"_foreach_{name}{place}"), overload), (lists, *others))
        for lists in FOREACH_LISTS
        for place in ("", "_")
        for name, overload, others in (
            ("sqrt", "default", ()),
            ("neg", "default", ()),
            ("add", "Scalar", (2.0,)),
            ("mul", "Scalar", (1j,)),
            ("mul", "ScalarList", ([2.0, 3.0],)),
            ("div", "List", ([X, Shape(2)],)),
            ("sub", "List", ([X, Shape(2, dtype=F64)],)),
            ("lerp", "Scalar", ([X, Shape(2)], 0.5)),
            ("lerp", "List", ([X, Shape(2)], [X, Shape(2)])),
            ("addcmul", "Scalar", ([X, Shape(2)], [X, Shape(2)], 2.0)),
            ("addcdiv", "ScalarList", ([X, Shape(2)], [X, Shape(2)], [1.0, 2.0])),
        )
    ),
]


def grouped() -> dict[str, list[tuple]]:
    """The calls of each op."""
    calls: dict[str, list[tuple]] = {}
    for op, arguments, *keywords in CASES:
        calls.setdefault(str(op), []).append((op, arguments, *keywords))
    return calls


@pytest.mark.few_daily(60)
@pytest.mark.parametrize("op", grouped())
def test_shapes_are_those_of_torch(op):
    differing = []
    for function, arguments, *rest in grouped()[op]:
        keywords = rest[0] if rest else {}
        ours, cpu, meta = (
            found_on(place, function, arguments, keywords) for place in ("jax", "cpu", "meta")
        )
        # Some kernels refuse what the op's meta function takes.
        if ours not in (cpu, meta, "an error"):
            differing.append((arguments, keywords, ours, cpu, meta))
    assert differing == []


PLAIN = {
    "add": (aten.add.Tensor, (X, ROW)),
    "add integers to floats": (aten.add.Tensor, (Shape(3, 4, dtype=I64), ROW)),
    "subtract a number": (aten.sub.Scalar, (Shape(3, 4, dtype=I64), 2)),
    "sum integers": (aten.sum, (Shape(3, 4, dtype=I64),)),
    "powers of lists": (aten._foreach_pow.ScalarList, ([X, Shape(3)], [2.0, 3.0])),
    "multiply by a number": (aten.mul.Tensor, (X, 2.5)),
    "compare": (aten.gt.Scalar, (X, 0.5)),
    "in place": (aten.relu_, (X,)),
    "where": (aten.where.self, (Shape(3, 4, dtype=BOOL), X, ROW)),
    "softmax": (aten._log_softmax, (X, 1, False)),
    "linear": (aten.linear, (BATCH, Shape(6, 4), Shape(6))),
    "addmm": (aten.addmm, (Shape(6), BATCH, Shape(4, 6))),
    "loss": (aten.nll_loss_forward, (BATCH, LABELS, None, 1, -100)),
    "gradient of the loss": (aten.nll_loss_backward, (ONE, BATCH, LABELS, None, 1, -100, ONE)),
    "dropout": (aten.native_dropout, (X, 0.5, True)),
    "layer norm": (aten.native_layer_norm, (BATCH, [4], ROW, ROW, 1e-5)),
    "gradient of layer norm": (
        aten.native_layer_norm_backward,
        (BATCH, BATCH, [4], ROWS, ROWS, ROW, ROW, ALL),
    ),
    "gradient of an activation": (aten.silu_backward, (X, X)),
    "batch norm": (aten.native_batch_norm, (BATCH, ROW, ROW, ROW, ROW, True, 0.1, 1e-5)),
    "gradient of batch norm": (
        aten.native_batch_norm_backward,
        (BATCH, BATCH, ROW, ROW, ROW, ROW, ROW, True, 1e-5, ALL),
    ),
    "convolution": (
        aten.convolution,
        (IMAGE, Shape(6, 2, 2, 2), Shape(6), [2, 2], [1, 1], [1, 1], False, [0, 0], 2),
    ),
    "embedding": (aten.embedding, (BATCH, LABELS)),
    "attention": (
        aten._scaled_dot_product_flash_attention_for_cpu,
        (Shape(2, 3, 5, 8),) * 3,
    ),
    "group norm": (aten.native_group_norm, (BATCH, ROW, ROW, 5, 4, 1, 2, 1e-5)),
    "interpolate": (aten.upsample_bilinear2d, (Shape(3, 4, 6, 6), [8, 8], False)),
    "sample": (aten.grid_sampler_2d, (Shape(3, 4, 6, 6), Shape(3, 7, 8, 2), 0, 0, False)),
    "loss of numbers": (aten.huber_loss, (X, X, 1)),
    "mean": (aten.mean.dim, (X, [0], True)),
    "cat": (aten.cat, ([X, X], 1)),
    "zeros": (aten.zeros_like, (X,)),
    "full": (aten.full_like, (X, 2.5)),
    "constraint": (torch.ops.torch_xla_lite.constrain, (X, "")),
    "lists": (aten._foreach_addcdiv_.ScalarList, ([X], [X], [X], [1.0])),
    "lists, as in Adam": (aten._foreach_lerp_.Scalar, ([X], [X], 0.1)),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_call_enters_no_python_of_torch(name):
    op, arguments = PLAIN[name]
    op(*on("jax", arguments))
    sizes = {3: 31, 5: 51}

    def resized(item):
        if isinstance(item, Shape):
            return Shape(*(sizes.get(size, size) for size in item), dtype=item.dtype)
        if isinstance(item, list):
            return [resized(part) for part in item]
        return sizes.get(item, item) if isinstance(item, int) else item

    tensors = on("jax", tuple(resized(item) for item in arguments))
    assert python_calls(op, *tensors) == []


@pytest.mark.parametrize("dtype", [None, I64, F32, BOOL])
@pytest.mark.parametrize(
    "numbers", [(7,), (0,), (2, 9), (-3, 5), (4, 4), (0, 10, 3), (1, 10, 3), (2.0, 5), (0, 9, 2.5)]
)
def test_ranges_have_the_sizes_of_the_meta_function(numbers, dtype):
    ours, meta = (torch.arange(*numbers, dtype=dtype, device=place) for place in ("jax", "meta"))
    assert shapes_of(ours) == shapes_of(meta)


@pytest.mark.parametrize("numbers", [(70,), (20, 90), (0, 100, 30)])
def test_a_range_of_whole_numbers_enters_no_python_of_torch(numbers):
    assert python_calls(lambda: torch.arange(*numbers, device="jax")) == []


@pytest.mark.parametrize("name", ["zeros", "ones", "rand", "randn", "randint"])
def test_making_a_tensor_enters_no_python_of_torch(name):
    make = functools.partial(getattr(torch, name), *((9,) if name == "randint" else ()))
    make((2, 3), device="jax")
    assert python_calls(lambda: make((31, 3), device="jax")) == []
