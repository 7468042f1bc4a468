"""A graph that fails leaves other values alone; interrupts and lack of memory arrive at once."""

import os
import signal
import subprocess

import pytest

from test.python import programs

# Nothing comes from the disk: the tests count compilations.
COMPILING = {"TORCH_XLA_LITE_COMPILATION_CACHE": "0"}

# An op whose first compilation takes long, beside values that have nothing to do with it.
SLOW = """
import time
import jax, torch, torch_xla_lite

@torch.library.custom_op("test::slow", mutates_args=())
def slow(x: torch.Tensor) -> torch.Tensor:
    return x.clone()

slow.register_fake(torch.empty_like)
traced = 0

@torch_xla_lite.register_lowering("test::slow")
def _(x):
    global traced
    traced += 1
    if traced == 1:
        print("compiling", flush=True)
        time.sleep(60)
    return x + 1

state = torch.zeros(2).to("jax")
state.add_(1)
others = [torch.full((i + 1,), float(i), device="jax") + 1 for i in range(20)]
value = slow(torch.ones(2, device="jax"))
"""


def test_an_interrupt_while_a_graph_is_compiled_arrives_and_changes_nothing():
    program = SLOW + (
        "try:\n"
        "    value.tolist()\n"
        "except KeyboardInterrupt:\n"
        "    print(torch_xla_lite.debug.metrics()['compiles'])\n"
        "print(value.tolist(), state.tolist(), [other.tolist()[0] for other in others])\n"
        "print(torch_xla_lite.debug.metrics()['compiles'])\n"
    )
    with subprocess.Popen(
        [*programs.python(), "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | COMPILING,
    ) as child:
        assert child.stdout.readline() == "compiling\n"
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=300)
    assert child.returncode == 0
    assert output.splitlines() == [
        "0",
        f"[2.0, 2.0] [1.0, 1.0] {[i + 1.0 for i in range(20)]}",
        "1",
    ]


def lines(program: str) -> list[str]:
    return programs.lines(program, **COMPILING)


# A compiler whose executables are called by a function `run` of the program.
WRAPPED = """
import os, signal
import jax, torch, torch_xla_lite

compile_graph = torch_xla_lite.compiler.compiler.compile_graph

def compile_wrapped(*graph):
    compiled, info = compile_graph(*graph)
    return lambda *arguments: run(compiled, arguments), info

torch_xla_lite.compiler.compiler.Compiler.compile = staticmethod(compile_wrapped)
torch_xla_lite.compiler.compiler.register()
state = torch.zeros(2).to("jax")
state.add_(1)
"""


def test_an_interrupt_while_a_graph_runs_loses_no_tensor():
    program = f"""{WRAPPED}
def run(compiled, arguments):
    results = compiled(*arguments)
    os.kill(os.getpid(), signal.SIGINT)
    return results

try:
    print(state.tolist())
except KeyboardInterrupt:
    print("interrupted")
print(state.tolist())
"""
    assert lines(program) == ["interrupted", "[1.0, 1.0]"]


