"""Copies this tree, for scripts that build it in another place."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bazel.pybuild.dist import sources
from bazel.pybuild.machine import find_bazel
from bazel.pybuild.why import execution_log

ROOT = Path(__file__).resolve().parents[2]
# Compilers at once in a clone.
JOBS = 2


class Clone:
    """A copy of the tree with its own environment.

    Attributes:
      root: of the copy.
      python: of the environment, which sees the packages of this one.
      environ: variables of the commands.
    """

    def __init__(self, folder: Path, shared: Path, source: Path = ROOT):
        """Copies the source files of a tree, with edits that are not committed.

        Args:
          folder: for tree and environment.
          shared: for Bazel's files and the disk cache, which clones of one user share.
          source: the tree to copy.
        """
        self.root = folder / "tree"
        for name in sources.all_files(source):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, self.root / name)
        self.python = _make_environment(folder / "environment")
        self._startup = f"--output_user_root={shared / 'bazel'}"
        self.environ = {
            **{name: value for name, value in os.environ.items() if "TORCH_XLA_LITE" not in name},
            "CCACHE_DISABLE": "1",
            "MAX_JOBS": str(JOBS),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS": self._startup,
            "XDG_CACHE_HOME": str(shared / "cache"),
        }
        # Without bytecode each command would compile the files of setup.py again.
        for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
            self.environ.pop(name, None)

    def run(self, command: Sequence[str | Path], folder: Path | None = None) -> float:
        """Runs a command, which must succeed, and returns the seconds that it took."""
        began = time.perf_counter()
        process = subprocess.run(
            command,
            cwd=folder or self.root,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.perf_counter() - began
        if process.returncode != 0:
            text = " ".join(str(word) for word in command)
            sys.exit(f"error: {text}\nfailed:\n{process.stdout}{process.stderr}")
        return took

    def develop(self) -> float:
        """Seconds of `setup.py develop`."""
        return self.run([self.python, "setup.py", "develop"])

    def report(self) -> dict[str, Any]:
        """The report of the last `develop`."""
        return json.loads((self.root / "build" / "report.json").read_text())

    def spawns(self) -> list[execution_log.Spawn]:
        """The processes that the last `develop` ran, with their commands."""
        return list(execution_log.read(self.root / execution_log.FILE))

    def bazel_command(self, *arguments: str) -> list[str]:
        """The command line of Bazel without setup.py."""
        return [find_bazel.default(), self._startup, *arguments]

    def bazel(self, *arguments: str) -> str:
        """Runs Bazel without setup.py and returns its output."""
        command = self.bazel_command(*arguments)
        return subprocess.run(
            command, cwd=self.root, env=self.environ, capture_output=True, text=True, check=True
        ).stdout.strip()


def _make_environment(folder: Path) -> Path:
    """Makes an environment that sees the packages of this one; installing changes only the new."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "ours.pth").write_text("".join(f"{path}\n" for path in ours))
    return folder / "bin" / "python"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for clones; Bazel makes some of its folders read-only."""
    with tempfile.TemporaryDirectory(prefix="clones_") as name:
        try:
            yield Path(name)
        finally:
            subprocess.run(["chmod", "-R", "u+w", name], check=False)
