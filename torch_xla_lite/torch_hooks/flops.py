"""Formulas with which torch's FlopCounterMode counts the products in ops of tensors on jax.

    with torch.utils.flop_counter.FlopCounterMode() as counter:
        model(x).sum().backward()
    counter.get_total_flops()

torch knows the ops that other devices run. On jax the gradient of a linear layer is one op, and so
is the recurrence of an LSTM, GRU or RNN layer. The formulas are registered when torch's module is
imported, because that imports triton, where it is installed (0.1 s).
"""

from __future__ import annotations

import math
import types
from typing import Any

import torch

from ..startup import after_import

Shape = torch.Size


def register() -> None:
    """Registers the formulas as soon as a program imports torch's."""
    after_import.call({"torch.utils.flop_counter": _register_formulas})


def _register_formulas(flop_counter: types.ModuleType) -> None:
    """Registers the formulas of ops that torch has none for."""
    ops = torch.ops.torch_xla_lite
    formulas = {
        torch.ops.aten.linear_backward: linear_backward,
        ops.recurrence: recurrence,
        ops.recurrence_backward: recurrence_backward,
    }
    for op, formula in formulas.items():
        if op not in flop_counter.flop_registry:
            flop_counter.register_flop_formula(op)(formula)


def linear_backward(
    input: Shape, grad_output: Shape, weight: Shape, mask: list[bool], **_: Any
) -> int:
    """The gradients of the input and of the weight are a product each."""
    from torch.utils.flop_counter import mm_flop

    rows = math.prod(input[:-1])
    features, width = weight
    of_input = mm_flop((rows, features), (features, width)) if mask[0] else 0
    of_weight = mm_flop((features, rows), (rows, width)) if mask[1] else 0
    return of_input + of_weight


def recurrence(
    x: Shape,
    h: Shape,
    c: Shape | None,
    w_hh: Shape,
    b_hh: Shape | None,
    w_hr: Shape | None,
    *args: Any,
    **_: Any,
) -> int:
    """Each step multiplies the state by `w_hh`, and what an LSTM projects by `w_hr`."""
    rows = math.prod(x[:2])
    return sum(2 * rows * math.prod(weight) for weight in (w_hh, w_hr) if weight is not None)


def recurrence_backward(
    grad_hs: Shape,
    grad_cs: Shape | None,
    hs: Shape,
    cs: Shape | None,
    gates: Shape,
    *inputs: Any,
    **_: Any,
) -> int:
    """Each product of `recurrence` has the gradients of its two operands."""
    return 2 * recurrence(*inputs)
