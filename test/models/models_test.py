"""Models of other libraries train on device "jax" as on the CPU, without compiling at each step."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from test.models import libraries
from torch_xla_lite import debug

torchvision = libraries.require("torchvision")
timm = libraries.require("timm")
transformers = libraries.require("transformers")
diffusers = libraries.require("diffusers")
peft = libraries.require("peft")
geometric = libraries.require("torch_geometric.nn")

# A step of training: the loss of a model for the batch of a step.
Loss = Callable[[nn.Module, int], torch.Tensor]


def data(model: nn.Module, step: int) -> tuple[torch.Generator, torch.device]:
    return torch.Generator().manual_seed(step), next(model.parameters()).device


def of_images(size: int = 32, classes: int = 4) -> Loss:
    def loss(model: nn.Module, step: int) -> torch.Tensor:
        generator, device = data(model, step)
        images = torch.randn(4, 3, size, size, generator=generator)
        images = images.to(device, next(model.parameters()).dtype)
        labels = torch.randint(0, classes, (4,), generator=generator).to(device)
        return F.cross_entropy(model(images), labels)

    return loss


def of_tokens(length: int = 12, vocabulary: int = 50, **more: str) -> Loss:
    def loss(model: nn.Module, step: int) -> torch.Tensor:
        generator, device = data(model, step)
        tokens = torch.randint(3, vocabulary, (3, length), generator=generator)
        # Each batch is padded otherwise.
        ends = torch.randint(length // 2, length, (3, 1), generator=generator)
        attended = (torch.arange(length) < ends).long().to(device)
        tokens = tokens.to(device)
        labels = tokens.masked_fill(attended == 0, -100)
        return model(input_ids=tokens, attention_mask=attended, labels=labels).loss

    return loss


def of_sentences(model: nn.Module, step: int) -> torch.Tensor:
    generator, device = data(model, step)
    tokens = torch.randint(0, 50, (4, 8), generator=generator).to(device)
    labels = torch.randint(0, 3, (4,), generator=generator).to(device)
    return model(input_ids=tokens, labels=labels).loss


def of_noise(model: nn.Module, step: int) -> torch.Tensor:
    generator, device = data(model, step)
    images, noise = torch.randn(2, 2, 3, 8, 8, generator=generator).to(device)
    times = torch.randint(0, 100, (2,), generator=generator).to(device)
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=100)
    noisy = scheduler.add_noise(images, noise, times)
    return F.mse_loss(model(noisy, times).sample, noise)


def of_speech(model: nn.Module, step: int) -> torch.Tensor:
    generator, device = data(model, step)
    np.random.seed(step)  # The model masks random parts of its input.
    sound = torch.randn(2, 400, generator=generator).to(device)
    labels = torch.randint(1, 10, (2, 3), generator=generator).to(device)
    return model(sound, labels=labels).loss


def of_graph(model: nn.Module, step: int) -> torch.Tensor:
    generator, device = data(model, step)
    nodes = torch.randn(10, 6, generator=generator).to(device)
    # The same graph in each step: the number of its edges that are loops decides shapes.
    edges = torch.arange(60).reshape(2, 30).to(device) * 7 % 10
    labels = torch.randint(0, 3, (10,), generator=generator).to(device)
    return F.cross_entropy(model(nodes, edges), labels)


def small_gpt2() -> nn.Module:
    config = transformers.GPT2Config(
        vocab_size=50, n_positions=32, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=1, pad_token_id=2,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def small_llama() -> nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=32, pad_token_id=2,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def small_mixtral() -> nn.Module:
    config = transformers.MixtralConfig(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, num_local_experts=3, pad_token_id=2,
        max_position_embeddings=32,
    )  # fmt: skip
    return transformers.MixtralForCausalLM(config)


def small_bert() -> nn.Module:
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16, num_labels=3, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def small_t5() -> nn.Module:
    config = transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, dropout_rate=0.0,
        decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def small_wav2vec2() -> nn.Module:
    config = transformers.Wav2Vec2Config(
        vocab_size=12, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, conv_dim=(8, 8), conv_stride=(5, 4), conv_kernel=(10, 4),
        num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, hidden_dropout=0.0,
        attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0, final_dropout=0.0,
        layerdrop=0.0, mask_time_prob=0.3, mask_time_length=2, ctc_zero_infinity=True,
    )  # fmt: skip
    return transformers.Wav2Vec2ForCTC(config)


def with_lora() -> nn.Module:
    config = peft.LoraConfig(r=2, target_modules=["c_attn"], lora_dropout=0.0, fan_in_fan_out=True)
    return peft.get_peft_model(small_gpt2(), config)


def with_checkpoints() -> nn.Module:
    model = small_llama()
    model.gradient_checkpointing_enable()
    return model.train()


class GraphNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = geometric.GCNConv(6, 8)
        self.second = geometric.GATConv(8, 3, heads=2, concat=False)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(nodes, edges).relu(), edges)


def small_unet() -> nn.Module:
    return diffusers.UNet2DModel(
        sample_size=8, block_out_channels=(8,), norm_num_groups=4, layers_per_block=1,
        down_block_types=("AttnDownBlock2D",), up_block_types=("UpBlock2D",),
        attention_head_dim=4, add_attention=False,
    )  # fmt: skip


PROGRAMS: dict[str, tuple[Callable[[], nn.Module], Loss]] = {
    # Statistics of four numbers amplify what float32 rounds away.
    "torchvision ResNet": (
        lambda: torchvision.models.ResNet(
            torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=4
        ).double(),
        of_images(),
    ),
    "torchvision ViT": (
        lambda: torchvision.models.VisionTransformer(32, 16, 1, 2, 16, 32, num_classes=4),
        of_images(),
    ),
    "timm ConvNeXt": (
        lambda: timm.create_model(
            "convnext_atto",
            depths=(1, 1, 1, 1),
            dims=(8, 8, 8, 8),
            num_classes=4,
            drop_path_rate=0.0,
        ),
        of_images(),
    ),
    "timm ViT": (
        lambda: timm.create_model(
            "vit_tiny_patch16_224", img_size=32, depth=1, embed_dim=24, num_classes=4
        ),
        of_images(),
    ),
    "transformers BERT": (small_bert, of_sentences),
    "transformers GPT-2": (small_gpt2, of_tokens()),
    "transformers Mixtral": (small_mixtral, of_tokens()),
    "transformers T5": (small_t5, of_tokens()),
    "transformers wav2vec 2": (small_wav2vec2, of_speech),
    "diffusers UNet": (small_unet, of_noise),
    "PyTorch Geometric GCN and GAT": (GraphNetwork, of_graph),
    "peft LoRA": (with_lora, of_tokens()),
    "transformers Llama with gradient checkpointing": (with_checkpoints, of_tokens()),
}

# What falls back to a kernel of the CPU, and why.
FALLBACKS = {
    "transformers wav2vec 2": {"aten::masked_select": "labels that are not padding are selected"},
    "PyTorch Geometric GCN and GAT": {
        "aten::index.Tensor": "edges that are not loops are selected",
    },
}


def make(build: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return build()


def train(model: nn.Module, loss: Loss, steps: int = 4) -> list[float]:
    """Trains the model; gives the losses. Counts start again after the second step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        if step == 2:
            debug.reset_metrics()
        optimizer.zero_grad()
        value = loss(model, step)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def check_training(build: Callable[[], nn.Module], loss: Loss, **tolerance: float) -> dict:
    """Trains on both devices, compares, and gives the counts of the last two steps."""
    model = make(build)
    other = copy.deepcopy(model).to("jax")
    losses, others = train(model, loss), train(other, loss)
    counts = debug.metrics()
    torch.testing.assert_close(others, losses, **tolerance)
    states = {name: value.cpu() for name, value in other.state_dict().items()}
    torch.testing.assert_close(states, dict(model.state_dict()), **tolerance)
    assert counts["compiles"] == counts["loads"] == 0
    return counts


@pytest.mark.parametrize("name", PROGRAMS)
def test_training_is_that_of_the_cpu(name: str) -> None:
    counts = check_training(*PROGRAMS[name], rtol=2e-3, atol=2e-4)
    assert set(counts["fallbacks"]) == set(FALLBACKS.get(name, {}))


def test_training_under_autocast() -> None:
    def loss(model: nn.Module, step: int) -> torch.Tensor:
        with torch.autocast(next(model.parameters()).device.type, torch.bfloat16):
            return of_tokens()(model, step)

    counts = check_training(small_gpt2, loss, rtol=2e-2, atol=2e-2)
    assert counts["fallbacks"] == {}


@pytest.mark.parametrize("build", [small_gpt2, small_t5])
def test_generated_tokens_are_those_of_the_cpu(build: Callable[[], nn.Module]) -> None:
    model: Any = make(build).eval()
    tokens = torch.tensor([[5, 7, 9], [4, 4, 8]])
    options: dict = {"max_new_tokens": 3, "do_sample": False, "pad_token_id": 2}
    wanted = model.generate(tokens, **options)
    other = copy.deepcopy(model).to("jax")
    assert other.generate(tokens.to("jax"), **options).tolist() == wanted.tolist()
