"""Models of other libraries train on device "jax" as on the CPU, without compiling at each step."""

import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bazel.pytest_plugin import mostly_nightly
from scripts.bench import paper_devices, paper_graphs
from test.models import libraries
from test.models.small_models import (
    small_bert,
    small_gpt2,
    small_llama,
    small_mixtral,
    small_t5,
    small_unet,
    small_wav2vec2,
)
from test.python import tiers
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


def scenes(step: int) -> tuple[list[torch.Tensor], list[dict[str, torch.Tensor]]]:
    """Two images, each of its own size, with up to two objects each."""
    generator = torch.Generator().manual_seed(step)
    images, targets = [], []
    for height, width in ((40 + 4 * step, 56), (48, 40)):
        count = int(torch.randint(0, 3, (1,), generator=generator))
        corners = torch.rand(count, 4, generator=generator) / 2 + torch.tensor([0, 0, 0.5, 0.5])
        boxes = corners * torch.tensor([width, height, width, height])
        labels = torch.randint(1, 4, (count,), generator=generator)
        images.append(torch.rand(3, height, width, generator=generator).double())
        targets.append({"boxes": boxes.double(), "labels": labels})
    return images, targets


def of_scenes(model: nn.Module, step: int) -> torch.Tensor:
    _, device = data(model, step)
    images, targets = scenes(step)
    return sum(
        model(
            [image.to(device) for image in images],
            [{name: value.to(device) for name, value in target.items()} for target in targets],
        ).values()
    )


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


def small_detector() -> nn.Module:
    """Faster R-CNN. It chooses no candidates at random: there are fewer than it may take."""
    detection = torchvision.models.detection
    backbone: Any = nn.Sequential(nn.Conv2d(3, 8, 5, stride=8, padding=2), nn.ReLU())
    backbone.out_channels = 8
    return detection.FasterRCNN(
        backbone, min_size=48, max_size=64,
        rpn_anchor_generator=detection.rpn.AnchorGenerator(((16, 32),), ((0.5, 1.0, 2.0),)),
        rpn_pre_nms_top_n_train=40, rpn_post_nms_top_n_train=16, rpn_batch_size_per_image=2000,
        rpn_pre_nms_top_n_test=40, rpn_post_nms_top_n_test=16, box_score_thresh=0.0,
        box_roi_pool=torchvision.ops.MultiScaleRoIAlign(["0"], 4, 2), box_batch_size_per_image=200,
        box_head=detection.faster_rcnn.TwoMLPHead(8 * 4 * 4, 16),
        box_predictor=detection.faster_rcnn.FastRCNNPredictor(16, 4),
    ).double()  # fmt: skip


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

# One of each kind of model; the others are nightly.
DAILY = ("torchvision ResNet", "transformers GPT-2", "PyTorch Geometric GCN and GAT", "peft LoRA")

# What falls back to a kernel of the CPU, and why.
FALLBACKS = {
    "transformers wav2vec 2": {"aten::masked_select": "labels that are not padding are selected"},
    "PyTorch Geometric GCN and GAT": {
        "aten::index.Tensor": "edges that are not loops are selected"
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


@pytest.fixture
def runs_as_by_default() -> Iterator[None]:
    """Graphs are interpreted, and from the third time on by a plan."""
    with tiers.as_by_default():
        yield


@pytest.mark.parametrize("name", mostly_nightly(PROGRAMS, DAILY[1:3]))
def test_training_is_that_of_the_cpu(name: str) -> None:
    counts = check_training(*PROGRAMS[name], rtol=2e-3, atol=2e-4)
    assert set(counts["fallbacks"]) == set(FALLBACKS.get(name, {}))


@pytest.mark.needs("interpreter")
@pytest.mark.usefixtures("runs_as_by_default")
@pytest.mark.parametrize("name", mostly_nightly(PROGRAMS, DAILY))
def test_training_by_plans_is_that_of_the_cpu(name: str) -> None:
    counts = check_training(*PROGRAMS[name], rtol=2e-3, atol=2e-4)
    assert counts["executions"] == 0 or name in FALLBACKS
    assert counts["planned"] > 0


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["h100", "v5e"])
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in FALLBACKS])
def test_a_step_on_an_accelerator_calls_nothing_outside_xla(name: str, kind: str) -> None:
    """It is compiled for a device on paper: no callbacks, no kernels of this project or torch."""
    if not paper_devices.is_installed(kind):
        pytest.skip(f"see {paper_devices.__file__}")
    build, loss = PROGRAMS[name]
    model = make(build).to("jax")
    with paper_graphs.compiled_for(kind) as graphs:
        train(model, loss, steps=1)
    assert [graph.error for graph in graphs if graph.error] == []
    assert {op for graph in graphs for op in graph.on_host} == set()
    assert {call for graph in graphs for call in graph.calls} <= {"Sharding", "mhlo.topk"}
    assert max(len(graph.ops) for graph in graphs) > 50


