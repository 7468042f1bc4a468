#!/usr/bin/env python3
"""Runs the steps of .github/workflows/ci.yml on this machine, as main and as a fork.

    python scripts/ci/local.py                         # build, warm_clone, wheel, release
    python scripts/ci/local.py --steps build cuda      # of these, test and cuda

A cache server (scripts/cache_server.py) runs meanwhile. Main and fork are clones of the committed
files of this tree, in a temporary folder, with separate environments that see the packages of this
one, and separate disk caches. Main has the write token. The fork has no token: its build must get
everything from main's entries, and the server's entries must be the same afterwards, also after
the fork has built a changed source and has tried a wrong write token. A third clone has no remote
cache and a copy of main's disk cache, as the CI service restores it: everything must come from
that.

Exit code: 0 if all this holds, 1 if not, with the reason.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.bench_build import make_environment  # noqa: E402
from scripts.bench_cache import server  # noqa: E402

STEPS = {
    "build": ("scripts/ci/build.sh",),
    "test": ("scripts/test.sh",),
    "warm_clone": ("scripts/ci/warm_clone.sh",),
    "wheel": ("scripts/ci/wheel.sh", "cpu"),
    "cuda": ("scripts/ci/wheel.sh", "cuda"),
    "release": ("scripts/ci/wheel.sh", "cpu", "release"),
}
_LONG = ("test", "cuda")
_CHANGED = "torch_xla_lite/csrc/ir/shape.cc"
_CACHE = "TORCH_XLA_LITE_REMOTE_CACHE"


class Clone:
    """A checkout as the CI service makes it.

    Attributes:
      root: of the tree.
    """

    def __init__(self, folder: Path, tree: Path, variables: Mapping[str, str]):
        self.root = folder / "tree"
        subprocess.run(["git", "clone", "--quiet", tree, self.root], check=True)
        make_environment(self.root / ".venv")
        # The steps install nothing.
        requirements = (self.root / "requirements.txt").read_bytes()
        (self.root / ".venv" / ".requirements.txt").write_bytes(requirements)
        self._folder = folder
        self._environ = {
            **{name: text for name, text in os.environ.items() if "TORCH_XLA_LITE" not in name},
            "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS": (
                f"--output_user_root={folder.parent / 'bazel'} --max_idle_secs=15"
            ),
            "XDG_CACHE_HOME": str(folder / "cache"),
            **variables,
        }

    def step(self, name: str, *arguments: str, **variables: str) -> None:
        """Runs a step, which has to succeed."""
        print(f"\n== {self._folder.name}: {name} {' '.join(arguments)}", flush=True)
        environ = {**self._environ, **variables}
        command = [*STEPS[name], *arguments]
        if subprocess.run(command, cwd=self.root, env=environ, check=False).returncode:
            sys.exit(f"error: {self._folder.name}: {name} failed")


def run(tree: Path, changed: str, steps: list[str], folder: Path) -> None:
    """Runs the steps as main and as a fork, and checks what the fork may do.

    Args:
      tree: a git repository.
      changed: a source file of it, in which the fork adds a line.
      steps: names from STEPS.
      folder: for all files.
    """
    with server(folder / "server", "http", "--public-read") as remote:
        main = Clone(folder / "main", tree, remote.variables(writes=True))
        for name in steps:
            main.step(name)
        stored = remote.contents()
        if not stored:
            sys.exit("error: main has written nothing")

        fork = Clone(folder / "fork", tree, {_CACHE: remote.url})
        for name in steps:
            fork.step(name, *(["100"] if name == "build" else []))
        _try_to_write(fork, changed)
        if remote.contents() != stored:
            sys.exit("error: the fork has changed the entries of the server")
    if {"build", "warm_clone"} <= {*steps}:
        shutil.copytree(folder / "main" / "cache", folder / "restored" / "cache")
        restored = Clone(folder / "restored", tree, {})
        restored.step("build", "100")
        restored.step("warm_clone")
    print(f"\nMain wrote {len(stored)} entries. The fork read them, and could not write.")


def _try_to_write(fork: Clone, changed: str) -> None:
    """Builds a changed source, and asks Bazel to write: without a token, and with a wrong one."""
    source = fork.root / changed
    for number, token in enumerate(("", "wrong")):
        lines = f"extern const int kFork{number};\nconst int kFork{number} = 1;\n"
        source.write_text(f"{source.read_text()}\n{lines}")
        options = "--config=remote-cache --remote_upload_local_results"
        environ = {
            "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": options,
            f"{_CACHE}_WRITE_TOKEN": token,
        }
        fork.step("build", **environ)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", nargs="+", choices=STEPS, help="default: all but test and cuda")
    parser.add_argument("--tree", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--changed", default=_CHANGED, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    steps = arguments.steps or [name for name in STEPS if name not in _LONG]
    with tempfile.TemporaryDirectory(prefix="ci_local_") as folder:
        try:
            run(arguments.tree, arguments.changed, steps, Path(folder))
        finally:
            # Bazel makes some of its folders read-only.
            subprocess.run(["chmod", "-R", "u+w", folder], check=False)


if __name__ == "__main__":
    main()
