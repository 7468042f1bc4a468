"""Which modules the package and the first ops add to a process that has torch and jax."""

import functools
import os
import subprocess
import sys

import pytest

import torch_xla_lite
from torch_xla_lite.lowering.base import table

# Modules that the package adds, and that torch and jax do not import. All take 5 ms.
_EXPECTED = (
    "torch.jax",
    "torch.utils._device",
    "torch.nn.attention._utils",
    "torch.nn.attention.flex_attention",
)
_SCRIPT = """
import sys
import torch, jax
before = set(sys.modules)
import torch_xla_lite
print(*(set(sys.modules) - before))
"""


# torch's meta functions of these are written in Python. torch._dynamo takes a second to import,
# sympy 0.4 seconds.
_FIRST_OPS = """
import sys
import torch, torch_xla_lite
x = torch.ones(4, 3, device="jax", requires_grad=True)
((x + 1) * x / 2 - x.sum()).relu().softmax(-1).mean().backward()
x.grad.mul_(1.5)[0].mul_(2).cpu()
y = torch.nn.LSTM(3, 2).to("jax")(x.detach())[0]
y[y > 0].roll(1), torch.fft.rfft(y), torch.randn_like(y).normal_(), torch._standard_gamma(y + 1)
torch.cdist(y, y), torch.nn.functional.one_hot(y.long(), 3), torch.multinomial(y + 1, 1)
print("torch._dynamo" in sys.modules, "sympy" in sys.modules)
import torch._dynamo
print(torch.compile(lambda y: y + 1, backend="eager")(torch.ones(1)).item())
print((torch.ones(2, 2, device="jax") + 1).sum().item())
"""


@functools.cache
def _output(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_only_modules_of_the_package_and_expected_ones_are_imported():
    # Modules instead of times: one of torch._inductor or jax.experimental can cost seconds.
    expected = ("torch_xla_lite", *_EXPECTED)
    assert [name for name in _output(_SCRIPT) if not name.startswith(expected)] == []


def test_no_lowering_is_imported_before_an_op_needs_it():
    modules = {f"torch_xla_lite.lowering.{name}" for name in table.MODULES}
    assert modules & set(_output(_SCRIPT)) == set()


@pytest.mark.nightly
def test_the_first_ops_do_not_import_the_compiler_of_torch():
    assert _output(_FIRST_OPS) == ["False", "False", "2.0", "8.0"]


def test_dir_shows_what_programs_may_use():
    public = dir(torch_xla_lite)
    assert {"ops", "debug", "XLATensor2", "call_jax", "__version__"} <= set(public)
    assert not {"sys", "importlib", "graph_cuts", "TYPE_CHECKING"} & set(public)
    assert callable(torch_xla_lite.ops.softmax_cross_entropy)


_INTERPRETED = """
import contextlib, signal, sys, threading
import numpy, torch, torch_xla_lite
model = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(64, 3)).to("jax")
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.rand(2, 64).jax()), torch.ones(2, 3).jax())
    loss.backward()
    optimizer.step()
torch.jax.synchronize()
print(loss, torch.rand(2, device="jax"), "jax" in sys.modules, sep="; ", end="; ")
def upload():
    while importing: torch.ones(3).to("jax")
importing = [True]
for _ in range(3): threading.Thread(target=upload).start()
drawn = []
class Interrupt:
    def find_spec(name, *_):
        if name != "jax._src.core": return
        signal.raise_signal(signal.SIGINT)
        drawn.append(numpy.random.random())
sys.meta_path.insert(0, Interrupt)
numpy.random.seed(0)
torch_xla_lite._XLAC.set_compile_when("first")
with contextlib.suppress(KeyboardInterrupt): torch.ones(2, device="jax").tolist()
print(torch.rand(2, device="jax").tolist(), "jax" in sys.modules, sep="; "); importing.clear()
drawn.append(numpy.random.random())
assert drawn == list(numpy.random.RandomState(0).random(len(drawn)))
"""


def test_jax_is_imported_whole_by_the_first_compilation_and_changes_no_number():
    of_tests = ("JAX_", "TORCH_XLA_LITE_COMPILE")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(of_tests)
    }

    def printed(first: str) -> list[str]:
        code = f"import torch; torch.manual_seed(0); {first}{_INTERPRETED}"
        command = [sys.executable, "-c", code]
        return subprocess.check_output(command, text=True, env=environment, timeout=90).split("; ")

    (*late, before, then_late, after), (*early, _, then_early, _) = map(printed, ("", "import jax"))
    assert (before, after) == ("False", "True\n")
    assert [*late, then_late] == [*early, then_early]
