"""A program of one or several processes: a library trains a small classifier on a mesh.

    python -m torch_xla_lite.launch -n 2 library_training.py LIBRARY MODE FOLDER

LIBRARY: accelerate, lightning or transformers, which write their files into FOLDER; MODE: dp or
fsdp. Each process has 2 / n devices. Prints the losses, and whether this process writes files.
"""

import json
import os
import sys
from collections.abc import Iterator

import jax
import torch

import torch_xla_lite as txl

# This is a script, also where Python does not add its folder.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(__file__)), "models"))
import libraries

BATCH, WIDTH, CLASSES = 8, 8, 4


class Classifier(torch.nn.Module):
    """As transformers' models, it returns the loss."""

    def __init__(self) -> None:
        super().__init__()
        layers = (torch.nn.Linear(WIDTH, 16), torch.nn.ReLU(), torch.nn.Linear(16, CLASSES))
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def samples() -> list[dict[str, torch.Tensor]]:
    x = torch.randn(4 * BATCH, WIDTH)
    return [{"x": row, "labels": row[:CLASSES].argmax()} for row in x]


class Stream(torch.utils.data.IterableDataset):
    """The samples, which accelerate would read in the first process alone."""

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        return iter(samples())


def with_accelerate(model: Classifier, folder: str) -> tuple[list[float], bool]:
    accelerate = libraries.require("accelerate")
    accelerator = accelerate.Accelerator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Stream(), batch_size=BATCH)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    losses = []
    for batch in loader:
        loss = model(**batch)["loss"]
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(accelerator.gather(loss).item())
    return losses, accelerator.is_main_process


def with_lightning(model: Classifier, folder: str) -> tuple[list[float], bool]:
    lightning = libraries.require("lightning.pytorch")
    from torch_xla_lite.libraries.lightning import JaxStrategy

    losses = []

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
            loss = self.model(**batch)["loss"]
            losses.append(loss.detach())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    trainer = lightning.Trainer(
        strategy=JaxStrategy(),
        max_epochs=1,
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(samples(), batch_size=BATCH))
    return [loss.item() for loss in losses], trainer.is_global_zero


def with_transformers(model: Classifier, folder: str) -> tuple[list[float], bool]:
    transformers = libraries.require("transformers")
    options = transformers.TrainingArguments(
        folder,
        per_device_train_batch_size=BATCH,
        num_train_epochs=1,
        logging_steps=1,
        # Only one process saves, and of FSDP none has the whole.
        save_strategy="no" if any(map(_is_divided, model.parameters())) else "epoch",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(model, options, train_dataset=samples())
    trainer.train()
    losses = [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]
    return losses, trainer.is_world_process_zero()


def _is_divided(tensor: torch.Tensor) -> bool:
    return txl.sharding.spec_of(tensor) != "on each device"


def main(library: str, mode: str, folder: str) -> None:
    jax.config.update("jax_num_cpu_devices", 2 // int(os.environ["WORLD_SIZE"]))
    txl.distributed.initialize()
    os.environ["ACCELERATE_TORCH_DEVICE"] = "jax"
    txl.set_mesh(jax.make_mesh((2,), ("data",)), batch="data")
    torch.manual_seed(0)
    model = Classifier()
    txl.shard_module(model, fsdp="data" if mode == "fsdp" else None)
    train = globals()[f"with_{library}"]
    losses, writes = train(model, folder)
    gathered = txl.replicate(model.layers[0].weight).sum().item()
    print("RESULT", json.dumps([losses, gathered, writes]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
