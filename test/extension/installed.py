"""An environment with the installed wheel of torch_xla_lite, to build other packages against."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from bazel.pybuild.dist import wheel_format
from bazel.pybuild.dist.strip import strip
from bazel.pybuild.options import Options
from test.build.environments import environment
from test.build.tree import ROOT

# nvcc takes half of the time of a build. By day nothing is built with it here.
WITH_CUDA = os.environ.get("NIGHTLY_TESTS") == "1"


class Installed:
    """A separate Python environment.

    Attributes:
      python: its interpreter.
      site: where packages are installed for it.
    """

    def __init__(self, folder: Path):
        """Creates it in a new folder."""
        self.python = environment(folder)
        (self.site,) = folder.glob("lib/python3*/site-packages")
        self.install(_wheel(folder / "dist"), cwd=folder)

    def run(self, *arguments: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
        """Runs the interpreter, without this tree on its path. The exit status is not checked."""
        kept = {name: os.environ[name] for name in ("CC", "CXX", "PATH") if name in os.environ}
        if not WITH_CUDA:
            kept["CUDA_HOME"] = "/nowhere"
        return subprocess.run(
            [self.python, *arguments],
            cwd=cwd,
            # The lowering is tested, so graphs are compiled.
            env=kept
            | {"HOME": str(self.site), "OMP_NUM_THREADS": "1"}
            | {"TORCH_XLA_LITE_COMPILE": "first", "TORCH_CUDA_ARCH_LIST": "9.0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def install(self, package: Path | str, cwd: Path) -> None:
        """Installs a wheel, or builds and installs the package in a folder, without the network."""
        options = ["--no-build-isolation", "--no-index", "--no-cache-dir"]
        process = self.run("-m", "pip", "install", *options, package, cwd=cwd)
        assert process.returncode == 0, process.stdout + process.stderr

    def facts(self, program: Path) -> dict[str, Any]:
        """The JSON that a program prints. The program must succeed."""
        process = self.run(program, cwd=program.parent)
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)


def _wheel(folder: Path) -> Path:
    """Builds a wheel, as setup.py does, from the files that Bazel has built for this test."""
    built = ["_XLAC.so", "_build_info.py", "lib/**/*", "include/**/*"]
    files = [file for pattern in built for file in Path("torch_xla_lite").glob(pattern)]
    members = {str(file): file for file in files if file.is_file()}
    stripped = strip(members, folder / "stripped")
    return folder / wheel_format.write(ROOT, Options(), stripped, folder)
