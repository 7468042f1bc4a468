"""Models of other libraries as jax functions and as exported programs: what torch's CPU gives."""

import copy
import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

from bazel.pytest_plugin import mostly_nightly
from test.models import libraries, small_models
from torch_xla_lite import to_jax
from torch_xla_lite.export import export

torchvision = libraries.require("torchvision")
timm = libraries.require("timm")
transformers = libraries.require("transformers")
diffusers = libraries.require("diffusers")


@dataclasses.dataclass(frozen=True)
class Program:
    """A model, and what it is called with.

    Attributes:
      make: the model.
      inputs: of a batch size.
      result: of what the model gives, what is compared.
      has_lengths: whether an exported program takes inputs of all lengths, too.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[torch.Tensor, ...]]
    result: Callable[[Any], Any] = lambda output: output
    has_lengths: bool = False


class Result(nn.Module):
    """A model with one tensor as its result."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.model = program.make()
        self._result = program.result

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self._result(self.model(*inputs))


class Cached(nn.Module):
    """A language model that reads a text in two parts, with the keys and values of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.model = small_models.small_gpt2()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        first = self.model(tokens[:, :5], use_cache=True)
        return self.model(tokens[:, 5:], past_key_values=first.past_key_values).logits


class Speech(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = small_models.small_whisper()

    def forward(self, sound: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        return self.model(sound, decoder_input_ids=tokens, use_cache=False).logits


class Denoised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = small_models.small_unet()

    def forward(self, noise: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        return self.model(noise, times).sample


def images(batch: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(batch, 3, 32, 32),)


def tokens(batch: int) -> tuple[torch.Tensor, ...]:
    return (torch.randint(3, 50, (batch, 8)),)


def texts(batch: int) -> tuple[torch.Tensor, ...]:
    """Of another length for each batch size."""
    return (torch.randint(3, 50, (batch, 5 + batch)),)


def noise(batch: int) -> tuple[torch.Tensor, ...]:
    return torch.randn(batch, 3, 8, 8), torch.randint(0, 100, (batch,))


def sound(batch: int) -> tuple[torch.Tensor, ...]:
    return torch.randn(batch, 8, 20), *tokens(batch)


def logits(output: Any) -> torch.Tensor:
    return output.logits


def of_images(make: Callable[..., nn.Module], *args: Any, **options: Any) -> Program:
    return Program(lambda: make(*args, num_classes=4, **options), images)


def of_timm(name: str, **options: Any) -> Program:
    return of_images(timm.create_model, name, **options)


def of_text(make: Callable[[], nn.Module]) -> Program:
    return Program(make, texts, logits, has_lengths=True)


PROGRAMS = {
    "torchvision ResNet": of_images(
        torchvision.models.ResNet, torchvision.models.resnet.BasicBlock, [1, 1, 1, 1]
    ),
    "torchvision MobileNet": of_images(
        torchvision.models.MobileNetV2, width_mult=0.25, dropout=0.0,
        inverted_residual_setting=[[1, 16, 1, 1], [6, 24, 2, 2]],
    ),
    "torchvision ShuffleNet": of_images(
        torchvision.models.ShuffleNetV2, [1, 1, 1], [8, 16, 16, 16, 32]
    ),
    "timm ConvNeXt": of_timm("test_convnext", drop_path_rate=0.0),
    "timm ViT": of_timm("test_vit", img_size=32),
    "timm EfficientNet": of_timm("test_efficientnet"),
    "timm NFNet": of_timm("test_nfnet"),
    "timm MaxViT": of_timm("test_maxvit", img_size=32),
    "timm Mixer": of_images(
        timm.models.MlpMixer, img_size=32, patch_size=16, num_blocks=1, embed_dim=16
    ),
    "timm Swin": of_timm(
        "swin_tiny_patch4_window7_224", img_size=32, window_size=4, depths=(1, 1), embed_dim=12,
        num_heads=(2, 2), drop_path_rate=0.0,
    ),
    "transformers BERT": of_text(small_models.small_bert),
    "transformers GPT-2": of_text(small_models.small_gpt2),
    "transformers GPT-2 with cache": Program(Cached, tokens),
    "transformers Llama": of_text(small_models.small_llama),
    "transformers ViT": Program(small_models.small_vit, images, logits),
    "transformers Whisper": Program(Speech, sound),
    "diffusers UNet": Program(Denoised, noise),
}  # fmt: skip
DAILY = ("transformers Llama",)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", mostly_nightly(PROGRAMS, DAILY))
def test_outputs_buffers_and_gradients_are_those_of_the_cpu(name: str, training: bool) -> None:
    program = PROGRAMS[name]
    module = Result(program).double().train(training)
    inputs = [x.double() if x.is_floating_point() else x for x in program.inputs(3)]
    with jax.enable_x64(True):
        fn, state = to_jax(module)

        @jax.jit
        def run(params: dict, buffers: dict, *inputs: jax.Array) -> Any:
            def loss(params: dict) -> tuple[jax.Array, Any]:
                outputs, updated = fn(params, buffers, *inputs)
                return (outputs**2).sum(), (outputs, updated)

            return jax.value_and_grad(loss, has_aux=True)(params)

        (_, (outputs, buffers)), gradients = run(
            state["params"], state["buffers"], *(jnp.asarray(x.numpy()) for x in inputs)
        )
    expected = module(*inputs)
    (expected**2).sum().backward()
    assert_close(outputs, expected)
    for key, buffer in module.named_buffers():
        assert_close(buffers[key], buffer)
    for key, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue  # It has a gradient in jax.
        expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert_close(gradients[key], expected)


def assert_close(found: Any, expected: torch.Tensor) -> None:
    expected = expected.detach().numpy()
    scale = np.abs(expected).max(initial=1e-6)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5 * scale)


# --- export ---------------------------------------------------------------------------------------

SIZES = (1, 2, 5)
SERVE = """
import sys
sys.modules["torch"] = None
from pathlib import Path
import jax, jax.export, numpy
from safetensors.numpy import load_file
for folder in sorted(Path(sys.argv[1]).iterdir()):
    program = jax.export.deserialize(bytearray((folder / "program.bin").read_bytes()))
    weights = load_file(folder / "weights.safetensors")
    for size in (1, 2, 5):
        given = numpy.load(folder / f"inputs{size}.npz")
        found = program.call(weights, *(given[f"arr_{i}"] for i in range(len(given))))
        numpy.save(folder / f"found{size}.npy", found)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_exported_program_serves_all_sizes(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    module = Result(program).eval()
    batch = torch.export.Dim("batch")
    example = program.inputs(3)
    sizes = {0: batch}
    if program.has_lengths:
        sizes[1] = torch.export.Dim("length", min=2, max=16)
    dynamic = {"inputs": (sizes,) * len(example)}
    export(torch.export.export(copy.deepcopy(module), example, dynamic_shapes=dynamic)).save(
        tmp_path / "served"
    )
    expected = {}
    for size in SIZES:
        inputs = program.inputs(size)
        narrow = [x.int() if x.dtype == torch.int64 else x for x in inputs]
        np.savez(tmp_path / "served" / f"inputs{size}.npz", *(x.numpy() for x in narrow))
        with torch.no_grad():
            expected[size] = module(*inputs).numpy()
    command = [sys.executable, "-P", "-c", SERVE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for size in SIZES:
        found = np.load(tmp_path / "served" / f"found{size}.npy")
        np.testing.assert_allclose(found, expected[size], 1e-3, 1e-4)
