"""Graphs that are compiled in the background, while the program goes on."""

import subprocess
import threading

import pytest
import torch
import torch.nn.functional as F

from test.python import programs, tiers
from test.python.tiers import counts
from torch_xla_lite import _XLAC, debug
from torch_xla_lite.compiler import compilation, new_graphs
from torch_xla_lite.compiler.background import Worker


@pytest.fixture(autouse=True)
def _compiles_in_the_background():
    with tiers.mode("background"), tiers.compiling_what_comes_back():
        yield
        wait_for_the_background()


class Gate:
    """What a compilation reaches, and waits for."""

    def __init__(self) -> None:
        self.is_reached = threading.Event()
        self.is_open = threading.Event()


@pytest.fixture
def gate(monkeypatch) -> Gate:
    gate = Gate()
    function_of = compilation.function_of

    def wait(*arguments):
        gate.is_reached.set()
        assert gate.is_open.wait(timeout=60)
        return function_of(*arguments)

    monkeypatch.setattr(compilation, "function_of", wait)
    return gate


def background_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "torch_xla_lite compiler"]


def wait_for_the_background() -> None:
    for thread in background_threads():
        thread.join(timeout=60)
        assert not thread.is_alive()


def run_program(code: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return programs.run(code, **{"TORCH_XLA_LITE_COMPILE": "background", **environ})


# --- the worker -----------------------------------------------------------------------------------


def test_functions_run_one_after_the_other_in_one_thread():
    worker = Worker("test")
    ran = []
    first_may_end = threading.Event()

    def work(number: int) -> int:
        first_may_end.wait(timeout=60)
        ran.append((number, threading.current_thread()))
        return -number

    futures = [worker.submit(lambda number=number: work(number)) for number in range(4)]
    assert sum(thread.name == "test" for thread in threading.enumerate()) == 1
    first_may_end.set()
    assert [future.result(timeout=60) for future in futures] == [0, -1, -2, -3]
    assert [number for number, _ in ran] == [0, 1, 2, 3]
    assert len({thread for _, thread in ran}) == 1


def test_what_waits_when_the_program_ends_never_runs():
    done = run_program("""
import atexit, threading, time
from torch_xla_lite.compiler.background import Worker
ran = []
begun = threading.Event()
def work():
    ran.append(1)
    begun.set()
    while threading.main_thread().is_alive():
        time.sleep(0.01)
worker = Worker("test")
for _ in range(5):
    worker.submit(work)
begun.wait()
atexit.register(lambda: print(len(ran), worker.submit(work).running()))
""")
    assert (done.returncode, done.stdout) == (0, "1 False\n"), done.stderr


# --- graphs ---------------------------------------------------------------------------------------


def test_the_program_goes_on_while_a_graph_is_compiled(gate):
    x = torch.ones(3).jax()
    double = lambda: (x * 2).tolist()  # noqa: E731
    for runs in range(1, 5):
        assert double() == [2, 2, 2]
        assert counts() == (runs, 0, 0)
    gate.is_open.set()
    wait_for_the_background()
    assert [double(), double()] == [[2, 2, 2]] * 2
    assert counts() == (4, 1, 2)
    assert debug.explain_recompile()[-1].line.startswith(f"{__file__}:")


def test_all_graphs_are_compiled_by_one_thread(gate):
    x = torch.ones(3).jax()
    graphs = [torch.sin, torch.cos, torch.exp, torch.tanh]
    run_all = lambda: [graph(x).cpu() for graph in graphs]  # noqa: E731
    run_all()
    interpreted = run_all()
    assert len(background_threads()) == 1
    gate.is_open.set()
    wait_for_the_background()
    torch.testing.assert_close(run_all(), interpreted)
    assert counts() == (8, 4, 4)


def test_a_graph_that_is_dropped_while_it_waits_is_not_compiled(gate):
    before = len(new_graphs.all_graphs())
    x = torch.ones(3).jax()
    for graph in (torch.sin, torch.sin, torch.cos, torch.cos):
        graph(x).cpu()
    assert gate.is_reached.wait(timeout=60)
    _XLAC.clear_cache()
    gate.is_open.set()
    wait_for_the_background()
    assert len(new_graphs.all_graphs()) == before + 1


@pytest.mark.needs("interpreter")
def test_the_background_draws_the_same_numbers():
    drawn = []
    for _ in range(3):
        torch.manual_seed(3)
        drawn.append(F.dropout(torch.ones(100).jax(), 0.5).cpu())
        wait_for_the_background()
    assert counts() == (2, 1, 1)
    assert torch.equal(drawn[0], drawn[2])


def test_what_fails_in_the_background_is_compiled_where_it_is_needed(monkeypatch):
    compiled_by = []

    def refuse(*arguments):
        compiled_by.append(threading.current_thread())
        raise RuntimeError(f"refused {len(compiled_by)}")

    monkeypatch.setattr(compilation, "function_of", refuse)
    x = torch.ones(3).jax()
    for _ in range(2):
        assert (x * 2).tolist() == [2, 2, 2]
        wait_for_the_background()
    with pytest.raises(RuntimeError, match="refused"):
        (x * 2).tolist()
    in_the_background, *here = compiled_by
    assert set(here) == {threading.current_thread()} != {in_the_background}


def test_a_lowering_in_the_background_cannot_read_pending_tensors(monkeypatch):
    messages = []
    may_read = threading.Event()

    def read(*arguments):
        assert may_read.wait(timeout=60)
        try:
            pending.tolist()
        except RuntimeError as error:
            messages.append(str(error))
        raise RuntimeError

    monkeypatch.setattr(compilation, "function_of", read)
    x = torch.ones(3).jax()
    assert [(x * 2).tolist() for _ in range(2)] == [[2, 2, 2]] * 2
    pending = torch.ones(2).jax() + 1
    may_read.set()
    wait_for_the_background()
    assert pending.tolist() == [2, 2]
    assert len(messages) == 1
    assert "was read while a graph is compiled" in messages[0]


def test_a_program_ends_while_graphs_are_compiled_in_the_background():
    done = run_program("""
import jax, os, torch, torch_xla_lite
for run in range(2):
    for length in range(1, 7):
        x = torch.ones(3, device="jax")
        for _ in range(length):
            x = x.sinh()
        x.cpu()
child = os.fork()
if child:
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    try:
        torch.ones(3, device="jax").sinh().cpu()
    except RuntimeError as error:
        os._exit(7 if "forked process" in str(error) else 1)
""")
    assert done.returncode == 0, done.stderr
    assert "child 7" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_forked_child_ends_while_its_parent_compiles():
    done = run_program("""
import jax, os, sys, threading, torch, torch_xla_lite
from torch_xla_lite.compiler import compilation
child_ended = threading.Event()
function_of = compilation.function_of
def wait(*arguments):
    child_ended.wait()
    return function_of(*arguments)
compilation.function_of = wait
for graph in (torch.sin, torch.sin, torch.cos, torch.cos):
    graph(torch.ones(3, device="jax")).cpu()
if child := os.fork():
    status = os.waitpid(child, 0)[1]
    child_ended.set()
    print("child", os.waitstatus_to_exitcode(status))
else:
    sys.exit(7)
""")
    assert (done.returncode, done.stdout) == (0, "child 7\n"), done.stderr
