"""The shapes that csrc/infer finds without torch's Python are those of torch's kernels."""

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

import torch_xla_lite  # noqa: F401  device jax
from test.python import database

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


def on(device: str, arguments):
    """The same with tensors in the places of shapes."""
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
BATCH = Shape(5, 4)
LABELS = Shape(5, dtype=I64)
ROW, ROWS, ONE = Shape(4), Shape(5, 1), Shape()
ALL = [True, True, True]
MASKS = (ALL, [True, False, False], [False, True, True])
IMAGE = Shape(2, 4, 5, 6)
OTHERS = [
    *(Shape(*sizes) for sizes in ((3, 4), (4,), (3, 1), (2, 1, 4), (), (0, 3, 4), (3,), (4, 3))),
    Shape(3, 4, dtype=F64),
]
# Gradients of element-wise functions, and what comes after (grad_output, self).
GRADIENTS = {
    aten.gelu_backward: (),
    aten.hardsigmoid_backward: (),
    aten.hardswish_backward: (),
    aten.hardtanh_backward: (-1, 1),
    aten.log_sigmoid_backward: (X,),
    aten.leaky_relu_backward: (0.1, False),
    aten.mish_backward: (),
    aten.sigmoid_backward: (),
    aten.silu_backward: (),
    aten.softplus_backward: (1, 20),
    aten.tanh_backward: (),
    aten.threshold_backward: (0,),
}
ATTENTION, SUMS = Shape(2, 3, 5, 8), Shape(2, 3, 5)
FOREACH_LISTS = [
    [X, Shape(2)],
    [X, Shape(2, dtype=F64)],
    [X, Shape(2, dtype=I64)],
    [X],
    [Shape(4), Shape(2)],
]

