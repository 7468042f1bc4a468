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

    Not in an installed wheel, and not where tests are collected or run by pytest, unittest or
    Bazel: their inputs must not change. The processes that this one starts build nothing in any
    case: they use the code that it uses.

    Args:
      package: the folder of the package.

    Raises:
      ImportError: the build failed; the last line is the command to run.
    """
    if os.environ.get(VARIABLE) != "1":
        return
    script = package.resolve().parent / "setup.py"
    if not script.exists():
        return
    os.environ[VARIABLE] = "0"
    if _is_test_runner():
        return
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
    if getattr(sys.modules["__main__"], "__package__", None) == "unittest":
        return True
    # Editors and other runners call unittest's loader, which imports the tests.
    frame = sys._getframe()
    while frame := frame.f_back:
        if frame.f_globals.get("__name__") == "unittest.loader":
            return True
    return False
