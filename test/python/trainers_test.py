"""Lightning, accelerate and transformers' Trainer train on device jax when told so."""

import json
import os
from pathlib import Path

import pytest
import torch

from test.models import libraries
from test.python import programs


def data():
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.arange(24.0).view(8, 3) / 24), batch_size=4
    )


@pytest.fixture
def lightning():
    return libraries.require("lightning.pytorch")


def fitted(lightning, tmp_path, **options):
    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(3, 1)

        def training_step(self, batch, index):
            self.place = batch[0].device.type
            output = self.layer(batch[0])
            self.dtype_of_output = output.dtype
            return output.square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    model = Model()
    trainer = lightning.Trainer(
        max_epochs=2,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
        **options,
    )
    trainer.fit(model, data())
    return model, trainer


def test_lightning_trains_on_jax_like_on_the_cpu(lightning, tmp_path):
    from torch_xla_lite.libraries.lightning import JaxStrategy

    model, trainer = fitted(lightning, tmp_path, strategy=JaxStrategy())
    assert model.place == "jax"
    assert trainer.accelerator.name() == "jax"
    expected, _ = fitted(lightning, tmp_path, accelerator="cpu")
    torch.testing.assert_close(model.layer.weight.cpu(), expected.layer.weight)


@pytest.mark.parametrize("options", [{}, {"strategy": "jax"}, {"precision": "bf16-mixed"}])
def test_lightning_finds_the_device_by_name(lightning, tmp_path, options):
    model, trainer = fitted(lightning, tmp_path, accelerator="jax", **options)
    assert model.place == "jax"
    assert type(trainer.strategy).__name__ == "JaxStrategy"


