"""Models on jax are saved and loaded by the libraries that check which tensors share memory."""

import pytest
import torch

import torch_xla_lite  # noqa: F401
from test.models import libraries, small_models

safetensors = libraries.require("safetensors.torch")


@pytest.fixture
def model():
    """A language model whose last layer is tied to its first."""
    return small_models.small_gpt2().eval().to("jax")


def logits(model):
    with torch.no_grad():
        tokens = torch.arange(6, device=model.device).view(1, 6)
        return model(tokens).logits.cpu()


@pytest.mark.nightly
@pytest.mark.parametrize("place", ["cpu", "jax"])
def test_a_pretrained_model_is_saved_and_loaded(model, tmp_path, place):
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, device_map=place).eval()
    assert loaded.device.type == place
    assert loaded.lm_head.weight is loaded.transformer.wte.weight
    torch.testing.assert_close(logits(loaded), logits(model))


def test_tied_weights_are_saved_once(model, tmp_path):
    model.save_pretrained(tmp_path)
    names = safetensors.load_file(tmp_path / "model.safetensors").keys()
    assert "transformer.wte.weight" in names
    assert "lm_head.weight" not in names


def test_a_module_with_tied_weights_goes_through_safetensors(model, tmp_path):
    file = str(tmp_path / "model.safetensors")
    safetensors.save_model(model, file)
    expected = logits(model)
    with torch.no_grad():
        model.lm_head.weight.zero_()
    safetensors.load_model(model, file)
    torch.testing.assert_close(logits(model), expected)


def test_shared_tensors_are_refused_by_safetensors(tmp_path):
    base = torch.zeros(4, device="jax")
    with pytest.raises(RuntimeError, match="share memory"):
        safetensors.save_file({"a": base, "b": base.view(2, 2)}, tmp_path / "file")


def test_parts_of_one_storage_that_do_not_overlap_are_distinguished(tmp_path):
    base = torch.arange(4.0, device="jax")
    with pytest.raises(RuntimeError, match="share memory"):
        safetensors.save_file({"a": base[:3], "b": base[2:]}, tmp_path / "file")
    safetensors.save_file({"a": base[:2], "b": base[2:]}, tmp_path / "file")
    loaded = safetensors.load_file(tmp_path / "file")
    assert loaded["a"].tolist() == [0, 1]
    assert loaded["b"].tolist() == [2, 3]
