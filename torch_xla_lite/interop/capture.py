"""Captures a torch function as a jax function: recorded once, on stand-ins, and never run.

    captured, tree = capture(fn, [(torch.float32, (3,))])    # fn: a list of tensors -> a pytree
    results = captured(arrays)                               # while jax traces, or at once

The stand-ins are results of an op that cannot run. So what is recorded of them is a function of
them: the lowerings, in recorded order. The thread of the capture is its own, because what a thread
has recorded becomes one graph, and the program's must not be a part of this one.
"""

from __future__ import annotations

import contextvars
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from torch_xla_lite.startup.late_jax import jax

from .. import _XLAC
from ..compiler import graph_breaks
from ..compiler.recorded_graph import Call, Leaf, RecordedGraph
from ..compiler.scalars import Scalars
from ..compiler.tracing import lower_call
from ..compiler.words import Decoder
from ..device.tensor import XLATensor2
from ..lowering.base import mesh, registry, target
from ..mesh.base import placements
from . import captured_tensors, derivatives
from .thread_settings import ThreadSettings

_INPUT = "torch_xla_lite::capture_input"
_OUTPUT = "torch_xla_lite::capture_output"

# Results of steps: by step, then by output.
Results = dict[int, dict[int, Any]]


class Captured:
    """A recorded function.

    Attributes:
      is_random: whether it draws random numbers.
      outputs: the step of each output.
      constants: the arrays that it needs beside its arguments, by step.
      keeps_others: whether something holds a tensor that it computed and does not give.
      writes_others: whether it has written to a tensor that it was not given. That has its old
        value again.
    """

    writes_others = False

    def __init__(self, graph: tuple, num_outputs: int) -> None:
        steps, roots, leaves, scalars = graph
        self._mesh = placements.current()
        self._steps = RecordedGraph.of(steps, roots).steps
        self._scalars = np.array(scalars, np.uint64)
        self._inputs: dict[int, int] = {}
        self.outputs = [0] * num_outputs
        for step, call in enumerate(self._steps):
            if call.op == _INPUT:
                self._inputs[step] = _index(call)
            elif call.op == _OUTPUT:
                self.outputs[_index(call)] = step
        self._all = self.needed(range(num_outputs))
        self.is_random = any(self._is_random(step) for step in self._all)
        places = [number for number, step in enumerate(self._steps) if isinstance(step, Leaf)]
        self.constants = {
            step: leaf for step, leaf in zip(places, leaves, strict=True) if step in self._all
        }
        self.keeps_others = any(step not in self.outputs for step, *_ in roots)

    def __call__(
        self,
        arguments: Sequence[Any],
        key: jax.Array | None = None,
        constants: Mapping[int, Any] | None = None,
    ) -> list[Any]:
        """The outputs, for arrays in place of the stand-ins, and of some constants."""
        given = {step: {0: value} for step, value in (constants or {}).items()}
        results = self.run(dict(enumerate(arguments)), key, self._all, given)
        return [results[step][0] for step in self.outputs]

    def input_of(self, output: int) -> int | None:
        """The index of the stand-in that an output is; None if the output is computed."""
        operands = self._steps[self.outputs[output]].operands
        return self._inputs.get(operands[0][0]) if operands else None

    def needed(self, outputs: Iterable[int]) -> set[int]:
        """The steps that some outputs need."""
        found: set[int] = set()
        missing = [self.outputs[output] for output in outputs]
        while missing:
            step = missing.pop()
            if step not in found:
                found.add(step)
                missing += [operand for operand, _ in self._steps[step].operands]
        return found

    def inputs(self, count: int) -> set[int]:
        """The steps of the first stand-ins."""
        return {step for step, index in self._inputs.items() if index < count}

    def crossing(self, first: set[int], then: set[int]) -> list[tuple[int, int]]:
        """The results of the first steps that are operands of the others: (step, output)."""
        operands = {operand for step in then for operand in self._steps[step].operands}
        return sorted(
            operand for operand in operands if operand[0] in first and self._steps[operand[0]].op
        )

    def run(
        self,
        arguments: Mapping[int, Any],
        key: jax.Array | None,
        steps: set[int],
        given: Results,
    ) -> Results:
        """Computes steps.

        Args:
          arguments: arrays by the indices of the stand-ins.
          key: of all random ops, which each draw from a key of their own.
          given: results that are known already.
        """
        # jax traces the rules of custom_vjp after the function: each sets what it needs itself.
        with mesh.on_mesh(self._mesh), target.portable(), jax.enable_x64(True):
            constants = {step: {0: value} for step, value in self.constants.items()}
            results: Results = {**constants, **given}
            at = 0
            for step, call in enumerate(self._steps):
                if isinstance(call, Leaf):
                    continue
                numbers = self._scalars[at : at + call.num_scalars]
                at += call.num_scalars
                if step not in steps or step in given:
                    continue
                if step in self._inputs:
                    results[step] = {0: arguments[self._inputs[step]]}
                    continue
                operands = [results[of][output] for of, output in call.operands]
                if key is not None and self._is_random(step):
                    keyed = _Keyed(Scalars.known(numbers), jax.random.fold_in(key, step))
                    outputs = lower_call(call, operands, keyed, [])
                else:
                    outputs = _lower(call, operands, numbers)
                results[step] = dict(enumerate(outputs))
            return results

    def _is_random(self, step: int) -> bool:
        entry = registry.find(self._steps[step].op)
        return entry is not None and entry.wants_key


