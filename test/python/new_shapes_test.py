"""A new shape of an op compiles nothing."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from test.python import database, tiers
from torch_xla_lite import debug

LABELS = torch.tensor([[1, 2, 3], [2, 1, 1]])
LENGTHS = torch.tensor([2, 3])


_interprets = tiers.autouse(tiers.interpreting)


def ones(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, device="jax", requires_grad=True)


def scores(steps: int, batch: int) -> torch.Tensor:
    return ones(steps, batch, 5).log_softmax(-1)


# One of each kind, of a size.
OPS: dict[str, Callable[[int], Any]] = {
    "numbers with parameters": lambda n: torch._standard_gamma(ones(2, n)),
    "numbers of another deviation": lambda n: ones(n).detach().normal_(n, 1 / n),
    "a draw made of ops": lambda n: torch.multinomial(ones(2, n), 3, replacement=n % 2 == 0),
    "statistics that are not kept": lambda n: F.instance_norm(ones(2, 3, n)),
    "bags": lambda n: F.embedding_bag(torch.ones(2, n, device="jax").long(), ones(4, 3)),
    "alignments of short targets": lambda n: F.ctc_loss(
        scores(n + 6, 2), torch.cat([LABELS, LABELS], 1).jax(), LENGTHS + n, LENGTHS
    ),
    "a conjugated result": lambda n: torch.view_as_real(torch.fft.fft(ones(n)).conj() * 1),
    "memory without values": lambda n: ones(n).new_empty_strided((n, 2), (1, n)),
}


def compilations(function: Callable[[], Any]) -> int:
    """How many programs the result and its gradients compile."""
    debug.reset_metrics()
    results = [x for x in torch.utils._pytree.tree_leaves(function()) if torch.is_tensor(x)]
    losses = [x.abs().sum() for x in results if x.requires_grad]
    if losses:
        sum(losses).backward()
    for result in results:
        result.cpu()
    torch.jax.synchronize()
    metrics = debug.metrics()
    return metrics["compiles"] + metrics["loads"]


@pytest.mark.needs("interpreter")
@pytest.mark.few_daily(4)
@pytest.mark.parametrize("name", OPS)
def test_a_new_shape_of_each_kind_compiles_nothing(name: str):
    compilations(lambda: OPS[name](5))
    assert [compilations(lambda n=n: OPS[name](n)) for n in (6, 7, 9)] == [0, 0, 0]


def samples(call: database.Call, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Samples of the database, with other numbers for the sizes that it names.

    None if the generator has constants of its own, which fit the database's numbers only.
    """
    for name, module in sys.modules.items():
        if name.startswith("torch.testing._internal"):
            for constant, size in sizes.items():
                if type(getattr(module, constant, None)) is int:
                    monkeypatch.setattr(module, constant, size)
    dtype = torch.float32 if torch.float32 in call.op.dtypes else torch.int64
    found = database.outcome(lambda: call.samples(dtype, limit=4))
    return [] if isinstance(found, Exception) else found


def run(call: database.Call, sample: Any) -> int:
    """How many programs a sample compiles; what raises counts none."""
    x = database.moved(sample, "jax")
    count = database.outcome(lambda: compilations(lambda: call.op(x.input, *x.args, **x.kwargs)))
    torch.jax.synchronize()
    return 0 if isinstance(count, Exception) else count


# The programs that draw are of sizes up to a power of two. None lies between the product of some of
# the first sizes and that of some of the second ones.
FIRST, SECOND = {"S": 7, "M": 12}, {"S": 8, "M": 13}


@pytest.mark.needs("interpreter")
@pytest.mark.nightly
def test_a_new_shape_of_no_op_of_the_database_compiles_anything(monkeypatch: pytest.MonkeyPatch):
    compiled, count = {}, 0
    for name, op in database.ops().items():
        is_differentiable = torch.float32 in op.dtypes and op.supports_autograd
        call = database.Call(op, "backward" if is_differentiable else "forward")
        for sample in samples(call, FIRST, monkeypatch):
            run(call, sample)
        counts = [run(call, sample) for sample in samples(call, SECOND, monkeypatch)]
        count += bool(counts)
        if any(counts):
            compiled[name] = counts
    assert compiled == {}
    assert count > 650
