"""A graph of torch.fx, with the ops of aten, as a jax function: each node is its lowering.

    function = FxFunction(exported_program.graph_module)
    outputs = function(*arrays)          # while jax traces; sizes may be symbolic dimensions of jax

Ops that have no lowering are decomposed as in any other graph, where their sizes are numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.export import is_symbolic_dim
from torch.utils._pytree import tree_map

from ..lowering.base import decomposition, promotion, registry
from ..lowering.base.registry import WrappedNumber


class UnsupportedNode(NotImplementedError):
    """A node of a graph has no form as a jax function."""


class FxFunction:
    """A graph as a function of arrays, for use while jax traces.

    Attributes:
      is_random: whether it draws random numbers: then a call needs a key.
    """

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self._module = module
        self.is_random = any(
            (entry := registry.find(node.target.name())) is not None and entry.wants_key
            for node in module.graph.nodes
            if isinstance(node.target, torch._ops.OpOverload)
        )

    def __call__(self, *inputs: Any, key: jax.Array | None = None) -> Any:
        """The outputs of the graph, in its structure, for arrays in the order of its placeholders.

        Args:
          inputs: also None and numbers, where the graph has such placeholders.
          key: of random ops, which each draw from a key of their own.

        Raises:
          UnsupportedNode: a node has no lowering; the message names it and its line.
        """
        run = _Run(self._module, key)
        default = registry.OF_TORCH[torch.get_default_dtype()]
        with promotion.default_dtype(default):
            return run.outputs(iter(inputs))


class _Run:
    """One call: the values of nodes, and the sizes that symbols of torch stand for."""

    def __init__(self, module: torch.fx.GraphModule, key: jax.Array | None) -> None:
        self._module = module
        self._key = key
        self._values: dict[torch.fx.Node, Any] = {}
        self._sizes: dict[Any, Any] = {}

    def outputs(self, inputs: Iterator[Any]) -> Any:
        for number, node in enumerate(self._module.graph.nodes):
            if node.op == "placeholder":
                self._values[node] = value = next(inputs)
                self._note_sizes(node.meta.get("val"), value)
            elif node.op == "get_attr":
                self._values[node] = _constant(operator.attrgetter(node.target)(self._module))
            elif node.op == "output":
                return self._load(node.args[0])
            else:
                try:
                    self._values[node] = self._call(node, number)
                except UnsupportedNode as error:
                    raise _located(error, node) from error.__cause__
        raise UnsupportedNode("the graph has no output")

    def _load(self, argument: Any) -> Any:
        return torch.fx.node.map_arg(argument, self._values.__getitem__)

    def _note_sizes(self, example: Any, value: Any) -> None:
        """Later sizes have the form that they have first: jax cannot tell that `n // 2 // 2`, of
        two convolutions, is `n // 4`."""
        if isinstance(example, torch.SymInt):
            self._sizes.setdefault(example.node.expr, value)
        if isinstance(example, torch.Tensor):
            for size, dim in zip(example.shape, value.shape, strict=True):
                if isinstance(size, torch.SymInt):
                    self._sizes.setdefault(size.node.expr, dim)

    def _call(self, node: torch.fx.Node, number: int) -> Any:
        target: Any = node.target
        size = node.meta.get("val")
        if isinstance(size, torch.SymInt) and size.node.expr in self._sizes:
            return self._sizes[size.node.expr]
        args, kwargs = self._load(node.args), self._load(node.kwargs)
        if not isinstance(target, torch._ops.OpOverload):
            return _of_numbers(node, args)
        if target is torch.ops.aten.sym_size.int:
            return args[0].shape[args[1]]
        if isinstance(size, torch.SymInt):  # Such as a stride.
            return dimension(size, self._sizes)
        if _is_assertion(target):
            return None
        given = [
            _as_number(value) if str(argument.type) in _NUMBERS else value
            for argument, value in zip(
                target._schema.arguments,
                decomposition.in_schema_order(target, args, kwargs),
                strict=True,
            )
        ]
        return self._lower(node, target, given, number)

    def _lower(
        self, node: torch.fx.Node, op: torch._ops.OpOverload, args: Sequence[Any], number: int
    ) -> Any:
        name, example = op.name(), node.meta["val"]
        outs = [None if x is None else self._struct(x) for x in registry.flatten(example)]
        found = None
        entry = registry.find(name)
        key = self._key
        if key is not None and entry is not None and entry.wants_key:
            key = jax.random.fold_in(key, number)
        with jax.named_scope(name):
            if entry is not None:
                try:
                    found = registry.call(name, args, outs, key)
                except registry.Unsupported:
                    pass
                except registry.LoweringError as error:
                    if all(_has_numbers(x) for x in (*args, *outs)):
                        raise
                    raise _unsupported(name) from error  # Lowerings may branch on sizes.
            # A decomposition runs on tensors, whose sizes are numbers.
            if found is None and all(_has_numbers(x) for x in decomposition.tensors(args)):
                found = decomposition.decompose(name, args, outs)
        if found is None:
            raise _unsupported(name)
        for described, result in zip(registry.flatten(example), found, strict=True):
            self._note_sizes(described, result)
        results = iter(found)
        return tree_map(lambda _: next(results), example)

    def _struct(self, example: torch.Tensor) -> jax.ShapeDtypeStruct:
        if example.dtype not in registry.OF_TORCH:
            raise UnsupportedNode(f"XLA has no element type {example.dtype}")
        shape = tuple(dimension(size, self._sizes) for size in example.shape)
        return jax.ShapeDtypeStruct(shape, registry.OF_TORCH[example.dtype])


def dimension(size: Any, sizes: dict[Any, Any]) -> Any:
    """A size of torch as a dimension of jax.

    Args:
      size: a number, a SymInt, or an expression of sympy.
      sizes: the dimension of each symbol.
    """
    expression = size.node.expr if isinstance(size, torch.SymInt) else size
    if isinstance(expression, int):
        return expression
    if expression.is_Integer:
        return int(expression)
    if expression in sizes:
        return sizes[expression]
    combine = _EXPRESSIONS.get(type(expression).__name__)
    if combine is None:
        raise UnsupportedNode(
            f"a size is {expression}, which is no expression of the sizes of inputs: it depends on "
            "values.\nCompute with all of these:  torch.where(condition, a, b)"
        )
    first, *others = (dimension(argument, sizes) for argument in expression.args)
    for other in others:
        first = combine(first, other)
    return first


# What the expressions of sizes are made of, by the names of sympy's and torch's classes.
_EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Mul": operator.mul,
    "Pow": operator.pow,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "Max": lambda a, b: jax.core.max_dim(a, b),
    "Min": lambda a, b: jax.core.min_dim(a, b),
}
_COMPARISONS = {operator.eq, operator.ne, operator.ge, operator.gt, operator.le, operator.lt}
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_ARITHMETIC = {
    operator.add,
    operator.sub,
    operator.mul,
    operator.neg,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.getitem,
}


# The types of arguments that a program computes with, whether number or tensor.
_NUMBERS = {"Tensor", "number", "Optional[number]"}
# Of torch's functions of numbers, those that arrays have under another name.
_ON_FLOATS: dict[Any, Callable[..., Any]] = {
    torch.sym_float: lambda x: x,
    torch._sym_sqrt: jnp.sqrt,
}


def _of_numbers(node: torch.fx.Node, args: Sequence[Any]) -> Any:
    """A function of Python, of sizes and numbers."""
    target: Any = node.target
    result = node.meta.get("val")
    if target in _COMPARISONS:
        return None  # torch has checked it; it leads to an assertion only.
    # Sizes that are numbers allow all of torch's arithmetic, such as torch.sym_float; jax's
    # symbolic dimensions do not.
    are_known = isinstance(result, _SYMBOLS) and all(isinstance(x, (int, float)) for x in args)
    if isinstance(result, torch.SymFloat) and not are_known:
        compute = _ON_FLOATS.get(target, target)
        return WrappedNumber(compute(*(_as_float(x) for x in args)))
    if target in _ARITHMETIC or are_known:
        return target(*args, **node.kwargs)
    raise _unsupported(f"{getattr(target, '__name__', target)}")


def _as_number(value: Any) -> Any:
    """A symbolic size as a number that a program computes with."""
    return WrappedNumber(jnp.asarray(value, np.int64)) if is_symbolic_dim(value) else value


def _as_float(value: Any) -> jax.Array:
    return jnp.asarray(value.value if isinstance(value, WrappedNumber) else value, np.float64)


def _is_assertion(op: torch._ops.OpOverload) -> bool:
    name = op.name()
    return "_assert" in name or name.startswith("aten::sym_constrain_range")


def _has_numbers(x: Any) -> bool:
    return promotion.are_known(*getattr(x, "shape", ()))


def _constant(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return decomposition.as_array(value.cpu())


def _unsupported(name: str) -> UnsupportedNode:
    return UnsupportedNode(
        f"{name} has no lowering for all platforms and for sizes that are not known."
    )


def _located(error: UnsupportedNode, node: torch.fx.Node) -> UnsupportedNode:
    """The error with the operation of its node, and the line of the program."""
    name = node.target.name() if isinstance(node.target, torch._ops.OpOverload) else node.name
    message = str(error) if str(error).startswith(name) else f"{name}: {error}"
    lines = (node.meta.get("stack_trace") or "").strip().splitlines()
    where = f"\nIn {' '.join(line.strip() for line in lines[-2:])}" if lines else ""
    return UnsupportedNode(f"{message}{where}")
