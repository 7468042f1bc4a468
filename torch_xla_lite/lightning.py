"""The public name of libraries/lightning.py."""

from .libraries.lightning import JaxStrategy

__all__ = ["JaxStrategy"]
