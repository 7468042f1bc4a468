import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from comparison import check, run

from torch_xla_lite.lowering import rejection
from torch_xla_lite.lowering.base import ffi, registry, target

aten = torch.ops.aten
N = 20_000
LONG = torch.empty(N)


def draw(op, *args, key: int = 0, **kwargs) -> torch.Tensor:
    return run(op, *args, key=key, **kwargs)[0]


@pytest.mark.few_daily(2)
@pytest.mark.parametrize(
    ("op", "args", "mean", "std"),
    [
        (aten.uniform, (LONG, -1.0, 3.0), 1.0, 4 / math.sqrt(12)),
        (aten.normal_functional, (LONG, 1.0, 2.0), 1.0, 2.0),
        (aten.rand, ([N],), 0.5, 1 / math.sqrt(12)),
        (aten.randn, ([N],), 0.0, 1.0),
        (aten.bernoulli.p, (LONG, 0.3), 0.3, math.sqrt(0.21)),
        (aten.bernoulli, (torch.full((N,), 0.3),), 0.3, math.sqrt(0.21)),
        (aten.exponential, (LONG, 2.0), 0.5, 0.5),
        (aten.geometric, (LONG, 0.4), 2.5, math.sqrt(0.6) / 0.4),
        (aten.randint.low, (-2, 3, [N]), 0.0, math.sqrt(2)),
        (aten.poisson, (torch.full((N,), 3.0),), 3.0, math.sqrt(3)),
        (aten._standard_gamma, (torch.full((N,), 2.0),), 2.0, math.sqrt(2)),
        (aten.poisson, (torch.full((N,), 30.0),), 30.0, math.sqrt(30)),
        (aten.binomial, (torch.full((N,), 8.0), torch.full((N,), 0.3)), 2.4, math.sqrt(1.68)),
        (aten.binomial, (torch.full((N,), 90.0), torch.full((N,), 0.7)), 63.0, math.sqrt(18.9)),
        (aten._standard_gamma, (torch.full((N,), 0.5),), 0.5, math.sqrt(0.5)),
        (aten.normal.Tensor_float, (torch.full((N,), 5.0), 2.0), 5.0, 2.0),
    ],
)
def test_mean_and_deviation_of_a_distribution(op, args, mean, std):
    sample = draw(op, *args).double()
    assert abs(sample.mean().item() - mean) < 5 * std / math.sqrt(N)
    assert abs(sample.std().item() - std) < 0.05 * std


def test_integers_cover_their_range():
    assert set(draw(aten.randint, 4, [100]).tolist()) == {0, 1, 2, 3}


def test_a_permutation_has_each_number_once():
    assert draw(aten.randperm, 50).sort()[0].tolist() == list(range(50))


@pytest.mark.nightly
def test_both_parts_of_complex_numbers_are_uniform():
    empty = torch.empty(20_000, dtype=torch.complex64)
    x = torch.view_as_real(draw(aten.uniform, empty, -1.0, 3.0))
    assert x.min() >= -1 and x.max() < 3
    torch.testing.assert_close(x.mean(0), torch.ones(2), rtol=0, atol=0.05)
    assert abs((x[:, 0] * x[:, 1]).mean() - 1) < 0.05


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_uniform_halves_stay_below_one(dtype):
    assert draw(aten.uniform, torch.empty(200_000, dtype=dtype)).max() < 1


def test_dropout_scales_what_it_keeps():
    x = torch.ones(N)
    y, mask = run(aten.native_dropout, x, 0.25, True)
    assert abs(mask.float().mean().item() - 0.75) < 0.02
    assert torch.equal(y, mask / 0.75)


@pytest.mark.parametrize(("p", "kept"), [(0.0, True), (1.0, False)])
def test_dropout_of_nothing_and_of_everything(p, kept):
    x = torch.ones(5)
    y, mask = run(aten.native_dropout, x, p, True)
    assert mask.tolist() == [kept] * 5
    assert y.tolist() == [float(kept)] * 5


def test_the_gradient_of_dropout_is_exact():
    mask = torch.tensor([True, False, True, False])
    check(aten.native_dropout_backward, torch.tensor([1.5, -2.0, math.nan, math.nan]), mask, 1.5)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("count", "prob"), [((2, 1), (3,)), ((), (3,)), ((3,), ()), ((1, 0), (2, 1))], ids=str
)
def test_binomial_broadcasts(count, prob):
    drawn, expected = (
        torch.binomial(torch.full(count, 4.0, device=device), torch.ones(prob, device=device))
        for device in ("jax", "cpu")
    )
    assert drawn.tolist() == expected.tolist()


