"""Files of safetensors whose tensors are loaded to jax."""

from pathlib import Path

import pytest
import safetensors
import torch
from safetensors.torch import load_file, load_model, save_file, save_model

import torch_xla_lite  # noqa: F401
from test.models import libraries


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_file({"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2)}, tmp_path / "x.safetensors")
    return tmp_path / "x.safetensors"


@pytest.mark.parametrize("device", ["jax", "jax:0", torch.device("jax"), "cpu"])
def test_a_file_is_loaded_to_the_device(path: Path, device: str | torch.device):
    loaded = load_file(path, device=device)
    assert {tensor.device.type for tensor in loaded.values()} == {torch.device(device).type}
    assert loaded["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_open_file_gives_tensors_and_slices_on_the_device(path: Path):
    with safetensors.safe_open(path, framework="pt", device="jax") as file:
        assert sorted(file.keys()) == ["a", "b"]
        assert file.metadata() is None
        assert file.get_tensor("b").is_jax
        part = file.get_slice("a")
        assert part.get_shape() == [2, 3]
        column = part[:, 1:2]
    assert column.is_jax
    assert column.tolist() == [[1], [4]]


def test_a_model_is_loaded_and_saved_on_the_device(tmp_path: Path):
    source, target = torch.nn.Linear(2, 2).to("jax"), torch.nn.Linear(2, 2).to("jax")
    save_model(source, tmp_path / "model.safetensors")
    load_model(target, tmp_path / "model.safetensors", device="jax")
    assert torch.equal(target.weight, source.weight)


def pair() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))


@pytest.mark.parametrize(
    ("device_map", "places"),
    [({"": "jax"}, ["jax", "jax"]), ({"0": "jax", "1": "cpu"}, ["jax", "meta"])],
)
def test_accelerate_loads_a_checkpoint_to_the_device(
    tmp_path: Path, device_map: dict, places: list
):
    accelerate = libraries.require("accelerate")
    model = pair()
    save_file(model.state_dict(), tmp_path / "model.safetensors", metadata={"format": "pt"})
    with accelerate.init_empty_weights():
        empty = pair()
    loaded = accelerate.load_checkpoint_and_dispatch(
        empty, str(tmp_path / "model.safetensors"), device_map=device_map
    )
    assert [layer.weight.device.type for layer in loaded] == places
    x = torch.ones(1, 4)
    torch.testing.assert_close(loaded(x.to("jax")).cpu(), model(x))


def test_accelerate_divides_a_model_between_the_device_and_others():
    accelerate = libraries.require("accelerate")
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)))
    places = accelerate.infer_auto_device_map(model, {"cpu": "1GB", "jax": 180})
    assert places == {"0": "jax", "1": "cpu", "2": "cpu"}
    assert accelerate.infer_auto_device_map(model, {"jax": "1GB"}) == {"": "jax"}


@pytest.mark.nightly
def test_an_adapter_of_peft_is_loaded_to_the_device(tmp_path: Path):
    peft = libraries.require("peft")
    adapted = peft.get_peft_model(pair(), peft.LoraConfig(target_modules=["0"], r=2))
    adapted.save_pretrained(tmp_path)
    loaded = peft.PeftModel.from_pretrained(pair().to("jax"), tmp_path, torch_device="jax")
    assert all(parameter.is_jax for parameter in loaded.parameters())
