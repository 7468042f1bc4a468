"""A tensor that is spread over a mesh has the values of one that is not, and stays where it is."""

import copy
import io
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

import torch_xla_lite as txl
from test.mesh import devices  # noqa: F401  before jax starts
from test.python import tiers
from torch_xla_lite import _XLAC, debug
from torch_xla_lite.compiler import compilation_cache
from torch_xla_lite.lowering.base import decomposition
from torch_xla_lite.mesh.base import placements
from torch_xla_lite.mesh.sharding import spec_of

import jax  # isort: skip


@pytest.fixture(autouse=True)
def _mesh() -> Iterator[None]:
    txl.set_mesh(jax.make_mesh((8,), ("data",)), batch="data")
    yield
    txl.set_mesh(None)


def _rows() -> torch.Tensor:
    return torch.arange(128.0).view(16, 8)


# --- what stays -----------------------------------------------------------------------------------


def _write_through_a_view(x: torch.Tensor) -> None:
    x.t()[0] = 5


def _accumulate(x: torch.Tensor) -> None:
    x.index_put_((torch.tensor([1, 1], device=x.device),), x[:2] * 2, accumulate=True)


def _write_to_parts_of_an_axis(x: torch.Tensor) -> None:
    pairs = x.view(4, 2, 16) * 1
    pairs[:, 1:] = pairs[:, :-1] * 2
    x.copy_(pairs.view(16, 8))


WRITES: list[Callable[[torch.Tensor], object]] = [
    lambda x: x.mul_(2),
    lambda x: x.copy_(torch.ones(16, 8)),
    lambda x: x.copy_(x.flip(0)),
    lambda x: x[3:5].zero_(),
    lambda x: x.masked_fill_(x > 20, -1),
    lambda x: x.view(-1)[::3].add_(1),
    lambda x: torch.add(x, x, out=x),
    _write_through_a_view,
    _accumulate,
    _write_to_parts_of_an_axis,
    lambda x: x.view(-1)[1:].copy_(x.view(-1)[:-1].clone()),
]


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_to_stays_where_it_is(write: Callable):
    expected, x = _rows(), txl.shard(_rows(), "data")
    kept = txl.shard(_rows(), "data")
    write(expected)
    write(x)
    assert x.tolist() == expected.tolist()
    assert spec_of(x) == "P('data')"
    assert kept.tolist() == _rows().tolist()


COPIES: list[Callable[[torch.Tensor], torch.Tensor]] = [
    torch.clone,
    copy.deepcopy,
    lambda x: x.to(torch.bfloat16),
    lambda x: x.t().t() + 1,
    torch.zeros_like,
    lambda x: torch.zeros_like(x, dtype=torch.float64),
]


@pytest.mark.parametrize("copied", COPIES)
def test_what_is_made_of_it_is_where_it_is(copied: Callable):
    x = txl.shard(_rows(), "data")
    y = copied(x)
    txl.sync()
    assert spec_of(y) == "P('data')"
    assert y.tolist() == copied(_rows()).tolist()


def _trained(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters())
    model(_rows().to("jax")).square().mean().backward()
    optimizer.step()
    return optimizer


def test_a_module_and_its_optimizer_stay_when_they_are_loaded():
    model = txl.fully_shard(nn.Linear(8, 16))
    weights = {name: tensor.cpu() + 1 for name, tensor in model.state_dict().items()}
    model.load_state_dict(weights)
    assert spec_of(model.weight) == "P('data')"
    assert model.weight.tolist() == weights["weight"].tolist()

    optimizer = _trained(model)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    optimizer.load_state_dict(torch.load(file))
    assert spec_of(optimizer.state[model.weight]["exp_avg"]) == "P('data')"

    optimizer.zero_grad(set_to_none=False)
    txl.sync()
    assert spec_of(model.weight.grad) == "P('data')"
    model.to(torch.bfloat16)
    txl.sync()
    assert spec_of(model.weight) == "P('data')"


def test_a_file_has_the_whole_tensor():
    file = io.BytesIO()
    torch.save({"x": txl.shard(_rows(), "data")}, file)
    file.seek(0)
    loaded = torch.load(file, map_location="cpu")["x"]
    assert loaded.tolist() == _rows().tolist()


# --- how it gets there ----------------------------------------------------------------------------


def test_memory_of_the_host_is_not_shared():
    x = _rows()
    y = txl.shard(x, "data")
    x.add_(1)
    assert y.tolist() == _rows().tolist()


