"""The shapes that csrc/infer finds without torch's Python are those of torch's kernels."""

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
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
        named = {name: on(device, value) for name, value in arguments.items()}
        return named | ({"device": device} if "device" in named else {})
    if isinstance(arguments, torch.Tensor):
        return arguments.detach().to(device, copy=True)
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
IMAGE = Shape(3, 4, 6, 6)
GEOMETRY = ([2, 2], [1, 1], [1, 1], False, [0, 0], 2)
ATTENTION, SUMS = Shape(2, 3, 5, 8), Shape(2, 3, 5)


def assert_shapes_are_those_of_torch(calls: Iterable[tuple[Callable, tuple, dict]]) -> None:
    differing = []
    for call in calls:
        ours = found_on("jax", *call)
        # Some kernels refuse what the op's meta function takes.
        if ours != "an error" and all(found_on(place, *call) != ours for place in ("meta", "cpu")):
            differing.append((call, ours))
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
    new_full max_reduction_no_dim roll cdist multinomial randn_like rand_like cauchy exponential
    geometric log_normal normal_in_place arange eye complex nan_to_num nn_functional_celu
    randint_like all any"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.few_daily(4)
@pytest.mark.parametrize("name", OPS.split())
def test_shapes_of_samples_that_may_not_fit_are_those_of_torch(name: str):
    op = database.ops()[name]
    assert_shapes_are_those_of_torch(
        (function, (made.input, *made.args), made.kwargs)
        for dtype, function in itertools.product((F32, I64, BOOL), (op.op, op.inplace_variant))
        for sample in (database.samples(op, dtype, 6) if function else ())
        for made in database.misfits(sample)
    )


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
    "gradient of losses": (aten.nll_loss_backward, (Shape(5), BATCH, LABELS, ROW, 0, -100, ONE)),
    "gradient of layer norm": (
        aten.native_layer_norm_backward,
        (BATCH, BATCH, [4], ROWS, ROWS, ROW, ROW, ALL),
    ),
    **{
        f"gradient of {name}": (getattr(aten, f"{name}_backward"), (X, X, *more))
        for name, *more in (
            *(("gelu",), ("hardsigmoid",), ("hardswish",), ("mish",), ("sigmoid",), ("silu",)),
            *(("tanh",), ("hardtanh", -1, 1), ("log_sigmoid", X), ("leaky_relu", 0.1, False)),
            *(("softplus", 1, 20), ("threshold", 0)),
        )
    },
    "gradient of elu": (aten.elu_backward, (X, 1, 1, 1, False, X)),
    "gradient of softmax": (aten._softmax_backward_data, (X, X, 1, F32)),
    "gradient of log_softmax": (aten._log_softmax_backward_data, (X, X, 1, F32)),
    "gradient of glu": (aten.glu_backward, (X, Shape(3, 8), -1)),
    "gradient of prelu": (aten._prelu_kernel_backward, (X, X, X)),
    "gradient of dropout": (aten.native_dropout_backward, (X, Shape(3, 4, dtype=BOOL), 2.0)),
    "batch norm": (aten.native_batch_norm, (BATCH, ROW, ROW, ROW, ROW, True, 0.1, 1e-5)),
    "gradient of batch norm": (
        aten.native_batch_norm_backward,
        (BATCH, BATCH, ROW, ROW, ROW, ROW, ROW, True, 1e-5, ALL),
    ),
    "convolution": (aten.convolution, (IMAGE, Shape(6, 2, 2, 2), Shape(6), *GEOMETRY)),
    "gradient of convolution": (
        aten.convolution_backward,
        (Shape(3, 6, 4, 4), IMAGE, Shape(6, 2, 2, 2), [6], *GEOMETRY, ALL),
    ),
    "embedding": (aten.embedding, (BATCH, LABELS)),
    "attention": (aten._scaled_dot_product_flash_attention_for_cpu, (Shape(2, 3, 5, 8),) * 3),
    "group norm": (aten.native_group_norm, (BATCH, ROW, ROW, 5, 4, 1, 2, 1e-5)),
    "gradient of group norm": (
        aten.native_group_norm_backward,
        (IMAGE, IMAGE, Shape(3, 2), Shape(3, 2), ROW, 3, 4, 36, 2, ALL),
    ),
    "interpolate": (aten.upsample_bilinear2d, (Shape(3, 4, 6, 6), [8, 8], False)),
    "sample": (aten.grid_sampler_2d, (Shape(3, 4, 6, 6), Shape(3, 7, 8, 2), 0, 0, False)),
    "loss of numbers": (aten.huber_loss, (X, X, 1)),
    "loss of probabilities": (aten.binary_cross_entropy, (X, X, X, 1)),
    "gradient of their loss": (aten.binary_cross_entropy_backward, (ONE, X, X, None, 1)),
    "loss of scores": (aten.binary_cross_entropy_with_logits, (X, X, X, X, 1)),
    "gradient of mse_loss": (aten.mse_loss_backward, (ONE, X, X, 1)),
    "gradient of smooth_l1_loss": (aten.smooth_l1_loss_backward, (ONE, X, X, 1, 1.0)),
    "gradient of huber_loss": (aten.huber_loss_backward, (ONE, X, X, 1, 1.0)),
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
    "gradient of a part": (aten.slice_backward, (X, [3, 7], 1, 0, 4, 1)),
    "gradient of a diagonal": (aten.diagonal_backward, (Shape(3), [3, 4], 0, 0, 1)),
    "gradient of a row": (aten.select_backward, (ROW, [3, 4], 0, 1)),
    "gradient of linear": (aten.linear_backward, (BATCH, Shape(5, 6), Shape(6, 4), ALL)),
    "gradient of embedding": (aten.embedding_dense_backward, (BATCH, LABELS, 9, -1, False)),
    "gradient of attention": (
        aten._scaled_dot_product_flash_attention_for_cpu_backward,
        (ATTENTION, ATTENTION, ATTENTION, ATTENTION, ATTENTION, SUMS, 0.0, False),
    ),
    **{
        f"lists by {name}": (op, ([X, Shape(3)], *more))
        for name, op, *more in (
            ("sqrt", aten._foreach_sqrt.default),
            ("add", aten._foreach_add.Scalar, 2.0),
            ("mul", aten._foreach_mul.ScalarList, [2.0, 3.0]),
            ("div", aten._foreach_div.List, [X, Shape(3)]),
            ("sub_", aten._foreach_sub_.List, [X, Shape(3)]),
            ("lerp_, as in Adam", aten._foreach_lerp_.Scalar, [X, Shape(3)], 0.1),
            ("lerp", aten._foreach_lerp.List, [X, Shape(3)], [X, Shape(3)]),
            ("addcmul", aten._foreach_addcmul.Scalar, [X, Shape(3)], [X, Shape(3)], 2.0),
            ("addcdiv_", aten._foreach_addcdiv_.ScalarList, *[[X, Shape(3)]] * 2, [1.0, 2.0]),
        )
    },
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


