"""Exported functions and training steps: they agree with the device; their state is explicit."""

import functools
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
import torch
from torch import nn

import torch_xla_lite
from bazel.pytest_plugin import mostly_nightly
from torch_xla_lite import GraphBreak
from torch_xla_lite.export import Exported, export

X = torch.linspace(-1, 1, 12).reshape(4, 3)


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.BatchNorm1d(6), nn.Linear(6, 2)).to("jax")


def adam(parameters) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, 0.01, capturable=True)


def step_of(module: nn.Module, optimizer: torch.optim.Optimizer) -> Callable:
    @torch_xla_lite.compile
    def step(x: torch.Tensor) -> dict:
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    return step


def train(exported: Exported, x: np.ndarray, steps: int) -> tuple[list[float], dict]:
    weights, losses = dict(exported.weights), []
    for _ in range(steps):
        results, updated = exported.program.call(weights, x)
        weights.update(updated)
        losses.append(float(results["loss"]))
    return losses, weights


OPTIMIZERS: dict[str, Callable] = {
    "adam": adam,
    "momentum": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9),
    "plain": lambda parameters: torch.optim.SGD(parameters, 0.1),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", mostly_nightly(OPTIMIZERS, ["adam"]))
def test_a_training_step_goes_on_as_on_the_device(name: str):
    module = model()
    optimizer = OPTIMIZERS[name](module.parameters())
    step = step_of(module, optimizer)
    step(X.to("jax"))
    gradients = [p.grad.tolist() for p in module.parameters()]
    exported = export(step, (X,), state={"model": module, "optimizer": optimizer})
    assert [p.grad.tolist() for p in module.parameters()] == gradients
    losses, weights = train(exported, X.numpy(), 3)
    # The device was not changed.
    assert losses == pytest.approx([step(X.to("jax"))["loss"].item() for _ in range(3)], abs=1e-5)
    for key, value in module.named_buffers():
        np.testing.assert_allclose(weights[f"model.{key}"], value.cpu(), 1e-4, 1e-5)


@pytest.mark.nightly
def test_what_a_step_only_reads_is_no_update():
    module = model().eval()
    module[0].requires_grad_(False)
    optimizer = torch.optim.SGD(module[3:].parameters(), 0.1)
    exported = export(step_of(module, optimizer), (X,), state={"model": module})
    assert list(exported.updates) == ["model.3.weight", "model.3.bias"]


def test_a_module_is_its_own_state():
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    exported = export(module, (X,))
    expected = module(X)
    result, updated = exported(X.numpy())
    np.testing.assert_allclose(result, expected.detach(), 1e-4, 1e-5)
    assert set(updated) == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    np.testing.assert_allclose(updated["1.running_mean"], module[1].running_mean, 1e-4, 1e-5)
    np.testing.assert_allclose(export(module.eval(), (X,))(X.numpy()), module(X).detach(), 1e-4)


def test_random_numbers_are_of_the_key():
    exported = export(nn.Dropout(0.5), (torch.ones(50),))
    assert exported.inputs[-1] == {"name": "rng", "dtype": "uint32", "shape": ["2"]}
    first, same, other = (
        exported(np.ones(50, np.float32), rng=np.array([0, k], np.uint32)) for k in (1, 1, 2)
    )
    assert set(first.tolist()) == {0, 2}
    assert (first == same).all()
    assert (first != other).any()


def test_inputs_and_results_have_their_structure():
    def swap(pair: dict, *, scale: torch.Tensor) -> tuple:
        return pair["b"] * scale, {"a": pair["a"], "count": 2}

    pair, scale = {"b": torch.ones(2), "a": torch.arange(3)}, torch.tensor(3.0)
    exported = export(swap, (pair,), {"scale": scale})
    assert [x["name"] for x in exported.inputs] == ["0.b", "0.a", "scale"]
    b, rest = exported({"a": np.arange(3, dtype=np.int32), "b": np.ones(2, np.float32)}, scale=3.0)
    assert b.tolist() == [3, 3]
    assert jax.tree.map(lambda x: x.tolist(), rest) == {"a": [0, 1, 2], "count": 2}


