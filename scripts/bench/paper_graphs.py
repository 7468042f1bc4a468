"""Compiles what a program records for a device on paper, too (paper_devices.py).

    with paper_graphs.compiled_for("v5e") as graphs:
        step()                          # runs on the CPU
    graphs[-1].error                    # what the compiler refused; empty
    graphs[-1].on_host                  # ops that XLA copies to the host for
    graphs[-1].programs[0].as_text()    # as the device would run it

Only graphs that are compiled for the CPU are (`TORCH_XLA_LITE_COMPILE=first`). A graph on a mesh is
for the devices of the mesh.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
from jax import lax

from scripts.bench import paper_devices
from torch_xla_lite import _XLAC
from torch_xla_lite.compiler import tracing
from torch_xla_lite.lowering.base import host, target

_CALLED = re.compile(r"custom_call @([\w.]+)")


@dataclasses.dataclass(frozen=True)
class PaperGraph:
    """A graph that was compiled for a device on paper.

    Attributes:
      ops: their names, in recorded order.
      programs: what the compiler made; nothing after an error.
      calls: what the programs call outside of themselves, before XLA adds its own.
      on_host: ops that XLA copies to the host for. The compiler sees other values in their place,
        because it knows no host.
      error: what was refused, and why.
    """

    ops: tuple[str, ...]
    programs: tuple[jax.stages.Compiled, ...] = ()
    calls: frozenset[str] = frozenset()
    on_host: tuple[str, ...] = ()
    error: str = ""


class _JaxForDevice:
    """`jax`, but that functions are for a device."""

    def __init__(self, device: jax.Device) -> None:
        self._place = jax.sharding.SingleDeviceSharding(device)

    def __getattr__(self, name: str) -> Any:
        return getattr(jax, name)

    def jit(self, function: Callable, **keywords: Any) -> Any:
        return jax.jit(function, in_shardings=self._place, out_shardings=self._place, **keywords)


@contextlib.contextmanager
def compiled_for(kind: str) -> Iterator[list[PaperGraph]]:
    """Compiles each graph for a device of a kind before it is compiled for the CPU, and lists what
    came of it."""
    for_device = _JaxForDevice(paper_devices.devices(kind)[0])
    platform = paper_devices.platform(kind)
    lower_graph, graphs = tracing.lower_graph, []
    _XLAC.clear_cache()  # Else graphs that ran before would not be compiled.

    def lower_twice(*arguments: Any) -> tracing.LoweredGraph:
        with (
            mock.patch.object(target, "_default_platform", lambda: platform),
            mock.patch.object(tracing, "jax", for_device),
            mock.patch.object(host, "lower_by_host", _stand_in),
        ):
            graphs.append(_compiled(lower_graph, arguments))
        return lower_graph(*arguments)

    with mock.patch.object(tracing, "lower_graph", lower_twice):
        yield graphs


def _compiled(lower_graph: Callable, arguments: Sequence[Any]) -> PaperGraph:
    ops = tuple(call.op for call in arguments[0].calls)
    try:
        lowered = lower_graph(*arguments)
        texts = [part.as_text() for part in lowered.parts]
        calls = frozenset(name for text in texts for name in _CALLED.findall(text))
        programs = tuple(part.compile() for part in lowered.parts)
        return PaperGraph(ops, programs, calls, lowered.program.fallbacks)
    except Exception as error:
        return PaperGraph(ops, error=" ".join(str(error).split()) or repr(error))


def _stand_in(
    op: str, words: Any, operands: Any, scalars: Any, outs: Sequence[Any], **_: Any
) -> list[jax.Array | None]:
    """Values that the compiler cannot know, like those of the host."""
    target.refuse_if_portable(op)
    return [
        None if out is None else lax.optimization_barrier(jnp.zeros(out.shape, out.dtype))
        for out in outs
    ]
