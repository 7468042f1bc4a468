"""The library with the CUDA kernels: the properties that can be tested without a GPU."""

import subprocess
from pathlib import Path

import pytest

from test.python import programs

_LIBRARY = Path("torch_xla_lite/lib/libtorch_xla_lite_cuda.so")

_REGISTER = """
from pathlib import Path
import jax
import jax.numpy as jnp
from torch_xla_lite.lowering.base import kernels

kernels.register_cuda(Path({library!r}))
loss, _ = kernels.softmax_cross_entropy(jnp.zeros((1, 1)), jnp.zeros(1, int), ignore_index=-1)
print(loss.tolist())
"""


@pytest.mark.nightly
def test_cuda_and_cpu_kernels_are_registered_together():
    program = _REGISTER.format(library=str(_LIBRARY.resolve()))
    result = programs.run(program)
    assert result.stdout == "[0.0]\n", result.stderr


def test_loading_needs_neither_torch_nor_a_driver():
    command = ["readelf", "--dynamic", "--wide", str(_LIBRARY)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    needed = [line for line in text.splitlines() if "NEEDED" in line]
    assert needed
    assert not [line for line in needed if "torch" in line or "cuda" in line]