def test_an_array_that_a_function_captures_is_beside():
    table = torch.arange(3.0, device="jax")
    exported = export(lambda x: x + table, (X,))
    assert [x.tolist() for x in exported.weights.values()] == [[0, 1, 2]]
    np.testing.assert_allclose(exported(X.numpy()), X + torch.arange(3.0))


def test_weights_may_be_inside(tmp_path: Path):
    module = model().eval()
    expected = module(X.to("jax")).detach().cpu()
    export(module, (X,)).save(tmp_path)
    exported = export(module, (X,), weights="inside")
    assert not exported.weights
    exported.save(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["meta.json", "program.bin"]
    with pytest.raises(ValueError, match="'beside' or 'inside'"):
        export(module, (X,), weights="insde")
    np.testing.assert_allclose(exported(X.numpy()), expected, 1e-4, 1e-5)
    graph = torch.export.export(module.cpu(), (X,), dynamic_shapes=({0: torch.export.Dim("b")},))
    exported = export(graph, weights="inside")
    np.testing.assert_allclose(exported.program.call(X.numpy()[:2]), expected[:2], 1e-4, 1e-5)


# --- a process without torch ----------------------------------------------------------------------

TRAIN = """
import sys
sys.modules["torch"] = None
import numpy as np
{train}
for loss in train(sys.argv[1], [np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)] * 3):
    print(float(loss["loss"]))
"""


@pytest.mark.nightly
def test_a_process_without_torch_trains(tmp_path: Path):
    pytest.importorskip("flatbuffers")
    module = model()
    optimizer = adam(module.parameters())
    step = step_of(module, optimizer)
    step(X.to("jax"))
    export(step, (X,), state={"model": module, "optimizer": optimizer}).save(tmp_path)
    page = Path("docs/export.md").read_text()
    found = re.search(r"^## Training steps\n.*?^```py\n(.*?)^```$", page, re.M | re.S)[1]
    command = [sys.executable, "-P", "-c", TRAIN.format(train=found), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = [step(X.to("jax"))["loss"].item() for _ in range(3)]
    assert [float(line) for line in done.stdout.split()] == pytest.approx(expected, abs=1e-5)


# --- refusals -------------------------------------------------------------------------------------


def test_a_step_whose_optimizer_has_no_state_yet_is_refused_and_leaves_it_so():
    module = model()
    optimizer = adam(module.parameters())
    before = [p.tolist() for p in module.parameters()]
    with pytest.raises(ValueError, match=r"optimizer.state.0.exp_avg and .* more.\nCall it once"):
        export(step_of(module, optimizer), (X,), state={"model": module, "optimizer": optimizer})
    assert not optimizer.state
    assert [p.tolist() for p in module.parameters()] == before


def test_a_state_on_the_cpu_is_refused_and_stays():
    module = model()
    optimizer = torch.optim.Adam(module.parameters())
    step = step_of(module, optimizer)
    step(X.to("jax"))
    with pytest.raises(ValueError, match=r"state.0.step and .* on the CPU(.|\n)*capturable=True"):
        export(step, (X,), state={"model": module, "optimizer": optimizer})
    assert optimizer.state[module[0].weight]["step"].item() == 1


def test_a_tensor_outside_of_the_state_that_is_written_to_is_refused():
    def adder() -> tuple[torch.Tensor, Callable]:
        total = torch.zeros(3, device="jax")
        return total, lambda x: total.add_(x.sum(0)).clone()

    total, add = adder()
    with pytest.raises(ValueError, match=r"lambda> writes to a tensor.*\n.*state={'model'"):
        export(add, (X,))
    total, add = adder()
    assert list(export(add, (X,), state={"total": total}).updates) == ["total"]


def test_a_value_that_is_read_is_refused_with_its_line():
    def clip(x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x

    with pytest.raises(GraphBreak, match=r"a value is read, at .*exportable_steps_test.py"):
        export(clip, (X,))


def test_an_input_that_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match=r"got 2 as input 1.\n.*functools.partial"):
        export(torch.mul, (X, 2))
    exported = export(functools.partial(torch.mul, other=2), (X,))
    np.testing.assert_allclose(exported(X.numpy()), 2 * X)


def test_weights_that_are_updated_cannot_be_inside():
    with pytest.raises(ValueError, match=r"updates running_mean(.|\n)*weights=\"beside\""):
        export(nn.BatchNorm1d(3), (X,), weights="inside")
