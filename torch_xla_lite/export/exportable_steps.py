"""Captured functions, such as training steps, as functions that can be exported.

    step = exportable_step(step, (x, y), {}, {"model": model, "optimizer": optimizer})
    results, updated = step.call(weights, x, y)      # while jax traces

While the function is recorded (capture.py), stand-ins are the data of its state. What the data are
at its end are the new values.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import torch
from torch.utils import _pytree

from .. import _XLAC
from ..interop import capture, jax_functions
from ..lowering.base import registry
from .exportable import Exportable, array_of, narrow, narrowed, plain, struct_of


def exportable_step(
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    state: Mapping[str, Any],
) -> Exportable:
    """A function of tensors, as `export` describes it.

    Raises:
      GraphBreak: it reads a value.
      TypeError: an input is no tensor.
      ValueError: the state is not all that the function updates.
    """
    if isinstance(fn, torch.nn.Module) and not state:
        tensors = [*fn.parameters(), *fn.buffers()]
        fn = fn if all(x.is_jax for x in tensors) else copy.deepcopy(fn).to("jax")
        state = {"": fn}
    paths, tree = _pytree.tree_flatten_with_path((tuple(args), dict(kwargs)))
    for path, leaf in paths:
        if not isinstance(leaf, torch.Tensor):
            raise TypeError(
                f"expected tensors, got {leaf!r} as input {_name(path[1:])}.\n"
                "Bind other arguments:  export(functools.partial(fn, option=...), ...)"
            )
    if "rng" in kwargs:
        raise TypeError(
            "an input has the name of the key for random numbers, rng.\nGive it another name."
        )
    step = _Step(fn, [leaf for _, leaf in paths], tree, State(state))
    structs = [struct_of(leaf.dtype, leaf.shape) for _, leaf in paths]
    described = [
        {"name": _name(path[1:]), "dtype": struct.dtype.name, "shape": list(map(str, struct.shape))}
        for (path, _), struct in zip(paths, structs, strict=True)
    ]
    args, kwargs = _pytree.tree_unflatten(structs, tree)
    if step.is_random:
        kwargs["rng"] = jax.ShapeDtypeStruct((2,), np.uint32)
        described.append({"name": "rng", "dtype": "uint32", "shape": ["2"]})
    return Exportable(step, step.weights, args, kwargs, described, list(step.updates))


class _Step:
    """A captured function of its weights and inputs.

    Attributes:
      weights: the state, and constants.
      updates: the output of each part of the state that changes, by name.
      is_random: whether it takes a key.
    """

    def __init__(
        self, fn: Callable[..., Any], inputs: list[torch.Tensor], tree: Any, state: State
    ) -> None:
        self._fn, self._tree, self._state = fn, tree, state
        self._num_inputs = len(inputs)
        # The structure of the results; those that are no tensors, and None for those that are.
        self._out_tree: Any = None
        self._others: list[Any] = []
        name = jax_functions.name_of(fn)
        tensors = [*inputs, *state.tensors.values()]
        # What is recorded already is a constant of the function, and no part of it.
        _XLAC.sync()
        self._dtypes = [registry.OF_TORCH[x.dtype] for x in tensors]
        captured = capture.capture(self._record, [(x.dtype, tuple(x.shape)) for x in tensors], name)
        if captured.keeps_others or captured.writes_others:
            raise ValueError(
                f"{name} writes to a tensor, or keeps one, that is not part of its state, so that "
                "the value would be lost.\n"
                "Name what has the tensor:  export(fn, args, state={'model': model})"
            )
        self._captured = captured
        self.is_random = captured.is_random
        self.updates = {
            name: self._num_results + i
            for i, name in enumerate(state.tensors)
            if captured.input_of(self._num_results + i) != self._num_inputs + i
        }
        # A constant of one element stays in the program.
        self._constants = {f"constants.{i}": i for i, x in captured.constants.items() if x.size > 1}
        self.weights = {name: array_of(x) for name, x in state.tensors.items()}
        for name, i in self._constants.items():
            array = np.asarray(captured.constants[i])
            self.weights[name] = array.astype(narrow(array.dtype))

    @property
    def _num_results(self) -> int:
        return sum(other is None for other in self._others)

    def _record(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Results that are tensors, then the new values of the state."""
        inputs, stand_ins = tensors[: self._num_inputs], tensors[self._num_inputs :]
        with self._state.replaced_by(stand_ins) as new_values:
            args, kwargs = _pytree.tree_unflatten(inputs, self._tree)
            results, self._out_tree = _pytree.tree_flatten(self._fn(*args, **kwargs))
        self._others = [None if isinstance(x, torch.Tensor) else x for x in results]
        # Detached: the graph of autograd keeps other tensors.
        return [*(x.detach() for x in results if isinstance(x, torch.Tensor)), *new_values]

    def __call__(self, weights: dict[str, jax.Array], *args: Any, **kwargs: Any) -> Any:
        """The results; with the new values of what is updated, if something is."""
        key = kwargs.pop("rng") if self.is_random else None
        # In torch's order: jax sorts the keys of dicts.
        values = self._tree.flatten_up_to((args, kwargs))
        values += [weights[name] for name in self._state.tensors]
        values = [x.astype(dtype) for x, dtype in zip(values, self._dtypes, strict=True)]
        constants = {
            i: weights[name].astype(self._captured.constants[i].dtype)
            for name, i in self._constants.items()
        }
        outputs = list(map(narrowed, self._captured(values, key, constants)))
        found = iter(outputs)
        leaves = [next(found) if other is None else other for other in self._others]
        results = plain(_pytree.tree_unflatten(leaves, self._out_tree))
        updated = {name: outputs[i] for name, i in self.updates.items()}
        return (results, updated) if updated else results


