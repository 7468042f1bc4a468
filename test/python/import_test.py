"""Which modules importing the package adds to a process that has imported torch and jax."""

import subprocess
import sys

# Modules that the lowerings and the device module use, and that torch and jax do not import.
_EXPECTED = (
    "jax.scipy",
    "jax._src.scipy",
    "jax._src.third_party",
    "torch.jax",
    "torch.utils._device",
)
_SCRIPT = """
import sys
import torch, jax
before = set(sys.modules)
import torch_xla_lite
print(*(set(sys.modules) - before))
"""


def _new_modules() -> list[str]:
    process = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )
    return [name for name in process.stdout.split() if not name.startswith("torch_xla_lite")]


def test_only_modules_of_the_package_and_expected_ones_are_imported():
    # Modules instead of times: one of torch._inductor or jax.experimental can cost seconds.
    assert [name for name in _new_modules() if not name.startswith(_EXPECTED)] == []
