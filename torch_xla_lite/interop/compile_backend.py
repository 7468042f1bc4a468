"""The backend "torch_xla_lite" of torch.compile: each graph becomes one recorded op.

    model = torch.compile(model, backend="torch_xla_lite")

Dynamo traces the Python code, AOTAutograd makes graphs of forward and backward, and each is a jax
function (fx_functions.py) that call_jax records as one op. So Python runs the ops of a model once,
while forward, backward and optimizer are still one graph of XLA. With the default backend (see
compile_mode.py) each op of such a graph is recorded each time.

torch finds the backend by its entry point (pyproject.toml), without this package being imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils._pytree import tree_leaves

from ..lowering.base import registry
from .fx_functions import FxFunction
from .jax_calls import call_jax


def backend(
    module: torch.fx.GraphModule, example_inputs: Sequence[Any], **options: Any
) -> Callable[..., Any]:
    """Compiles a graph of dynamo, as torch._dynamo.register_backend describes.

    Raises:
      TypeError: options, of which it has none.
    """
    if options:
        raise TypeError(
            f"backend torch_xla_lite has no options, got {', '.join(options)}.\n"
            'Leave them out:  torch.compile(model, backend="torch_xla_lite")'
        )
    compile_graph = aot_autograd(
        fw_compiler=_compiled_forward,
        bw_compiler=_compiled,
        inference_compiler=_compiled_forward,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=_table(),
    )
    return compile_graph(module, example_inputs)


def _table() -> dict[Any, Callable]:
    """torch's decompositions of the ops that have no lowering here."""
    from torch._decomp import core_aten_decompositions

    table = core_aten_decompositions()
    return {op: fn for op, fn in table.items() if registry.find(op.name()) is None}


def _compiled_forward(
    module: torch.fx.GraphModule, example_inputs: Sequence[Any]
) -> Callable[..., Any]:
    # With sizes that vary torch makes views of the strides and offsets of results, which only
    # tensors that are views here have.
    if _gives_views() and any(isinstance(x, torch.SymInt) for x in example_inputs):
        return make_boxed_func(module.forward)
    return _compiled(module, example_inputs)


def _gives_views() -> bool:
    """Whether a result of the function that is being compiled shares memory."""
    metadata = torch._guards.TracingContext.get().fw_metadata
    return any(info.output_type.name.startswith("alias_of") for info in metadata.output_info)


def _compiled(module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """A graph of aten ops as a function of one list of tensors and sizes, which it empties."""
    # What has no form as a jax function is recorded op by op.
    if not _has_lowerings(module):
        return make_boxed_func(module.forward)
    function = FxFunction(module)
    outputs = next(node for node in module.graph.nodes if node.op == "output").args[0]
    # The results that are no tensors, such as sizes, by the shapes that they were traced for.
    others: dict[tuple, list[Any]] = {}

    def run(*values: Any, key: jax.Array | None = None) -> list[Any]:
        results = list(zip(function(*values, key=key), outputs, strict=True))
        others[_shapes(values)] = [x for x, node in results if not _is_tensor(node)]
        return [x for x, node in results if _is_tensor(node)]

    def call(*values: Any) -> list[Any]:
        device = next((x.device for x in values if isinstance(x, torch.Tensor) and x.dim()), "jax")
        key = _key(device) if function.is_random else None
        # torch's dtypes: those of 64 bits stay.
        with jax.enable_x64(True):
            tensors = iter(call_jax(run, *values, key=key))
        rest = iter(others[_shapes(values)])
        return [next(tensors) if _is_tensor(node) else next(rest) for node in outputs]

    return make_boxed_func(call)


def _shapes(values: Sequence[Any]) -> tuple:
    """The shapes of tensors or arrays, and all other values."""
    return tuple(tuple(x.shape) if hasattr(x, "shape") else x for x in values)


def _is_tensor(node: Any) -> bool:
    return isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)


def _has_lowerings(module: torch.fx.GraphModule) -> bool:
    """Whether all ops have one: ops that are decomposed may need kernels of the CPU."""
    return all(_has_lowering(node) for node in module.graph.nodes)


def _has_lowering(node: torch.fx.Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload):
        # torch.linalg.inv has an operator of higher order around its check.
        return not isinstance(node.target, torch._ops.HigherOrderOperator)
    results = tree_leaves(node.meta.get("val"))
    dtypes = [x.dtype for x in results if isinstance(x, torch.Tensor)]
    return not dtypes or (
        registry.find(node.target.name()) is not None
        and all(dtype in registry.OF_TORCH for dtype in dtypes)
    )


def _key(device: torch.device | str) -> torch.Tensor:
    """A random key from torch's generator of a device, as data."""
    return torch.randint(2**32, (2,), dtype=torch.int64, device=device).to(torch.uint32)