@pytest.mark.nightly
def test_lack_of_memory_is_one_error_of_a_sync_and_the_tensors_stay():
    program = f"""{WRAPPED}
def run(compiled, arguments):
    global memory_is_short
    if memory_is_short:
        memory_is_short = False
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
    return compiled(*arguments)

memory_is_short = True
others = [torch.full((i + 1,), float(i), device="jax") + 1 for i in range(20)]
try:
    torch_xla_lite.sync()
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(state.tolist(), [other.tolist()[0] for other in others] == [i + 1 for i in range(20)])
print(torch_xla_lite.debug.metrics()["compiles"])
"""
    assert lines(program) == [
        "RESOURCE_EXHAUSTED: Out of memory",
        "[1.0, 1.0] True",
        "22",  # What failed, and then each tensor alone.
    ]


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("first_read", ["torch_xla_lite._XLAC.to_jax(big)", "a.tolist()"])
@pytest.mark.parametrize("mode", ["first", "repeated"])
def test_lack_of_memory_is_raised_by_the_read_that_needs_the_value(first_read, mode):
    printed = lines(f"""
import torch, torch_xla_lite
torch_xla_lite._XLAC.set_compile_when("{mode}")
a, b = torch.ones(3, device="jax") + 1, torch.ones(4, device="jax") + 1
x = torch.ones(1 << 19, 1, device="jax")
big = x @ x.t()  # A terabyte: the allocation fails at once.
def read(code):
    try:
        print(eval(code))
    except RuntimeError as error:
        print(str(error).split(":")[0])
read("{first_read}")
more, c = big + 1, a + 2  # The first needs what is too large.
read("a.tolist(), b.tolist(), c.tolist()")
read("torch_xla_lite._XLAC.to_jax(more)")
big = None
d = a + 3
torch_xla_lite.sync()
read("d.tolist()")
""")
    assert printed == [
        str([2.0] * 3) if first_read == "a.tolist()" else "RESOURCE_EXHAUSTED",
        str(([2.0] * 3, [2.0] * 4, [4.0] * 3)),
        "RESOURCE_EXHAUSTED",
        str([5.0] * 3),
    ]


# --- errors that name an op -----------------------------------------------------------------------

BROKEN = """
import torch, torch_xla_lite

@torch.library.custom_op("test::broken", mutates_args=())
def broken(x: torch.Tensor, fails: bool) -> torch.Tensor:
    return x.clone()

broken.register_fake(lambda x, fails: torch.empty_like(x))
traced = 0

@torch_xla_lite.register_lowering("test::broken")
def _(x, fails):
    global traced
    traced += 1
    if fails:
        raise ValueError("this op is broken")
    return x + 1
"""


def test_what_needs_a_failing_op_fails_and_all_else_is_one_graph():
    program = f"""{BROKEN}
failing = broken(torch.zeros(2, device="jax"), True)
dependents = [failing + i for i in range(20)]
others = [torch.full((i + 1,), float(i), device="jax") + 1 for i in range(20)]
fine = broken(torch.zeros(2, device="jax"), False)
print(others[3].tolist(), fine.tolist())
print(torch_xla_lite.debug.metrics()["compiles"])
for value in (failing, dependents[7]):
    try:
        value.tolist()
    except RuntimeError as error:
        print(type(error).__name__, "this op is broken" in str(error))
torch_xla_lite.sync()
"""
    assert lines(program) == [
        "[4.0, 4.0, 4.0, 4.0] [1.0, 1.0]",
        "1",
        "RuntimeError True",
        "RuntimeError True",
    ]


def test_a_sync_raises_the_error_once_and_computes_all_else():
    program = f"""{BROKEN}
failing = broken(torch.zeros(2, device="jax"), True)
others = [torch.full((i + 1,), float(i), device="jax") + 1 for i in range(20)]
try:
    torch_xla_lite.sync()
except RuntimeError as error:
    print("this op is broken" in str(error))
torch_xla_lite.sync()
print(torch_xla_lite.debug.metrics()["compiles"], traced)
"""
    assert lines(program) == ["True", "1 1"]


# --- shape inference ------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "MemoryError"])
def test_an_interrupt_while_shapes_are_inferred_is_not_remembered(error):
    program = f"""
import torch, torch_xla_lite


@torch.library.custom_op("test::op", mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor:
    return x + 1

@op.register_fake
def _(x):
    global fails
    if fails:
        fails = False
        raise {error}()
    return torch.empty_like(x)

torch_xla_lite.register_lowering("test::op")(lambda x: x + 1)
fails = True
x = torch.zeros(2, device="jax")
try:
    op(x)
except {error}:
    print("raised")
print(op(x).tolist())
print(torch_xla_lite.debug.metrics()["fallbacks"])
"""
    assert lines(program) == ["raised", "[1.0, 1.0]", "{}"]
