import jax
import pytest
import torch
from comparison import check

from torch_xla_lite.lowering import convolution_forms as forms
from torch_xla_lite.lowering import target

aten = torch.ops.aten

# Input, weight, stride, padding, dilation, transposed, output padding, groups.
CASES = {
    "strided": ((2, 4, 9, 9), (6, 4, 3, 3), [2, 2], [1, 1], [1, 1], False, [0, 0], 1),
    "one-d, grouped, dilated": ((2, 4, 9), (6, 2, 3), [2], [1], [2], False, [0], 2),
    "three-d": ((2, 4, 5, 5, 5), (6, 4, 3, 3, 3), [1, 2, 1], [1, 1, 0], [1] * 3, False, [0] * 3, 1),
    "depthwise": ((2, 4, 9, 9), (8, 1, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 4),
    "transposed": ((2, 4, 9, 9), (4, 3, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 1], 1),
    "transposed, grouped": ((2, 4, 9, 9), (4, 3, 3, 2), [2, 3], [1, 0], [2, 1], True, [1, 0], 2),
    "transposed, one-d": ((2, 4, 7), (4, 2, 3), [2], [0], [1], True, [0], 2),
    "one number for all dimensions": ((2, 4, 9, 9), (6, 4, 3, 3), [2], [1], [1], False, [0], 1),
}


def operands(case):
    shape, window, *geometry = case
    x, weight = torch.randn(shape), torch.randn(window)
    channels = window[1] * geometry[-1] if geometry[3] else window[0]
    return x, weight, torch.randn(channels), geometry


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_convolution(case):
    x, weight, bias, geometry = operands(case)
    check(aten.convolution, x, weight, bias, *geometry, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_its_gradients(case):
    x, weight, bias, geometry = operands(case)
    grad = torch.randn_like(aten.convolution(x, weight, bias, *geometry))
    sizes = [len(bias)]
    mask = [True] * 3
    check(aten.convolution_backward, grad, x, weight, sizes, *geometry, mask, rtol=1e-4, atol=1e-4)


def test_gradients_that_are_not_wanted_are_none():
    x, weight, bias, geometry = operands(CASES["strided"])
    grad = torch.randn_like(aten.convolution(x, weight, bias, *geometry))
    mask = [False, True, False]
    check(aten.convolution_backward, grad, x, weight, None, *geometry, mask, rtol=1e-4, atol=1e-4)


def test_an_empty_batch():
    x, weight, bias, geometry = operands(CASES["strided"])
    check(aten.convolution, x[:0], weight, bias, *geometry)


KINDS = {
    "plain": {},
    "strided, padded": {"stride": 2, "padding": 2},
    "dilated": {"dilation": 2, "padding": 1},
    "strided and dilated": {"stride": 2, "dilation": 3, "padding": 2},
    "stride above the kernel": {"stride": 4},
    "grouped": {"groups": 2, "padding": 1},
    "one channel a group": {"groups": 4, "padding": 1, "stride": 2},
    "kernel of one element": {"kernel": 1, "stride": 2},
    "kernel that is mostly on padding": {"kernel": 7, "padding": 3, "size": 2},
    "large image": {"size": 40, "padding": 1},
}
HALVES = [torch.float16, torch.bfloat16]
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def of_kind(rank, transposed=False, dtype=torch.float32, size=9, kernel=3, groups=1, **geometry):
    """Operands of `aten.convolution` and of its gradient."""
    size = min(size, 12) if rank == 3 else size
    parameters = [[geometry.get(name, default)] * rank for name, default in DEFAULTS.items()]
    x = torch.randn(2, 4, *[size] * rank, dtype=dtype)
    channels = (4, 8 // groups) if transposed else (8, 4 // groups)
    weight = torch.randn(*channels, *[kernel] * rank, dtype=dtype)
    extra = [1 if transposed and max(parameters[0]) > 1 else 0] * rank
    return x, weight, [*parameters, transposed, extra, groups]


DEFAULTS = {"stride": 1, "padding": 0, "dilation": 1}


def check_all_directions(x, weight, geometry):
    tolerance = TOLERANCE[x.dtype]
    grad = torch.randn_like(aten.convolution(x, weight, None, *geometry))
    scale = {"rtol": tolerance, "atol": tolerance * weight[0].numel() ** 0.5}
    check(aten.convolution, x, weight, None, *geometry, **scale)
    mask = [True, True, False]
    scale["atol"] *= max(1, (grad.numel() / len(weight)) ** 0.5)
    check(aten.convolution_backward, grad, x, weight, None, *geometry, mask, **scale)


@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_every_kind_in_every_number_of_dimensions(kind, rank, transposed):
    if transposed and kind.get("padding", 0) > 1 and kind.get("size") == 2:
        kind = {**kind, "padding": 1}  # The result would have no elements.
    check_all_directions(*of_kind(rank, transposed, **kind))


@pytest.mark.parametrize("dtype", [torch.float64, *HALVES], ids=str)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_every_kind_in_every_dtype(kind, dtype):
    check_all_directions(*of_kind(2, dtype=dtype, **kind))


# Input, weight, padding, groups, and which operations the convolution and its gradients become.
CHOICES = {
    "large image": ((8, 64, 16, 16), (64, 64, 3, 3), 1, 1, ["convolution"] * 3),
    "kernel of one element": ((8, 64, 16, 16), (96, 64, 1, 1), 0, 1, ["dot_general"] * 3),
    "large weight": ((8, 512, 4, 4), (512, 512, 3, 3), 1, 1, ["dot_general"] * 3),
    "kernel larger than the image": ((8, 16, 2, 2), (16, 16, 3, 3), 1, 1, ["dot_general"] * 3),
    "one channel a group": (
        (8, 32, 8, 8), (32, 1, 3, 3), 1, 32, ["while", "while", "dot_general"]
    ),
    "groups": ((8, 128, 16, 16), (128, 4, 3, 3), 1, 32, ["dot_general"] * 3),
    "three dimensions": ((2, 64, 8, 16, 16), (64, 64, 3, 3, 3), 1, 1, ["convolution"] * 3),
}  # fmt: skip


def operations(case) -> list[set[str]]:
    """The expensive operations of a convolution, of its input's and of its weight's gradient."""
    shape, kernel, padding, groups, _ = case
    rank = len(shape) - 2
    window = forms.Window((1,) * rank, ((padding, padding),) * rank, (1,) * rank, groups)
    x, weight = (jax.ShapeDtypeStruct(sizes, "float32") for sizes in (shape, kernel))
    y = jax.eval_shape(lambda x, w: forms.forward(x, w, window), x, weight)
    programs = [
        jax.jit(lambda x, w: forms.forward(x, w, window)).lower(x, weight),
        jax.jit(lambda y, w: forms.input_gradient(y, w, shape, window)).lower(y, weight),
        jax.jit(lambda x, y: forms.weight_gradient(x, y, kernel, window)).lower(x, y),
    ]
    expensive = "convolution", "dot_general", "while"
    return [{name for name in expensive if f"stablehlo.{name}" in p.as_text()} for p in programs]


@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES.keys())
def test_the_form_is_chosen_by_the_shape(case):
    assert operations(case) == [{name} for name in case[-1]]


@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES.keys())
def test_a_gpu_uses_its_own_convolutions(monkeypatch, case):
    monkeypatch.setattr(target, "platform", lambda: "gpu")
    assert operations(case) == [{"convolution"}] * 3


def test_three_dimensions_are_convolutions_in_two():
    window = forms.Window((1,) * 3, ((1, 1),) * 3, (1,) * 3, 1)
    x, w = (jax.ShapeDtypeStruct(s, "float32") for s in ((2, 64, 8, 16, 16), (64, 64, 3, 3, 3)))
    text = jax.jit(lambda x, w: forms.forward(x, w, window)).lower(x, w).as_text()
    lines = [line for line in text.splitlines() if "stablehlo.convolution" in line]
    assert ["tensor<16x64x16x16xf32>" in line for line in lines] == [True] * 3


def test_taps_on_padding_are_left_out():
    window = forms.Window((1, 1), ((3, 3), (3, 3)), (1, 1), 1)
    x, w = (jax.ShapeDtypeStruct(s, "float32") for s in ((2, 8, 2, 2), (8, 8, 7, 7)))
    text = jax.jit(lambda x, w: forms.forward(x, w, window)).lower(x, w).as_text()
    (line,) = (line for line in text.splitlines() if "stablehlo.dot_general" in line)
    assert "tensor<1x8x8x9xf32>" in line
