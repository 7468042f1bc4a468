"""Python environments for tests that install into one, or run setup.py with one."""

import sys
import venv
from pathlib import Path


def environment(folder: Path, *, see_ours: bool = True) -> Path:
    """Makes a Python environment and returns its interpreter.

    Args:
      folder: to make.
      see_ours: whether it sees the packages of the environment that runs this test.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    if see_ours:
        (site,) = folder.glob("lib/python3*/site-packages")
        ours = [path for path in sys.path if path.endswith("site-packages")]
        (site / "ours.pth").write_text("".join(f"{path}\n" for path in ours))
    return folder / "bin" / "python"
