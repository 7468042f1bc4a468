"""Builds the checkout when the package is imported from it, if the user asks for that.

    TORCH_XLA_LITE_REBUILD_ON_IMPORT=1 python train.py      # never runs outdated C++ code

A build with nothing to do takes about 0.2 s.
"""

import os
import subprocess
import sys
from pathlib import Path

VARIABLE = "TORCH_XLA_LITE_REBUILD_ON_IMPORT"


def rebuild(package: Path) -> None:
    """Runs `setup.py develop` in the checkout of the package, before anything of it is loaded.

    Not in an installed wheel, and not in pytest, `python -m unittest` or a Bazel test, whose inputs
    must not change. The processes that this one starts build nothing: they use the code that it
    uses.

    Args:
      package: the folder of the package.

    Raises:
      ImportError: the build failed; the last line is the command to run.
    """
    if os.environ.get(VARIABLE) != "1":
        return
    script = package.resolve().parent / "setup.py"
    if not script.exists() or _is_test_runner():
        return
    os.environ[VARIABLE] = "0"
    command = [sys.executable, script, "develop"]
    process = subprocess.run(command, cwd=script.parent, capture_output=True, text=True)
    if process.returncode:
        raise ImportError(
            f"torch_xla_lite could not be built in {script.parent}:\n{process.stderr.rstrip()}\n"
            "Build it by hand:  python setup.py develop"
        )
    line = process.stdout.splitlines()[-1]
    if "up to date" not in line:
        print(line, file=sys.stderr)


def _is_test_runner() -> bool:
    """Whether this process collects tests; a script that calls unittest.main() is a program."""
    if "pytest" in sys.modules or "TEST_SRCDIR" in os.environ:
        return True
    return getattr(sys.modules["__main__"], "__package__", None) == "unittest"
