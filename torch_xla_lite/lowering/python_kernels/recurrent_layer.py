"""LSTM, GRU and RNN layers as one op for all time steps.

torch makes such a layer of ops for each time step, and XLA takes minutes to compile a hundred of
them. Here each direction of a layer is a product of all inputs with the input weights, and one op
for the recurrence, which is a scan (recurrent.py): the graph has the same size for any length.

recurrent_ops.py imports this file when a layer is called first.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad
from torch.nn import functional

Tensor = torch.Tensor
# The state: h, and for an LSTM c.
State = tuple[Tensor, Tensor | None]

_RECURRENCE = torch.ops.torch_xla_lite.recurrence.default


class _Recurrence(torch.autograd.Function):
    """torch_xla_lite::recurrence with its gradient."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor | None, Tensor]:
        hs, cs, gates = _RECURRENCE(*inputs)
        ctx.save_for_backward(hs, cs, gates, *inputs[:7])
        ctx.cell, ctx.reverse = inputs[7:]
        ctx.mark_non_differentiable(gates)
        ctx.set_materialize_grads(False)  # Nothing needs cs but the last state of a layer.
        return hs, cs, gates

    @staticmethod
    def backward(ctx: Any, grad_hs: Tensor | None, grad_cs: Tensor | None, _: Any) -> tuple:
        hs, cs, gates, *inputs = ctx.saved_tensors
        grad_hs = torch.zeros_like(hs) if grad_hs is None else grad_hs
        if torch.is_grad_enabled():
            grads = _differentiable_gradient(ctx, inputs, grad_hs, grad_cs)
        else:
            grads = torch.ops.torch_xla_lite.recurrence_backward(
                grad_hs, grad_cs, hs, cs, gates, *inputs, ctx.cell, ctx.reverse
            )
        return *grads, None, None, None


def _differentiable_gradient(
    ctx: Any, inputs: list[Tensor | None], grad_hs: Tensor, grad_cs: Tensor | None
) -> list[Tensor | None]:
    """The gradient by ops for each time step, which have gradients of their own."""
    hs, cs = _step_by_step(*inputs, ctx.cell, ctx.reverse)
    needed = ctx.needs_input_grad[:6]
    grads = torch.autograd.grad(
        [hs] if grad_cs is None else [hs, cs],
        [x for x, is_needed in zip(inputs, needed, strict=False) if is_needed],
        [grad_hs] if grad_cs is None else [grad_hs, grad_cs],
        create_graph=True,
    )
    remaining = iter(grads)
    return [next(remaining) if is_needed else None for is_needed in needed]