# Calls that torch's functions and database do not make.
CASES = [
    *((op, (X, other, *more)) for op, more in GRADIENTS.items() for other in OTHERS),
    *((aten.elu_backward, (X, 1, 1, 1, False, other)) for other in OTHERS),
    *(
        (op, (X, Shape(*sizes), dim, dtype))
        for op in (aten._softmax_backward_data, aten._log_softmax_backward_data)
        for sizes in ((3, 4), (4,))
        for dim in (1, 2)
        for dtype in (F32,)
    ),
    *(
        (aten.nll_loss_backward, (grad, BATCH, LABELS, weight, reduction, -100, ONE))
        for grad in (ONE, Shape(5), Shape(3))
        for weight in (None, ROW)
        for reduction in (0, 1, 2)
    ),
    *((aten.native_dropout_backward, (X, Shape(3, 4, dtype=dtype), 2.0)) for dtype in (BOOL, F32)),
    *(
        (aten.native_layer_norm_backward, (BATCH, BATCH, [4], ROWS, ROWS, weight, weight, mask))
        for weight in (ROW, None)
        for mask in MASKS
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
        (
            aten.native_group_norm_backward,
            (IMAGE, IMAGE, Shape(2, 2), Shape(2, 2), weight, 2, 4, 30, 2, mask),
        )
        for weight in (ROW, None)
        for mask in MASKS
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
    *(
        (op, (grad, *more))
        for grad in (X, Shape(3, 3), Shape(4), Shape(3))
        for op, more in (
            *(
                (aten.select_backward, ([3, 4], dim, index))
                for dim in (0, -1, 2)
                for index in (1, 3)
            ),
            *(
                (aten.slice_backward, ([3, size], 1, 0, end, 1))
                for size in (4, 7)
                for end in (3, 9)
            ),
            *((aten.diagonal_backward, ([3, 4], offset, 0, 1)) for offset in (0, 1)),
            *((aten.glu_backward, (Shape(*sizes), -1)) for sizes in ((3, 8), (3, 4), (3, 7))),
            *((aten._prelu_kernel_backward, (X, weight)) for weight in (ROW, X, Shape(2, 3, 4))),
            *(
                (aten.embedding_dense_backward, (labels, 9, -1, False))
                for labels in (Shape(3, dtype=I64), LABELS)
            ),
            *(
                (aten.linear_backward, (Shape(3, 6), X, weight, mask))
                for mask in MASKS
                for weight in (Shape(4, 6), X)
            ),
        )
    ),
    *(
        (
            aten.convolution_backward,
            (grad, IMAGE, Shape(6, 2, 2, 2), sizes, [2, 2], [1, 1], [1, 1], False, [0, 0], 2, mask),
        )
        for grad in (Shape(2, 6, 3, 4), IMAGE)
        for sizes in ([6], None)
        for mask in MASKS
    ),
    *(
        (
            aten._scaled_dot_product_flash_attention_for_cpu_backward,
            (grad, ATTENTION, ATTENTION, ATTENTION, ATTENTION, SUMS, 0.0, False),
        )
        for grad in (ATTENTION, Shape(2, 3, 5, 8, dtype=F64))
    ),
]


def grouped() -> dict[str, list[tuple]]:
    """The calls of each op."""
    calls: dict[str, list[tuple]] = {}
    for op, arguments, *keywords in CASES:
        calls.setdefault(str(op), []).append((op, arguments, *keywords))
    return calls


@pytest.mark.few_daily(6)
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


# Ops of the database whose shapes csrc/infer finds. torch's kernel of native_batch_norm reads other
# memory where sizes do not fit.
OPS = """
    add sub mul div_no_rounding_mode eq ne lt le gt ge abs erf exp log neg round sigmoid sqrt tanh
    rsub atan2 pow maximum minimum clamp clamp_min clamp_max addcmul addcdiv where masked_fill
    nn_functional_gelu nn_functional_elu nn_functional_hardtanh nn_functional_leaky_relu
    nn_functional_relu nn_functional_silu nn_functional_prelu nn_functional_softplus
    nn_functional_threshold softmax log_softmax nn_functional_linear addmm nn_functional_nll_loss
    native_layer_norm nn_functional_batch_norm nn_functional_group_norm nn_functional_conv1d
    nn_functional_conv2d nn_functional_conv_transpose2d nn_functional_embedding
    nn_functional_grid_sample nn_functional_upsample_bilinear nn_functional_upsample_nearest
    nn_functional_interpolate_linear nn_functional_interpolate_bicubic
    nn_functional_interpolate_trilinear nn_functional_mse_loss nn_functional_smooth_l1_loss
    nn_functional_huber_loss nn_functional_binary_cross_entropy
    nn_functional_binary_cross_entropy_with_logits sum mean amax amin logsumexp linalg_vector_norm
    cumsum cumprod cat tril triu zeros_like ones_like empty_like full_like zeros ones randn randint
    ldexp nn_functional_soft_margin_loss nn_functional_logsigmoid stack index_select repeat flip
    sort var std var_mean std_mean mv dot floor_divide logical_and logical_not isnan isinf new_zeros
    new_full max_reduction_no_dim"""


def shapes_on(device: str, function: Callable, sample: Any) -> object:
    moved = sample.transform(
        lambda x: x.detach().to(device, copy=True) if isinstance(x, torch.Tensor) else x
    )
    keywords = moved.kwargs | ({"device": device} if "device" in moved.kwargs else {})
    return found_on(device, function, (moved.input, *moved.args), keywords)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.few_daily(4)
@pytest.mark.parametrize("name", OPS.split())
def test_shapes_of_samples_that_may_not_fit_are_those_of_torch(name: str):
    op, differing = database.ops()[name], []
    for dtype, function in itertools.product((F32, I64, BOOL), (op.op, op.inplace_variant)):
        for sample in database.samples(op, dtype, 6) if function else ():
            for made in database.misfits(sample):
                ours, cpu, meta = (
                    shapes_on(place, function, made) for place in ("jax", "cpu", "meta")
                )
                # Some kernels refuse what the op's meta function takes.
                if ours not in (cpu, meta, "an error"):
                    differing.append((made, ours, cpu, meta))
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
    "attention": (aten._scaled_dot_product_flash_attention_for_cpu, (Shape(2, 3, 5, 8),) * 3),
    "group norm": (aten.native_group_norm, (BATCH, ROW, ROW, 5, 4, 1, 2, 1e-5)),
    "interpolate": (aten.upsample_bilinear2d, (Shape(3, 4, 6, 6), [8, 8], False)),
    "sample": (aten.grid_sampler_2d, (Shape(3, 4, 6, 6), Shape(3, 7, 8, 2), 0, 0, False)),
    "loss of numbers": (aten.huber_loss, (X, X, 1)),
    "mean": (aten.mean.dim, (X, [0], True)),
    "cat": (aten.cat, ([X, X], 1)),
    "zeros": (aten.zeros_like, (X,)),
    "full": (aten.full_like, (X, 2.5)),
    "constraint": (torch.ops.torch_xla_lite.constrain, (X, "")),
    "stack": (aten.stack, ([X, X], 1)),
    "repeat": (aten.repeat, (X, [2, 3])),
    "sort": (aten.sort, (X, 1)),
    "rows": (aten.index_select, (X, 0, LABELS)),
    "variance": (aten.var_mean.correction, (X, [0])),
    "matrix and vector": (aten.mv, (X, ROW)),
    "divide integers": (aten.floor_divide, (Shape(3, 4, dtype=I64), 2)),
    "masks": (aten.logical_and, (X, Shape(3, 4, dtype=BOOL))),
    "gradient of a row": (aten.select_backward, (ROW, [3, 4], 0, 1)),
    "gradient of linear": (aten.linear_backward, (BATCH, Shape(5, 6), Shape(6, 4), ALL)),
    "gradient of embedding": (aten.embedding_dense_backward, (BATCH, LABELS, 9, -1, False)),
    "gradient of attention": (
        aten._scaled_dot_product_flash_attention_for_cpu_backward,
        (ATTENTION, ATTENTION, ATTENTION, ATTENTION, ATTENTION, SUMS, 0.0, False),
    ),
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
