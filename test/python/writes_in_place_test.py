"""An interpreted loop that writes into a tensor copies it once, and never a value in use."""

import pytest
import torch

from test.python import tiers
from torch_xla_lite import debug

ROWS, COLUMNS = 40, 2500


_interprets = tiers.autouse(tiers.as_by_default)


def _rows(base: torch.Tensor, i: int) -> None:
    base[i] = i


def _elements(base: torch.Tensor, i: int) -> None:
    base[i, 3 * i] = i


def _columns(base: torch.Tensor, i: int) -> None:
    base[:, i] = i


def _slices(base: torch.Tensor, i: int) -> None:
    base[i : i + 2, 5:] = i


def _flat(base: torch.Tensor, i: int) -> None:
    base.view(-1)[i] = i


def _transposed(base: torch.Tensor, i: int) -> None:
    base.t()[i, 2:5] = i


def _masks(base: torch.Tensor, i: int) -> None:
    base[i].masked_fill_(base[i] > 0, i)


def _positions(base: torch.Tensor, i: int) -> None:
    base.index_fill_(0, torch.tensor([i], device="jax"), i)


def _sums(base: torch.Tensor, i: int) -> None:
    base[i] += 1


WRITES = [_rows, _elements, _columns, _slices, _flat, _transposed, _masks, _positions, _sums]


def _bytes_allocated(run) -> int:
    """By torch's kernels and the interpreter, while `run` runs."""
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    events = profile.profiler.kineto_results.events()
    return sum(max(event.nbytes(), 0) for event in events if event.name() == "[memory]")


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_a_loop_of_writes_copies_its_base_once(write):
    base = torch.zeros(ROWS, COLUMNS, device="jax")
    for i in range(30):
        write(base, i)
    num_bytes = _bytes_allocated(lambda: base.sum().item())
    assert base.nbytes <= num_bytes < 5 * base.nbytes


def test_a_list_of_one_tensor_is_not_written_to():
    for device in ("cpu", "jax"):
        x = torch.ones(5, device=device) * 3
        (y,) = torch._foreach_mul([x + 1], 2)
        (z,) = torch._foreach_rsqrt([y * 2])
        assert [y.tolist(), z.tolist()] == [[8] * 5, [0.25] * 5]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: 2 ** (x + 1),
        lambda x: torch.tensor(2.0) * (x + 1),
        lambda x: torch.tensor(2.0) - (x + 1),
        lambda x: torch.lerp(torch.tensor(0.0), x + 1, 0.5),
        lambda x: torch.where(x > 1, 1.0, x + 1),
    ],
)
def test_a_number_before_the_first_tensor_is_not_written_to(call):
    x = torch.arange(4.0)
    assert call(x.to("jax")).tolist() == call(x).tolist()
    assert debug.metrics()["executions"] == 0
