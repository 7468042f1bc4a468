"""What interpreted graphs have cost is kept for other processes, which compile by the sum."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from test.python import programs
from torch_xla_lite import _XLAC
from torch_xla_lite.compiler import past_costs
from torch_xla_lite.startup import caches

# Runs one graph until that has cost three fifths of its compilation by the model of costs, or until
# it is compiled. Prints the part of that cost, and how many graphs were compiled and loaded.
PROGRAM = """
import json
import jax, torch, torch_xla_lite  # A process without jax pays for its import, too.
from torch_xla_lite import _XLAC, debug
w = torch.ones(300, 300).to("jax")

def account():
    ((spent, needed, _, earlier, _),) = _XLAC.cost_accounts().values()
    return spent / needed, earlier / needed

while True:
    w.exp().log1p().tanh().sqrt().sum().item()
    spent, earlier = account()
    programs = debug.metrics()["compiles"], debug.metrics()["loads"]
    if spent - earlier >= 0.6 or any(programs):
        break
print(json.dumps([spent, *programs]))
"""


def run(cache: Path, **environ: str) -> tuple[float, int, int]:
    """What the program prints."""
    done = programs.run(PROGRAM, **(variables(cache) | environ))
    assert done.returncode == 0, done.stderr
    return tuple(json.loads(done.stdout))


def variables(cache: Path) -> dict[str, str]:
    return {
        "XDG_CACHE_HOME": str(cache),
        "TORCH_XLA_LITE_COMPILATION_CACHE": "1",
        "TORCH_XLA_LITE_COMPILE": "repeated",
    }


@pytest.mark.needs("interpreter")
def test_a_graph_is_compiled_by_the_sum_of_all_processes(tmp_path: Path):
    seen = [run(tmp_path) for _ in range(3)]
    shares = [share for share, *_ in seen]
    assert shares[0] == pytest.approx(0.6, abs=0.06)
    assert shares[1] == shares[2] >= 1
    assert [row[1:] for row in seen] == [(0, 0), (1, 0), (0, 1)]


@pytest.mark.nightly
def test_without_the_cache_nothing_is_kept(tmp_path: Path):
    for _ in range(2):
        assert run(tmp_path, TORCH_XLA_LITE_COMPILATION_CACHE="0")[0] < 0.7
    assert not (tmp_path / "torch_xla_lite").exists()


@pytest.fixture
def add(tmp_path: Path, monkeypatch):
    """Adds what a process has spent on graphs that cost 100 to compile."""
    for name, value in variables(tmp_path).items():
        monkeypatch.setenv(name, value)
    past_costs.compilation_cache._folder.cache_clear()

    def add(spent: dict[int, float], pays: bool = True) -> None:
        accounts = {graph: (cost, 100.0, pays, 0.0, 0) for graph, cost in spent.items()}
        monkeypatch.setattr(_XLAC, "cost_accounts", lambda: accounts)
        past_costs.save(os.getpid())

    yield add
    past_costs.compilation_cache._folder.cache_clear()


def kept() -> dict[int, tuple[float, int]]:
    return {structure: [*rest] for structure, *rest in past_costs.load()}


def path(cache: Path) -> Path:
    return cache / "torch_xla_lite" / "programs" / caches.COSTS


def test_processes_add_up(add):
    add({1: 30.0, 2: 5.0})
    add({1: 20.0, 3: 1.0})
    assert kept() == {1: [50.0, 2], 2: [5.0, 1], 3: [1.0, 1]}


def test_ten_that_end_at_once_lose_nothing(add):
    with ThreadPoolExecutor(10) as threads:
        list(threads.map(add, [{1: 5.0}] * 10))
    assert kept() == {1: [50.0, 10]}


def test_what_compiling_cannot_make_faster_is_not_kept(add):
    add({1: 30.0}, pays=False)
    add({2: 0.01})
    assert kept() == {}


def test_a_forked_process_adds_nothing(add):
    add({1: 30.0})
    past_costs.save(os.getpid() + 1)
    assert kept() == {1: [30.0, 1]}


def test_what_was_met_last_is_kept_when_the_file_is_full(add, monkeypatch):
    monkeypatch.setattr(past_costs.time, "time", lambda: 86_400.0)
    add(dict.fromkeys(range(5000), 90.0))
    monkeypatch.setattr(past_costs.time, "time", lambda: 2 * 86_400.0)
    add({7: 1.0, 6000: 1.0})
    assert len(kept()) == 4096
    assert kept()[6000] == [1.0, 1]


@pytest.mark.parametrize("change", [lambda old: b"", lambda old: old[:-1], lambda old: b"x" * 240])
def test_a_damaged_file_counts_as_absent(add, tmp_path: Path, change):
    add({1: 30.0})
    path(tmp_path).write_bytes(change(path(tmp_path).read_bytes()))
    assert kept() == {}
    add({1: 30.0})
    assert kept() == {1: [30.0, 1]}


def test_a_full_disk_is_no_error(add, monkeypatch):
    def write(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(past_costs.compilation_cache, "write", write)
    add({1: 30.0})
    assert kept() == {}


def test_what_a_lookup_costs_depends_on_what_it_returns_and_not_on_the_table():
    costs, index = [], torch.arange(4).to("jax")
    for rows in (10, 100_000):
        table = torch.ones(rows, 8).to("jax")
        found = torch.nn.functional.embedding(index, table), table[index], table[2:].t()[:, 0]
        costs.append(_XLAC.pending_costs())
        del found
    assert costs[0] == costs[1]
