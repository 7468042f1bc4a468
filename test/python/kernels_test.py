"""Which libraries with kernels are loaded, and when; arguments of kernels."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from test.python.programs import run
from torch_xla_lite.lowering.base import kernels

_USE = """
import torch, torch_xla_lite
from torch_xla_lite.lowering.base import kernels
from torch_xla_lite.ops import softmax_cross_entropy
from pathlib import Path

kernels._CUDA = Path({cuda!r})
logits, labels = torch.zeros(2, 3, device="jax"), torch.tensor([0, 2], device="jax")
print(softmax_cross_entropy(logits, labels).sum().item())
print({cuda!r} in open("/proc/self/maps").read())
"""


@pytest.mark.needs("cpu")
def test_without_a_cuda_device_the_cuda_library_is_not_loaded(tmp_path: Path):
    garbage = tmp_path / "libtorch_xla_lite_cuda.so"
    garbage.write_bytes(b"no library")
    result = run(_USE.format(cuda=str(garbage)))
    assert result.stdout.split() == ["2.1972246170043945", "False"], result.stderr


def test_a_cuda_device_without_the_library_is_an_error_with_the_build_command(tmp_path: Path):
    with pytest.raises(RuntimeError, match=r"again:  USE_CUDA=1 python setup\.py develop"):
        kernels.register_cuda(tmp_path / "absent.so")


def test_a_library_that_is_broken_is_an_error(tmp_path: Path):
    garbage = tmp_path / "libtorch_xla_lite_cuda.so"
    garbage.write_bytes(b"no library")
    with pytest.raises(OSError, match=r"invalid ELF header|file too short"):
        kernels.register_cuda(garbage)


def test_a_program_for_cuda_calls_the_kernels_by_the_same_names():
    def program(x: jax.Array, y: jax.Array) -> jax.Array:
        return kernels.softmax_cross_entropy(x, y, ignore_index=-100)[0]

    traced = jax.jit(program).trace(jnp.zeros((2, 3)), jnp.zeros(2, "int32"))
    texts = [traced.lower(lowering_platforms=(name,)).as_text() for name in ("cpu", "cuda")]
    assert all("@torch_xla_lite.softmax_cross_entropy(" in text for text in texts)


def test_wrong_shapes_of_scores_are_errors():
    scores, labels = jnp.ones((2, 2)), jnp.zeros(3, "int32")
    with pytest.raises(jax.errors.JaxRuntimeError, match="one label for each row"):
        jax.block_until_ready(kernels.softmax_cross_entropy(scores, labels, ignore_index=0))
