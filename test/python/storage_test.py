"""Storages of tensors on jax: ids that libraries compare, copies, and what is refused."""

import itertools

import pytest
import torch

import torch_xla_lite  # noqa: F401


def address(tensor):
    return tensor.untyped_storage().data_ptr()


def test_each_storage_has_an_id_of_its_own():
    tensors = [torch.zeros(size, device="jax") for size in (1, 3, 0, 1000, 3)]
    ids = {address(tensor) for tensor in tensors}
    assert len(ids) == 5
    assert 0 not in ids


def test_views_and_what_was_written_to_have_the_id_of_the_base():
    base = torch.arange(6.0, device="jax")
    for view in (base.view(2, 3).t(), base[2:], base.detach(), base.view(torch.int32)):
        assert address(view) == address(base)
        assert view.storage().data_ptr() == address(base)
    before = address(base.add_(1))
    torch.jax.synchronize()
    assert address(base) == before


def test_a_storage_that_grows_moves():
    tensors = [torch.zeros(100, device="jax") for _ in range(3)]
    before = address(tensors[1])
    tensors[1].resize_(1000)
    assert address(tensors[1]) != before
    ranges = sorted((address(t), address(t) + t.untyped_storage().nbytes()) for t in tensors)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))


def test_the_address_of_a_tensor_is_that_of_its_first_element():
    base = torch.zeros(3, 4, device="jax")
    assert base.data_ptr() == address(base)
    assert base[1, 2:].data_ptr() == address(base) + 6 * 4
    assert torch.zeros(0, device="jax").data_ptr() == 0
    on_cpu = torch.zeros(3)
    assert on_cpu.data_ptr() == address(on_cpu) != 0


def test_torch_refuses_to_use_the_address_as_memory():
    with pytest.raises(RuntimeError, match="Cannot access data pointer"):
        torch._C._to_dlpack(torch.zeros(3, device="jax"))


def test_a_storage_can_be_made_and_copied():
    assert torch.UntypedStorage(8, device="jax").fill_(1).tolist() == [1] * 8
    base = torch.arange(4.0, device="jax")
    copied = base.untyped_storage().clone()
    base.zero_()
    assert copied.device.type == "jax"
    assert copied.nbytes() == 16
    assert torch.empty(0, device="jax").set_(copied, 0, (2, 2)).tolist() == [[0, 1], [2, 3]]


def test_storages_go_to_other_devices():
    on_jax = torch.arange(2, dtype=torch.int32, device="jax").untyped_storage()
    assert on_jax.cpu().tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    there = on_jax.cpu().to(device="jax")
    assert there.device.type == "jax"
    assert there.tolist() == on_jax.tolist()


def test_the_size_of_a_storage_cannot_be_set():
    with pytest.raises(RuntimeError, match="Make a new tensor"):
        torch.zeros(4, device="jax").untyped_storage().resize_(2)


def test_storages_of_both_kinds_copy_to_each_other():
    on_jax, on_cpu = torch.zeros(2, device="jax"), torch.tensor([1.0, 2.0])
    on_jax.untyped_storage().copy_(on_cpu.untyped_storage())
    assert on_jax.tolist() == [1, 2]
    on_jax.add_(1)
    on_cpu.untyped_storage().copy_(on_jax.untyped_storage())
    assert on_cpu.tolist() == [2, 3]
