"""float16 and bfloat16 with numbers, and tensors of other dtypes: computed in float32 and rounded
once, whether the graph is interpreted or compiled. For numbers CUDA does the same.

The CPU's kernel of `x + number` rounds the number first, that of `x * number` does not. Ops that
round once are compared with the CPU's float32 kernels, all others with its kernels for halves.
"""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import torch_xla_lite
from test.python import tiers

aten = torch.ops.aten
F32, F64, I64 = torch.float32, torch.float64, torch.int64

VALUES = [1e-3, 6e4, -3.0, 0.1, 1.0, 70.0, 0.0, -0.0, 2.5, 1 / 3, 3e4, -1e-4, math.inf, math.nan]
NUMBERS = [70000.0, 6e4, 1 / 3, 65520.0, -70000.0, 1e10, 0.1, 1e-3, 3, 2**17, -2.5, 1e-8, 0]
NUMBERS += [math.inf]

Function = Callable[[torch.Tensor, float], torch.Tensor]


def number(s: float, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    value = s if dtype.is_floating_point else int(min(s, 2**20))
    return torch.tensor(value, dtype=dtype, device=x.device)


def integers(s: float, x: torch.Tensor) -> torch.Tensor:
    return number(s, x, I64).repeat(len(x))


ROUNDS_ONCE: dict[str, Function] = {
    "add": lambda x, s: x + s,
    "sub": lambda x, s: x - s,
    "mul": lambda x, s: x * s,
    "mul from the left": lambda x, s: s * x,
    "mul by a tensor without dimensions": lambda x, s: x * torch.tensor(float(s), device=x.device),
    "mul by a number on the CPU": lambda x, s: x * torch.tensor(float(s)),
    "mul in place": lambda x, s: x.clone().mul_(s),
    "div": lambda x, s: x / s,
    "rsub": lambda x, s: torch.rsub(x, s),
    "add a float32 without dimensions": lambda x, s: x + number(s, x, F32),
    "add to a float64 without dimensions": lambda x, s: number(s, x, F64) + x,
    "add an int64 without dimensions": lambda x, s: x + number(s, x, I64),
    "add int64 without dimensions to the like": lambda x, s: x[1] + number(s, x, I64),
    "add in place": lambda x, s: x.clone().add_(number(s, x, F32)),
    "add integers": lambda x, s: x + integers(s, x),
    "add.Scalar": aten.add.Scalar,
    "sub a float32 without dimensions": lambda x, s: x - number(s, x, F32),
    "sub an int64 without dimensions": lambda x, s: x - number(s, x, I64),
    "sub.Scalar": aten.sub.Scalar,
    "rsub a float64 without dimensions": lambda x, s: torch.rsub(x, number(s, x, F64)),
    "mul by a float64 without dimensions": lambda x, s: x * number(s, x, F64),
    "mul by integers": lambda x, s: x * integers(s, x),
    "div of a float32 without dimensions": lambda x, s: number(s, x, F32) / x,
    "div by integers": lambda x, s: x / integers(s, x),
    "floor_divide a float32 without dimensions": lambda x, s: number(s, x, F32) // x,
    "div trunc of integers": lambda x, s: torch.div(integers(s, x), x, rounding_mode="trunc"),
    "alpha of rsub": lambda x, s: torch.rsub(x, x, alpha=s),
    "alpha of add": lambda x, s: torch.add(x, x, alpha=s),
    "alpha of sub": lambda x, s: torch.sub(x, x, alpha=s),
    "alpha of a number": lambda x, s: torch.add(x, 0.375, alpha=s),
    "addcmul": lambda x, s: torch.addcmul(x, x, x, value=s),
    "addcdiv": lambda x, s: torch.addcdiv(x, x, x, value=s),
    "addcmul of a float64 without dimensions": lambda x, s: torch.addcmul(x, x, number(s, x, F64)),
    "addcdiv of integers": lambda x, s: torch.addcdiv(x, integers(s, x), x),
    "lerp": lambda x, s: torch.lerp(x, -x, s),
    "foreach add": lambda x, s: torch._foreach_add([x], s)[0],
    "foreach add a float32 without dimensions": lambda x, s: torch._foreach_add(
        [x], number(s, x, F32)
    )[0],
    "foreach add an int64 without dimensions, alpha": lambda x, s: torch._foreach_add(
        [x], number(s, x, I64), alpha=3
    )[0],
    "foreach add integers": lambda x, s: torch._foreach_add([x], [integers(s, x)])[0],
    "foreach div by integers": lambda x, s: torch._foreach_div([x], [integers(s, x)])[0],
    "foreach mul by integers": lambda x, s: torch._foreach_mul([x], [integers(s, x)])[0],
    "foreach sub": lambda x, s: torch._foreach_sub([x], [s])[0],
    "foreach mul": lambda x, s: torch._foreach_mul([x], [s])[0],
    "foreach div": lambda x, s: torch._foreach_div([x], s)[0],
    "foreach alpha": lambda x, s: torch._foreach_add([x], [x], alpha=s)[0],
    "foreach lerp": lambda x, s: torch._foreach_lerp([x], [-x], s)[0],
    "foreach addcmul": lambda x, s: torch._foreach_addcmul([x], [x], [x], s)[0],
    "foreach addcdiv": lambda x, s: torch._foreach_addcdiv([x], [x], [x], [s])[0],
}
AS_THE_CPU: dict[str, Function] = {
    **{
        name: getattr(torch, name)
        for name in ("fmod", "remainder", "pow", "xlogy", "eq", "lt", "ge", "clamp_min")
    },
    **{
        name: getattr(F, name)
        for name in ("leaky_relu", "elu", "celu", "hardshrink", "softplus", "softshrink")
    },
    "div from the left": lambda x, s: s / x,  # reciprocal, then mul
    "remainder from the left": lambda x, s: s % x,
    "pow from the left": lambda x, s: s**x,
    "atan2": lambda x, s: torch.atan2(x, torch.tensor(float(s))),
    "xlogy from the left": lambda x, s: torch.xlogy(s, x),
    "floor_divide": lambda x, s: x // s,
    "div trunc": lambda x, s: torch.div(x, s, rounding_mode="trunc"),
    "clamp": lambda x, s: torch.clamp(x, -1, s),
    "maximum": lambda x, s: torch.maximum(x, torch.tensor(float(s))),
    "where": lambda x, s: torch.where(x > 1, x, s),
    "masked_fill": lambda x, s: torch.masked_fill(x, x > 1, s),
    "leaky_relu_backward": lambda x, s: aten.leaky_relu_backward(x, x, s, False),
    "elu_backward": lambda x, s: aten.elu_backward(x, s, 1, 1, False, x),
    "hardshrink_backward": lambda x, s: aten.hardshrink_backward(x, x, s),
    "hardtanh": lambda x, s: F.hardtanh(x, -abs(s), abs(s)),
    "hardtanh_backward": lambda x, s: aten.hardtanh_backward(x, x.nan_to_num(), -s, s),
    "rrelu_backward": lambda x, s: aten.rrelu_with_noise_backward(x, x, x, s / 2, s, False, False),
    "softplus_backward": lambda x, s: aten.softplus_backward(x, x, s, 20),
    "softshrink_backward": lambda x, s: aten.softshrink_backward(x, x, s),
    "threshold": lambda x, s: F.threshold(x, s, s / 2),
    "threshold_backward": lambda x, s: aten.threshold_backward(x, x, s),
    "foreach pow": lambda x, s: torch._foreach_pow([x], s)[0],
    "foreach clamp_max": lambda x, s: torch._foreach_clamp_max([x], s)[0],
    "foreach maximum": lambda x, s: torch._foreach_maximum([x], s)[0],
}


_compiles_or_interprets = tiers.autouse(tiers.mode, "first", "repeated")
dtypes = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


def on_jax(function: Function, x: torch.Tensor, numbers: list[float]) -> list[torch.Tensor]:
    """One graph for all numbers."""
    results = [function(x.jax(), number) for number in numbers]
    torch_xla_lite.sync()
    return [result.cpu() for result in results]


@pytest.mark.few_daily(8)
@dtypes
@pytest.mark.parametrize("function", ROUNDS_ONCE.values(), ids=ROUNDS_ONCE.keys())
def test_a_number_keeps_its_digits_until_the_result_is_rounded(function, dtype):
    x = torch.tensor(VALUES).to(dtype)
    numbers = [number for number, _ in accepted(function, x)]
    wanted = [function(x.float(), number).to(dtype) for number in numbers]
    got = on_jax(function, x, numbers)
    # Within a unit of the last place: float32 itself is rounded once more in a multiply-add.
    rtol = torch.finfo(dtype).eps
    torch.testing.assert_close(got, wanted, rtol=rtol, atol=0, equal_nan=True)


def accepted(function: Function, x: torch.Tensor) -> list[tuple[float, torch.Tensor]]:
    """The numbers that the CPU takes, and its results: many kernels refuse what is no half."""
    pairs = []
    for number in NUMBERS:
        try:
            pairs.append((number, function(x, number)))
        except RuntimeError:
            continue
    assert len(pairs) > 4
    return pairs


@pytest.mark.few_daily(7)
@dtypes
@pytest.mark.parametrize("function", AS_THE_CPU.values(), ids=AS_THE_CPU.keys())
def test_other_ops_agree_with_the_cpu(function, dtype):
    x = torch.tensor(VALUES).to(dtype)
    numbers, wanted = zip(*accepted(function, x), strict=True)
    got = on_jax(function, x, list(numbers))
    rtol = 2 * torch.finfo(dtype).eps
    torch.testing.assert_close(got, list(wanted), rtol=rtol, atol=0, equal_nan=True)


# Of inputs [2, 6, 5] and parameters of 6 elements.
NORMALIZATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], tuple]] = {
    "batch": lambda x, w: torch.native_batch_norm(x, w, w, None, None, True, 0.1, 1e-5),
    "batch, large mean": lambda x, w: (F.batch_norm(x + 20, None, None, w, w, True),),
    "group": lambda x, w: torch.native_group_norm(x, w, w, 2, 6, 5, 2, 1e-5),
    "group, backward": lambda x, w: aten.native_group_norm_backward(
        x, x, w[:4].view(2, 2), w[:4].view(2, 2), w, 2, 6, 5, 2, [True] * 3
    ),
    "layer": lambda x, w: torch.native_layer_norm(x.mT, (6,), w, w, 1e-5),
}


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_what_is_as_wide_as_the_parameters_of_a_normalization_is_so_beside_halves(name: str):
    x, weight = torch.arange(60.0).sin().reshape(2, 6, 5).bfloat16(), torch.ones(6)
    got = NORMALIZATIONS[name](x.jax(), weight.jax())
    torch.testing.assert_close([y.cpu() for y in got], [*NORMALIZATIONS[name](x, weight)])


@pytest.mark.parametrize(
    "normalize",
    [
        lambda x, bias: F.batch_norm(x, None, None, None, bias, training=True),
        lambda x, bias: F.layer_norm(x, (6,), None, bias),
    ],
    ids=["batch", "layer"],
)
def test_a_bias_without_a_weight_has_a_gradient(normalize: Callable):
    found = []
    for device in ("cpu", "jax"):
        inputs = [
            x.to(device).requires_grad_()
            for x in (torch.arange(18.0).sin().reshape(3, 6), torch.ones(6))
        ]
        loss = normalize(*inputs)[0, :3].sum()
        found.append([gradient.cpu() for gradient in torch.autograd.grad(loss, inputs)])
    torch.testing.assert_close(found[1], found[0])
