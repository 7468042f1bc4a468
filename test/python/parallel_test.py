"""torch's own ways to use several devices, on jax (torch_hooks/parallel.py)."""

import jax
import pytest
import torch
from torch.distributed import fsdp

import torch_xla_lite


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_data_parallel_calls_the_module(device: str):
    module = torch.nn.Linear(2, 1).to(device)
    parallel, x = torch.nn.DataParallel(module), torch.ones(3, 2, device=device)
    assert torch.equal(parallel(x), module(x))
    assert list(parallel.state_dict()) == ["module.weight", "module.bias"]


@pytest.fixture
def process_group():
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


WAYS = {
    "DistributedDataParallel": (torch.nn.parallel.DistributedDataParallel, "shard_module"),
    "FullyShardedDataParallel": (fsdp.FullyShardedDataParallel, "fully_shard"),
    "fully_shard": (fsdp.fully_shard, "fully_shard"),
}


@pytest.mark.parametrize(("wrap", "remedy"), WAYS.values(), ids=WAYS.keys())
@pytest.mark.usefixtures("process_group")
def test_a_way_of_torch_to_spread_a_model_names_ours(wrap, remedy):
    with pytest.raises(
        RuntimeError, match=rf"docs/mesh\.md.*\n.*torch_xla_lite\.{remedy}\(model\)"
    ):
        wrap(torch.nn.Linear(2, 2).to("jax"))


@pytest.mark.usefixtures("process_group")
def test_a_model_on_the_cpu_is_wrapped():
    wrapped = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    assert wrapped(torch.ones(1, 2)).shape == (1, 2)
    assert fsdp.fully_shard.state(torch.nn.Linear(2, 2)) is None


def test_a_mesh_of_more_devices_than_there_are_names_the_flag():
    with pytest.raises(ValueError, match="xla_force_host_platform_device_count=64"):
        jax.make_mesh((8, 8), ("data", "model"))


def test_a_rule_that_divides_nothing_is_named():
    torch_xla_lite.set_mesh(jax.make_mesh((1,), ("model",)))
    try:
        with pytest.warns(UserWarning, match=r"'wieght' divides nothing.*weight, bias"):
            torch_xla_lite.shard_module(torch.nn.Linear(4, 4), [("wieght", ("model", None))])
    finally:
        torch_xla_lite.set_mesh(None)
