"""Fused LSTM and GRU cells: torch has them on GPUs only, so they are compared with CPU modules."""

import torch
from comparison import run

aten = torch.ops.aten


def gates(cell: torch.nn.RNNCellBase, x: torch.Tensor, h: torch.Tensor):
    return x @ cell.weight_ih.T, h @ cell.weight_hh.T


def test_lstm_cell_and_its_gradients():
    cell = torch.nn.LSTMCell(3, 4)
    x, h, c = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4, requires_grad=True)
    left, right = (g.detach().requires_grad_() for g in gates(cell, x, h))
    i, f, g, o = (left + right + cell.bias_ih + cell.bias_hh).chunk(4, 1)
    cy = f.sigmoid() * c + i.sigmoid() * g.tanh()
    hy = o.sigmoid() * cy.tanh()
    args = (left, right, c, cell.bias_ih, cell.bias_hh)
    shapes = [hy, cy, torch.empty(2, 16)]
    got = run(aten._thnn_fused_lstm_cell, *args, expected=shapes)
    wanted_h, wanted_c = cell(x, (h, c))
    torch.testing.assert_close(got[:2], [wanted_h, wanted_c], rtol=1e-5, atol=1e-5)

    grad_h, grad_c = torch.randn(2, 4), torch.randn(2, 4)
    wanted = torch.autograd.grad([hy, cy], [left, c, cell.bias_ih], [grad_h, grad_c])
    op = aten._thnn_fused_lstm_cell_backward_impl
    got = run(op, grad_h, grad_c, c, cy, got[2], True, expected=list(wanted))
    torch.testing.assert_close(got, list(wanted), rtol=1e-4, atol=1e-5)


def test_gru_cell_and_its_gradients():
    cell = torch.nn.GRUCell(3, 4)
    x, h = torch.randn(2, 3), torch.randn(2, 4, requires_grad=True)
    left, right = (g.detach().requires_grad_() for g in gates(cell, x, h))
    ir, iz, inew = (left + cell.bias_ih).chunk(3, 1)
    hr, hz, hnew = (right + cell.bias_hh).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (inew + r * hnew).tanh()
    hy = n + z * (h - n)
    args = (left, right, h, cell.bias_ih, cell.bias_hh)
    got = run(aten._thnn_fused_gru_cell, *args, expected=[hy, torch.empty(2, 20)])
    torch.testing.assert_close(got[0], cell(x, h), rtol=1e-5, atol=1e-5)

    grad = torch.randn(2, 4)
    inputs = [left, right, h, cell.bias_ih, cell.bias_hh]
    wanted = list(torch.autograd.grad(hy, inputs, grad))
    got = run(aten._thnn_fused_gru_cell_backward, grad, got[1], True, expected=wanted)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
