"""An edit of a lowering shows in the next run, though new graphs run torch's kernels."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import torch_xla_lite
from test.python import programs
from torch_xla_lite import debug
from torch_xla_lite.compiler import edited_lowerings

_BEFORE = """
@lower("aten::one", "aten::uno")
def one(self):
    return self * helper(1)


@registry.lower("aten::two", constants=True)
def two(self):
    return self * 2


def helper(x):
    return x
"""


@pytest.mark.parametrize(
    ("old", "new", "ops"),
    [
        ("self * 2", "self * 3", {"aten::two"}),
        ("helper(1)", "helper(2)", {"aten::one", "aten::uno"}),
        ("return x", "return x + 1", None),
        ("return x", "return (", None),
        ("    return x", "    return x  # as it is", set()),
        ('"aten::uno"', '"aten::uno", "aten::eins"', {"aten::one", "aten::uno", "aten::eins"}),
    ],
    ids=["one", "several names", "shared", "unreadable", "comment", "new"],
)
def test_an_edit_concerns_the_ops_of_the_function(old, new, ops):
    assert old in _BEFORE
    assert edited_lowerings.edited(_BEFORE, _BEFORE.replace(old, new)) == ops


def test_an_unknown_op_is_an_error():
    with pytest.raises(ValueError, match="aten::rulu: there is no such lowering"):
        debug.use_lowerings("aten::rulu")


def test_the_lowering_of_a_named_op_runs_at_once():
    program = """
import dataclasses, torch, torch_xla_lite
from torch_xla_lite.lowering.base import registry
x = torch.tensor([-1.0, 2.0], device="jax")
print(x.relu().tolist())
registry.find("aten::relu")
registry.LOWERINGS["aten::relu"] = dataclasses.replace(
    registry.LOWERINGS["aten::relu"], fn=lambda self: self * 0 + 5)
torch_xla_lite.debug.use_lowerings("aten::relu")
print(x.relu().tolist())
"""
    variables = {"TORCH_XLA_LITE_COMPILATION_CACHE": "0"}
    done = programs.run(program, check=True, **variables)
    assert done.stdout.splitlines() == ["[0.0, 2.0]", "[5.0, 5.0]"]


def test_an_edit_in_a_checkout_shows_without_a_call(tmp_path):
    package = Path(torch_xla_lite.__file__).parent
    copied = shutil.copytree(
        package, tmp_path / "torch_xla_lite", ignore=shutil.ignore_patterns("csrc", "__pycache__")
    )

    def git(*arguments: str) -> None:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *settings, *arguments], cwd=tmp_path, check=True)

    git("init", "--quiet")
    git("add", "torch_xla_lite/lowering")
    git("commit", "--quiet", "--message", "The lowerings")
    # Links to the tree of the test must not be written through.
    unary = copied / "lowering" / "unary.py"
    source = unary.read_text()
    unary.unlink()
    before = "return lax.max(self, lax.full_like(self, 0))"
    assert source.count(before) == 1
    unary.write_text(source.replace(before, "return lax.full_like(self, 5)"))
    (copied / "_build_info.py").touch()
    os.utime(unary, (2**31, 2**31))

    assert edited_lowerings.ops(tmp_path) == ["aten::relu"]
    program = """
import torch, torch_xla_lite
x = torch.tensor([-1.0, 2.0], device="jax")
print(x.relu().tolist(), x.exp().tolist() == x.cpu().exp().tolist())
"""
    done = programs.run(
        program, check=True, PYTHONPATH=str(tmp_path), TORCH_XLA_LITE_COMPILATION_CACHE="0"
    )
    assert done.stdout.split("] ")[0] == "[5.0, 5.0", done.stderr
    assert done.stdout.endswith("True\n")
