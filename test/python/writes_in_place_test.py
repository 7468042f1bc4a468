"""An interpreted loop that writes into a tensor copies it once, and never a value in use."""

import random

import pytest
import torch

from test.python import tiers
from torch_xla_lite import debug

ROWS, COLUMNS = 40, 2500


@pytest.fixture(autouse=True)
def _interprets():
    with tiers.as_by_default():
        yield


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


# --- values that are still in use -----------------------------------------------------------------


def _program(device: str, seed: int) -> list[list[float]]:
    """Views of views of three tensors, written and kept in random order."""
    chance = random.Random(seed)
    tensors = [torch.arange(24.0).view(4, 6).to(device) + k for k in range(3)]
    kept = []
    views = [
        lambda x: x[chance.randrange(x.shape[0])],
        lambda x: x[1:],
        lambda x: x.reshape(-1),
        lambda x: x.t() if x.dim() == 2 else x,
        lambda x: x.unsqueeze(0)[0],
        lambda x: x[..., chance.randrange(x.shape[-1])],
        lambda x: x.view(-1, x.shape[-1])[:, 1:],
        lambda x: x.expand(2, *x.shape)[1],
    ]
    values = [
        lambda x, y: x.copy_(torch.full_like(x, chance.random())),
        lambda x, y: x.add_(y.sum()),
        lambda x, y: x.mul_(x.clone() - 1),
        lambda x, y: x.masked_fill_(x > 5, chance.random()),
        lambda x, y: x.copy_(x.flip(0)) if x.dim() else x.neg_(),
        lambda x, y: x.sub_(x),
    ]
    for _ in range(12):
        x = chance.choice(tensors)
        for _ in range(chance.randrange(4)):
            if x.dim() and x.numel() > 1:
                x = chance.choice(views)(x)
        action = chance.randrange(4)
        if action == 0:
            kept.append(x * 2)
        elif action == 1:
            kept.append(x.clone())
        else:
            chance.choice(values)(x, chance.choice(tensors))
    return [x.flatten().tolist() for x in [*tensors, *kept]]


@pytest.mark.needs("interpreter")
@pytest.mark.few_daily(18)
@pytest.mark.parametrize("seed", range(150))
def test_random_writes_give_what_the_cpu_gives(seed):
    expected = _program("cpu", seed)
    for result, value in zip(_program("jax", seed), expected, strict=True):
        assert result == pytest.approx(value, rel=1e-5)
    assert debug.metrics()["executions"] == 0


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
