"""Models and loops that others wrote train on a mesh as on one device, unchanged but for the lines
that place them."""

import io
import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import torch_xla_lite as txl
from test.mesh import devices  # noqa: F401  before jax starts
from test.mesh.transformer import RULES as TRANSFORMER_RULES
from test.mesh.transformer import VOCABULARY, LanguageModel
from test.models import libraries
from torch_xla_lite import debug

import jax  # isort: skip

pytestmark = pytest.mark.nightly

# The matrices of transformers' models: of GPT-2, whose weights are transposed, and of Llama, ViT.
RULES = [
    (r"(c_attn|c_fc)\.weight", (None, "model")),
    (r"attn\.c_proj\.weight|mlp\.c_proj\.weight", ("model", None)),
    (r"(q_proj|k_proj|v_proj|up_proj|gate_proj|fc1)\.weight", ("model", None)),
    (r"(o_proj|down_proj|fc2)\.weight", (None, "model")),
]
PLACES: dict[str, Callable[[nn.Module, list], object]] = {
    "dp": lambda model, rules: txl.shard_module(model),
    "fsdp": lambda model, rules: txl.fully_shard(model),
    "tp+dp": lambda model, rules: txl.shard_module(model, rules),
    "tp+fsdp": lambda model, rules: txl.shard_module(model, rules, fsdp="data"),
}


@pytest.fixture(autouse=True)
def _without_mesh() -> Iterator[None]:
    yield
    txl.set_mesh(None)


def _placed(model: nn.Module, mode: str | None, rules: list = RULES) -> nn.Module:
    txl.set_mesh(None)
    if mode is None:
        return model.to("jax")
    grid = mode.startswith("tp")
    shape, axes = ((2, 4), ("data", "model")) if grid else ((8,), ("data",))
    txl.set_mesh(jax.make_mesh(shape, axes), batch="data")
    PLACES[mode](model, rules)
    return model


def _model_of_transformers(kind: str) -> nn.Module:
    from test.models import small_models  # It needs the libraries.

    torch.manual_seed(0)
    return getattr(small_models, f"small_{kind}")()


def _examples(kind: str) -> list[dict[str, torch.Tensor]]:
    draw = torch.Generator().manual_seed(0)
    if kind == "vit":
        images = torch.randn(64, 3, 32, 32, generator=draw)
        labels = torch.randint(2, (64,), generator=draw)
        return [{"pixel_values": x, "labels": y} for x, y in zip(images, labels, strict=True)]
    texts = torch.randint(50, (64, 16), generator=draw)
    return [{"input_ids": text, "labels": text} for text in texts]


def _trainer_losses(kind: str, mode: str | None, folder: Path, lora: bool) -> list[float]:
    transformers = libraries.require("transformers")
    model = _model_of_transformers(kind)
    if lora:
        peft = libraries.require("peft")
        targets = ["c_attn"] if kind == "gpt2" else ["q_proj", "v_proj"]
        torch.manual_seed(1)
        model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=targets))
    model = _placed(model, mode)
    arguments = transformers.TrainingArguments(
        str(folder / f"{mode}"),
        max_steps=4,
        per_device_train_batch_size=16,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        seed=0,
    )
    trainer = transformers.Trainer(model, arguments, train_dataset=_examples(kind))
    trainer.train()
    return [row["loss"] for row in trainer.state.log_history if "loss" in row]


_KINDS = ("gpt2", "llama", "vit")
_TRAININGS = [*itertools.product(_KINDS, PLACES, (False,)), *((k, "fsdp", True) for k in _KINDS)]


