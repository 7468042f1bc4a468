"""The public names of interop/jax_modules.py."""

from .interop.jax_modules import JaxModule

__all__ = ["JaxModule"]
