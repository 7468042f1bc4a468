"""Three small models, which the tests train for correctness and the benchmark for speed.

    for case in MODELS:
        model = case.make()
        inputs, targets = case.batch(seed=0)
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)

They are plain torch.nn modules, made on the CPU. Dropout is off by default, because random numbers
differ between devices and everything else must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn


def make_mlp(dropout: float = 0.0) -> nn.Module:
    """Two hidden layers of 256: `[batch, 784]`, images as rows, to `[batch, 10]`."""
    return nn.Sequential(
        nn.Linear(784, 256),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(256, 10),
    )


def make_convnet(dropout: float = 0.0) -> nn.Module:
    """Convolutions with batch norm, max and average pooling: `[batch, 1, 28, 28]` to `[batch, 10]`.

    The convolutions have no bias, as usual before batch norm: it would not change the output. Its
    gradient would be zero except for rounding errors, which Adam would turn into full steps.
    """
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(32 * 7 * 7, 10),
    )


class Transformer(nn.Module):
    """A two-layer encoder that scores each position: `[batch, 32]` tokens to `[batch * 32, 64]`."""

    TOKENS, LENGTH, WIDTH, HEADS, HIDDEN = 64, 32, 128, 4, 256

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.embed = nn.Embedding(self.TOKENS, self.WIDTH)
        self.position = nn.Parameter(torch.randn(self.LENGTH, self.WIDTH) * 0.02)
        layer = nn.TransformerEncoderLayer(
            self.WIDTH, self.HEADS, self.HIDDEN, dropout, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(self.WIDTH, self.TOKENS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder(self.embed(tokens) + self.position)
        return self.head(hidden).flatten(0, 1)


@dataclass(frozen=True)
class ModelCase:
    """A model, and data that it accepts.

    Attributes:
      name: for tables and test names.
      make: `make(dropout=0.0)` gives the model, on the CPU, initialised from torch's default
        generator.
      batch: `batch(seed=0)` gives inputs and targets, on the CPU, the same ones for each seed.
    """

    name: str
    make: Callable[..., nn.Module]
    batch: Callable[..., tuple[torch.Tensor, torch.Tensor]]


def _classes(*shape: int) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    def batch(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(shape, generator=generator), torch.randint(
            10, shape[:1], generator=generator
        )

    return batch


def _tokens(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(Transformer.TOKENS, (32, Transformer.LENGTH), generator=generator)
    return tokens, tokens.roll(1, dims=1).flatten()


MODELS = (
    ModelCase("mlp", make_mlp, _classes(64, 784)),
    ModelCase("convnet", make_convnet, _classes(32, 1, 28, 28)),
    ModelCase("transformer", Transformer, _tokens),
)
