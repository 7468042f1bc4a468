"""Trains a small convolutional network on scikit-learn's handwritten digits.

    python -m torch_xla_lite.examples.digits                    # on XLA
    python -m torch_xla_lite.examples.digits --device jax cpu   # and on the CPU

It is an ordinary PyTorch script; only the import and the name of the device are
specific to XLA. It ends with a table: device, accuracy on the test images, time
per step, graphs compiled by XLA, and ops that fell back to the CPU's kernels.
Exit code 0; 1 if an accuracy is below 97 %.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import torch_xla_lite

try:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Table
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"The examples need {str(error.name).partition('.')[0]}, which is not installed.\n"
        "Install what they need:  python -m pip install 'torch_xla_lite[examples]'"
    ) from None

GOAL = 0.97


@dataclass(frozen=True)
class Result:
    """The result of a training run.

    Attributes:
      losses: one per step, in order.
      accuracy: fraction of the test images that are classified correctly.
      step_ms: median time of a step, from the batch to its loss as a Python number.
      compiles: graphs that XLA compiled.
      fallbacks: op -> how often it fell back to a CPU kernel.
    """

    losses: list[float]
    accuracy: float
    step_ms: float
    compiles: int
    fallbacks: dict[str, int]


def make_model() -> nn.Module:
    """A model from images `[batch, 1, 8, 8]`, pixels in 0..1, to scores `[batch, 10]`."""
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def load_data(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """1,437 training and 360 test images, `[1, 8, 8]` float32 in 0..1, each with its digit."""
    pixels, digits = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    parts = train_test_split(images, digits, test_size=360, stratify=digits, random_state=seed)
    train_x, test_x, train_y, test_y = (torch.from_numpy(part) for part in parts)
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


def train(
    device: str,
    *,
    epochs: int = 10,
    batch_size: int = 64,
    learning_rate: float = 0.05,
    seed: int = 0,
    console: Console | None = None,
) -> Result:
    """Trains and tests on `device`. Runs with the same seed start equally on all devices."""
    torch.manual_seed(seed)
    train_set, test_set = load_data(seed)
    loader = DataLoader(train_set, batch_size=batch_size, shuffle=True, drop_last=True)
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    criterion = nn.CrossEntropyLoss()

    torch_xla_lite.debug.reset_metrics()
    losses: list[float] = []
    times: list[float] = []
    columns = [
        TextColumn("epoch {task.fields[epoch]}/" + str(epochs)),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=console or Console(quiet=True)) as progress:
        task = progress.add_task("train", total=epochs * len(loader), epoch=1, loss=float("nan"))
        for epoch in range(1, epochs + 1):
            for images, digits in loader:
                start = time.perf_counter()
                images, digits = images.to(device), digits.to(device)
                optimizer.zero_grad()
                loss = criterion(model(images), digits)
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
                times.append(time.perf_counter() - start)
                progress.update(task, advance=1, epoch=epoch, loss=losses[-1])

    accuracy = test(model, test_set, device)
    metrics = torch_xla_lite.debug.metrics()
    return Result(
        losses=losses,
        accuracy=accuracy,
        step_ms=statistics.median(times) * 1e3,
        compiles=metrics["compiles"],
        fallbacks=metrics["fallbacks"],
    )


@torch.no_grad()
def test(model: nn.Module, data: TensorDataset, device: str) -> float:
    """The fraction of the images in `data` that `model` classifies correctly."""
    model.eval()
    images, digits = (part.to(device) for part in data.tensors)
    return (model(images).argmax(dim=1) == digits).float().mean().item()


def table(results: dict[str, Result]) -> Table:
    """The results, by device, as a table."""
    rows = Table("device", "test accuracy", "ms per step", "graphs compiled", "ops that fell back")
    for device, result in results.items():
        fallbacks = ", ".join(f"{op} x{count}" for op, count in sorted(result.fallbacks.items()))
        rows.add_row(
            device,
            f"{result.accuracy:.1%}",
            f"{result.step_ms:.2f}",
            str(result.compiles),
            fallbacks or "none",
        )
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m torch_xla_lite.examples.digits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--device",
        nargs="+",
        default=["jax"],
        choices=["jax", "cpu"],
        metavar="NAME",
        help="jax, cpu or both; default: jax",
    )
    parser.add_argument("--epochs", type=int, default=10, help="default: 10")
    parser.add_argument("--batch-size", type=int, default=64, help="default: 64")
    parser.add_argument("--learning-rate", type=float, default=0.05, help="default: 0.05")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    options = parser.parse_args(arguments)

    console = Console()
    results = {
        device: train(
            device,
            epochs=options.epochs,
            batch_size=options.batch_size,
            learning_rate=options.learning_rate,
            seed=options.seed,
            console=console,
        )
        for device in options.device
    }
    console.print(table(results))
    if min(result.accuracy for result in results.values()) < GOAL:
        console.print(
            f"The accuracy is below {GOAL:.0%}. Train longer:  --epochs {2 * options.epochs}"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
