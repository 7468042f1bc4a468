"""Exports a program of torch.export, so that it runs with jax alone.

    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    exported = export(program)
    exported.save("served/")            # program.bin, weights.safetensors, meta.json

    # Elsewhere, where jax is and torch need not be:
    program = jax.export.deserialize(bytearray(pathlib.Path("served/program.bin").read_bytes()))
    y = program.call(weights, x)        # weights: those of the file, by name

The program is StableHLO, which the XLA of later versions of jax reads, too, for several platforms
at once. It calls no code outside XLA.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.export
import jaxlib
import numpy as np
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.utils import _pytree

from . import __config__
from .fx_functions import FxFunction, UnsupportedNode
from .lowering import decomposition, registry, target

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@dataclasses.dataclass(frozen=True)
class Exported:
    """A program for jax, and what it needs.

    Attributes:
      program: a function of the weights, by name, and the inputs.
      weights: parameters, buffers and constants, by the names that they have in the module.
      inputs: name, dtype and shape of each input; sizes that may vary are symbols.
    """

    program: jax.export.Exported
    weights: Mapping[str, np.ndarray]
    inputs: Sequence[Mapping[str, Any]]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program on jax arrays, for tests."""
        return self.program.call(dict(self.weights), *args, **kwargs)

    def save(self, folder: str | Path) -> None:
        """Writes `program.bin`, `weights.safetensors` and `meta.json` to a folder.

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
        save_file(dict(self.weights), folder / "weights.safetensors")
        (folder / "meta.json").write_text(json.dumps(self._meta(), indent=1) + "\n")

    def _meta(self) -> dict[str, Any]:
        return {
            "inputs": list(self.inputs),
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
    program: torch.export.ExportedProgram, *, platforms: Sequence[str] = PLATFORMS
) -> Exported:
    """A program of torch.export as a program for jax.

    Integers of 64 bits and float64 become 32 bits at the boundary, because jax has no others by
    default; inside, the program computes with the dtypes of torch. An index out of range is not
    reported: reading takes the nearest element, writing is left out.

    Args:
      program: of an inference: it must not update buffers or inputs, nor draw random numbers.
      platforms: those that the program can run on.

    Raises:
      UnsupportedNode: an operation has no lowering that all platforms have.
      ValueError: the program is no inference, or an op calls code outside XLA.
    """
    program = program.run_decompositions(_table(program))
    _check_is_inference(program)
    function = FxFunction(program.graph_module)
    if function.is_random:
        raise ValueError(
            "the program draws random numbers, as dropout does.\n"
            "Export the module for inference:  model.eval()"
        )
    specs = program.graph_signature.input_specs
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    weights = {
        spec.target: _array(_tensor_of(program, spec.target))
        for spec in specs
        if spec.kind is not InputKind.USER_INPUT
    }
    dtypes = [
        registry.OF_TORCH.get(getattr(n.meta.get("val"), "dtype", None)) for n in placeholders
    ]

    def call(weights: dict[str, jax.Array], *args: Any, **kwargs: Any) -> Any:
        # In torch's order: jax sorts the keys of dicts.
        user_inputs = iter(program.call_spec.in_spec.flatten_up_to((args, kwargs)))
        values = []
        for spec, dtype in zip(specs, dtypes, strict=True):
            is_weight = spec.kind is not InputKind.USER_INPUT
            value = weights[spec.target] if is_weight else next(user_inputs)
            if isinstance(spec.arg, ConstantArgument):
                value = spec.arg.value
            values.append(value if dtype is None else value.astype(dtype))
        with target.portable():
            outputs = function(*values)
        outputs = [narrowed(x) if isinstance(x, jax.Array) else x for x in outputs]
        return _plain(_pytree.tree_unflatten(outputs, program.call_spec.out_spec))

    structs, described = _inputs(program, placeholders)
    args, kwargs = _pytree.tree_unflatten(structs, program.call_spec.in_spec)
    of_weights = {name: jax.ShapeDtypeStruct(x.shape, x.dtype) for name, x in weights.items()}
    with jax.enable_x64(True):
        try:
            exported = jax.export.export(jax.jit(call), platforms=platforms)(
                of_weights, *args, **kwargs
            )
        except ValueError as error:
            raise _explained(error) from error
    return Exported(exported, weights, described)


def narrowed(x: jax.Array) -> jax.Array:
    """A value in the dtype that jax has for it by default."""
    return x.astype(narrow(x.dtype))


def narrow(dtype: np.dtype) -> np.dtype:
    """The dtype that jax has by default in place of one of 64 bits, or of two of these."""
    return np.dtype(_NARROW.get(np.dtype(dtype).name, dtype))


_NARROW = {
    "int64": "int32",
    "uint64": "uint32",
    "float64": "float32",
    "complex128": "complex64",
}


def _table(program: torch.export.ExportedProgram) -> dict[Any, Any]:
    """torch's decompositions of the ops that have no lowering here."""
    table = torch.export.default_decompositions()
    for op in list(table):
        if registry.find(op.name()) is not None:
            del table[op]
    return table