@pytest.mark.parametrize("training", _TRAININGS, ids=str)
def test_the_trainer_of_transformers(
    training: tuple[str, str, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kind, mode, lora = training
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", "jax")
    expected = _trainer_losses(kind, None, tmp_path, lora)
    losses = _trainer_losses(kind, mode, tmp_path, lora)
    assert losses == pytest.approx(expected, abs=1e-4)  # It logs four digits.
    assert debug.metrics()["gathered"] == {}


@pytest.mark.parametrize("mode", PLACES)
def test_a_loop_of_accelerate(mode: str, monkeypatch: pytest.MonkeyPatch):
    accelerate = libraries.require("accelerate")
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", "jax")

    def losses(mode: str | None) -> list[float]:
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
        accelerator = accelerate.Accelerator(gradient_accumulation_steps=2)
        model = _placed(_model_of_transformers("gpt2"), mode)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        loader = torch.utils.data.DataLoader(_examples("gpt2"), batch_size=16)
        torch.manual_seed(0)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        found = []
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            found.append(accelerator.gather(loss).mean().item())
        return found

    assert losses(mode) == pytest.approx(losses(None), abs=1e-5)


@pytest.mark.parametrize("mode", PLACES)
def test_a_loop_as_of_nanogpt(mode: str):
    """Batches cut from one text, micro-batches, clipped gradients, decay of matrices alone, a rate
    that follows a cosine, an evaluation, and a checkpoint in the middle."""

    def losses(mode: str | None) -> list[float]:
        torch.manual_seed(0)
        model = LanguageModel(dropout=0.1)
        model.head.weight = model.embedding.weight
        _placed(model, mode, TRANSFORMER_RULES)
        groups = [
            {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
            {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
        text = torch.randint(VOCABULARY, (2_000,), generator=torch.Generator().manual_seed(0))
        draw = torch.Generator().manual_seed(1)

        def loss_of_batch() -> torch.Tensor:
            starts = torch.randint(len(text) - 17, (16,), generator=draw).tolist()
            x = torch.stack([text[i : i + 16] for i in starts]).to("jax")
            y = torch.stack([text[i + 1 : i + 17] for i in starts]).to("jax")
            return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())

        found = []
        for step in range(6):
            for group in optimizer.param_groups:
                group["lr"] = 1e-2 * 0.5 * (1 + math.cos(math.pi * step / 6))
            for _ in range(2):
                loss = loss_of_batch() / 2
                loss.backward()
            found.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            found.append(loss.item())
            if step == 3:
                model.eval()
                with torch.no_grad():
                    found.append(loss_of_batch().item())
                model.train()
                file = io.BytesIO()
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
                file.seek(0)
                saved = torch.load(file)
                model.load_state_dict(saved["model"])
                optimizer.load_state_dict(saved["optimizer"])
        return found

    expected = losses(None)
    txl.sync()
    debug.reset_metrics()
    assert losses(mode) == pytest.approx(expected, abs=1e-4)
    assert debug.metrics()["gathered"] == {}


@pytest.mark.parametrize("mode", ["dp", "fsdp"])
@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "resnet18", "mobilenetv3_small_050"])
def test_the_models_of_timm(name: str, mode: str):
    timm = libraries.require("timm")

    def losses(mode: str | None) -> list[float]:
        torch.manual_seed(0)
        options = {"img_size": 32, "patch_size": 8} if name.startswith("vit") else {}
        model = _placed(timm.create_model(name, num_classes=8, **options), mode)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        draw = torch.Generator().manual_seed(0)
        found = []
        for _ in range(3):
            x = torch.randn(16, 3, 32, 32, generator=draw).to("jax")
            y = torch.randint(8, (16,), generator=draw).to("jax")
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    expected = losses(None)
    txl.sync()
    debug.reset_metrics()
    assert losses(mode) == pytest.approx(expected, rel=1e-4)
    assert debug.metrics()["gathered"] == {}


def test_lightning(tmp_path: Path):
    lightning = libraries.require("lightning.pytorch")
    from torch_xla_lite.libraries.lightning import JaxStrategy

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
            self.losses: list[float] = []

        def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
            loss = self.layers(batch[0]).square().mean()
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=0.1)

    def losses(mode: str | None) -> list[float]:
        model = _placed(Model(), mode)
        rows = torch.utils.data.TensorDataset(torch.linspace(-1, 1, 64 * 8).view(64, 8))
        trainer = lightning.Trainer(
            strategy=JaxStrategy(),
            max_epochs=1,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
            default_root_dir=tmp_path,
        )
        trainer.fit(model, torch.utils.data.DataLoader(rows, batch_size=16))
        return model.losses

    assert losses("fsdp") == pytest.approx(losses(None), abs=1e-5)
