"""What importing the package brings into a process that has torch and jax already."""

import subprocess
import sys

# What the lowerings and the device module use, and neither torch nor jax imports by itself.
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


def test_nothing_is_imported_beyond_our_own_modules_and_a_few_that_are_named():
    # Counted instead of timed: a module of torch._inductor or jax.experimental costs up to seconds.
    assert [name for name in _new_modules() if not name.startswith(_EXPECTED)] == []