def _check_is_inference(program: torch.export.ExportedProgram) -> None:
    kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
    updated = [
        spec.target or spec.arg.name
        for spec in program.graph_signature.output_specs
        if spec.kind not in kinds
    ]
    if updated:
        raise ValueError(
            f"the program updates {', '.join(updated)}, which would be lost.\n"
            "Export the module for inference:  model.eval()"
        )


def _tensor_of(program: torch.export.ExportedProgram, name: str) -> torch.Tensor:
    """A parameter, buffer or constant."""
    found = program.state_dict.get(name)
    return program.constants[name] if found is None else found


def _array(tensor: torch.Tensor) -> np.ndarray:
    array = np.asarray(decomposition.as_array(tensor.detach().cpu()))
    return array.astype(narrow(array.dtype))


def _inputs(
    program: torch.export.ExportedProgram, placeholders: Sequence[torch.fx.Node]
) -> tuple[list[Any], list[dict[str, Any]]]:
    """What jax traces the inputs of the user with, in order, and a description of each."""
    scope = jax.export.SymbolicScope(_constraints(program))
    structs: list[Any] = []
    described: list[dict[str, Any]] = []
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
        if spec.kind is not InputKind.USER_INPUT:
            continue
        example = node.meta.get("val")
        if not isinstance(example, torch.Tensor):
            structs.append(example if spec.arg is None else getattr(spec.arg, "value", example))
            continue
        sizes = [
            str(getattr(size, "node", None).expr if isinstance(size, torch.SymInt) else size)
            for size in example.shape
        ]
        shape = jax.export.symbolic_shape(",".join(sizes), scope=scope) if sizes else ()
        dtype = narrow(registry.OF_TORCH[example.dtype])
        structs.append(jax.ShapeDtypeStruct(shape, dtype))
        described.append({"name": spec.arg.name, "dtype": dtype.name, "shape": sizes})
    return structs, described


def _constraints(program: torch.export.ExportedProgram) -> list[str]:
    """The ranges of the sizes that may vary, as jax writes them."""
    found = []
    for symbol, limits in program.range_constraints.items():
        if not symbol.is_Symbol:
            continue
        if limits.lower.is_Integer and int(limits.lower) > 1:
            found.append(f"{symbol} >= {int(limits.lower)}")
        if limits.upper.is_Integer:
            found.append(f"{symbol} <= {int(limits.upper)}")
    return found


def _plain(value: Any) -> Any:
    """Results in dicts, lists and tuples, which jax can write; other containers become dicts."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return (
            type(value)(map(_plain, value))
            if type(value) in (list, tuple)
            else tuple(map(_plain, value))
        )
    return value


def _explained(error: ValueError) -> Exception:
    if "custom calls" not in str(error):
        return error
    return ValueError(
        f"an operation calls code outside XLA, which jax cannot export: {error}\n"
        "Give the operation a lowering of jax code:  @torch_xla_lite.register_lowering(...)"
    )


__all__ = ["PLATFORMS", "Exported", "UnsupportedNode", "export"]
