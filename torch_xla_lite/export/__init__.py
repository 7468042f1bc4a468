"""Exports a model or a training step, so that it runs with jax alone.

    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    exported = export(program)
    exported.save("served/")            # program.bin, weights.safetensors, meta.json

    exported = export(step, (x, y), state={"model": model, "optimizer": optimizer})

    # Elsewhere, where jax is and torch need not be:
    program = jax.export.deserialize(bytearray(pathlib.Path("served/program.bin").read_bytes()))
    y = program.call(weights, x)        # weights: those of the file, by name

The program is StableHLO, which the XLA of later versions of jax reads, too, for several platforms
at once. It calls no code outside XLA.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import jax.export
import jaxlib
import numpy as np
import torch

from .. import __config__
from ..interop.fx_functions import UnsupportedNode
from .exportable import Exportable
from .exportable_graphs import exportable_graph
from .exportable_steps import exportable_step

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@dataclasses.dataclass(frozen=True)
class Exported:
    """A program for jax, and what it needs.

    Attributes:
      program: a function of the weights, by name, and the inputs; of the inputs alone if the
        weights are inside.
      weights: parameters, buffers, states of optimizers and constants, by their names; none if
        they are inside.
      inputs: name, dtype and shape of each input; sizes that may vary are symbols.
      updates: names of the weights that the program gives new values of. Then its result is
        (results, {name: value}).
    """

    program: jax.export.Exported
    weights: Mapping[str, np.ndarray]
    inputs: Sequence[Mapping[str, Any]]
    updates: Sequence[str] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program on jax arrays, for tests."""
        weights = (dict(self.weights),) if self.weights else ()
        return self.program.call(*weights, *args, **kwargs)

    def save(self, folder: str | Path) -> None:
        """Writes `program.bin`, `weights.safetensors` and `meta.json` to a folder. There is no file
        of weights if there are none beside the program.

        Raises:
          ImportError: flatbuffers or safetensors is not installed.
        """
        try:
            from safetensors.numpy import save_file

            program = self.program.serialize()
        except ImportError as error:
            raise ImportError(
                "programs are written with flatbuffers and safetensors, and one of them is not "
                "installed.\n"
                "Install them:  python -m pip install 'torch_xla_lite[export]'"
            ) from error
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "program.bin").write_bytes(program)
        if self.weights:
            save_file(dict(self.weights), folder / "weights.safetensors")
        else:
            (folder / "weights.safetensors").unlink(missing_ok=True)
        (folder / "meta.json").write_text(json.dumps(self._meta(), indent=1) + "\n")

    def _meta(self) -> dict[str, Any]:
        return {
            "inputs": list(self.inputs),
            "updates": list(self.updates),
            "platforms": list(self.program.platforms),
            "calling_convention": self.program.calling_convention_version,
            "versions": {
                "torch_xla_lite": __config__.version(),
                "torch": torch.__version__,
                "jax": jax.__version__,
                "jaxlib": jaxlib.__version__,
            },
        }


def export(
    program: torch.export.ExportedProgram | Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    state: Mapping[str, Any] | None = None,
    platforms: Sequence[str] = PLATFORMS,
    weights: Literal["beside", "inside"] = "beside",
) -> Exported:
    """A program of torch.export, or a function of tensors, as a program for jax.

    Integers of 64 bits and float64 become 32 bits at the boundary, because jax has no others by
    default; inside, the program computes with the dtypes of torch. An index out of range is not
    reported: reading takes the nearest element, writing is left out.

    A function, such as a module or a training step, is captured: recorded once on tensors without
    values, for the sizes of the example inputs. It may update its state. If it draws random
    numbers, the program has a further input `rng`, the data of a key of jax: `uint32[2]`.

    Args:
      program: one of torch.export must be an inference: not update buffers or inputs, nor draw
        random numbers. A function gives tensors in dicts, lists and tuples.
      args, kwargs: example inputs of a function: tensors in dicts, lists and tuples.
      state: what a function reads and updates: modules, optimizers, and other objects that have a
        `state_dict()`, or tensors in dicts and lists. The names of its tensors begin with those
        given here. A module that is exported is its own state. Gradients are no state.
      platforms: those that the program can run on.
      weights: "beside": arguments of the program. "inside": constants of it, which takes a few
        seconds longer to compile.

    Raises:
      GraphBreak: a function reads a value.
      UnsupportedNode: an operation has no lowering that all platforms have.
      ValueError: the program is no inference, an op calls code outside XLA, the state is not all
        that a function updates, or weights are to be elsewhere.
    """
    if weights not in ("beside", "inside"):
        raise ValueError(f"weights={weights!r}: expected 'beside' or 'inside'")
    if isinstance(program, torch.export.ExportedProgram):
        source = exportable_graph(program)
    else:
        source = exportable_step(program, args, kwargs or {}, state or {})
    if weights == "inside":
        return _export(_with_weights_inside(source), platforms)
    return _export(source, platforms)


def _export(source: Exportable, platforms: Sequence[str]) -> Exported:
    call = jax.jit(source.call if source.weights else _without_weights(source.call))
    structs = {name: jax.ShapeDtypeStruct(x.shape, x.dtype) for name, x in source.weights.items()}
    args = (structs, *source.args) if structs else source.args
    with jax.enable_x64(True):
        try:
            program = jax.export.export(call, platforms=platforms)(*args, **source.kwargs)
        except ValueError as error:
            raise _explained(error) from error
    return Exported(program, source.weights, source.inputs, source.updates)


def _without_weights(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: call({}, *args, **kwargs)


def _with_weights_inside(source: Exportable) -> Exportable:
    if source.updates:
        raise ValueError(
            f"the program updates {', '.join(source.updates)}, which cannot be constants of it.\n"
            'Leave them beside it:  export(..., weights="beside")'
        )

    def call(_: dict, *args: Any, **kwargs: Any) -> Any:
        weights = {name: jax.numpy.asarray(x) for name, x in source.weights.items()}
        return source.call(weights, *args, **kwargs)

    return dataclasses.replace(source, call=call, weights={})


def _explained(error: ValueError) -> Exception:
    if "custom calls" not in str(error):
        return error
    return ValueError(
        f"an operation calls code outside XLA, which jax cannot export: {error}\n"
        "Give the operation a lowering of jax code:  @torch_xla_lite.register_lowering(...)"
    )


__all__ = ["PLATFORMS", "Exported", "UnsupportedNode", "export"]
