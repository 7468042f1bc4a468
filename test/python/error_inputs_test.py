"""Calls that torch's database of ops names as errors raise what they raise on the CPU."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from test.python import database
from torch_xla_lite import _XLAC

# What may differ, and why: ops, and the numbers of their calls.
DIFFERENT = {
    "an index is checked where it is used, by another error": (
        "gather 4",
        "scatter 3",
        "scatter_add 3",
    ),
    "an op reads all its operands before it writes": ("cat 6", "kthvalue 0"),
    "dtypes have their names of Python": ("multinomial 2",),
}
# Parts of the database, each a test.
PARTS = 8
DAILY = ("cat", "gather", "index_select", "masked_select", "nn_functional_gelu", "scatter", "sum")


def on_jax(sample: Any) -> Any:
    """The sample on the device, where tensors share memory as on the CPU."""
    storages: dict[int, torch.Tensor] = {}

    def move(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.layout != torch.strided or not x.numel():
            return database.op_coverage._on_jax(x)
        whole = x.detach().as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
        base = storages.setdefault(x.untyped_storage().data_ptr(), whole.jax())
        if base.dtype != x.dtype:
            return database.op_coverage._on_jax(x)
        place = x.size(), x.stride(), x.storage_offset()
        return base.as_strided(*place).requires_grad_(x.requires_grad)

    return sample.transform(move)


def raised(op: Any, sample: Any) -> tuple[type, str] | None:
    """The type and the first line of the error that the call, or the read of its result, raises."""
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = op(sample.input, *sample.args, **sample.kwargs)
            torch.jax.synchronize()
    except Exception as error:
        text = next(iter(str(error).splitlines()), "")
        text = text.partition(" (in aten")[0].partition(". Please clone()")[0]
        return type(error), re.sub(r"jax:0|\bcpu\b|\bjax\b", "DEVICE", text)
    del result
    return None


def differences(name: str) -> list[str]:
    op = database.ops()[name]
    if op.error_inputs_func is None:
        return []
    torch.manual_seed(0)
    found = []
    for number, error in enumerate(op.error_inputs("cpu")):
        moved = database.outcome(lambda error=error: on_jax(error.sample_input))
        wanted = raised(op, error.sample_input)
        # Some are of sparse tensors, some are errors of newer versions only.
        if wanted is None or isinstance(moved, Exception):
            continue
        got = raised(op, moved)
        if got != wanted and f"{name} {number}" not in set().union(*DIFFERENT.values()):
            found.append(f"{name} {number}: {got}, not {wanted}")
    return found


@pytest.fixture(autouse=True)
def _interprets() -> Iterator[None]:
    _XLAC.set_compile_when("repeated")
    yield
    _XLAC.set_compile_when("first")


@pytest.mark.parametrize("name", DAILY)
def test_the_errors_of_an_op_are_those_of_the_cpu(name: str):
    assert differences(name) == []


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_the_errors_of_each_op_are_those_of_the_cpu(part: int):
    assert [text for name in [*database.ops()][part::PARTS] for text in differences(name)] == []
