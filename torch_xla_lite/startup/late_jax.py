"""jax, which is imported when the first of its names is used.

    from torch_xla_lite.startup.late_jax import jax, jnp, lax

Its import takes half a second and 115 MB, and a program whose graphs are all interpreted does not
need it. Where there may be accelerators, the first op asks it for the platform.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import random_states


def folder() -> Path:
    spec = importlib.util.find_spec("jax")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


if TYPE_CHECKING:
    import jax as jax
    import jax.numpy as jnp
    from jax import lax as lax
else:

    class _Late:
        def __init__(self, module: str) -> None:
            self._module = module

        def __getattr__(self, name: str) -> Any:
            return getattr(_imported(self._module), name)

    jax, jnp, lax = map(_Late, ("jax", "jax.numpy", "jax.lax"))


@functools.cache
def _imported(name: str) -> types.ModuleType:
    if not is_imported():
        from torch_xla_lite import _XLAC

        with random_states.kept():  # In the middle of a program that may have seeded.
            # What Ctrl-C leaves of it half-done cannot be imported again.
            _XLAC.uninterrupted(lambda: importlib.import_module("jax"))
    return importlib.import_module(name)


def is_imported() -> bool:
    return "jax" in sys.modules


def is_by_default() -> bool:
    """Whether jax, not imported yet, would be as it is by default, on a CPU: no variable and no
    package says otherwise."""
    return not is_imported() and _is_by_default()


@functools.cache
def _is_by_default() -> bool:
    said = {name for name in os.environ if name.startswith(("JAX_", "PJRT_", "TPU_LIBRARY"))}
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        said.remove("JAX_PLATFORMS")
    of_plugins = importlib.util.find_spec("jax_plugins") or importlib.util.find_spec("libtpu")
    return not (said or of_plugins or importlib.metadata.entry_points(group="jax_plugins"))
