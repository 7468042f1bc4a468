"""Models whose training steps are compiled on paper: torch's, and the same by hand in jax.

model = MODELS["resnet50"]
loss(model.make(), *model.batch(8))         # of torch's tensors
model.by_hand(arrays, x, labels)            # of arrays with torch's names
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax
from torch import Tensor, nn

from scripts.bench import gpu, models

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """A model on paper.

    Attributes:
      make: of so many layers, where `layers` tells how many equal ones there are.
      batch: so many rows, and their labels; a device has `rows`.
      by_hand: of arrays, rows and labels: the loss, and buffers after the step.
    """

    make: Callable[..., nn.Module]
    batch: Callable[[int], tuple[Tensor, Tensor]]
    rows: int
    by_hand: Callable[..., tuple[jax.Array, Arrays]]
    optimizer: str = "AdamW"
    layers: int = 0


def loss_of(module: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """Of torch's model."""
    scores = module(x)
    scores = getattr(scores, "logits", scores)
    return nn.functional.cross_entropy(scores.flatten(0, -2).float(), labels.flatten())


def named_arrays(module: nn.Module) -> tuple[list[tuple[str, Tensor]], ...]:
    """What a model by hand has: parameters, and buffers that change."""
    buffers = [(name, x) for name, x in module.named_buffers() if "running" in name]
    return [*module.named_parameters()], buffers


def as_by_hand(x: Tensor) -> Tensor:
    """By hand images are NHWC, and kernels HWIO."""
    order = (2, 3, 1, 0) if isinstance(x, nn.Parameter) else (0, 2, 3, 1)
    return x.permute(order) if x.dim() == 4 else x


def _cross_entropy(scores: jax.Array, labels: jax.Array) -> jax.Array:
    logs = jax.nn.log_softmax(scores.astype(np.float32))
    return -jnp.take_along_axis(logs, labels[..., None], -1).mean()


def _linear(p: Arrays, at: str, x: jax.Array) -> jax.Array:
    product = x @ p[f"{at}weight"].T
    return product + p[f"{at}bias"] if f"{at}bias" in p else product


def _norm(p: Arrays, at: str, x: jax.Array, epsilon: float = 1e-5) -> jax.Array:
    """Of layers; without a bias, the root mean square one."""
    wide = x.astype(np.float32)
    centred = wide - wide.mean(-1, keepdims=True) if f"{at}bias" in p else wide
    scaled = centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    product = scaled.astype(x.dtype) * p[f"{at}weight"]
    return product + p[f"{at}bias"] if f"{at}bias" in p else product


def _block(p: Arrays, at: str, names: str, x: jax.Array, heads: int, *, is_gpt: bool) -> jax.Array:
    """A layer of a transformer: `names` of its norms and matrices, in order."""
    norm1, qkv, out, norm2, up, down = (f"{at}.{name}" for name in names.split())
    norm = functools.partial(_norm, epsilon=1e-5 if is_gpt else 1e-6)
    parts = jnp.split(_linear(p, qkv, norm(p, norm1, x)), 3, -1)
    q, k, v = (part.reshape(*part.shape[:2], heads, -1) for part in parts)
    y = jax.nn.dot_product_attention(q, k, v, is_causal=is_gpt)
    x = x + _linear(p, out, y.reshape(x.shape))
    wide = jax.nn.gelu(_linear(p, up, norm(p, norm2, x)), approximate=is_gpt)
    return x + _linear(p, down, wide)


def _gpt_by_hand(layers: int, heads: int, p: Arrays, tokens: jax.Array, labels: jax.Array) -> Any:
    x = p["tokens.weight"][tokens] + p["places"]
    names = "norm1. qkv. out. norm2. up. down."
    for i in range(layers):
        x = _block(p, f"blocks.{i}", names, x, heads, is_gpt=True)
    return _cross_entropy(_linear(p, "tokens.", _norm(p, "norm.", x)), labels), {}


def _vit_by_hand(p: Arrays, images: jax.Array, labels: jax.Array) -> Any:
    patches = _convolve(p, "conv_proj.", images, 16, 0) + p["conv_proj.bias"]
    first = jnp.broadcast_to(p["class_token"], (len(images), 1, 768))
    x = jnp.concatenate([first, patches.reshape(len(images), -1, 768)], 1)
    x += p["encoder.pos_embedding"]
    names = "ln_1. self_attention.in_proj_ self_attention.out_proj. ln_2. mlp.0. mlp.3."
    for i in range(sum("ln_1.weight" in name for name in p)):
        x = _block(p, f"encoder.layers.encoder_layer_{i}", names, x, 12, is_gpt=False)
    first = _norm(p, "encoder.ln.", x, 1e-6)[:, 0]
    return _cross_entropy(_linear(p, "heads.head.", first), labels), {}


def _convolve(p: Arrays, at: str, x: jax.Array, stride: int, pad: int) -> jax.Array:
    form, strides, pads = ("NHWC", "HWIO", "NHWC"), (stride, stride), [(pad, pad)] * 2
    return lax.conv_general_dilated(x, p[f"{at}weight"], strides, pads, dimension_numbers=form)


