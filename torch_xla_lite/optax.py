"""The public names of interop/optax.py."""

from .interop.optax import OptaxOptimizer

__all__ = ["OptaxOptimizer"]
