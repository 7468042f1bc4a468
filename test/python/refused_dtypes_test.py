"""Where torch's CPU kernel refuses the dtypes of a call that a lowering takes, the graph around it
stays interpreted, and the results are those of the lowering."""

import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from test.python import database, tiers
from torch_xla_lite import _XLAC, debug

HALF = torch.bfloat16


_interprets = tiers.autouse(tiers.interpreting)


def ones(*sizes: int, dtype: torch.dtype = HALF) -> torch.Tensor:
    return torch.ones(sizes, device="jax", dtype=dtype)


def spread(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    count = torch.Size(sizes).numel()
    return (torch.arange(count) % 11).view(sizes).to(dtype).to("jax")


# Of a size. The kernel runs in a wider dtype.
IN_WIDER: dict[str, Callable[[int], torch.Tensor]] = {
    "histc of int32": lambda n: torch.histc(spread(n, dtype=torch.int32), 5, 0, 9),
    "histc of uint8": lambda n: torch.histc(spread(n, dtype=torch.uint8), 4, 0, 10),
    "cdist": lambda n: torch.cdist(spread(n, 4, dtype=HALF), ones(3, 4)),
    "avg_pool3d": lambda n: F.avg_pool3d(spread(1, 1, n, 4, 4, dtype=HALF), 2),
    "antialiased interpolate": lambda n: F.interpolate(
        spread(1, n, 8, 8, dtype=HALF), size=(4, 4), mode="bilinear", antialias=True
    ),
    "multi_margin_loss": lambda n: F.multi_margin_loss(
        spread(n, 4, dtype=HALF), torch.zeros(n, dtype=torch.int64, device="jax")
    ),
    "solve_triangular": lambda n: torch.linalg.solve_triangular(
        torch.eye(4, device="jax", dtype=HALF), spread(4, n, dtype=HALF), upper=True
    ),
    "householder_product": lambda n: torch.linalg.householder_product(
        spread(n, 4, dtype=HALF) / 11, spread(4, dtype=HALF) / 11
    ),
    "linalg.lu": lambda n: torch.linalg.lu(torch.eye(n, device="jax", dtype=HALF))[2],
    "stft": lambda n: torch.view_as_real(
        torch.stft(spread(n + 20, dtype=HALF), 8, return_complex=True)
    ),
    "erfcx": lambda n: torch.special.erfcx(spread(n, dtype=torch.float16)),
    "sum of uint16 that wraps": lambda n: spread(n, dtype=torch.uint16) + 65530,
    "product of uint16": lambda n: spread(n, dtype=torch.uint16) * 40000,
}
# The kernel refuses all dtypes that it is given: the one call runs its lowering, compiled.
BY_LOWERING: dict[str, Callable[[int], torch.Tensor]] = {
    "lu_solve": lambda n: torch.linalg.lu_solve(
        torch.eye(4, device="jax", dtype=HALF),
        torch.arange(1, 5, dtype=torch.int32, device="jax"),
        spread(4, n, dtype=HALF),
    )
}


def run(function: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, int, int]:
    """What it gives, and how many graphs and calls of one op were compiled."""
    torch.jax.synchronize()
    debug.reset_metrics()
    result = (function() * 1).cpu()
    metrics = debug.metrics()
    graphs = metrics["executions"]
    return result, graphs, metrics["compiles"] + metrics["loads"] - graphs


def compiled(function: Callable[[], torch.Tensor]) -> torch.Tensor:
    with tiers.mode("first"):
        return (function() * 1).cpu()


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("name", IN_WIDER)
def test_a_new_shape_compiles_nothing(name: str):
    for size in (10, 11, 12):
        result, graphs, calls = run(lambda size=size: IN_WIDER[name](size))
        assert (graphs, calls) == (0, 0)
    torch.testing.assert_close(result, compiled(lambda: IN_WIDER[name](12)))


@pytest.mark.parametrize("name", BY_LOWERING)
def test_one_call_is_compiled_where_no_dtype_has_a_kernel(name: str):
    for size in (10, 11):
        result, graphs, calls = run(lambda size=size: BY_LOWERING[name](size))
        assert (graphs, calls) == (0, 1)
    torch.testing.assert_close(result, compiled(lambda: BY_LOWERING[name](11)))


MISTAKES: dict[str, Callable[[], torch.Tensor]] = {
    "a row that an embedding does not have": lambda: F.embedding(
        torch.tensor([7], device="jax"), ones(4, 2)
    ),
    "an index out of range": lambda: ones(4)[torch.tensor([9], device="jax")],
    "a matrix that is not positive": lambda: torch.linalg.cholesky(-torch.eye(3, device="jax")),
    "a range that is not finite": lambda: torch.histc(ones(3, dtype=torch.float32) / 0, 4),
    "integers divided by zero": lambda: (
        spread(3, dtype=torch.int32) // spread(3, dtype=torch.int32)
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_error_of_the_program_is_that_of_the_compiled_graph(name: str):
    with pytest.raises(Exception) as wanted:
        compiled(MISTAKES[name])
        torch.jax.synchronize()
    with pytest.raises(type(wanted.value)) as error:
        run(MISTAKES[name])
    assert str(error.value).splitlines()[0] == str(wanted.value).splitlines()[0]


DTYPES = ["bfloat16", "float16", "int32", "int16", "int8", "uint8", "uint16", "bool", "complex64"]

# What may differ, and why.
DIFFERENT = {
    ("index_reduce_mean", "uint16"): "compiled, the sum wraps",
    ("scatter_reduce_mean", "uint16"): "compiled, the sum wraps",
    ("kthvalue", "uint16"): "which of equal elements is found",
    ("topk", "uint16"): "which of equal elements is found",
    ("torch_ops_aten__safe_softmax_default", "uint16"): "an error once it is compiled",
}


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_dtype_of_an_op_of_the_database_compiles_a_graph(dtype: str):
    graphs, count = [], 0

    def differences(name: str) -> list[str]:
        nonlocal count
        texts, call = [], database.Call(database.ops()[name])
        for sample in database.refused(call.op, dtype):
            _XLAC.clear_cache()
            debug.reset_metrics()
            got = database.outcome(lambda x=sample: call.record(x))
            if isinstance(got, Exception):
                torch.jax.synchronize()
                continue
            count += 1
            if debug.metrics()["executions"]:
                graphs.append(name)
            (wanted,) = database.compiled([lambda x=sample: call.record(x)])
            _XLAC.set_compile_when("repeated")
            texts += filter(None, [database.difference(sample, got, wanted)])
        return texts

    names = [name for name in database.ops() if (name, dtype) not in DIFFERENT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert database.found(names, differences) == {}
    assert graphs == []
    assert count > 0
