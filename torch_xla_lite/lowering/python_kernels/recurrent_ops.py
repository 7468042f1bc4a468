"""The ops of LSTM, GRU and RNN layers: torch's, and one for the recurrence of a layer.

A call of torch's imports recurrent_layer.py, since most programs have no such layer.

Source: aten::lstm, aten::gru, aten::rnn_tanh and aten::rnn_relu, of padded and packed sequences.
"""

from collections.abc import Callable
from typing import Any

import torch

from torch_xla_lite.lowering.base.untraced import Library

Tensor = torch.Tensor

# x: [time, batch, gates], the products of the inputs with the input weights.
# h, c: the state before the first step, [batch, hidden]; only an LSTM has c.
# w_hr: the projection of an LSTM with `proj_size`.
# valid: bool [time, batch]. Where it is false the sequence has ended, and its state stays.
_INPUTS = (
    "Tensor x, Tensor h, Tensor? c, Tensor w_hh, Tensor? b_hh, Tensor? w_hr, Tensor? valid, "
    "str cell, bool reverse"
)
_OPS = torch.library.Library("torch_xla_lite", "FRAGMENT")
# The state after each step, and the arguments of the gates, for the gradient.
_OPS.define(f"recurrence({_INPUTS}) -> (Tensor hs, Tensor? cs, Tensor gates)")
# The gradients of x, h, c, w_hh, b_hh and w_hr.
_OPS.define(
    "recurrence_backward(Tensor grad_hs, Tensor? grad_cs, Tensor hs, Tensor? cs, Tensor gates, "
    f"{_INPUTS}) -> (Tensor, Tensor, Tensor?, Tensor, Tensor?, Tensor?)"
)


def _meta(x: Tensor, h: Tensor, c: Tensor | None, *rest: Any) -> tuple:
    time, batch, width = x.shape
    cell = rest[-2]
    gates = width // 3 * 4 if cell == "gru" else width
    cs = None if c is None else x.new_empty(time, *c.shape)
    return x.new_empty(time, *h.shape), cs, x.new_empty(time, batch, gates)


def _meta_backward(*arguments: Any) -> list[Tensor | None]:
    return [None if x is None else torch.empty_like(x) for x in arguments[5:11]]


_OPS.impl("recurrence", _meta, "Meta")
_OPS.impl("recurrence_backward", _meta_backward, "Meta")


def _kernel(function: str, cell: str) -> Callable[..., tuple[Tensor, ...]]:
    def call(*arguments: Any) -> tuple[Tensor, ...]:
        from torch_xla_lite.lowering.python_kernels import recurrent_layer

        return getattr(recurrent_layer, function)(cell, *arguments)

    return call


_ATEN = Library("aten", "IMPL")
for _cell in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
    for _key in ("AutogradPrivateUse1", "PrivateUse1"):
        _ATEN.impl(f"{_cell}.input", _kernel("padded", _cell), _key)
        _ATEN.impl(f"{_cell}.data", _kernel("packed", _cell), _key)
