"""Type checkers know the names of the package that README and docs/usage.md use."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import torch_xla_lite

pytestmark = pytest.mark.nightly

_PROGRAM = """
import torch
import torch_xla_lite
from torch_xla_lite import XLATensor2

def values(tensor: torch.Tensor) -> list[float]:
    if isinstance(tensor, XLATensor2):
        on_host: torch.Tensor = tensor.torch()
        again: XLATensor2 = tensor.jax()
        assert tensor.is_jax and again is not None
        return on_host.tolist()
    return tensor.tolist()

x = XLATensor2([1.0])
values(x)
losses = torch_xla_lite.ops.softmax_cross_entropy(x, x)
torch_xla_lite.device.synchronize()
number: int = torch_xla_lite.device.device_count()
version: str = torch_xla_lite.__version__
print(torch_xla_lite.debug.report(), torch_xla_lite.debug.metrics()["compiles"])
"""
_MISTAKE = 'torch_xla_lite.device.manual_seed("three")\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program and the package, but not its tests and scripts."""
    (tmp_path / "torch_xla_lite").symlink_to(Path(torch_xla_lite.__file__).parent)
    (tmp_path / "right.py").write_text(_PROGRAM)
    (tmp_path / "wrong.py").write_text(_PROGRAM + _MISTAKE)
    return tmp_path


def test_mypy_knows_the_names(folder: Path):
    pytest.importorskip("mypy")
    # Errors of this package's own files are not the program's.
    (folder / "mypy.ini").write_text(
        "[mypy]\n[mypy-torch_xla_lite.*]\nignore_errors = True\n"
        "[mypy-jax.*,numpy.*]\nfollow_imports = skip\n"
    )
    command = [sys.executable, "-m", "mypy", "--cache-dir", folder / "cache", "right.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Success"), done.stdout + done.stderr
    command[-1] = "wrong.py"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    (line,) = [line for line in done.stdout.splitlines() if "error" in line and "Found" not in line]
    assert 'incompatible type "str"; expected "int"' in line


def test_pyright_knows_the_names(folder: Path):
    # pyright's wheel downloads it when it is called; this one contains it, with more rules.
    pyright = Path(sys.executable).with_name("basedpyright")
    if not pyright.exists():
        pytest.skip("basedpyright is not installed")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = [(Path(one["file"]).name, one["rule"]) for one in found if one["severity"] == "error"]
    assert errors == [("wrong.py", "reportArgumentType")]