def test_lightning_says_that_it_moves_a_model_from_the_device(lightning, tmp_path):
    model, _ = fitted(lightning, tmp_path, accelerator="jax")
    model.to("jax")
    trainer = lightning.Trainer(
        max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    with pytest.warns(UserWarning, match=r'from jax to cpu.*\n.*Trainer\(accelerator="jax"\)'):
        trainer.fit(model, data())


@pytest.mark.nightly
def test_accelerate_says_that_it_moves_a_model_from_the_device():
    libraries.require("accelerate")
    program = """
import torch, torch_xla_lite, warnings
from accelerate import Accelerator
from accelerate.state import AcceleratorState
def messages(**options):
    AcceleratorState._reset_state(reset_partial_state=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Accelerator(**options).prepare(torch.nn.Linear(2, 2).to("jax"))
    return [str(warning.message) for warning in caught if "from jax" in str(warning.message)]
(message,) = messages()
assert "from jax to cpu" in message and "ACCELERATE_TORCH_DEVICE=jax" in message
assert not messages(cpu=True)
"""
    run(program)


@pytest.mark.nightly
def test_the_trainer_says_that_it_moves_a_model_from_the_device():
    libraries.require("transformers")
    program = """
import tempfile, torch, torch_xla_lite, warnings
import libraries
libraries.require("transformers")
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
model = GPT2LMHeadModel(GPT2Config(
    n_layer=1, n_head=2, n_embd=8, vocab_size=32, n_positions=16, bos_token_id=0, eos_token_id=0))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    Trainer(model.to("jax"), TrainingArguments(tempfile.mkdtemp(), report_to=[]))
messages = [str(warning.message) for warning in caught]
assert any("from jax to cpu" in message for message in messages), messages
"""
    run_with("", program)


@pytest.mark.parametrize(
    ("precision", "dtype"), [("bf16-mixed", torch.bfloat16), ("16-mixed", torch.float16)]
)
def test_mixed_precision_of_lightning_is_that_of_jax(lightning, tmp_path, precision, dtype):
    from torch_xla_lite.libraries.lightning import JaxStrategy

    model, trainer = fitted(lightning, tmp_path, strategy=JaxStrategy(), precision=precision)
    assert model.dtype_of_output == dtype
    assert dtype != torch.float16 or trainer.precision_plugin.scaler.is_enabled()


def test_lightning_loads_a_checkpoint(lightning, tmp_path):
    from torch_xla_lite.libraries.lightning import JaxStrategy

    model, trainer = fitted(lightning, tmp_path, strategy=JaxStrategy())
    trainer.save_checkpoint(tmp_path / "model.ckpt")
    state = torch.load(tmp_path / "model.ckpt", map_location="cpu")["state_dict"]
    torch.testing.assert_close(state["layer.weight"], model.layer.weight.detach().cpu())


def test_lightning_refuses_a_second_device(lightning):
    from torch_xla_lite.libraries.lightning import JaxStrategy

    with pytest.raises(ValueError, match="there is one device jax, found devices=2"):
        lightning.Trainer(strategy=JaxStrategy(), devices=2, logger=False)


def run(program, **variables):
    done = programs.run(program, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_with(argument, program):
    """Runs a program that imports libraries.py, with one argument."""
    path = f"{os.environ.get('PYTHONPATH', '')}:{Path(libraries.__file__).parent}"
    return run(f"import sys; sys.argv[1:] = [{argument!r}]\n{program}", PYTHONPATH=path)


MIXED_LOOP = """
import os, sys
for device in ("jax", "cpu"):
    os.environ["ACCELERATE_TORCH_DEVICE"] = device
    import torch, torch_xla_lite
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    AcceleratorState._reset_state(reset_partial_state=True)
    torch.manual_seed(0)
    # accelerate refuses fp16 on CPUs.
    half = sys.argv[1] if (sys.argv[1], device) != ("fp16", "cpu") else "no"
    accelerator = Accelerator(mixed_precision=half)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.DataLoader(torch.arange(24.0).view(8, 3) / 24, batch_size=4)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for epoch in range(8):
        for batch in data:
            with accelerator.autocast():
                dtype = torch.nn.functional.linear(batch, batch).dtype
            accelerator.backward((model(batch) - 1).square().mean())
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    scaler = accelerator.scaler
    print(device, dtype, scaler is not None and scaler.is_enabled(), flush=True)
    values = model.weight.detach().float().cpu()
    first = values if device == "jax" else first
torch.testing.assert_close(first, values, rtol=0.2, atol=0.05)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_of_accelerate_trains_like_the_cpu(precision):
    libraries.require("accelerate")
    done = programs.run(f"import sys; sys.argv[1:] = [{precision!r}]\n{MIXED_LOOP}")
    lines = {
        "bf16": ["jax torch.bfloat16 False", "cpu torch.bfloat16 False"],
        "fp16": ["jax torch.float16 True", "cpu torch.float32 False"],
    }
    assert done.stdout.splitlines() == lines[precision], done.stderr


TRAINER = """
import json, os, sys, tempfile, torch, torch_xla_lite
import libraries
libraries.require("transformers")
from accelerate.state import AcceleratorState
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

def train(device, **options):
    os.environ["ACCELERATE_TORCH_DEVICE"] = device
    AcceleratorState._reset_state(reset_partial_state=True)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(
        n_layer=1, n_head=2, n_embd=8, vocab_size=32, n_positions=16, bos_token_id=0,
        eos_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
    tokens = torch.arange(8) % 32
    arguments = TrainingArguments(
        tempfile.mkdtemp(), max_steps=4, per_device_train_batch_size=4, save_strategy="no",
        report_to=[], disable_tqdm=True, logging_steps=1, learning_rate=1e-2, **options)
    trainer = Trainer(
        model, arguments, train_dataset=[{"input_ids": tokens, "labels": tokens}] * 16)
    trainer.train()
    assert trainer.args.device.type == device
    return torch.tensor([entry["loss"] for entry in trainer.state.log_history if "loss" in entry])

torch.testing.assert_close(
    train("jax", **json.loads(sys.argv[1])), train("cpu", use_cpu=True), rtol=1e-2, atol=0)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("option", ["bf16", "fp16", "torch_compile"])
def test_the_trainer_of_transformers_trains_like_the_cpu_with(option):
    libraries.require("accelerate")
    libraries.require("transformers")
    run_with(json.dumps({option: True}), TRAINER)


DIFFUSION = """
import os, sys
import torch, torch_xla_lite
import libraries
libraries.require("transformers")
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel

images = torch.linspace(-1, 1, 8 * 3 * 8 * 8).view(8, 3, 8, 8)
generator = torch.Generator().manual_seed(1)
noises = torch.randn(4, 4, 3, 8, 8, generator=generator)
times = torch.randint(0, 100, (4, 4), generator=generator)

def train(device, precision):
    os.environ["ACCELERATE_TORCH_DEVICE"] = device
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(mixed_precision=precision, gradient_accumulation_steps=2)
    torch.manual_seed(0)
    model = UNet2DModel(
        sample_size=8, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    scheduler = DDPMScheduler(num_train_timesteps=100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rates = get_cosine_schedule_with_warmup(optimizer, 1, 4)
    data = torch.utils.data.DataLoader(images, batch_size=4)
    model, optimizer, data, rates = accelerator.prepare(model, optimizer, data, rates)
    average = EMAModel(model.parameters(), model_cls=UNet2DModel, model_config=model.config)
    average.to(accelerator.device)
    losses = []
    for epoch in range(2):
        for i, clean in enumerate(data):
            assert clean.device.type == device
            noise = noises[2 * epoch + i].to(clean.device)
            time = times[2 * epoch + i].to(clean.device)
            with accelerator.accumulate(model):
                predicted = model(scheduler.add_noise(clean, noise, time), time).sample
                loss = torch.nn.functional.mse_loss(predicted.float(), noise)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                rates.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                average.step(model.parameters())
            losses.append(loss.item())
    return torch.tensor(losses)

# accelerate refuses fp16 on CPUs.
expected = train("cpu", "no" if sys.argv[1] == "fp16" else sys.argv[1])
torch.testing.assert_close(train("jax", sys.argv[1]), expected, rtol=5e-3, atol=0)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["no", "bf16", "fp16"])
def test_the_training_loop_of_diffusers_trains_like_the_cpu(precision):
    libraries.require("diffusers")
    run_with(precision, DIFFUSION)


FINE_TUNING = """
import os, sys, tempfile
import torch, torch_xla_lite
import libraries
libraries.require("transformers")
import datasets, trl
from accelerate.state import AcceleratorState
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

words = "the cat sat on a mat and saw the dog".split()
vocabulary = {word: i for i, word in enumerate(["<pad>", "<eos>", "<unk>", *sorted(set(words))])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
texts = [" ".join((words * 3)[i : i + 3 + 5 * i % 9]) for i in range(16)]

def train(device, **options):
    os.environ["ACCELERATE_TORCH_DEVICE"] = device
    AcceleratorState._reset_state(reset_partial_state=True)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(
        n_layer=1, n_head=2, n_embd=8, vocab_size=len(vocabulary), n_positions=16, bos_token_id=1,
        eos_token_id=1, pad_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
    arguments = trl.SFTConfig(
        tempfile.mkdtemp(), max_steps=4, per_device_train_batch_size=4, save_strategy="no",
        report_to=[], disable_tqdm=True, logging_steps=1, learning_rate=1e-2, max_length=16,
        use_cpu=device == "cpu", **options)
    trainer = trl.SFTTrainer(
        model=model, args=arguments, train_dataset=datasets.Dataset.from_dict({"text": texts}),
        processing_class=tokenizer)
    trainer.train()
    assert trainer.args.device.type == device
    history = [entry for entry in trainer.state.log_history if "loss" in entry]
    keys = ("loss", "entropy", "mean_token_accuracy")
    return torch.tensor([[entry[key] for key in keys] for entry in history])

options = {"packing": {"packing": True}, "bf16": {"bf16": True}}.get(sys.argv[1], {"bf16": False})
torch.testing.assert_close(train("jax", **options), train("cpu", **options), rtol=1e-2, atol=1e-6)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("option", ["float32", "bf16", "packing"])
def test_fine_tuning_by_trl_is_that_of_the_cpu(option):
    libraries.require("trl")
    run_with(option, FINE_TUNING)


def test_accelerate_computes_in_float16_on_the_device_alone():
    libraries.require("accelerate")
    program = """
import os, torch, torch_xla_lite
from accelerate import Accelerator, GradScalerKwargs
from accelerate.state import AcceleratorState
scale = GradScalerKwargs(init_scale=8.0)
for accelerator in (Accelerator(mixed_precision="fp16", kwargs_handlers=[scale]), Accelerator()):
    print(accelerator.mixed_precision, accelerator.native_amp, accelerator.scaler._device)
    print(accelerator.scaler._init_scale)
try:
    Accelerator(mixed_precision="bf16")
except ValueError as error:
    print("already" in str(error), AcceleratorState().mixed_precision)
AcceleratorState._reset_state(reset_partial_state=True)
for device in ("cpu", "jax"):  # The first one decides.
    os.environ["ACCELERATE_TORCH_DEVICE"] = device
    accelerator = Accelerator(mixed_precision="fp16")
    print(accelerator.device, accelerator.mixed_precision, accelerator.scaler)
"""
    lines = run(program, ACCELERATE_TORCH_DEVICE="jax").splitlines()
    scales = ["fp16 True jax", "8.0", "fp16 True jax", "65536.0"]
    assert lines == [*scales, "True fp16", *["cpu fp16 None"] * 2]
