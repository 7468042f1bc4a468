"""A graph gives one answer for special values, whether it is interpreted or compiled."""

import itertools
from collections.abc import Callable

import pytest
import torch

from bazel.pytest_plugin import mostly_nightly
from test.python import tiers
from torch_xla_lite import _XLAC, debug

_interprets = tiers.autouse(tiers.interpreting)


def answers(function: Callable[[], torch.Tensor]) -> list[torch.Tensor]:
    """What an interpreted and a compiled graph give."""
    results = []
    for compile_when, interpretations in (("repeated", 1), ("first", 0)):
        _XLAC.clear_cache()
        _XLAC.set_compile_when(compile_when)
        debug.reset_metrics()
        results.append(function().cpu())
        assert debug.metrics()["interpretations"] == interpretations
    return results


# Not uint32: torch's kernel gives one number in its vectors, and another one in the rest.
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16)


@pytest.mark.needs("rounding")
@pytest.mark.few_daily(7)
@pytest.mark.parametrize("to", (*INTEGERS, torch.uint64), ids=str)
@pytest.mark.parametrize(
    "dtype", (torch.float16, torch.bfloat16, torch.float32, torch.float64), ids=str
)
def test_what_fits_no_integer_is_converted_as_by_torch(dtype: torch.dtype, to: torch.dtype):
    powers = 2.0 ** torch.arange(70, dtype=torch.float64)
    values = torch.cat([powers, 1.5 * powers, powers - 1, powers + 0.75, torch.tensor([torch.inf])])
    values = torch.cat([values, -values, torch.tensor([torch.nan])]).to(dtype)
    interpreted, compiled = answers(lambda: values.jax().to(to))
    assert compiled.tolist() == interpreted.tolist() == values.to(to).tolist()


# XLA's threads flush them. Those of OpenMP, which share torch's kernels for large tensors, need a
# flag of each thread for it, which would change the results of the program's CPU tensors, too.
@pytest.mark.needs("rounding")
@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float32, torch.float64), ids=str)
def test_subnormal_numbers_are_zero_in_compiled_graphs_only(dtype: torch.dtype):
    subnormal = torch.tensor([torch.finfo(dtype).tiny / 2], dtype=dtype)
    interpreted, compiled = answers(lambda: subnormal.jax() > 0)
    assert (interpreted.tolist(), compiled.tolist()) == ([True], [False])


# What differs of complex numbers with a part that is NaN, infinite or zero.
OF_COMPLEX = """
    abs acos acosh add asin asinh atan atanh cos cosh exp expm1 log log10 log2 reciprocal rsqrt
    sigmoid sin sinh sqrt sub tan tanh"""


def _complex_answers(name: str, parts: tuple[float, ...]) -> list[torch.Tensor]:
    values = torch.tensor([complex(*pair) for pair in itertools.product(parts, parts)])
    function, count = getattr(torch, name), 2 if name in ("add", "sub") else 1
    results = answers(lambda: function(*[values.jax()] * count))
    return [torch.view_as_real(x) if x.is_complex() else x for x in results]


@pytest.mark.parametrize("name", mostly_nightly(OF_COMPLEX.split(), ["abs", "acosh"]))
def test_complex_numbers_may_differ_where_a_part_is_not_finite_or_zero(name: str):
    interpreted, compiled = _complex_answers(name, (1.0, -1.0, 0.5, -2.5))
    torch.testing.assert_close(compiled, interpreted)
    interpreted, compiled = _complex_answers(name, (torch.inf, -torch.inf, torch.nan, 0.0, -0.0))
    assert not torch.allclose(compiled, interpreted, equal_nan=True)


@pytest.mark.parametrize("dtype", (torch.int32, torch.int64), ids=str)
def test_the_smallest_integer_divided_by_minus_one_ends_no_process(dtype: torch.dtype):
    smallest = torch.iinfo(dtype).min
    a, b = torch.tensor([smallest, 6], dtype=dtype).jax(), torch.tensor([-1, 4], dtype=dtype).jax()
    assert torch.div(a, b, rounding_mode="trunc").tolist() == [smallest, 1]
    assert torch.div(a, -1, rounding_mode="trunc").tolist() == [smallest, -6]
    assert torch.lcm(a, b).tolist() == [smallest, 12]


@pytest.mark.parametrize(
    ("scan", "values"),
    [(torch.cumsum, [3e38, 3e38, -3e38, -3e38] * 5), (torch.cumprod, [0.0] + [1e19] * 19)],
)
def test_no_element_of_a_scan_depends_on_what_comes_after_it(scan: Callable, values: list[float]):
    x = torch.tensor(values)
    for result in answers(lambda: scan(x.jax(), 0)):
        torch.testing.assert_close(result, scan(x, 0))