@pytest.mark.parametrize("spec", [(), ("data",)])
def test_memory_of_other_tensors_is_not_shared(spec: tuple):
    x = torch.arange(16.0, device="jax") * 1
    txl.sync()
    for _ in range(2):  # From one device, and from the same place.
        y = txl.shard(x, *spec)
        y.mul_(2)
        txl.sync()  # A program overwrites the memory of its argument.
        assert x.tolist() == list(range(16))
        x = txl.shard(x, *spec)


def test_a_batch_is_spread_and_a_weight_is_not():
    assert spec_of(_rows().to("jax")) == "P('data')"
    assert spec_of(torch.tensor(1.0).to("jax")) == "on one device"
    assert spec_of(nn.Linear(8, 16).to("jax").weight) == "on one device"


def test_a_dimension_is_divided_by_a_list_of_axes_as_by_a_tuple():
    txl.set_mesh(jax.make_mesh((2, 4), ("data", "model")))
    for x in (torch.ones(16, 8), torch.ones(16, 8, device="jax") * 2):
        for axes in (["data", "model"], ("data", "model")):
            y = txl.shard(x, axes)
            txl.sync()
            assert spec_of(y) == "P(('data', 'model'))"


def test_a_constraint_is_differentiable():
    x = _rows().to("jax").requires_grad_()
    y = txl.shard((x * 2).t(), None, "data")
    (y.sum() * 3).backward()
    txl.sync()
    assert spec_of(y) == "P(None, 'data')"
    assert x.grad.tolist() == torch.full((16, 8), 6.0).tolist()


def test_a_constraint_alone_places_what_was_on_one_device():
    with tiers.as_by_default():
        y = txl.shard(torch.ones(16, device="jax") * 2, "data")
        assert y.tolist() == [2] * 16
        assert spec_of(y) == "P('data')"


def test_a_gradient_that_is_a_view_has_the_place_of_its_base():
    model = txl.fully_shard(nn.BatchNorm1d(8))
    (model.weight.view(1, 8) * torch.ones(4, 8, device="jax")).sum().backward()
    txl.sync()
    assert model.weight.grad.tolist() == [4] * 8


def test_what_a_module_returns_is_spread():
    model = txl.shard_output(nn.Linear(8, 16).to("jax"), None, "data")
    y = model(torch.ones(3, 8, device="jax"))
    txl.sync()
    assert spec_of(y) == "P(None, 'data')"
    layer = txl.shard_output(nn.LSTM(8, 8).to("jax"), None, None, "data")
    outputs, (hidden, _) = layer(torch.ones(3, 2, 8, device="jax"))
    txl.sync()
    assert spec_of(outputs) == "P(None, None, 'data')"
    assert hidden.shape == (1, 2, 8)


def test_a_mesh_of_torch_is_taken():
    from torch.distributed.device_mesh import DeviceMesh

    ranks = torch.arange(8).view(2, 4)
    names = ("rows", "columns")
    mesh = DeviceMesh("cpu", ranks, mesh_dim_names=names, _init_backend=False, _rank=0)
    txl.set_mesh(mesh, batch="rows")
    assert dict(placements.mesh().shape) == {"rows": 2, "columns": 4}
    assert spec_of(_rows().to("jax")) == "P('rows')"
    too_many = DeviceMesh("cpu", torch.arange(16), _init_backend=False, _rank=0)
    with pytest.raises(ValueError, match="device 15, and jax has 8"):
        txl.set_mesh(too_many)


# --- errors and explanations ----------------------------------------------------------------------


REFUSED = {
    r"10 elements[\s\S]*drop_last[\s\S]*replicate": lambda: txl.shard(torch.ones(10), "data"),
    r"axes \('data',\), and no 'model'": lambda: txl.shard(_rows(), "model"),
    "no 0": lambda: txl.shard(_rows(), 0),
    "one dimension at most": lambda: txl.shard(_rows(), "data", "data"),
    "2 dimensions for a tensor of 1": lambda: txl.shard(torch.ones(8), "data", None),
    "bias: dim.* 0 has 3": lambda: txl.shard_module(nn.Linear(8, 3), [("bias", ("data",))]),
    "a view is where": lambda: txl.sharding.shard_(_rows().to("jax").t(), "data"),
    "no 'rows'": lambda: txl.set_mesh(jax.make_mesh((8,), ("data",)), batch="rows"),
}


def test_bad_specs_are_refused_at_the_call():
    for message, call in REFUSED.items():
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="Mesh"):
        txl.set_mesh(8)
    txl.set_mesh(None)
    with pytest.raises(RuntimeError, match="set_mesh"):
        txl.shard(_rows(), "data")


