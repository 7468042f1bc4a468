"""Integers compute as on the CPU: they wrap around, and what has no meaning for them raises. So do
numbers that a dtype cannot hold, of floats too."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from test.python import refusals
from torch_xla_lite import debug

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
integers = pytest.mark.parametrize("dtype", INTEGERS, ids=str)


@pytest.mark.few_daily(2)
@integers
def test_powers_wrap_around(dtype):
    bases = torch.tensor([0, 1, 2, 3, 31, 127, -1, -2, -31]).to(dtype)
    exponents = torch.tensor([*range(100), torch.iinfo(dtype).max], dtype=dtype)
    wanted = bases[:, None] ** exponents
    got = bases.jax()[:, None] ** exponents.jax()
    assert torch.equal(got.cpu(), wanted)
    for number in (3, 16, 31, 63, 64, 100):
        assert torch.equal((bases.jax() ** number).cpu(), bases**number)
    assert torch.equal((31 ** exponents.jax()).cpu(), 31**exponents)


def test_negative_exponents_in_a_tensor():
    bases, exponents = torch.tensor([0, 1, -1, 2, -2]), torch.tensor([[-1], [-2], [-63]])
    wanted = bases[1:] ** exponents
    assert torch.equal((bases[1:].jax() ** exponents.jax()).cpu(), wanted)


def test_softshrink_refuses_a_negative_threshold_after_a_positive_one():
    for threshold in (0.3, -0.3):
        refusals.check(lambda x, threshold=threshold: F.softshrink(x, threshold), torch.ones(3))


RESIZES = {
    f"{mode} to {size}": lambda x, mode=mode, size=size: F.interpolate(x, size, mode=mode)
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
    for size in ((3, 3), (11, 4), (5, 9))
}
RESIZES["bilinear antialiased"] = lambda x: F.interpolate(
    x, (3, 3), mode="bilinear", antialias=True
)


@pytest.mark.parametrize("resize", RESIZES.values(), ids=RESIZES.keys())
def test_images_of_bytes_are_resized_as_on_the_cpu(resize):
    image = torch.randint(0, 256, (2, 3, 7, 5), dtype=torch.uint8)
    assert torch.equal(resize(image.jax()).cpu(), resize(image))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32])
def test_integers_have_a_histogram_as_on_cuda(dtype: torch.dtype):
    """Libraries convert to float on the CPU only."""
    x = torch.tensor([0, 1, 1, 3, 9, -1, 100, 127])
    for arguments in ((4, 0, 3), (100, 0, 0)):
        wanted = torch.histc(x.float(), *arguments)
        assert torch.histc(x.to(dtype).jax(), *arguments).tolist() == wanted.tolist()


VALUES = torch.tensor([0, 1, 7])


def number_ops() -> dict[str, Callable[[torch.Tensor, float], torch.Tensor]]:
    """Ops that convert a number to the dtype of their result."""
    first = torch.tensor([0])
    return {
        "fill_": lambda x, v: x.clone().fill_(v),
        "full_like": torch.full_like,
        "full": lambda x, v: torch.full((2,), v, dtype=x.dtype, device=x.device),
        "masked_fill": lambda x, v: x.masked_fill(x == 0, v),
        "index_fill": lambda x, v: x.index_fill(0, first.to(x.device), v),
        "scatter": lambda x, v: x.scatter(0, first.to(x.device), v),
        "item assignment": lambda x, v: x.clone().index_put_((x == 0,), torch.full_like(x[0], v)),
        "pow": lambda x, v: x**v,
        "clamp": lambda x, v: x.clamp(max=v),
        "where": lambda x, v: torch.where(x == 0, v, x),
        "alpha": lambda x, v: torch.add(x, x, alpha=v),
        "pad": lambda x, v: F.pad(x, (1, 1), value=v),
        "threshold": lambda x, v: F.threshold(x, 1, v),
        "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
        "linspace": lambda x, v: torch.linspace(0, v, 3, dtype=x.dtype, device=x.device),
        "foreach_addcmul": lambda x, v: torch._foreach_addcmul([x], [x], [x], [v])[0],
        "foreach_minimum": lambda x, v: torch._foreach_minimum([x], [v])[0],
    }


@pytest.mark.few_daily(57)
@pytest.mark.parametrize("name", number_ops())
@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        (torch.uint8, 300),
        (torch.uint8, -300),
        (torch.int8, 200),
        (torch.int32, 2**40),
        (torch.uint16, 70000),
        (torch.float16, 70000),
        (torch.float16, -70000.0),
        (torch.bfloat16, 1e39),
        (torch.float32, 1e39),
        (torch.complex64, 1e39),
    ],
    ids=str,
)
def test_a_number_that_the_dtype_cannot_hold_raises_as_on_the_cpu(name, dtype, number):
    refusals.check(lambda x: number_ops()[name](x, number), VALUES.to(dtype))


def test_the_limits_of_dtypes_without_arithmetic():
    for dtype, limit in ((torch.uint64, 2**64 - 1), (torch.float8_e4m3fn, 448)):
        x = torch.zeros(2, dtype=dtype, device="jax")
        assert torch.equal(x.fill_(limit).cpu(), torch.zeros(2, dtype=dtype).fill_(limit))
        with pytest.raises(RuntimeError):
            x.fill_(limit * 2.0)


@pytest.mark.parametrize("name", ["add", "rsub", "bitwise_and", "gt"])
def test_operands_wrap_around(name):
    op = getattr(torch, name)
    refusals.check(lambda x: op(x, 300), VALUES.to(torch.uint8))


@pytest.mark.few_daily(4)
@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("linspace", 0.5, 2.7),
        ("linspace", 0, -1),
        ("linspace", 3, 0),
        ("logspace", 0.5, 2.7),
        ("logspace", 2, 0),
    ],
)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32], ids=str)
def test_integer_ranges_are_those_of_the_cpu(name, start, end, dtype):
    op = getattr(torch, name)
    got = op(start, end, 4, dtype=dtype, device="jax")
    assert torch.equal(got.cpu(), op(start, end, 4, dtype=dtype))


DIVISIONS = {
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "fmod": torch.fmod,
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
}
divisions = pytest.mark.parametrize("op", DIVISIONS.values(), ids=DIVISIONS.keys())


@pytest.mark.few_daily(6)
@divisions
@integers
def test_division_by_a_tensor_with_a_zero_raises_when_a_value_is_read(op, dtype):
    quotient = op(VALUES.to(dtype).jax(), VALUES.to(dtype).jax())
    with pytest.raises(RuntimeError, match="ZeroDivisionError: an integer was divided by zero"):
        quotient.tolist()


@pytest.mark.few_daily(2)
@divisions
def test_division_by_the_number_zero_raises_at_once(op):
    x = VALUES.jax()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        op(x, 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        op(x.int(), 2**40)
    assert op(x, 3).tolist() == op(VALUES, 3).tolist()
    assert op(x.float(), 0).isfinite().any().item() is False


def test_ops_on_bits_refuse_floats_at_the_call():
    x = torch.ones(2, dtype=torch.int64, device="jax")
    for op in (lambda: x & 2.0, lambda: torch.gcd(x, 2.0 * x), lambda: x << 2.0):
        with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
            op()


BOOLS = torch.tensor([[True, False], [True, True]])


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x.relu(),
        lambda x: x.argmax(),
        lambda x: x**x,
        lambda x: x**True,
        lambda x: x**2,
        lambda x: x.topk(1),
        lambda x: x.trace(),
        lambda x: x @ x,
        lambda x: torch.bmm(x[None], x[None]),
        lambda x: torch.mvlgamma(x, 1),
        lambda x: torch.addr(x, x[0], x[1]),
        lambda x: x[:0] @ x,
        lambda x: x.sum(0, dtype=torch.bool),
        lambda x: x.sum(dtype=torch.bool),
        lambda x: x.index_add(0, torch.tensor([0, 1]).to(x.device), x, alpha=False),
        lambda x: x.scatter_reduce(0, torch.zeros(2, 2, dtype=int).to(x.device), x, "prod"),
        lambda x: x.put(torch.tensor([0, 1]).to(x.device), x[1], True),
        lambda x: x.index_put((x[0],), x[1], accumulate=True),
    ],
)
def test_booleans_compute_as_on_the_cpu(op):
    refusals.check(op, BOOLS)


BITS = torch.tensor([[1, 0, 1], [0, 0, 1], [1, 1, 0]]).bool()
ROWS = torch.tensor([0, 2, 0])
SUMS_OF_BOOLS = {
    "cumsum": lambda x, i: x.cumsum(0),
    "cumprod": lambda x, i: x.cumprod(1),
    "put": lambda x, i: x.put(i, x[1], accumulate=True),
    "scatter_reduce sum": lambda x, i: x[0].scatter_reduce(0, i, x[1], "sum"),
    "scatter_reduce prod": lambda x, i: x[0].scatter_reduce(0, i, x[1], "prod", include_self=False),
    "native_dropout_backward": lambda x, i: torch.ops.aten.native_dropout_backward(x, x.t(), 1.5),
    "masked put": lambda x, i: torch.ops.aten._unsafe_masked_index_put_accumulate(
        x, x[0], [i, i], x[1]
    ),
    **{
        f"index_add {alpha}": lambda x, i, a=alpha: x.index_add(0, i, x.t(), alpha=a)
        for alpha in (1, 0, 2, -1, True, False)
    },
    **{
        f"addr {beta} {alpha}": lambda x, i, b=beta, a=alpha: x.addr(x[0], x[1], beta=b, alpha=a)
        for beta, alpha in ((1, 1), (0, 1), (True, False), (-1, 1), (1, 0))
    },
}


@pytest.mark.parametrize("op", SUMS_OF_BOOLS.values(), ids=SUMS_OF_BOOLS.keys())
def test_bools_are_added_and_multiplied_in_the_graph(op):
    debug.reset_metrics()
    got = op(BITS.jax(), ROWS.jax()).cpu()
    wanted = op(BITS, ROWS)
    assert got.dtype == wanted.dtype
    assert torch.equal(got, wanted)
    assert debug.metrics()["fallbacks"] == {}


@pytest.mark.parametrize(
    "op",
    [
        lambda x, i: x.cumsum(0, dtype=torch.bool),
        lambda x, i: x**x,
        lambda x, i: True**x,
        lambda x, i: 7 % x,
        lambda x, i: x[0].scatter_reduce(0, i, x[1], "mean"),
        lambda x, i: x.addr(x[0], x[1], beta=0.5),
    ],
)
def test_what_has_no_meaning_for_bools_raises(op):
    refusals.check(op, BITS, ROWS, when_read=True)


def test_the_gradient_of_dropout_of_integers_is_not_cut():
    grad, mask = torch.tensor([1, 2, 3]), torch.tensor([1, 0, 1]).bool()
    refusals.check(torch.ops.aten.native_dropout_backward, grad, mask, 2.5)


REFUSED = {
    "subtract the number True": lambda x: x - True,
    "subtract from True": lambda x: True - x,
    "subtract True in place": lambda x: x.clone().sub_(True),
    "subtract from bools": lambda x: torch.rsub(x, x > 0),
    "foreach_sub": lambda x: torch._foreach_sub([x], True),
    "add with alpha=True": lambda x: torch.add(x, x, alpha=True),
    "add a number with alpha=False": lambda x: torch.add(x, 2, alpha=False),
    "foreach_add with alpha=True": lambda x: torch._foreach_add([x], [x], alpha=True),
    "clamp by a complex number": lambda x: x.clamp(1j, 1j),
    "clamp_min by a complex number": lambda x: x.clamp_min(1j),
    "clamp_max of complex numbers": lambda x: (x * 1j).clamp_max(1),
    "arange of complex numbers": lambda x: torch.arange(3, device=x.device, dtype=torch.cfloat),
    "xlogy with a complex number": lambda x: torch.xlogy(x, 1j),
    "xlogy of complex numbers": lambda x: torch.xlogy(2, x * 1j),
    "index_fill with a complex number": lambda x: x.index_fill(0, x.long(), 1j),
    "leaky_relu of integers": lambda x: torch.nn.functional.leaky_relu(x.int(), 2),
    "foreach_addcmul of complex numbers": lambda x: torch._foreach_addcmul([x], [x], [x], [1j]),
    "a negative exponent of integers": lambda x: x.long() ** -3,
    "addcdiv of integers": lambda x: torch.addcdiv(x > 0, x > 0, x.int() + 1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_for_the_dtype_of_another_operand_or_of_a_number(name, dtype):
    refusals.check(REFUSED[name], torch.tensor([0, 1, 2], dtype=dtype))


@pytest.mark.parametrize("alpha", [0, 7, 256, True])
def test_alpha_of_bools_is_a_bool(alpha):
    bools = torch.tensor([True, False, False]), torch.tensor([False, True, False])
    refusals.check(lambda a, b: torch.add(a, b, alpha=alpha), *bools)


IN_PLACE = {
    "add_ of a complex number": lambda x: x.add_(1j),
    "clamp_ by a complex number without imaginary part": lambda x: x.clamp_(complex(1.5, 0)),
    "mul_ of integers to bools": lambda x: (x > 1).mul_(x.int()),
    "+= of a complex number": lambda x: x.__iadd__(1j),
    "foreach_add_ of a complex number": lambda x: torch._foreach_add_([x], 1j),
    "foreach_mul_ of floats": lambda x: torch._foreach_mul_([x.int()], [x]),
    "floor_divide_ by 0": lambda x: x.int().floor_divide_(0),
    "floor_divide_ by 0 in int32": lambda x: x.int().floor_divide_(2**32),
    "remainder_ by False": lambda x: x.int().remainder_(False),
    "fmod_ by 0": lambda x: x.int().fmod_(0),
    "div_ by 0": lambda x: x.int().div_(0, rounding_mode="trunc"),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_the_cpu_does_or_refuses_in_place(name):
    refusals.check(IN_PLACE[name], torch.tensor([1.0, 2.0]))


def test_masks_and_narrower_numbers_are_written_in_place():
    x = torch.ones(2, dtype=torch.int32, device="jax")
    x.add_(True).mul_(x > 0).masked_fill_(x > 5, 7).add_(torch.ones(2, device="jax").long())
    torch._foreach_add_([x], [x > 0])
    assert x.tolist() == [4, 4]


HUGE = 2**63
BEYOND_INT64 = {
    "bools + a number": lambda m: m + HUGE,
    "bools == a number": lambda m: m == HUGE,
    "eq_ of bools": lambda m: m.eq_(HUGE),
    "floor_divide of bools": lambda m: m.floor_divide(HUGE),
    "foreach_mul of bools": lambda m: torch._foreach_mul([m], HUGE),
    "clamp of bools": lambda m: m.clamp(max=HUGE),
    "clamp of int32": lambda m: m.int().clamp(max=HUGE),
    "clamp of int64": lambda m: m.long().clamp(max=HUGE),
    "fill_ of int64": lambda m: m.long().fill_(HUGE),
    "masked_fill of int64": lambda m: m.long().masked_fill(m, HUGE),
    "alpha of int64": lambda m: m.long().add(m, alpha=HUGE),
    "divisor of int64": lambda m: m.long() // HUGE,
    "full": lambda m: torch.full((2,), HUGE, device=m.device),
    "bools + uint64": lambda m: m + torch.ones(2, dtype=torch.uint64, device=m.device),
    "int32 * uint16": lambda m: m.int() * torch.ones(2, dtype=torch.uint16, device=m.device),
    "cat of bools and uint32": lambda m: torch.cat([m, m.to(torch.uint32)]),
}


@pytest.mark.parametrize("name", BEYOND_INT64)
def test_integers_beyond_int64_and_other_unsigned_ones_are_refused_as_on_the_cpu(name):
    refusals.check(BEYOND_INT64[name], torch.tensor([True, False]))


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("op", [torch.gcd, torch.lcm])
def test_common_divisors_and_multiples_of_extreme_integers(op, dtype):
    """The smallest integer has no absolute value; XLA's loop did not end for it."""
    limits = torch.iinfo(dtype)
    extremes = [limits.min, limits.min + 2, limits.max - 1, limits.max]
    numbers = torch.tensor([*extremes, 0, 1, 3, 6, 30, 100], dtype=dtype)
    a, b = torch.meshgrid(numbers, numbers, indexing="ij")
    # The CPU's kernel divides the smallest integer by -1 here, which ends the process.
    a, b = (x[(a != limits.min) | (b != limits.max)] for x in (a, b))
    assert torch.equal(op(a.jax(), b.jax()).cpu(), op(a, b))
