"""JaxModule: a layer of flax or equinox as a module of torch, with parameters and buffers.

    layer = JaxModule(flax.linen.Dense(8), x)                   # x: an example of what it takes
    layer = JaxModule(flax.nnx.Linear(4, 8, rngs=flax.nnx.Rngs(0)))
    layer = JaxModule(equinox.nn.Linear(4, 8, key=key), call=jax.vmap)
    torch.optim.Adam(layer.parameters())

None of these libraries is needed. What has `init` and `apply` is a layer of flax.linen; all others
but those of flax.nnx are pytrees with arrays, as those of equinox are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import torch

from ..compiler import jax_programs
from .jax_calls import call_jax
from .torch_functions import jax_view, torch_view

# Of parameters, buffers, whether the module trains, and the arguments of a call: the results, and
# the buffers' new values, or an empty tree.
_Function = Callable[[Any, Any, bool, tuple, dict], tuple[Any, Any]]


class JaxModule(torch.nn.Module):
    """A layer of a jax library, called by `call_jax`.

    What the library trains are Parameters; other arrays, such as the statistics of a normalisation,
    are buffers, which get their new values in each call while the module trains. Both have the
    names of the library, as in `Dense_0.kernel`.
    """

    def __init__(
        self,
        layer: Any,
        *args: Any,
        seed: int = 0,
        call: Callable[[Any], Callable] = lambda layer: layer,
        **kwargs: Any,
    ) -> None:
        """Makes the module.

        Args:
          layer: of flax.linen, flax.nnx or equinox.
          args, kwargs: of flax.linen: an example of a call, with tensors, for `layer.init`.
          seed: of the random key for that.
          call: of other layers: gives the function that is called, of the layer; such as
            `jax.vmap`, or `lambda layer: layer.encode`.

        Raises:
          TypeError: the layer has no arrays.
        """
        super().__init__()
        if hasattr(layer, "init") and hasattr(layer, "apply"):
            parameters, buffers, self._function = _of_linen(layer, seed, args, kwargs)
        elif type(layer).__module__.startswith("flax.nnx") or _is_nnx(layer):
            parameters, buffers, self._function = _of_nnx(layer, call)
        else:
            parameters, buffers, self._function = _of_pytree(layer, call)
        if not jax.tree.leaves((parameters, buffers)):
            raise TypeError(f"{type(layer).__name__} has no arrays, so it is no layer of jax.")
        self._trees = jax.tree.structure(parameters), jax.tree.structure(buffers)
        self._names: tuple[list[str], list[str]] = ([], [])
        for names, tree in zip(self._names, (parameters, buffers), strict=True):
            for path, array in jax.tree_util.tree_flatten_with_path(tree)[0]:
                names.append(jax.tree_util.keystr(path, simple=True, separator="."))
                self._register(names[-1], torch_view(array), is_parameter=tree is parameters)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the layer, with tensors in place of arrays."""
        parameters, buffers = (
            jax.tree.unflatten(tree, [getattr(*self._place(name)) for name in names])
            for tree, names in zip(self._trees, self._names, strict=True)
        )
        before = jax.tree.map(torch.clone, buffers)  # The gradient needs them.
        results, updated = call_jax(self._function, parameters, before, self.training, args, kwargs)
        with torch.no_grad():
            if values := jax.tree.leaves(updated):
                torch._foreach_copy_(jax.tree.leaves(buffers), values)
        return results

    def _register(self, name: str, tensor: torch.Tensor, *, is_parameter: bool) -> None:
        owner: torch.nn.Module = self
        *parts, attribute = name.split(".")
        for part in parts:
            if part not in owner._modules:
                owner.add_module(part, torch.nn.Module())
            owner = owner.get_submodule(part)
        if is_parameter:
            owner.register_parameter(attribute, torch.nn.Parameter(tensor))
        else:
            owner.register_buffer(attribute, tensor)

    def _place(self, name: str) -> tuple[torch.nn.Module, str]:
        owner, _, attribute = name.rpartition(".")
        return self.get_submodule(owner), attribute


def _of_linen(layer: Any, seed: int, args: tuple, kwargs: dict) -> tuple[Any, Any, _Function]:
    def array(leaf: Any) -> Any:
        return jax_view(leaf) if isinstance(leaf, torch.Tensor) else leaf

    args, kwargs = jax.tree.map(array, (args, kwargs))
    variables = dict(layer.init(jax.random.key(seed), *args, **kwargs))
    parameters = variables.pop("params", {})

    def function(params: Any, others: dict, training: bool, args: tuple, kwargs: dict) -> tuple:
        given = {"params": params, **others}
        if training and others:
            return layer.apply(given, *args, mutable=list(others), **kwargs)
        return layer.apply(given, *args, **kwargs), {}

    return parameters, variables, function


def _is_nnx(layer: Any) -> bool:
    return any(kind.__module__.startswith("flax.nnx") for kind in type(layer).__mro__)


def _of_nnx(layer: Any, call: Callable[[Any], Callable]) -> tuple[Any, Any, _Function]:
    from flax import nnx

    graph, parameters, others = nnx.split(layer, nnx.Param, ...)
    kinds = list(map(jax_programs.impl_of, jax.tree.leaves(others)))

    def function(params: Any, others: Any, training: bool, args: tuple, kwargs: dict) -> tuple:
        leaves, tree = jax.tree.flatten(others)
        leaves = list(map(jax_programs.wrapped, leaves, kinds))
        merged = nnx.merge(graph, params, jax.tree.unflatten(tree, leaves))
        merged.train() if training else merged.eval()
        results = call(merged)(*args, **kwargs)
        updated = nnx.split(merged, nnx.Param, ...)[2] if training else {}
        return results, jax.tree.map(jax_programs.unwrapped, updated)

    return parameters, jax.tree.map(jax_programs.unwrapped, others), function


def _of_pytree(layer: Any, call: Callable[[Any], Callable]) -> tuple[Any, Any, _Function]:
    paths, tree = jax.tree_util.tree_flatten_with_path(layer)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
    arrays = {
        name: leaf
        for name, (_, leaf) in zip(names, paths, strict=True)
        if isinstance(leaf, jax.Array)
    }
    parameters = {n: x for n, x in arrays.items() if jnp.issubdtype(x.dtype, jnp.inexact)}
    others = {name: x for name, x in arrays.items() if name not in parameters}
    # The places of arrays are empty.
    constants = [None if isinstance(leaf, jax.Array) else leaf for _, leaf in paths]

    def function(params: dict, others: dict, training: bool, args: tuple, kwargs: dict) -> tuple:
        given = {**params, **others}
        leaves = [given.get(name, leaf) for name, leaf in zip(names, constants, strict=True)]
        layer = jax.tree.unflatten(tree, leaves)
        if not training and (equinox := sys.modules.get("equinox")) is not None:
            layer = equinox.nn.inference_mode(layer)
        return call(layer)(*args, **kwargs), {}

    return parameters, others, function