def test_a_graph_on_two_meshes_is_refused_by_both_names():
    x = txl.shard(_rows(), "data")
    txl.set_mesh(jax.make_mesh((4,), ("other",)))
    y = txl.shard(_rows(), "other")
    with pytest.raises(RuntimeError, match=r"\(data: 8\)[\s\S]*\(other: 4\)"):
        (x + y).tolist()


def test_the_same_constraint_is_of_the_mesh_that_is_set():
    def constrained() -> torch.Tensor:
        return txl.shard(torch.arange(16.0, device="jax") * 3, "data")

    for count in (8, 4):
        txl.set_mesh(jax.make_mesh((count,), ("data",)))
        y = constrained()
        txl.sync()
        assert len(_XLAC.to_jax(y).sharding.device_set) == count
    assert (constrained() + txl.shard(torch.ones(16), "data")).tolist()[:2] == [1, 4]


def test_a_batch_that_devices_cannot_share_is_told_where_it_is_copied():
    with pytest.warns(UserWarning, match=r"12 elements[\s\S]*drop_last[\s\S]*replicate"):
        x = torch.ones(12, 2).to("jax")
    assert spec_of(x) == "on one device"


def test_a_loader_spreads_what_the_mesh_calls_a_batch():
    txl.set_mesh(jax.make_mesh((2, 4), ("data", "model")), batch="data")
    loader = txl.shard_loader(torch.utils.data.DataLoader(torch.ones(12, 3), batch_size=6))
    assert [spec_of(x) for x in loader] == ["P('data')"] * 2
    assert (loader.batch_size, len(loader)) == (6, 2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e5m2, torch.bool, torch.complex64])
def test_rows_of_any_dtype_are_given_to_jax(dtype: torch.dtype):
    rows = torch.arange(6).view(2, 3).to(dtype)
    array = decomposition.as_numpy(rows)
    assert array.shape == (2, 3)
    assert torch.equal(_XLAC.from_jax(jax.device_put(array)).cpu().float(), rows.float())


def test_a_new_place_is_the_cause_of_a_new_graph():
    for spec in [("data",), (None, "data")]:
        (txl.shard(_rows(), *spec) * 7).tolist()
    cause = debug.explain_recompile()[-1].cause
    assert cause == "input 0 float32[16,8] is P(None, 'data'), was P('data')"
    for spec in [("data",), (None, "data")]:
        y = txl.shard(torch.zeros(16, 8), *spec)
        y.copy_(txl.shard(_rows(), "data").atan())
        txl.sync()
    cause = debug.explain_recompile()[-1].cause
    assert cause.startswith("a result of aten::atan is kept P(None, 'data'), was P('data')")


def test_indices_are_checked():
    table, at = txl.shard(_rows(), "data"), torch.tensor([1, 99], device="jax")
    with pytest.raises(IndexError):
        table[at].tolist()
        torch.jax.synchronize()


def test_the_table_of_places_has_the_bytes_of_a_device():
    table = debug.shardings(txl.fully_shard(nn.Linear(8, 16)))
    assert "weight  float32[16,8]  P('data')" in table
    assert table.splitlines()[1].endswith(" 64")


def test_placements_have_one_number_for_one_place():
    shape = (16, 8)
    with_none = txl.sharding.number_of_spec(("data", None), len(shape))
    assert with_none == txl.sharding.number_of_spec(("data",), len(shape))
    assert with_none != txl.sharding.number_of_spec((), len(shape))
    txl.set_mesh(jax.make_mesh((8, 1), ("data", "model")))
    assert txl.sharding.number_of_spec(("model",), 1) == txl.sharding.number_of_spec((), 1)


def test_a_program_without_a_mesh_has_the_key_that_it_has_where_there_never_was_one(monkeypatch):
    key, keys = compilation_cache.key, []
    monkeypatch.setattr(compilation_cache, "key", lambda *text: keys.append(text) or key(*text))

    def run() -> int:
        _XLAC.clear_cache()
        debug.reset_metrics()
        leaf = _rows().to("jax").requires_grad_()
        (leaf.sin() @ leaf.mT).sum().backward()
        assert leaf.grad.shape == (16, 8)
        leaf.grad.tolist()
        return debug.metrics()["recorded_ops"]

    txl.set_mesh(None)
    ops = run()
    before = keys.copy()
    txl.set_mesh(jax.make_mesh((8,), ("data",)), batch="data")
    run()
    assert keys[len(before) :] != before
    keys.clear()
    txl.set_mesh(None)
    assert (run(), keys) == (ops, before)