def test_binomial_takes_the_nearest_count_and_probability():
    count, prob = torch.tensor([3.0, 3.0, -2.0]), torch.tensor([1.5, -0.5, 0.5])
    assert draw(aten.binomial, count, prob).tolist() == [3, 0, 0]


@pytest.mark.nightly
def test_parameters_without_a_distribution_end_the_rounds():
    # torch's kernels do not come back.
    key, bad, half = jax.random.key(0), jnp.array([math.inf, math.nan]), jnp.full(2, 0.5)
    assert jnp.isnan(rejection.log_gamma(key, bad)).tolist() == [False, True]
    assert rejection.poisson(key, bad).shape == (2,)
    assert jnp.isnan(rejection.binomial(key, bad, half)).tolist() == [False, True]
    bad, half = torch.tensor([math.inf, math.nan]).jax(), torch.full((2,), 0.5, device="jax")
    assert torch._standard_gamma(bad).isinf().tolist() == [True, False]
    assert torch.poisson(bad[:1]).tolist() != [0]
    assert torch.binomial(bad, half).isnan().tolist() == [False, True]


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_sample_of_gamma_is_zero_or_nan(dtype):
    shapes = torch.tensor([-1, 0, math.nan], dtype=dtype)
    least = torch.full((3,), torch.finfo(dtype).tiny, dtype=dtype)
    assert torch.equal(torch._standard_gamma(shapes), least)
    assert torch.equal(draw(aten._standard_gamma, shapes), least)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
@pytest.mark.parametrize("shape", [(), (0,), (5, 7), (40_003,)])
def test_the_numbers_of_the_kernels_are_those_of_jax(shape, dtype):
    with jax.enable_x64(True):
        numbers = np.array([2**40 + 3, 7, 2**32 - 1], np.uint64)
        data = jax.jit(ffi.random_keys)(numbers)
        for seed, offset, found in zip(numbers[:-1], numbers[1:], data, strict=True):
            key = jax.random.fold_in(jax.random.key(seed), np.uint32(offset))
            np.testing.assert_array_equal(found, jax.random.key_data(key))
            ours = jax.random.wrap_key_data(found, impl=ffi.threefry())
            bits = jax.jit(lambda key: jax.random.bits(key, shape, dtype))
            np.testing.assert_array_equal(bits(ours), bits(key))
            mask = jax.jit(functools.partial(ffi.keep_mask, threshold=offset, shape=shape))(key)
            np.testing.assert_array_equal(mask, jax.random.bits(key, shape, np.uint32) < offset)


# Far apart, at the ends of their ranges, and where the algorithms change.
_RATES = np.array([1e-9, 0.3, 0.999, 1, 2.5, 9.99, 10, 11, 57.3, 1e3, 1e6] * 50)
_COUNTS = np.array([0, 1, 7, 19, 20, 33, 90, 1e3, 1e6, 12, 50] * 50)
_CHANCES = np.linspace(0, 1, len(_COUNTS))


@pytest.mark.parametrize(("dtype", "close"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@pytest.mark.parametrize(
    ("op", "parameters", "few"),
    [
        ("aten::randn", [], 0),
        ("aten::exponential", [], 0),
        ("aten::cauchy", [], 0),
        ("aten::log_normal", [], 0),
        ("torch_xla_lite::log_gamma", [_RATES], 2),
        ("aten::_standard_gamma", [_RATES], 2),
        ("aten::poisson", [_RATES], 2),
        ("aten::binomial", [_COUNTS, _CHANCES], 2),
    ],
)
def test_the_kernels_draw_the_numbers_of_the_lowerings(
    op: str, parameters: list[np.ndarray], few: int, dtype: type, close: float, monkeypatch
):
    lowering = registry.find(op)
    drawn = []
    with jax.enable_x64(True):
        given = [jnp.asarray(x, dtype) for x in parameters] or [jnp.zeros(550, dtype)]
        outs = {"outs": [given[0]]} if lowering.wants_outs else {}
        for by_kernels in (True, False):
            monkeypatch.setattr(target, "draws_by_kernels", lambda by=by_kernels: by)
            call = jax.jit(lambda *x: lowering.fn(*x, key=jax.random.key(7), **outs))
            drawn.append(call(*given))
    assert drawn[0].dtype == dtype
    # Where a number is accepted in one and refused in the other, another one follows.
    assert (~np.isclose(*drawn, rtol=close, atol=close)).sum() <= few
