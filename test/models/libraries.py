"""Imports third-party libraries for tests, or skips the test that needs them.

timm = libraries.require("timm")
"""

import importlib
import os
from types import ModuleType

import pytest
import torch

# Nothing is downloaded: models are made from configurations.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def require(name: str) -> ModuleType:
    """The library. Skips the calling test, or its file, if it is not installed."""
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        pytest.skip(
            f"{name} is not installed; scripts/test.sh installs what test/models/*.txt name",
            allow_module_level=True,
        )
    _declare_ops_of_torchvision()
    return importlib.import_module(name)


def non_maximum_suppression(
    boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float
) -> torch.Tensor:
    """The boxes, best first, that overlap with no better one that is kept."""
    overlaps = importlib.import_module("torchvision.ops").box_iou(boxes, boxes) > iou_threshold
    kept: list[int] = []
    for i in scores.argsort(descending=True, stable=True).tolist():
        if not overlaps[i, kept].any():
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def _declare_ops_of_torchvision() -> None:
    # torchvision's wheel was built for torch with CUDA. Its C++ part does not load beside a torch
    # for the CPU, but these ops must exist while it is imported. timm and transformers import it.
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            torch.library.define(f"torchvision::{name}", schema)
