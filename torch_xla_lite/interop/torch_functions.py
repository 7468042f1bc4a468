"""Torch functions and modules as jax functions.

    fn, state = to_jax(module)
    y, buffers = jax.jit(fn)(state["params"], state["buffers"], x, rng=jax.random.key(0))
    jax.grad(lambda params: fn(params, state["buffers"], x)[0].sum())(state["params"])

    call_torch(torch.nn.functional.silu, x)       # in a jax function

A function is captured once for each signature (capture.py). Its gradient is the one that torch
records, by jax.custom_vjp; with gradient="jax", jax differentiates the lowerings, also in forward
mode.
"""

from __future__ import annotations

import collections
import types
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch

from torch_xla_lite.startup.late_jax import jax, jnp

from .. import _XLAC
from ..compiler import jax_programs
from ..device.tensor import XLATensor2
from ..lowering.base import registry
from . import capture, captured_tensors, jax_functions, thread_settings
from .capture import Captured

Gradient = Literal["torch", "jax"]

# How many signatures of a function are kept.
_MOST = 64


class MissingKey(ValueError):
    """A function draws random numbers and was called without a key."""


def to_jax(
    module: torch.nn.Module, *, gradient: Gradient = "torch"
) -> tuple[Callable[..., Any], dict[str, dict[str, jax.Array]]]:
    """A module as a pure jax function, and its state.

    The function is `fn(params, buffers, *args, rng=None, **kwargs) -> (outputs, buffers)`, with the
    new values of the buffers. It works under `jax.jit`, `grad`, `vmap`, `lax.scan` and
    `jax.checkpoint`. The Python code of the module runs once for each signature of the arguments;
    it must not depend on values, and what it does besides computing does not happen again. The
    modes of the module, training or evaluation, are those at the call.

    Args:
      module: on any device; it is not changed.
      gradient: "torch": that of torch's autograd, in reverse mode. "jax": jax differentiates, also
        in forward mode; some operations have no derivative there.

    Returns:
      The function; its state, `{"params": {name: array}, "buffers": {name: array}}`. A weight that
      several modules share is there once. Arrays of 64 bits are 32 bits wide unless
      `jax_enable_x64` is set.

    Raises (the function):
      GraphBreak: the module needs a value.
      ValueError: names of parameters are not those of the module, or it uses a tensor on jax that
        is not a part of its state.
      MissingKey: it draws random numbers and `rng` is missing.
    """
    groups = {
        "params": dict(module.named_parameters()),
        "buffers": dict(module.named_buffers()),
    }
    state = {
        group: {name: jax_view(x) for name, x in tensors.items()}
        for group, tensors in groups.items()
    }
    fn = function_of(module, gradient)
    # For call_jax, which keeps what it traced.
    fn._torch_modes = lambda: _modes_of([module])  # type: ignore[attr-defined]
    return fn, state


