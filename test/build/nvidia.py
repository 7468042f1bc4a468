"""The CUDA toolkit of requirements-cuda.txt, and what it says about a library.

Tests that need it are skipped where it is missing.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest


def toolkit() -> Path:
    """The toolkit that NVIDIA's wheels make."""
    for folder in sys.path:
        home = Path(folder) / "nvidia" / "cu13"
        if (home / "bin" / "nvcc").exists():
            return home
    pytest.skip("requirements-cuda.txt is not installed; scripts/test.sh installs it")


def codes(library: Path) -> set[str]:
    """What cuobjdump finds in a library: sm_90 for machine code, compute_90 for PTX."""
    command = [toolkit() / "bin" / "cuobjdump", "--list-elf", "--list-ptx", library]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    machine = re.findall(r"\.(sm_\w+)\.cubin", listed)
    return {*machine, *(f"compute_{number}" for number in re.findall(r"\.sm_(\w+)\.ptx", listed))}
