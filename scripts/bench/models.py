"""Programs that the benchmarks run: models with their data, which train and infer.

    program = PROGRAMS["gpt2"]("jax", lambda model: model)
    program.train(0)     # the step of a number: runs it, reads the loss
    program.infer(0)     # the same without gradients

Each program takes a device, and a function that wraps its model, such as torch.compile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Wrap = Callable[[nn.Module], Callable]
Inputs = Callable[[int], tuple[Tensor, ...]]
Step = Callable[[int], float]


@dataclass(frozen=True)
class Program:
    """Two functions of a step's number, which return the loss."""

    train: Step
    infer: Step


Prepare = Callable[[str, Wrap], Program]


def program(
    make: Callable[[], nn.Module],
    make_inputs: Callable[[], Inputs],
    loss_of: Callable[..., Tensor],
    optimizer: str = "Adam",
) -> Prepare:
    """A program of a model, its batches and its loss."""

    def prepare(device: str, wrap: Wrap) -> Program:
        module, inputs = make().to(device), make_inputs()
        model = wrap(module)
        optimize = getattr(torch.optim, optimizer)(module.parameters(), lr=1e-3)

        def loss(number: int) -> Tensor:
            return loss_of(model, *(tensor.to(device) for tensor in inputs(number)))

        def train(number: int) -> float:
            module.train()
            optimize.zero_grad()
            value = loss(number)
            value.backward()
            optimize.step()
            return value.item()

        @torch.no_grad
        def infer(number: int) -> float:
            module.eval()
            return loss(number).item()

        return Program(train, infer)

    return prepare


def chain(length: int) -> Prepare:
    """Operations with Python numbers, each on the result of the one before."""

    def prepare(device: str, wrap: Wrap) -> Program:
        x = torch.ones(64, device=device)

        def run(number: int) -> float:
            y = x
            for _ in range(length // 2):
                y = y * 1.0001 + 0.1
            return y.sum().item()

        return Program(run, run)

    return prepare


def batch(*tensors: Tensor) -> Inputs:
    """The same batch in each step."""
    return lambda number: tensors


def images(count: int, *shape: int) -> Callable[[], Inputs]:
    return lambda: batch(torch.randn(count, *shape), torch.randint(0, 10, (count,)))


def of_all_sizes(*shape: int) -> Callable[[], Inputs]:
    """Each batch has another size."""

    def inputs(number: int) -> tuple[Tensor, ...]:
        return torch.randn(10 + number, *shape), torch.randint(0, 10, (10 + number,))

    return lambda: inputs


def cross_entropy(model: Callable, x: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(x), labels)


def example_case(name: str) -> Any:
    """A model of torch_xla_lite/examples with its data, of which there is one in jax, too."""
    # Imported here, so that other programs can run without this package.
    from torch_xla_lite.examples.models import MODELS

    return next(case for case in MODELS if case.name == name)


def example(name: str) -> Prepare:
    return program(
        lambda: example_case(name).make(),
        lambda: batch(*example_case(name).batch()),
        cross_entropy,
    )


def perceptron() -> nn.Module:
    layers = [nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
    return nn.Sequential(*layers)


def convolutions() -> nn.Module:
    layers: list[nn.Module] = []
    for channels in (3, *[16] * 5):
        layers += [nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


def encoder() -> nn.Module:
    """With dropout, for 10 tokens."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    return nn.Sequential(layers, nn.Flatten(), nn.Linear(640, 10))


@functools.cache
def import_torchvision() -> Any:
    """torchvision, whose wheel has no libraries for this torch: its ops are declared first."""
    for op in ("nms", "qnms"):
        torch.library.define(f"torchvision::{op}", "(Tensor a, Tensor b, float c) -> Tensor")
    import torchvision

    return torchvision


def vision(name: str) -> Prepare:
    def make() -> nn.Module:
        return getattr(import_torchvision().models, name)(num_classes=10)

    return program(make, images(8, 3, 64, 64), cross_entropy)


def gpt2() -> nn.Module:
    """Four layers of width 256, without its tokenizer."""
    import_torchvision()  # transformers imports it where it is installed.
    import transformers

    config = transformers.GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=1000)
    return transformers.GPT2LMHeadModel(config)


class Block(nn.Module):
    """A layer of `Gpt`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """Scores of the next token, for texts of `length` tokens."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, length: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places)))


class Recurrent(nn.Module):
    """An LSTM over a hundred steps of time."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(32, 64, batch_first=True)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.recurrent(x)[0][:, -1])


class Normed(nn.Module):
    """A layer that normalises a sum, as the first transformers did."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(32, 32), nn.LayerNorm(32)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.linear(x))


PROGRAMS: dict[str, Prepare] = {
    "chain-100": chain(100),
    "chain-1000": chain(1000),
    "mlp": program(perceptron, images(64, 784), cross_entropy),
    "convnet": example("convnet"),
    "transformer": example("transformer"),
    "convolutions": program(convolutions, images(16, 3, 32, 32), cross_entropy),
    "encoder": program(encoder, images(32, 10, 64), cross_entropy),
    "gpt2": program(
        gpt2,
        lambda: batch(torch.randint(0, 1000, (4, 64))),
        lambda model, ids: model(ids, labels=ids).loss,
    ),
    "resnet18": vision("resnet18"),
    "efficientnet_b0": vision("efficientnet_b0"),
    "lstm": program(Recurrent, images(16, 100, 32), cross_entropy),
    "normed": program(
        lambda: nn.Sequential(*(Normed() for _ in range(16))),
        lambda: batch(torch.randn(32, 32)),
        lambda model, x: model(x).square().mean(),
        "SGD",
    ),
    "new-shapes": program(perceptron, of_all_sizes(784), cross_entropy, "SGD"),
    "new-shapes-convolutions": program(convolutions, of_all_sizes(3, 20, 20), cross_entropy, "SGD"),
    "new-shapes-encoder": program(encoder, of_all_sizes(10, 64), cross_entropy, "SGD"),
}
