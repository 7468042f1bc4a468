"""Training loops of accelerate and transformers on device "jax"."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from test.models import libraries
from test.models.small_models import small_gpt2
from torch_xla_lite import debug

transformers = libraries.require("transformers")
accelerate = libraries.require("accelerate")


@pytest.fixture
def choose_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the device of accelerate, and of transformers, which asks it."""

    def choose(device: str) -> None:
        monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", device)
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)

    yield choose
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)


def sentences(count: int = 16) -> list[dict[str, torch.Tensor]]:
    tokens = torch.randint(0, 20, (count, 6), generator=torch.Generator().manual_seed(0))
    return [{"input_ids": row, "labels": row} for row in tokens]


class Trainer(transformers.Trainer):
    """Counts compilations from the third step on."""

    def training_step(self, *args, **kwargs) -> torch.Tensor:
        if self.state.global_step == 2:
            debug.reset_metrics()
        return super().training_step(*args, **kwargs)


def trainer(folder: Path, model: nn.Module) -> Trainer:
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=4, max_steps=4, save_steps=2,
        optim="sgd", learning_rate=0.05, report_to=[], disable_tqdm=True, seed=1,
        dataloader_pin_memory=False,
    )  # fmt: skip
    return Trainer(model=copy.deepcopy(model), args=arguments, train_dataset=sentences())


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().cpu() for name, value in model.state_dict().items()}


@pytest.mark.nightly
def test_trainer_saves_a_checkpoint_and_resumes_from_it(
    choose_device: Callable[[str], None], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = small_gpt2()
    choose_device("cpu")
    on_cpu = trainer(tmp_path / "cpu", model)
    on_cpu.train()
    choose_device("jax")
    on_jax = trainer(tmp_path / "jax", model)
    on_jax.train()
    assert debug.metrics()["compiles"] == debug.metrics()["loads"] == 0
    torch.testing.assert_close(state(on_jax.model), state(on_cpu.model), rtol=1e-3, atol=1e-5)
    resumed = trainer(tmp_path / "jax", model)
    resumed.train(resume_from_checkpoint=str(tmp_path / "jax" / "checkpoint-2"))
    assert resumed.model.device.type == on_jax.model.device.type == "jax"
    torch.testing.assert_close(state(resumed.model), state(on_cpu.model), rtol=1e-3, atol=1e-5)


def batches() -> DataLoader:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(16, 5, generator=generator)
    y = torch.randint(0, 3, (16,), generator=generator)
    return DataLoader(TensorDataset(x, y), batch_size=4)


def small_classifier() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


def train_with_accelerate() -> dict[str, torch.Tensor]:
    accelerator = accelerate.Accelerator()
    model = small_classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, batches())
    for step, (x, y) in enumerate(loader):
        assert x.device.type == accelerator.device.type
        if step == 2:
            debug.reset_metrics()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        assert loss.item() > 0  # Each step is a graph.
    counts = debug.metrics()
    assert counts["compiles"] == counts["loads"] == 0
    return state(accelerator.unwrap_model(model))


def test_accelerate_trains_as_on_the_cpu(choose_device: Callable[[str], None]) -> None:
    choose_device("cpu")
    wanted = train_with_accelerate()
    choose_device("jax")
    torch.testing.assert_close(train_with_accelerate(), wanted)
