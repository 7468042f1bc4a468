"""Programs of torch.export as functions that can be exported, with sizes that vary."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.export
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.utils import _pytree

from ..interop.fx_functions import FxFunction
from ..lowering.base import registry, target
from .exportable import Exportable, array_of, narrowed, plain, struct_of


def exportable_graph(program: torch.export.ExportedProgram) -> Exportable:
    """A program of torch.export.

    Raises:
      UnsupportedNode: when it is traced; an operation has no lowering that all platforms have.
      ValueError: the program updates buffers or inputs, or draws random numbers.
    """
    program = program.run_decompositions(_table())
    _drop_checks(program)
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
        spec.target: array_of(_tensor_of(program, spec.target))
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
        return plain(_pytree.tree_unflatten(map(narrowed, outputs), program.call_spec.out_spec))

    structs, described = _inputs(program, placeholders)
    args, kwargs = _pytree.tree_unflatten(structs, program.call_spec.in_spec)
    return Exportable(call, weights, args, kwargs, described)


def _table() -> dict[Any, Any]:
    """torch's decompositions of the ops that have no lowering here."""
    table = torch.export.default_decompositions()
    for op in list(table):
        if registry.find(op.name()) is not None:
            del table[op]
    for op in (torch.ops.aten.upsample_nearest2d, torch.ops.aten.upsample_bilinear2d):
        table[op.vec] = functools.partial(_resized, op.default)  # torch keeps these two.
    return table


def _resized(
    op: torch._ops.OpOverload, images: torch.Tensor, sizes: Sequence[int] | None, *options: Any
) -> torch.Tensor:
    """The overload `vec`, which takes sizes or scales, by the default one, which takes both."""
    *corners, scales = options
    if sizes is None:
        # Sizes that vary have no form in jax as a float.
        sizes = [
            size * int(scale) if scale.is_integer() else torch.sym_int(size * scale)
            for size, scale in zip(images.shape[2:], scales, strict=True)
        ]
    return op(images, sizes, *corners, *(scales or [None] * len(sizes)))


def _drop_checks(program: torch.export.ExportedProgram) -> None:
    """Leaves out the checks of factorisations, and the tokens that order them: where one fails, the
    results are not finite."""
    graph, signature = program.graph, program.graph_signature
    effects = [n for n in graph.nodes if n.target is torch.ops.higher_order.with_effects]
    if any(n.args[1] is not torch.ops.aten._linalg_check_errors.default for n in effects):
        return
    (output,) = graph.find_nodes(op="output")
    are_tokens = [spec.kind is OutputKind.TOKEN for spec in signature.output_specs]
    output.args = (tuple(itertools.compress(output.args[0], map(operator.not_, are_tokens))),)
    signature.output_specs = [s for s in signature.output_specs if s.kind is not OutputKind.TOKEN]
    for node in reversed(effects):
        for result in list(node.users):
            graph.erase_node(result)
        graph.erase_node(node)
    placeholders = graph.find_nodes(op="placeholder")
    for node, spec in zip(placeholders, signature.input_specs, strict=True):
        if spec.kind is InputKind.TOKEN:
            graph.erase_node(node)
    signature.input_specs = [s for s in signature.input_specs if s.kind is not InputKind.TOKEN]


def _check_is_inference(program: torch.export.ExportedProgram) -> None:
    kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
    updates = [spec for spec in program.graph_signature.output_specs if spec.kind not in kinds]
    if updates:
        writes_input = any(spec.kind is OutputKind.USER_INPUT_MUTATION for spec in updates)
        remedy = (
            "Write to a copy of the input:  x = x.clone()"
            if writes_input
            else "Export the module for inference:  model.eval()"
        )
        names = ", ".join(spec.target or spec.arg.name for spec in updates)
        raise ValueError(f"the program updates {names}, which would be lost.\n{remedy}")


def _tensor_of(program: torch.export.ExportedProgram, name: str) -> torch.Tensor:
    """A parameter, buffer or constant."""
    found = program.state_dict.get(name)
    return program.constants[name] if found is None else found


def _inputs(
    program: torch.export.ExportedProgram, placeholders: Sequence[torch.fx.Node]
) -> tuple[list[Any], list[dict[str, Any]]]:
    """What jax traces the inputs of the user with, in order, and a description of each."""
    scope = jax.export.SymbolicScope(_constraints(program, placeholders))
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
        structs.append(struct_of(example.dtype, shape))
        dtype = structs[-1].dtype.name
        described.append({"name": spec.arg.name, "dtype": dtype, "shape": sizes})
    return structs, described


def _constraints(
    program: torch.export.ExportedProgram, placeholders: Sequence[torch.fx.Node]
) -> list[str]:
    """The ranges of the sizes of inputs that may vary, as jax writes them."""
    symbols = {
        symbol
        for node in placeholders
        for size in getattr(node.meta.get("val"), "shape", ())
        if isinstance(size, torch.SymInt)
        for symbol in size.node.expr.free_symbols
    }
    found = []
    for symbol, limits in program.range_constraints.items():
        # Those that torch has replaced by others have ranges, too.
        if symbol not in symbols:
            continue
        if limits.lower.is_Integer and int(limits.lower) > 1:
            found.append(f"{symbol} >= {int(limits.lower)}")
        if limits.upper.is_Integer:
            found.append(f"{symbol} <= {int(limits.upper)}")
    return found
