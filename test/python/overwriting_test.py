"""Writes to a part of a tensor, of values that are computed from the same tensor.

XLA's CPU compiler gave wrong elements for many of them (github.com/openxla/xla/issues/49176);
lowering/views.py says what prevents that.
"""

from collections.abc import Callable

import pytest
import torch

import torch_xla_lite  # noqa: F401

N = 6

# What is written, N elements computed from an N x N tensor.
VALUES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "row": lambda x: x[2].clone(),
    "column": lambda x: x[:, 2].clone(),
    "row, reversed": lambda x: x.flip(1)[4] + 0.5,
    "diagonal": lambda x: x.diagonal() * 2,
    "of the flat tensor": lambda x: x.view(-1)[21:27].tanh(),
    "of the flat tensor, with steps": lambda x: x.view(-1)[1::N] - 1,
    "of the transposed tensor": lambda x: x.t()[4] + x[3],
    "sum": lambda x: x.cumsum(0)[3],
}

# Each writes `v(x)`.
WRITES: dict[str, Callable[[torch.Tensor, Callable[[torch.Tensor], torch.Tensor]], object]] = {
    "row": lambda x, v: x[4].copy_(v(x)),
    "column": lambda x, v: x[:, 4].copy_(v(x)),
    "add to a row": lambda x, v: x[4].add_(v(x)),
    "add to a column": lambda x, v: x[:, 4].add_(v(x)),
    "of the flat tensor": lambda x, v: x.view(-1)[24:30].add_(v(x)),
    "of the flat tensor, with steps": lambda x, v: x.view(-1)[4::N].copy_(v(x)),
    "of the transposed tensor": lambda x, v: x.t()[4].mul_(v(x)),
    "diagonal": lambda x, v: x.diagonal().copy_(v(x)),
    "strides": lambda x, v: x.as_strided((N,), (N + 1,), 0).copy_(v(x)),
    "several rows": lambda x, v: x[2:].copy_(v(x).expand(4, N)),
    "a part of a row": lambda x, v: x.unsqueeze(0)[:, 4, 2:].copy_(v(x)[:4]),
    "index_put": lambda x, v: x.index_put_((torch.tensor([4], device=x.device),), v(x)[None]),
    "index_copy": lambda x, v: x.index_copy_(1, torch.tensor([4], device=x.device), v(x)[:, None]),
    "select_scatter": lambda x, v: x.copy_(torch.select_scatter(x, v(x), 1, 4)),
    "slice_scatter": lambda x, v: x.copy_(torch.slice_scatter(x, v(x)[None], 0, 4, 5)),
}


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("also_used", [False, True], ids=["", "used again"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_write_reads_what_was_there_before(write, also_used):
    def written(device: str) -> list[list[torch.Tensor]]:
        results = []
        for value in VALUES.values():
            x = torch.arange(float(N * N)).view(N, N).to(device)
            write(x, value)
            results.append([x.clone(), x * 2] if also_used else [x])
        return [[y.cpu() for y in ys] for ys in results]

    for name, ours, expected in zip(VALUES, written("jax"), written("cpu"), strict=True):
        for mine, want in zip(ours, expected, strict=True):
            torch.testing.assert_close(mine, want, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize(
    "array",
    [lambda x: x[0] + 1, lambda x: x.diagonal(1).clone(), lambda x: x[:, 1] * 2, lambda x: x + 1],
    ids=["row", "diagonal", "column", "whole"],
)
def test_a_slice_that_is_shifted_within_its_array(array, first):
    def shifted(x):
        y = array(x)
        y[first + 1 :] = y[first:-1].clone()
        return y

    x = torch.arange(30.0).view(5, 6)
    assert torch.equal(shifted(x.to("jax")).cpu(), shifted(x))


def test_a_copy_is_shifted_by_its_source():
    def shifted(x):
        diagonal = x.diagonal(1)
        copy = diagonal.clone()
        copy[1:] = diagonal[:-1]
        return copy

    x = torch.arange(30.0).view(5, 6)
    assert torch.equal(shifted(x.to("jax")).cpu(), shifted(x))


def test_what_xla_does_not_copy_is_one_place():
    """A sum over one element is that element for XLA."""

    def written(x):
        y = x.reshape(1, N * N).sum(0)
        y[24:30] = x[:, 2] * 2
        return y.view(2, 3, N)

    x = torch.arange(float(N * N)).view(N, N)
    assert torch.equal(written(x.to("jax")).cpu(), written(x))
