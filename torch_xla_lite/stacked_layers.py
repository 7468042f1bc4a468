"""The public names of interop/stacked_layers.py."""

from .interop.stacked_layers import StackedLayers

__all__ = ["StackedLayers"]