def function_of(module: torch.nn.Module, gradient: Gradient) -> Callable[..., Any]:
    """The function of `to_jax`."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    dtypes = {name: x.dtype for name, x in tensors}
    name = type(module).__name__

    def run(params: dict, buffers: dict, args: tuple, kwargs: dict) -> tuple:
        _check_names(module, dtypes, {**params, **buffers})
        # A module may write to its buffers; they have no gradient.
        state = {**params, **{name: x.detach() for name, x in buffers.items()}}
        # Arrays are narrower than the module's tensors if those are 64 bits wide.
        state = {name: x.to(dtypes.get(name, x.dtype)) for name, x in state.items()}
        given = [x for x in jax.tree.leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        versions = [x._version for x in given]
        outputs = torch.func.functional_call(module, state, args, kwargs)
        if versions != [x._version for x in given]:
            raise ValueError(
                f"{type(module).__name__} writes to its argument, which would be lost.\n"
                "Let it compute a new tensor, such as x + 1 for x.add_(1)"
            )
        return outputs, {name: state[name] for name in buffers}

    advice = 'Make it a part of the state:  module.register_buffer("name", tensor)'
    function = TorchFunction(name, gradient, advice)

    def fn(params: Any, buffers: Any, *args: Any, rng: Any = None, **kwargs: Any) -> Any:
        return function(run, (params, buffers, args, kwargs), rng=rng, key=_modes_of([module]))

    return fn


def _check_names(module: torch.nn.Module, expected: Iterable[str], given: Iterable[str]) -> None:
    """Raises if a parameter or buffer has no value, or a value belongs to none."""
    shared = [module.named_parameters, module.named_buffers]
    known = {name for named in shared for name, _ in named(remove_duplicate=False)}
    missing, unknown = sorted({*expected} - {*given}), sorted({*given} - known)
    if missing or unknown:
        found = [("lack", missing), ("have the unknown", unknown)]
        text = " and ".join(f"{verb} {', '.join(names)}" for verb, names in found if names)
        raise ValueError(
            f"the parameters and buffers of {type(module).__name__} {text}.\n"
            'Pass those that to_jax gives:  fn(state["params"], state["buffers"], x)'
        )


def call_torch(fn: Callable, *args: Any, rng: jax.Array | None = None, **kwargs: Any) -> Any:
    """Calls a torch function in a jax function.

        jax.jit(lambda x: call_torch(torch.nn.functional.silu, x) + 1)(x)

    Args:
      args, kwargs: pytrees of jax. Arrays are tensors in `fn`, as are tensors without gradients;
        any other leaf is passed as it is, and must be hashable.
      rng: a random key, if the function draws random numbers.

    Returns:
      The results of `fn`, with arrays in place of tensors.

    Raises:
      ValueError: `fn` uses a tensor on jax that is no argument.
    """
    fn, args, kwargs = jax_functions.unwrapped(fn, args, kwargs)
    functions = jax_functions.traces_of(fn)
    function = functions.get(_CALL_TORCH)
    if function is None:
        function = TorchFunction(jax_functions.name_of(fn), "torch", _PASS_IT)
        functions[_CALL_TORCH] = function
    key = _modes_of(_modules_of(fn, jax.tree.leaves((args, kwargs))))
    return function(lambda args, kwargs: fn(*args, **kwargs), (args, kwargs), rng=rng, key=key)


_CALL_TORCH = "call_torch"
_PASS_IT = (
    "Pass it as an argument:  call_torch(fn, x, tensor)  or\n"
    "call_torch(torch.func.functional_call, module, jax_view(module.state_dict()), x)"
)


def _modules_of(fn: Callable, leaves: Sequence[Any]) -> list[torch.nn.Module]:
    """The modules that a function is, reads, or takes."""
    function = getattr(fn, "__func__", fn)
    is_python = isinstance(function, types.FunctionType)
    read = jax_functions.values_read_by(function) if is_python else []
    found = (fn, getattr(fn, "__self__", None), *read, *leaves)
    return [x for x in found if isinstance(x, torch.nn.Module)]


def _modes_of(modules: Sequence[torch.nn.Module]) -> tuple[bool, ...]:
    return tuple(part.training for module in modules for part in module.modules())


def jax_view(tree: Any) -> Any:
    """The arrays behind tensors, without a copy if they are on jax and jax has their dtype by
    default. They have no gradients.

    Args:
      tree: a tensor, or a pytree with tensors, such as a state_dict.
    """
    return jax.tree.map(lambda x: _array_of(x) if isinstance(x, torch.Tensor) else x, tree)


def torch_view(tree: Any) -> Any:
    """The tensors on jax of arrays, without a copy.

    Args:
      tree: an array, or a pytree with arrays.
    """
    return jax.tree.map(lambda x: XLATensor2(x) if isinstance(x, jax.Array) else x, tree)


def _array_of(x: torch.Tensor) -> jax.Array:
    array = _XLAC.to_jax(x.detach().to("jax"))
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype))


class TorchFunction:
    """A torch function of pytrees as a jax function of pytrees.

    It has no reference to the function, which is an argument: what is known of a function must not
    keep it alive.
    """

    def __init__(self, name: str, gradient: Gradient, advice: str) -> None:
        """
        Args:
          name: of the function, for messages.
          advice: what to do with a tensor that it uses and does not take.
        """
        self._name = name
        self._gradient = gradient
        self._advice = advice
        self._captures: collections.OrderedDict[Hashable, _Capture] = collections.OrderedDict()

    def __call__(
        self,
        fn: Callable,
        args: tuple,
        *,
        rng: jax.Array | None = None,
        key: Hashable = None,
    ) -> Any:
        """Calls the function.

        Args:
          args: what `fn` takes, with arrays in place of tensors.
          key: what else the function depends on.
        """
        leaves, tree = jax.tree.flatten(args)
        is_array = [isinstance(leaf, (jax.Array, np.ndarray, torch.Tensor)) for leaf in leaves]
        arrays = [_as_array(x) for x, marked in zip(leaves, is_array, strict=True) if marked]
        statics = [x for x, marked in zip(leaves, is_array, strict=True) if not marked]
        inputs = [(registry.TO_TORCH[x.dtype], tuple(x.shape)) for x in arrays]
        signature = (
            tree,
            tuple(is_array),
            tuple(map(_key_of_static, statics)),
            tuple(inputs),
            key,
            thread_settings.key(),
        )
        found = self._captures.get(signature)
        if found is None:
            flat = self._wrapped(fn, tree, is_array, statics)
            found = _Capture(flat, inputs, self._name, self._gradient)
            self._captures[signature] = found
            if len(self._captures) > _MOST:
                self._captures.popitem(last=False)
        if found.is_random and rng is None:
            raise MissingKey(
                f"{self._name} draws random numbers.\nPass a key:  rng=jax.random.key(0)"
            )
        results = found.call(rng, *arrays)
        x64 = jax.config.jax_enable_x64
        results = [x if x64 else x.astype(jax.dtypes.canonicalize_dtype(x.dtype)) for x in results]
        return jax.tree.unflatten(found.tree, results)

    def _wrapped(
        self, fn: Callable, tree: Any, is_array: Sequence[bool], statics: Sequence[Any]
    ) -> Callable:
        """The function of flat tensors."""
        message = (
            f"{self._name} uses a tensor on jax that is no argument, {{}}, so its value would be a "
            f"constant.\n{self._advice}"
        )

        def run(tensors: Sequence[torch.Tensor]) -> Any:
            values, others = iter(tensors), iter(statics)
            leaves = [next(values) if marked else next(others) for marked in is_array]
            with captured_tensors.refused(message):
                return fn(*jax.tree.unflatten(tree, leaves))

        return run


def _as_array(leaf: Any) -> jax.Array:
    if isinstance(leaf, torch.Tensor):
        leaf = leaf.to("jax")  # jax refuses it if it requires a gradient.
    return jnp.asarray(leaf)


def _key_of_static(leaf: Any) -> Hashable:
    # A signature must not keep a module alive.
    return weakref.ref(leaf) if isinstance(leaf, torch.nn.Module) else jax_functions.key_of(leaf)


class _Capture:
    """A function that was captured for a signature.

    Attributes:
      call: of a random key or None, and the arrays; gives all results, flat.
      tree: the structure of the results.
    """

    def __init__(
        self,
        fn: Callable,
        inputs: Sequence[tuple[torch.dtype, tuple[int, ...]]],
        name: str,
        gradient: Gradient,
    ) -> None:
        self.tree: Any = None
        self._num_inputs = len(inputs)
        self._num_results = 0
        # The inputs that gradients are wanted for, and the results that have some.
        self._wanted: list[int] = []
        self._differentiable: list[int] = []
        no_gradient: Exception | None = None
        if gradient == "torch":
            try:
                captured = capture.capture(lambda x: self._with_gradients(fn, x), inputs, name)
            except Exception as error:
                # That of the function, or its gradient needs a value or does not exist.
                no_gradient = _released(error)
        if gradient == "jax" or no_gradient is not None:
            captured = capture.capture(lambda x: self._record(fn, x), inputs, name)
        if captured.writes_others:
            raise ValueError(
                f"{name} writes to a tensor that it does not take, so that the value would be "
                "lost.\n"
                "Of buffers:  fn, state = torch_xla_lite.to_jax(module), of which fn takes and "
                "gives them; or module.eval()"
            )
        self._captured: Captured = captured
        self.is_random = captured.is_random
        if no_gradient is not None:
            self.call = _without_gradient(self._plain, no_gradient)
        else:
            self.call = self._custom_vjp() if self._differentiable else self._plain

    def _plain(self, rng: jax.Array | None, *arrays: jax.Array) -> list[jax.Array]:
        return self._captured(arrays, rng)[: self._num_results]

    def _record(self, fn: Callable, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        with torch.no_grad():
            results, self.tree = jax.tree.flatten(_known_to_jax(fn(tensors)))
        results = [x if isinstance(x, torch.Tensor) else torch.as_tensor(x) for x in results]
        self._num_results = len(results)
        return results

    def _with_gradients(self, fn: Callable, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Records the results, then the gradients of all floats, of further stand-ins."""
        self._wanted = [i for i, x in enumerate(tensors) if x.is_floating_point() or x.is_complex()]
        leaves = [tensors[i].requires_grad_() for i in self._wanted]
        with torch.enable_grad():
            # Copies, because a function may write to its arguments, and not to leaves.
            given = [x.clone() if i in self._wanted else x for i, x in enumerate(tensors)]
            results, self.tree = jax.tree.flatten(_known_to_jax(fn(given)))
        results = [x if isinstance(x, torch.Tensor) else torch.as_tensor(x) for x in results]
        self._num_results = len(results)
        self._differentiable = [i for i, x in enumerate(results) if x.requires_grad]
        if not self._differentiable:
            return results
        of_results = [results[i] for i in self._differentiable]
        cotangents = [
            capture.stand_in(self._num_inputs + k, x.dtype, x.shape)
            for k, x in enumerate(of_results)
        ]
        gradients = torch.autograd.grad(of_results, leaves, cotangents, allow_unused=True)
        zeros = map(torch.zeros_like, leaves)
        return [*results, *(z if g is None else g for g, z in zip(gradients, zeros, strict=True))]

    def _custom_vjp(self) -> Callable:
        captured, count = self._captured, self._num_results
        # The gradient of an argument may need it although no result does.
        forward = captured.needed(range(count)) | captured.inputs(self._num_inputs)
        backward = captured.needed(range(count, len(captured.outputs))) - forward
        saved = captured.crossing(forward, backward)

        def compute(rng: Any, arrays: Sequence[Any]) -> tuple[list[jax.Array], dict]:
            results = captured.run(dict(enumerate(arrays)), rng, forward, {})
            return [results[step][0] for step in captured.outputs[:count]], results

        @jax.custom_vjp
        def call(rng: Any, *arrays: Any) -> list[jax.Array]:
            return compute(rng, arrays)[0]

        def call_fwd(rng: Any, *arrays: Any) -> tuple[list[jax.Array], tuple]:
            outputs, results = compute(rng, arrays)
            return outputs, (rng, [results[step][output] for step, output in saved])

        def call_bwd(residuals: tuple, cotangents: Sequence[jax.Array]) -> tuple:
            rng, values = residuals
            given: capture.Results = {}
            for (step, output), value in zip(saved, values, strict=True):
                given.setdefault(step, {})[output] = value
            arguments = {
                self._num_inputs + k: jax_programs.conjugate(cotangents[i])
                for k, i in enumerate(self._differentiable)
            }
            results = captured.run(arguments, rng, backward, given)
            gradients: list[Any] = [None] * self._num_inputs
            for k, i in enumerate(self._wanted):
                gradients[i] = jax_programs.conjugate(results[captured.outputs[count + k]][0])
            return None, *gradients

        call.defvjp(call_fwd, call_bwd)
        return call


def _released(error: Exception) -> Exception:
    """An error without its tracebacks, whose frames hold the values of all callers."""
    chained: BaseException | None = error
    while chained is not None:
        chained.__traceback__ = None
        chained = chained.__cause__ or chained.__context__
    return error


def _without_gradient(function: Callable, error: Exception) -> Callable:
    """A function that raises an error where it is differentiated."""
    call = jax.custom_vjp(function)

    def raise_error(*_: Any) -> Any:
        raise error

    call.defvjp(raise_error, raise_error)
    return call


def _known_to_jax(results: Any) -> Any:
    """Results with dicts in place of mappings that are no pytrees of jax, as libraries of models
    give them."""

    def known(leaf: Any) -> Any:
        if isinstance(leaf, Mapping):
            return {name: _known_to_jax(value) for name, value in leaf.items()}
        return leaf

    return jax.tree.map(known, results)