def _resnet_by_hand(p: Arrays, images: jax.Array, labels: jax.Array) -> Any:
    buffers = {}

    def normed(x: jax.Array, at: str, number: int, stride: int = 1, pad: int = 0) -> jax.Array:
        x, at = _convolve(p, f"{at}{number}.", x, stride, pad), f"{at}{number + 1}."
        wide = x.astype(np.float32)
        mean = wide.mean((0, 1, 2))
        variance = (wide**2).mean((0, 1, 2)) - mean**2
        for name, new in ((f"{at}running_mean", mean), (f"{at}running_var", variance)):
            buffers[name] = (0.9 * p[name] + 0.1 * new).astype(x.dtype)
        scale = lax.rsqrt(variance + 1e-5) * p[f"{at}weight"]
        return ((wide - mean) * scale + p[f"{at}bias"]).astype(x.dtype)

    x = jax.nn.relu(normed(images, "", 0, 2, 3))
    pads = [(0, 0), (1, 1), (1, 1), (0, 0)]
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), pads)
    for i in range(4, 20):
        stride = 2 if i in (7, 11, 17) else 1
        y = jax.nn.relu(normed(x, f"{i}.main.", 0))
        y = jax.nn.relu(normed(y, f"{i}.main.", 3, stride, 1))
        skipped = normed(x, f"{i}.skip.", 0, stride) if f"{i}.skip.0.weight" in p else x
        x = jax.nn.relu(normed(y, f"{i}.main.", 6) + skipped)
    return _cross_entropy(_linear(p, "22.", x.mean((1, 2))), labels), buffers


def _llama_by_hand(p: Arrays, tokens: jax.Array, labels: jax.Array) -> Any:
    x = p["model.embed_tokens.weight"][tokens]
    angles = jnp.outer(jnp.arange(tokens.shape[1]), 1e4 ** -jnp.arange(0, 1, 1 / 32))
    cos, sin = (f(angles)[:, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))

    def turned(x: jax.Array) -> jax.Array:
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    for i in range(sum("input_layernorm" in name for name in p)):
        at = f"model.layers.{i}."
        linear = functools.partial(lambda at, name, x: _linear(p, f"{at}{name}_proj.", x), at)
        y = _norm(p, f"{at}input_layernorm.", x, 1e-6)
        q, k, v = (linear(f"self_attn.{n}", y).reshape(*y.shape[:2], -1, 64) for n in "qkv")
        y = jax.nn.dot_product_attention(turned(q), turned(k), v, is_causal=True)
        x = x + linear("self_attn.o", y.reshape(x.shape))
        y = _norm(p, f"{at}post_attention_layernorm.", x, 1e-6)
        x = x + linear("mlp.down", jax.nn.silu(linear("mlp.gate", y)) * linear("mlp.up", y))
        x = lax.with_sharding_constraint(x, jax.sharding.PartitionSpec("data"))
    scores = _linear(p, "model.embed_tokens.", _norm(p, "model.norm.", x, 1e-6))
    return _cross_entropy(scores, labels), {}


def _vit(layers: int) -> nn.Module:
    """With the sizes of ViT-B/16."""
    return models.import_torchvision().models.VisionTransformer(224, 16, layers, 12, 768, 3072)


def _llama(layers: int) -> nn.Module:
    """With the sizes of Llama 3.2 1B."""
    models.import_torchvision()  # transformers imports it where it is installed.
    import transformers
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    # By this name transformers does not look into the tokens for sequences that are packed.
    transformers.AttentionInterface.register("causal", sdpa_attention_forward)
    sizes = {"vocab_size": 128_256, "hidden_size": 2048, "intermediate_size": 8192}
    heads = {"num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": layers}
    how = {"tie_word_embeddings": True, "use_cache": False, "attn_implementation": "causal"}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads, **how))


def _tokens(length: int, classes: int) -> Callable[[int], Any]:
    return lambda rows: tuple(torch.randint(classes, (rows, length)) for _ in range(2))


def _images(rows: int) -> tuple[Tensor, Tensor]:
    return torch.randn(rows, 3, 224, 224), torch.randint(1000, (rows,))


def _gpt(rows: int, *sizes: int) -> Model:
    layers, _, heads, classes, length = sizes
    by_hand = functools.partial(_gpt_by_hand, layers, heads)
    return Model(lambda: gpu.gpt(*sizes), _tokens(length, classes), rows, by_hand)


MODELS = {
    "gpt-small": _gpt(4, 2, 128, 4, 1000, 128),
    "gpt2": _gpt(8, 12, 768, 12, 50_304, 512),
    "resnet50": Model(gpu.resnet, _images, 64, _resnet_by_hand, "SGD"),
    "vit-b": Model(_vit, _images, 32, _vit_by_hand, layers=12),
    "llama": Model(_llama, _tokens(2048, 128_256), 1, _llama_by_hand, layers=16),
}