# What is not changed in a call that is to misfit: torch's kernel reads other memory, or lowerings
# take what neither a kernel nor a meta function takes.
FIXED = {
    **{f"gradient of {name} norm": "sizes dtypes none" for name in ("layer", "batch")},
    **{f"gradient of {name}": "dtypes" for name in ("the loss", "losses", "softmax")},
    **{"batch norm": "sizes", "gradient of log_softmax": "dtypes", "softmax": "numbers"},
    **{"gradient of linear": "numbers", "gradient of group norm": "none"},
}


def misfits(value: Any, fixed: str) -> Iterator[Any]:
    """A shape, a number, or a list in which one of these has changed."""
    if isinstance(value, Shape):
        if "sizes" not in fixed:
            for sizes in ((2, *value), value[1:], (*value[:-1], 9), (*value[:-1], 1), (0, *value)):
                yield Shape(*sizes, dtype=value.dtype)
        if "dtypes" not in fixed:
            yield from (Shape(*value, dtype=dtype) for dtype in (F64, BF16, I64, BOOL))
        if "none" not in fixed:
            yield None
    elif isinstance(value, int) and "numbers" not in fixed:
        yield from (not value,) if isinstance(value, bool) else (value - 1, value + 1, value + 7)
    elif isinstance(value, (list, tuple)):
        for place, item in enumerate(value):
            for other in misfits(item, fixed):
                yield type(value)([*value[:place], other, *value[place + 1 :]])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.few_daily(6)
@pytest.mark.parametrize("name", PLAIN)
def test_shapes_of_calls_that_may_not_fit_are_those_of_torch(name: str):
    op, arguments = PLAIN[name]
    calls = [arguments, *misfits(arguments, FIXED.get(name, ""))]
    assert_shapes_are_those_of_torch((op, made, {}) for made in calls)


@pytest.mark.parametrize("dtype", [None, I64, F32])
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