def _step_by_step(
    x: Tensor,
    h: Tensor,
    c: Tensor | None,
    w_hh: Tensor,
    b_hh: Tensor | None,
    w_hr: Tensor | None,
    valid: Tensor | None,
    cell: str,
    reverse: bool,
) -> State:
    """The states of torch_xla_lite::recurrence, by differentiable ops."""
    state: State = h, c
    states: list[State] = []
    steps = range(x.shape[0])
    for step in reversed(steps) if reverse else steps:
        hidden = _linear(state[0], w_hh, b_hh)
        new_h, new_c = _next_state(cell, x[step], hidden, *state)
        if w_hr is not None:
            new_h = _linear(new_h, w_hr, None)
        if valid is not None:
            ended = ~valid[step, :, None]
            new_h = torch.where(ended, state[0], new_h)
            new_c = None if new_c is None else torch.where(ended, state[1], new_c)
        state = new_h, new_c
        states.append(state)
    hs, cs = zip(*(reversed(states) if reverse else states), strict=True)
    return torch.stack(hs), None if c is None else torch.stack(cs)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Of ops that have derivatives of every kind; `linear` has no second forward derivative."""
    product = x @ weight.T
    return product if bias is None else product + bias


def _next_state(cell: str, x: Tensor, hidden: Tensor, h: Tensor, c: Tensor | None) -> State:
    if cell == "lstm":
        i, f, g, o = (x + hidden).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
    if cell == "gru":
        (xr, xz, xn), (hr, hz, hn) = x.chunk(3, -1), hidden.chunk(3, -1)
        n = (xn + (xr + hr).sigmoid() * hn).tanh()
        return n + (xz + hz).sigmoid() * (h - n), None
    return (x + hidden).tanh() if cell == "rnn_tanh" else (x + hidden).relu(), None


class _Packing(NamedTuple):
    """Where the rows of a packed sequence are in a padded one, and back.

    in_packed: int64 [time * batch], the row for each place; any for the places after an end.
    valid: bool [time, batch], the places that have a row.
    in_padded: int64 [rows], the place of each row.
    """

    in_packed: Tensor
    valid: Tensor
    in_padded: Tensor

    @staticmethod
    def of(batch_sizes: Tensor, device: torch.device) -> "_Packing":
        """From the number of sequences that reach each step, on the CPU. Lengths are data of the
        graph, so that other lengths compile nothing if the shapes are the same."""
        batch = torch.arange(int(batch_sizes[0]))
        valid = batch < batch_sizes[:, None]
        in_packed = (batch_sizes.cumsum(0) - batch_sizes)[:, None] + batch * valid
        in_padded = valid.flatten().nonzero().squeeze(1)
        return _Packing(*(x.to(device) for x in (in_packed.flatten(), valid, in_padded)))

    def pad(self, rows: Tensor) -> Tensor:
        return rows[self.in_packed].unflatten(0, self.valid.shape)

    def pack(self, padded: Tensor) -> Tensor:
        return padded.flatten(0, 1)[self.in_padded]


def _direction(
    cell: str,
    x: Tensor,
    state: State,
    weights: Sequence[Tensor],
    has_biases: bool,
    packing: _Packing | None,
    reverse: bool,
) -> tuple[Tensor, State]:
    """One direction of one layer: its output, and the state at its end."""
    w_ih, w_hh, *others = weights
    b_ih, b_hh = others[:2] if has_biases else (None, None)
    w_hr = others[2 * has_biases] if len(others) > 2 * has_biases else None
    # torch.func and dual numbers need ops that torch can differentiate in every way.
    is_functional = torch._C._functorch.peek_interpreter_stack() is not None
    is_transformed = is_functional or forward_ad._current_level >= 0
    gates = (_linear if is_transformed else functional.linear)(x, w_ih, b_ih)
    if packing is not None:
        gates = packing.pad(gates)
    expected = (gates.shape[1], w_hh.shape[1])
    torch._check(len(gates) > 0, lambda: "Expected sequence length to be larger than 0 in RNN")
    torch._check(
        state[0].shape == expected,
        lambda: f"Expected hidden size {expected}, got {tuple(state[0].shape)}",
    )
    inputs = [*state, w_hh, b_hh, w_hr]
    if torch.is_autocast_enabled("jax"):
        inputs = [x if x is None else x.to(gates.dtype) for x in inputs]
    valid = None if packing is None else packing.valid
    if is_transformed:
        hs, cs = _step_by_step(gates, *inputs, valid, cell, reverse)
    else:
        recurrence = _Recurrence.apply if torch.is_grad_enabled() else _RECURRENCE
        hs, cs, _ = recurrence(gates, *inputs, valid, cell, reverse)
    last = 0 if reverse else -1
    output = hs if packing is None else packing.pack(hs)
    return output, (hs[last], None if cs is None else cs[last])


def _layers(
    cell: str,
    x: Tensor,
    batch_sizes: Tensor | None,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
) -> tuple[Tensor, ...]:
    """All layers: the output and the last states. `hx` has h, and for an LSTM c."""
    packing = None if batch_sizes is None else _Packing.of(batch_sizes, x.device)
    x = x.transpose(0, 1) if batch_first else x
    directions = (False, True) if bidirectional else (False,)
    per_direction = len(params) // (num_layers * len(directions))
    ends: list[State] = []
    for layer in range(num_layers):
        outputs = []
        for reverse in directions:
            number = len(ends)
            state = hx[0][number], hx[1][number] if len(hx) == 2 else None
            weights = params[number * per_direction : (number + 1) * per_direction]
            output, end = _direction(cell, x, state, weights, has_biases, packing, reverse)
            outputs.append(output)
            ends.append(end)
        x = torch.cat(outputs, -1) if bidirectional else outputs[0]
        if layer < num_layers - 1:
            x = functional.dropout(x, dropout, train)
    x = x.transpose(0, 1) if batch_first else x
    return x, *(torch.stack(states) for states in zip(*ends, strict=True) if states[0] is not None)


def padded(cell: str, input: Tensor, hx: Any, *arguments: Any) -> tuple[Tensor, ...]:
    """A layer of padded sequences, as aten::lstm.input."""
    return _layers(cell, input, None, hx if cell == "lstm" else [hx], *arguments)


def packed(
    cell: str, data: Tensor, batch_sizes: Tensor, hx: Any, *arguments: Any
) -> tuple[Tensor, ...]:
    """A layer of packed sequences, as aten::lstm.data."""
    return _layers(cell, data, batch_sizes, hx if cell == "lstm" else [hx], *arguments)