def _lower(call: Call, operands: list[Any], numbers: np.ndarray) -> list[jax.Array | None]:
    """Lowers a call that draws no random numbers."""

    def lower(arrays: Sequence[jax.Array]) -> list[jax.Array | None]:
        with target.portable(), jax.enable_x64(True):
            return lower_call(call, list(arrays), Scalars.known(numbers), [])

    if call.written is not None:
        return lower(operands)
    args = Decoder(call.op, call.words, operands, Scalars.known(numbers)).args
    return derivatives.differentiable(lower, call.op, args, operands, call.outs, capture)


class _Keyed(Scalars):
    """The scalars of a call whose random key is given."""

    def __init__(self, scalars: Scalars, key: jax.Array) -> None:
        super().__init__(scalars._decoded, scalars._rows)
        self._key = key

    def take(self, count: int) -> Scalars:
        return _Keyed(super().take(count), self._key)

    def key(self) -> jax.Array:
        return self._key


def capture(
    fn: Callable[[list[torch.Tensor]], list[torch.Tensor]],
    inputs: Sequence[tuple[torch.dtype, tuple[int, ...]]],
    name: str,
) -> Captured:
    """Records a function of tensors that gives a list of tensors.

    Args:
      inputs: dtype and shape of each tensor that it takes.
      name: of the function, for messages.

    Raises:
      GraphBreak: it needs a value.
      Exception: what the function raises.
    """
    done: list[Captured] = []
    errors: list[BaseException] = []
    settings = ThreadSettings()

    def work() -> None:
        try:
            settings.apply()
            with _compiling, graph_breaks.refused(name), captured_tensors.made_here():
                done.append(_capture(fn, inputs))
        except BaseException as error:
            _release(error)
            errors.append(error)

    # What context variables do not have, such as jax's options, `settings` has.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return done[0]


def stand_in(index: int, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """A tensor that stands for the input `index` of the function that is being captured."""
    number = registry.NUMBERS[dtype]
    return torch.ops.torch_xla_lite.capture_input(_no_values(), index, list(shape), number)


def _capture(
    fn: Callable[[list[torch.Tensor]], list[torch.Tensor]],
    inputs: Sequence[tuple[torch.dtype, tuple[int, ...]]],
) -> Captured:
    random_state = _XLAC.get_rng_state()
    _XLAC.keep_overwritten()
    try:
        results = fn([stand_in(i, dtype, shape) for i, (dtype, shape) in enumerate(inputs)])
        with torch.no_grad():
            outputs = [
                torch.ops.torch_xla_lite.capture_output(x.detach().to("jax"), i)
                for i, x in enumerate(results)
            ]
        del results  # What is alive then is an output, or something else holds it.
        captured = Captured(_XLAC.captured_graph(), len(outputs))
    finally:
        # A module may keep a tensor, such as an attention map, which must not fail later graphs.
        writes_others = _XLAC.abandon_pending()
        _XLAC.set_rng_state(*random_state)
    captured.writes_others = writes_others
    return captured


class _Compiling:
    """Makes `torch.compiler.is_compiling()` true, as torch.export does: libraries leave checks of
    values out then. The flag is that of all threads, so the last capture that ends resets it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before = False

    def __enter__(self) -> None:
        with self._lock:
            if self._count == 0:
                self._before = torch.compiler._is_compiling_flag
                torch.compiler._is_compiling_flag = True
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                torch.compiler._is_compiling_flag = self._before


_compiling = _Compiling()


def _release(error: BaseException | None) -> None:
    """Lets go of the stand-ins that the frames of an error hold: no graph can compute them."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _index(call: Call) -> int:
    return Decoder(call.op, call.words, [None], None).args[1]  # type: ignore[arg-type]


def _no_values() -> torch.Tensor:
    """Tells torch the device of a stand-in."""
    return XLATensor2(np.zeros(0, np.float32))


def _input(like: Any, index: int, shape: list[int], dtype: int) -> Any:
    raise RuntimeError("a tensor of a function that was captured is used outside of it")


def register() -> None:
    """Makes the bridge record the ops."""
    for op, lowering in ((_INPUT, _input), (_OUTPUT, lambda x, index: x)):
        _XLAC.register_lowering(op, False)
        registry.lower(op)(lowering)


_library = torch.library.Library("torch_xla_lite", "FRAGMENT")
_library.define("capture_input(Tensor like, int index, int[] shape, int dtype) -> Tensor")
_library.define("capture_output(Tensor x, int index) -> Tensor")
_library.impl(
    "capture_input",
    lambda like, index, shape, dtype: like.new_empty(
        shape, dtype=registry.TO_TORCH[registry.DTYPES[dtype]]
    ),
    "Meta",
)
_library.impl("capture_output", lambda x, index: torch.empty_like(x), "Meta")