class State:
    """The tensors of modules, optimizers and other objects.

    Attributes:
      tensors: those on jax, by name. One that is shared is there once.
    """

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._parts = parts
        found = _tensors_of(parts)
        self.tensors = {name: x for name, x in found.items() if x.is_jax}
        self._on_cpu = {name: x for name, x in found.items() if not x.is_jax}

    @contextlib.contextmanager
    def replaced_by(self, stand_ins: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
        """Gives the tensors other data, and no gradients, within the body.

        Yields:
          A list that is filled when the body ends: the data that the tensors have then.

        Raises:
          ValueError: the body made further tensors, or changed one on the CPU.
        """
        new_values: list[torch.Tensor] = []
        before = {name: (x.data, x.grad) for name, x in self.tensors.items()}
        on_cpu = {name: x.clone() for name, x in self._on_cpu.items()}
        saved = {name: _state_dict(part) for name, part in self._parts.items()}
        for x, stand_in in zip(self.tensors.values(), stand_ins, strict=True):
            x.data, x.grad = stand_in, None
        try:
            yield new_values
            after = _tensors_of(self._parts)
            self._check_is_known(after)
            self._check_stays(on_cpu)
            new_values += [after[name].data for name in self.tensors]
        except RuntimeError:
            # An optimizer that has its state on the CPU may compute with both devices.
            self._check_stays(on_cpu)
            raise
        finally:
            self._restore(before, on_cpu, saved)

    def _check_is_known(self, after: Mapping[str, torch.Tensor]) -> None:
        if further := after.keys() - self.tensors.keys() - self._on_cpu.keys():
            raise ValueError(
                f"the function makes state that there was not before: {_listed(further)}.\n"
                "Call it once, and export it then."
            )

    def _check_stays(self, on_cpu: Mapping[str, torch.Tensor]) -> None:
        changed = [name for name, x in on_cpu.items() if not torch.equal(self._on_cpu[name], x)]
        if changed:
            raise ValueError(
                f"the function updates {_listed(changed)} on the CPU, which would be a constant "
                "of the program.\n"
                "Have it on jax; for optimizers of torch:  torch.optim.Adam(..., capturable=True)"
            )

    def _restore(
        self,
        before: Mapping[str, tuple[torch.Tensor, torch.Tensor | None]],
        on_cpu: Mapping[str, torch.Tensor],
        saved: Mapping[str, Any],
    ) -> None:
        after = _tensors_of(self._parts)
        for name, (data, gradient) in before.items():
            self.tensors[name].data, self.tensors[name].grad = data, gradient
            # A state that is replaced, and not written to, is another tensor.
            after.get(name, data).data = data
        for name, x in on_cpu.items():
            self._on_cpu[name].data = x
        if after.keys() != before.keys() | on_cpu.keys():
            for name, part in self._parts.items():
                if hasattr(part, "load_state_dict"):
                    part.load_state_dict(saved[name])


def _tensors_of(parts: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The tensors of objects by name; each once, though modules may share it."""
    found: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for prefix, part in parts.items():
        for name, x in _named_tensors(part):
            if id(x) not in seen:
                seen.add(id(x))
                found[".".join(filter(None, (prefix, name)))] = x
    return found


def _named_tensors(part: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(part, torch.nn.Module):
        # More than the state_dict has, which leaves buffers out that are not persistent.
        yield from part.named_parameters()
        yield from part.named_buffers()
        return
    for path, leaf in _pytree.tree_flatten_with_path(_state_dict(part))[0]:
        if isinstance(leaf, torch.Tensor):
            yield _name(path), leaf


def _state_dict(part: Any) -> Any:
    """Of modules, optimizers and schedulers; other objects are pytrees themselves."""
    return part.state_dict() if hasattr(part, "state_dict") else part


def _name(path: Sequence[Any]) -> str:
    """The place of a leaf in a pytree: `state.0.exp_avg`."""
    parts = (getattr(key, "key", getattr(key, "idx", getattr(key, "name", key))) for key in path)
    return ".".join(map(str, parts))


def _listed(names: Iterable[str]) -> str:
    """Some names, for messages."""
    first, *others = sorted(names)
    return f"{first} and {len(others)} more" if others else first
