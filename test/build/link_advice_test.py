"""setup.py on 64-bit ARM: what it starts, and when it advises USE_PRIORITIZED_TEXT_FOR_LD.

The machine only says that it is one; torch and nvcc are short files that say what real ones say.
"""

import os
import subprocess
from pathlib import Path

import pytest

from bazel.pybuild.machine import preflight
from test.build.environments import environment
from test.build.toolkit import write_toolkit
from test.build.tree import copied, inputs
from third_party.torch import layers

# Python runs it at its start.
_ARM = """
import os
import sys

os.uname = lambda: os.uname_result(("Linux", "", "", "", "aarch64"))

def note(event, arguments):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork", "os.system"):
        with open(os.environ["STARTED"], "a") as file:
            file.write(f"{arguments[0]}\\n")

sys.addaudithook(note)
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Variables of such a machine, with a torch for CUDA 13.0 and a toolkit of it."""
    (tmp_path / "sitecustomize.py").write_text(_ARM)
    environment(tmp_path / "environment")
    (site,) = tmp_path.glob("environment/lib/python3*/site-packages")
    # Files that every torch has.
    headers = [f"include/{header}" for header in layers.missing(site / "torch" / "include")]
    for name in (*preflight._FILES["torch"], *headers):
        (site / "torch" / name).parent.mkdir(parents=True, exist_ok=True)
        (site / "torch" / name).touch()
    (site / "torch" / "version.py").write_text("cuda = '13.0'\nhip = None\n")
    (site / "torch-2.13.0+cu130.dist-info").mkdir()
    nvcc = write_toolkit(tmp_path / "toolkit")
    path = f"{nvcc.parent}{os.pathsep}{os.environ['PATH']}"
    started = str(tmp_path / "started")
    # A Bazel that can do nothing ends each build in time.
    bazel = "/bin/true"
    return {
        "PATH": path,
        "HOME": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
        "STARTED": started,
        "TORCH_XLA_LITE_BAZEL": bazel,
    }


def _python(environ: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    files = inputs("pyproject.toml", "requirements.txt", "setup.py", "bazel/pybuild", "third_party")
    root = copied(Path(environ["HOME"]) / "tree", files)
    return subprocess.run(
        [Path(environ["HOME"]) / "environment" / "bin" / "python", *arguments],
        cwd=root,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("question", "status"),
    [("--version", 0), ("--help", 0), ("build_ext --help", 0), ("options", 0), ("--bogus", 1)],
)
def test_a_question_and_a_wrong_word_start_nothing(
    environ: dict[str, str], question: str, status: int
):
    process = _python(environ, "setup.py", *question.split())
    assert process.returncode == status, process.stderr
    assert not Path(environ["STARTED"]).exists(), Path(environ["STARTED"]).read_text()
    assert "+---" not in process.stderr


@pytest.mark.parametrize(
    "command",
    ["setup.py build_ext", pytest.param("setup.py bdist_wheel", marks=pytest.mark.nightly)],
)
def test_a_build_with_cuda_gives_advice_after_everything_but_an_error(
    environ: dict[str, str], command: str
):
    before, error, _ = _python(environ, *command.split()).stderr.partition("\nerror: ")
    assert error
    assert set(before.splitlines()[-1]) == {"+", "-"}


@pytest.mark.parametrize(
    "variable", ["USE_CUDA", pytest.param("USE_PRIORITIZED_TEXT_FOR_LD", marks=pytest.mark.nightly)]
)
def test_no_advice_without_cuda_or_with_the_variable_set(environ: dict[str, str], variable: str):
    process = _python({**environ, variable: "0"}, "setup.py", "build_ext")
    assert "error: " in process.stderr
    assert "+---" not in process.stderr