@pytest.mark.nightly
def test_training_under_autocast() -> None:
    def loss(model: nn.Module, step: int) -> torch.Tensor:
        with torch.autocast(next(model.parameters()).device.type, torch.bfloat16):
            return of_tokens()(model, step)

    counts = check_training(small_gpt2, loss, rtol=2e-2, atol=2e-2)
    assert counts["fallbacks"] == {}


@pytest.fixture
def ops_of_torchvision(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replaces the part of torchvision that is written in C++: `nms` has a kernel for the CPU only,
    `roi_align` is torchvision's own function in Python, without torch.compile."""
    from torchvision.ops import boxes, roi_align

    module = sys.modules[roi_align.__module__]
    monkeypatch.setattr(boxes, "_assert_has_ops", lambda: None)
    monkeypatch.setattr(module, "is_compile_supported", lambda device: True)
    monkeypatch.setattr(module, "_roi_align", module._roi_align.__wrapped__)
    with torch.library._scoped_library("torchvision", "IMPL") as library:
        library.impl("nms", libraries.non_maximum_suppression, "CPU")
        yield


@pytest.mark.nightly
@pytest.mark.usefixtures("ops_of_torchvision")
def test_detection_is_that_of_the_cpu() -> None:
    model = make(small_detector)
    other = copy.deepcopy(model).to("jax")
    losses, others = train(model, of_scenes), train(other, of_scenes)
    # The loss of the proposals is rounded to float32, the type of its labels.
    torch.testing.assert_close(others, losses, rtol=2e-7, atol=0)
    states = {name: value.cpu() for name, value in other.state_dict().items()}
    torch.testing.assert_close(states, dict(model.state_dict()), rtol=1e-6, atol=1e-9)
    # The number of candidates is data.
    assert set(debug.metrics()["fallbacks"]) == {"aten::nonzero", "torchvision::nms"}
    images, _ = scenes(5)
    found = model.eval()(images)
    others_found = other.eval()([image.to("jax") for image in images])
    assert all(len(image["boxes"]) > 5 for image in found)
    for wanted, got in zip(found, others_found, strict=True):
        got = {name: value.cpu() for name, value in got.items()}
        torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("build", mostly_nightly([small_gpt2, small_t5], [small_gpt2]))
def test_generated_tokens_are_those_of_the_cpu(build: Callable[[], nn.Module]) -> None:
    model: Any = make(build).eval()
    tokens = torch.tensor([[5, 7, 9], [4, 4, 8]])
    options: dict = {"max_new_tokens": 3, "do_sample": False, "pad_token_id": 2}
    wanted = model.generate(tokens, **options)
    other = copy.deepcopy(model).to("jax")
    assert other.generate(tokens.to("jax"), **options).tolist() == wanted.tolist()


@pytest.mark.nightly
def test_denoised_images_are_those_of_the_cpu() -> None:
    unet = make(small_unet).eval()

    def images(device: str) -> np.ndarray:
        pipeline = diffusers.DDIMPipeline(copy.deepcopy(unet), diffusers.DDIMScheduler()).to(device)
        pipeline.set_progress_bar_config(disable=True)
        generator = torch.Generator().manual_seed(0)
        return pipeline(2, generator, num_inference_steps=5, output_type="np").images

    np.testing.assert_allclose(images("jax"), images("cpu"), rtol=0, atol=1e-5)
