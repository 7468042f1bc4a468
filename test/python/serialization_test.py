"""Tensors and modules on jax are saved, loaded, pickled and copied."""

import copy
import io
import pickle

import pytest
import torch

from torch_xla_lite import _XLAC, XLATensor2


def saved_and_loaded(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


def test_a_whole_module_is_mapped_to_jax():
    module = torch.nn.Linear(2, 2)
    loaded = saved_and_loaded(module, map_location="jax", weights_only=False)
    assert loaded.weight.is_jax
    assert loaded.weight.is_leaf
    assert loaded.weight.requires_grad
    assert torch.equal(loaded.weight.detach().cpu(), module.weight.detach())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int64, torch.bool])
def test_the_dtype_and_the_need_of_a_gradient_are_kept(dtype):
    tensor = torch.ones(2, device="jax", dtype=dtype).requires_grad_(dtype.is_floating_point)
    loaded = saved_and_loaded(tensor)
    assert (loaded.dtype, loaded.requires_grad) == (dtype, tensor.requires_grad)


@pytest.mark.parametrize("source", ["jax", "cpu"])
@pytest.mark.parametrize("place", [None, "jax", "cpu"])
def test_tensors_that_share_memory_share_it_after_they_are_loaded(source, place):
    base = torch.arange(6.0, device=source)
    tensors = {"base": base, "view": base.view(2, 3).t(), "end": base[4:]}
    loaded = saved_and_loaded(tensors, map_location=place)
    assert loaded["base"].device.type == (place or source)
    loaded["base"][1] = 9
    assert loaded["view"].tolist() == [[0, 3], [9, 4], [2, 5]]
    assert loaded["view"].stride() == (1, 3)
    assert (loaded["end"].tolist(), loaded["end"].storage_offset()) == ([4, 5], 4)
    storages = [loaded[name].untyped_storage() for name in ("end", "base")]
    assert storages[0].data_ptr() == storages[1].data_ptr()


def test_the_old_format_can_be_written():
    file = io.BytesIO()
    base = torch.arange(4.0, device="jax")
    torch.save([base, base[2:]], file, _use_new_zipfile_serialization=False)
    file.seek(0)
    base, view = torch.load(file)
    view.zero_()
    assert base.tolist() == [0, 1, 0, 0]


def test_conjugated_views_are_saved_as_what_they_show():
    value = torch.tensor([1 + 2j], device="jax").conj()
    assert saved_and_loaded(value).tolist() == [1 - 2j]


def test_pending_writes_are_saved():
    base = torch.zeros(2, device="jax")
    base[0] = 1
    assert saved_and_loaded(base).tolist() == [1, 0]


def test_saving_what_is_computed_runs_no_program():
    computed = torch.arange(6, dtype=torch.bfloat16, device="jax").view(2, 3)
    torch.jax.synchronize()
    pending = computed + 1
    torch.save(computed.t(), file := io.BytesIO())
    assert _XLAC.is_pending(pending)
    file.seek(0)
    assert torch.load(file).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_parameter_is_a_parameter_after_pickle():
    parameter = torch.nn.Parameter(torch.ones(2, device="jax"))
    copied = pickle.loads(pickle.dumps(parameter))
    assert isinstance(copied, torch.nn.Parameter)
    assert isinstance(copied, XLATensor2)
    assert copied.tolist() == [1, 1]


def test_copies_share_memory_where_the_originals_do():
    base = torch.arange(4.0, device="jax")
    column = base.view(2, 2)[:, 1]
    assert column.stride() == (2,)
    copied = copy.deepcopy(
        {"view": base[1:3], "base": base, "column": column, "bits": base.view(torch.int32)}
    )
    copied["base"][1] = 7
    assert copied["view"].tolist() == [7, 2]
    assert copied["column"].tolist() == [7, 3]
    assert copied["column"].stride() == (2,)
    assert copied["bits"].view(torch.float32).tolist() == [0, 7, 2, 3]
    assert base.tolist() == [0, 1, 2, 3]
    assert column.tolist() == [1, 3]


def test_the_buffers_of_a_copied_module_share_memory():
    module = torch.nn.Module()
    module.register_buffer("all", torch.zeros(3, device="jax"))
    module.register_buffer("last", module.all[2:])
    copied = copy.deepcopy(module)
    copied.all.fill_(5)
    assert copied.last.tolist() == [5]
    assert module.last.tolist() == [0]


def test_a_module_is_copied_with_its_parameters():
    source = torch.nn.Linear(2, 2).to("jax")
    copied = copy.deepcopy(source)
    with torch.no_grad():
        copied.weight.zero_()
    assert isinstance(copied.weight, torch.nn.Parameter)
    assert copied.weight.is_jax
    assert source.weight.abs().sum().item() > 0


def test_training_goes_on_after_loading():
    def step(model, optimizer):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3, device="jax")).square().sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    def make():
        model = torch.nn.Linear(3, 1).to("jax")
        return model, torch.optim.Adam(model.parameters(), lr=0.1)

    model, optimizer = make()
    step(model, optimizer)
    saved = saved_and_loaded({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    expected = [step(model, optimizer) for _ in range(3)]
    model, optimizer = make()
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    assert [step(model, optimizer) for _ in range(3)] == pytest.approx(expected, rel=1e-6)


@pytest.mark.nightly
def test_a_checkpoint_is_written_while_training_goes_on(tmp_path, monkeypatch):
    from torch.distributed import checkpoint  # It takes seconds.

    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        model = torch.nn.Linear(3, 2).to("jax")
        expected = model.weight.tolist()
        saved = checkpoint.async_save(model.state_dict(), checkpoint_id=tmp_path / "checkpoint")
        torch.nn.init.zeros_(model.weight)
        saved.result()
        state = model.state_dict()
        checkpoint.load(state, checkpoint_id=tmp_path / "checkpoint")
    finally:
        torch.distributed.destroy_process_group()
    assert state["weight"].device.type == "jax"
    assert state["weight"].tolist() == expected
