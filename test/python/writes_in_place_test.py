"""An interpreted loop that writes into a tensor copies it once, and never a value in use."""

import pytest
import torch

import torch_xla_lite
from test.python import tiers
from torch_xla_lite import debug

ROWS, COLUMNS = 40, 2500


_interprets = tiers.autouse(tiers.as_by_default)


WRITES = {
    "rows": lambda base, i: base.__setitem__(i, i),
    "elements": lambda base, i: base.__setitem__((i, 3 * i), i),
    "columns": lambda base, i: base.__setitem__((slice(None), i), i),
    "slices": lambda base, i: base.__setitem__((slice(i, i + 2), slice(5, None)), i),
    "flat": lambda base, i: base.view(-1).__setitem__(i, i),
    "transposed": lambda base, i: base.t().__setitem__((i, slice(2, 5)), i),
    "masks": lambda base, i: base[i].masked_fill_(base[i] > 0, i),
    "positions": lambda base, i: base.index_fill_(0, torch.tensor([i], device=base.device), i),
    "sums": lambda base, i: base.__setitem__(i, base[i].add_(1)),
}


def _bytes_allocated(run) -> int:
    """By torch's kernels and the interpreter, while `run` runs."""
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    events = profile.profiler.kineto_results.events()
    return sum(max(event.nbytes(), 0) for event in events if event.name() == "[memory]")


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_loop_of_writes_copies_its_base_at_most_once(write):
    base = torch.zeros(ROWS, COLUMNS, device="jax")
    for i in range(30):
        write(base, i)
    assert _bytes_allocated(lambda: base.sum().item()) < 5 * base.nbytes


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop])
def test_a_step_updates_where_the_cpu_does_from_the_first_on(optimizer):
    def steps(device: str) -> list[int]:
        weights = [torch.ones(100, 200, device=device, requires_grad=True) for _ in range(3)]
        updates = optimizer(weights)

        def step() -> None:
            torch.stack([weight.exp().mean() for weight in weights]).sum().backward()
            updates.step()
            torch_xla_lite.sync()

        return [_bytes_allocated(step) for _ in range(4)]

    of_cpu = steps("cpu")
    assert all(ours <= cpus + 10_000 for ours, cpus in zip(steps("jax"), of_cpu, strict=True))


@pytest.mark.parametrize("run", ["interpreted", "traced", "planned"])
def test_a_read_of_a_part_is_no_second_copy(run):
    base = torch.zeros(ROWS, COLUMNS, device="jax")

    def write_and_read(i: int) -> None:
        base[i] = i
        assert base[i, 5].item() == i

    base.sum().item()
    for i in range(1, ["interpreted", "traced", "planned"].index(run) + 1):
        write_and_read(i)
    assert _bytes_allocated(lambda: write_and_read(9)) < 2 * base.nbytes


# A write through a view of a reshaped or transposed tensor copies what a graph is given.
@pytest.mark.parametrize("name", [x for x in WRITES if x not in ("flat", "transposed")])
def test_a_loop_of_plans_stores_in_its_base(name):
    write = WRITES[name]
    base, wanted = (torch.zeros(ROWS, COLUMNS, device=device) for device in ("jax", "cpu"))

    def steps(first: int, last: int) -> None:
        for i in range(first, last):
            write(base, i)
            base[i, 3 * i].item()
            write(wanted, i)

    steps(0, 5)
    assert _bytes_allocated(lambda: steps(5, 25)) < 3 * base.nbytes
    assert torch.equal(base.cpu(), wanted)


def _places(x: torch.Tensor, i: int, end: int = 99) -> torch.Tensor:
    return torch.tensor([i if i < end else 99]).to(x.device)


# Each writes to x, and returns what may fail after that: at step 5, if it may at all.
PROGRAMS = {
    "a row": lambda x, i: (x[i].fill_(i), x.index_select(0, _places(x, i)))[1],
    "a row, and an error": lambda x, i: (x[i].fill_(i), x.index_select(0, _places(x, i, 5)))[1],
    "a row that is read": lambda x, i: (x[i].add_(x[i - 1] + 1), x.cumsum(0))[1],
    "a row that is read, and an error": lambda x, i: (
        x[i].add_(x[i - 1] + 1),
        x.index_select(0, _places(x, i, 5)),
    )[1],
    "a read before": lambda x, i: (y := x.cumsum(0), x[i].fill_(i), y)[2],
    "a read between": lambda x, i: (
        x[0].fill_(i),
        x[1].add_(x.cumsum(0)[3]),
        x.index_select(0, _places(x, i, 5)),
    )[2],
    "positions": lambda x, i: (x.index_fill_(0, _places(x, i), i), x.cumsum(0))[1],
    "positions, and an error": lambda x, i: (
        x.index_copy_(0, _places(x, i), x.new_full((1, 9), i)),
        x.index_select(0, _places(x, i, 5)),
    )[1],
    "an error of positions": lambda x, i: x.index_copy_(
        0, _places(x, i, 5), x.new_full((1, 9), i)
    ).cumsum(0),
    "sums": lambda x, i: x.index_put_((_places(x, i),), x.new_ones(9), accumulate=True).cumsum(0),
    "sums, and an error": lambda x, i: (
        x.index_put_((_places(x, 3),), x.new_ones(9), accumulate=True),
        x.index_select(0, _places(x, i, 5)),
    )[1],
    "all of it": lambda x, i: (x[i].fill_(i), x.mul_(2), x.cumsum(0))[2],
    "all of it, through views": lambda x, i: (x[None][0][None][0].mul_(2).add_(i),),
    "a view that stays": lambda x, i: (x[i].fill_(i), x[i - 1].clone(), x[i])[1:],
    "a row that may be there": lambda x, i: (x[i].copy_(x[min(i, 4)]), x.add_(i))[1:],
    "columns, once of rows that are one memory": lambda x, i: (
        x[:, i].fill_(i),
        x.add_(i),
        *([x[0].expand(9, 9).contiguous()[:, i].fill_(2)] if i == 5 else []),
    )[1:],
}


@pytest.mark.parametrize("first", [1, 4, 5])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_that_stores_and_fails_gives_the_values_of_the_cpu(name, first):
    def run(device: str) -> list:
        x, results = torch.zeros(9, 9).to(device), []
        for i in range(first, 9):
            try:
                found = PROGRAMS[name](x, i)
                results.append([y.tolist() for y in found])
            except IndexError:
                results.append("an error")
        return [*results, x.tolist()]

    assert run("jax") == run("cpu")
    assert debug.metrics()["planned"] > 0 or first > 1


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


@pytest.mark.parametrize("place", [0, (1, 0)])
def test_a_write_to_a_row_that_was_repeated_leaves_the_others(place):
    rows = [torch.ones(2, device=d).add(1).expand(3, 2).contiguous() for d in ("jax", "cpu")]
    for x in rows:
        x[place] = 5
    assert rows[0].tolist() == rows[1].tolist()


def test_what_comes_before_an_unexpected_error_is_written_once():
    x, y = torch.ones(3).to(torch.float8_e4m3fn).jax(), torch.zeros(5).jax()
    for i in range(1, 4):
        y.add_(1)
        refused = torch.ops.aten.bitwise_not(x)
        with pytest.raises(RuntimeError):
            torch_xla_lite.sync()
        del refused
        assert y.tolist() == [i] * 5
