"""Lets torch's flex_attention take tensors on device 'jax'.

    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 64, 64, device="jax")
    flex_attention(query, key, value, block_mask=mask)

torch has a list of devices that it generates kernels for. On others it can compute the scores as a
whole, with gradients, which become a part of the recorded graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from ..device.tensor import XLATensor2
from ..startup.patches import Patch


def _accepting_jax(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def validate(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if not isinstance(query, XLATensor2):
            original(query, key, value)

    return validate


PATCHES = (
    Patch(
        "torch.nn.attention.flex_attention",
        "_validate_device",
        "refuses devices that torch generates no kernels for",
        _accepting_jax,
    ),
)
