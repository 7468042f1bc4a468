"""Tensors on jax and arrays of other libraries, by DLPack."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch.utils import dlpack

import torch_xla_lite  # noqa: F401

pytestmark = pytest.mark.needs("cpu")  # Others read its memory.


def test_a_capsule_goes_out_and_comes_back():
    tensor = torch.arange(4.0, device="jax")
    assert dlpack.from_dlpack(dlpack.to_dlpack(tensor)).tolist() == [0, 1, 2, 3]
    assert torch.from_dlpack(torch.to_dlpack(tensor)).tolist() == [0, 1, 2, 3]


def test_torch_reads_a_tensor_as_one_of_the_place_where_xla_has_it():
    taken = torch.from_dlpack(torch.arange(4.0, device="jax"))
    assert taken.is_cpu
    assert taken.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("take", [torch.from_dlpack, lambda t: dlpack.from_dlpack(t.clone())])
def test_writing_to_what_torch_took_changes_no_tensor_on_jax(take):
    tensor = torch.arange(4.0, device="jax")
    same = tensor.clone()
    take(tensor).add_(1)
    dlpack.from_dlpack(dlpack.to_dlpack(tensor)).add_(1)
    assert tensor.tolist() == [0, 1, 2, 3]
    assert same.tolist() == [0, 1, 2, 3]


def test_a_jax_array_becomes_a_tensor():
    assert torch.from_dlpack(jnp.arange(3.0)).is_cpu
    assert torch.from_dlpack(jnp.arange(3.0), device="jax").is_jax
    assert torch.from_dlpack(np.arange(3.0), device="jax").tolist() == [0, 1, 2]


def test_a_tensor_becomes_a_jax_array_without_a_copy():
    tensor = torch.arange(4.0, device="jax")
    array = jax.dlpack.from_dlpack(tensor)
    assert array.tolist() == [0, 1, 2, 3]
    assert array.unsafe_buffer_pointer() == jnp.asarray(tensor).unsafe_buffer_pointer()


def test_a_transposed_tensor_is_exported_as_it_is_seen():
    tensor = torch.arange(4.0, device="jax").view(2, 2).t()
    assert jax.dlpack.from_dlpack(tensor).tolist() == [[0, 2], [1, 3]]


def test_numpy_may_not_write():
    array = np.from_dlpack(torch.arange(3.0, device="jax"))
    assert array.tolist() == [0, 1, 2]
    assert not array.flags.writeable


def test_the_device_is_that_of_xla():
    tensor = torch.arange(3.0, device="jax")
    assert tensor.__dlpack_device__() == jnp.asarray(tensor).__dlpack_device__()


def test_a_tensor_that_needs_a_gradient_is_not_exported():
    tensor = torch.ones(2, device="jax", requires_grad=True)
    for export in (dlpack.to_dlpack, torch.from_dlpack, jax.dlpack.from_dlpack, jnp.asarray):
        with pytest.raises(BufferError, match="Detach it first"):
            export(tensor)
