"""Calls that torch's CPU kernels refuse raise the same error here, at the call."""

import re

import pytest
import torch
import torch.nn.functional as F

import torch_xla_lite  # noqa: F401

DTYPES = [
    (torch.float32, torch.float64),
    (torch.float32, torch.int64),
    (torch.bfloat16, torch.float32),
    (torch.int64, torch.int32),
    (torch.complex64, torch.float32),
]
A = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
ROWS, CLASSES = torch.tensor([0, 1]), torch.tensor([0, 1])


def rows(x: torch.Tensor) -> torch.Tensor:
    return ROWS.to(x.device)


# Of two matrices of different dtypes.
MIXED = {
    "mm": lambda a, b: a @ b,
    "mm of three dimensions": lambda a, b: a[None] @ b,
    "bmm": lambda a, b: a[None].bmm(b[None]),
    "addmm": lambda a, b: torch.addmm(a, a, b),
    "addmm of another sum": lambda a, b: torch.addmm(b, a, a),
    "addmm_": lambda a, b: a.clone().addmm_(a, b),
    "addbmm": lambda a, b: torch.addbmm(a, a[None], b[None]),
    "mv": lambda a, b: a.mv(b[0]),
    "addmv": lambda a, b: torch.addmv(a[0], a, b[0]),
    "linear": F.linear,
    "linear with a bias": lambda a, b: F.linear(a, a, b[0]),
    "linear of three dimensions": lambda a, b: F.linear(a[None], b),
    "index_add": lambda a, b: a.index_add(0, rows(a), b),
    "index_copy": lambda a, b: a.index_copy(0, rows(a), b),
    "index_put": lambda a, b: a.index_put((rows(a),), b),
    "index_put_": lambda a, b: a.clone().index_put_((rows(a),), b, accumulate=True),
    "setitem": lambda a, b: a.clone().__setitem__(rows(a), b),
    "put": lambda a, b: a.put(rows(a), b[0]),
    "cross": lambda a, b: torch.linalg.cross(a[:, [0, 1, 1]], b[:, [0, 1, 1]]),
}


@pytest.mark.parametrize("dtypes", DTYPES, ids=str)
@pytest.mark.parametrize("op", MIXED.values(), ids=MIXED.keys())
def test_tensors_of_two_dtypes_raise(op, dtypes):
    a, b = (A.to(dtype) for dtype in dtypes)
    with pytest.raises((RuntimeError, NotImplementedError)) as wanted:
        op(a, b)
    with pytest.raises(wanted.type, match=re.escape(str(wanted.value).partition("\n")[0])):
        op(a.jax(), b.jax())


# Of two matrices of floats.
MIXED_FLOATS = {
    "conv1d": lambda a, b: F.conv1d(a[None], b[None]),
    "conv_transpose1d": lambda a, b: F.conv_transpose1d(a[None], b[:, None]),
    "nll_loss": lambda a, b: F.nll_loss(a, CLASSES.to(a.device), b[0]),
    "cross_entropy": lambda a, b: F.cross_entropy(a, CLASSES.to(a.device), b[0]),
    "nll_loss2d": lambda a, b: F.nll_loss(a[..., None], CLASSES.to(a.device)[:, None], b[0]),
    "binary_cross_entropy": lambda a, b: F.binary_cross_entropy(a * 0, b * 0),
    "grid_sample": lambda a, b: F.grid_sample(a[None, None], b[None, None]),
    "cdist": lambda a, b: torch.cdist(a, b),
    "heaviside": lambda a, b: torch.heaviside(a, b),
}


@pytest.mark.parametrize("op", MIXED_FLOATS.values(), ids=MIXED_FLOATS.keys())
def test_floats_of_two_widths_raise(op):
    with pytest.raises(RuntimeError) as wanted:
        op(A, A.double())
    with pytest.raises(RuntimeError, match=re.escape(str(wanted.value).partition("\n")[0])):
        op(A.jax(), A.double().jax())


def test_autocast_makes_one_dtype_of_two():
    with torch.autocast("jax", torch.bfloat16):
        assert F.linear(A.jax(), A.bfloat16().jax()).dtype == torch.bfloat16


WRONG = {
    "softmax": lambda x: x.softmax(2),
    "softmax to another dtype": lambda x: x.int().softmax(-3, dtype=torch.float32),
    "softmax of a number": lambda x: x[0, 0].softmax(1),
    "sort": lambda x: x.sort(2),
    "stable sort": lambda x: x.sort(dim=-3, stable=True),
    "select_scatter": lambda x: x.select_scatter(x[0], 2, 0),
    "mvlgamma": lambda x: x.mvlgamma(0),
    "conv_transpose1d": lambda x: F.conv_transpose1d(x[None], x[:, None], output_padding=1),
    "uniform_": lambda x: x.uniform_(2, 1),
    "uniform_ to NaN": lambda x: x.uniform_(2, float("nan")),
    "uniform_ of a narrow dtype": lambda x: x.half().uniform_(0, 1e6),
    "uniform_ of a wide range": lambda x: x.uniform_(-3e38, 3e38),
    "random_": lambda x: x.random_(2, 1),
    "random_ to 0": lambda x: x.random_(0),
    "random_ of bytes": lambda x: x.byte().random_(-1, 5),
    "random_ of more than bytes": lambda x: x.byte().random_(257),
    "randint": lambda x: torch.randint(300, (2,), dtype=torch.uint8, device=x.device),
    "randint of bools": lambda x: torch.randint(1, 3, (2,), dtype=torch.bool, device=x.device),
    "randint_like": lambda x: torch.randint_like(x, 0),
    "randperm of bytes": lambda x: torch.randperm(300, dtype=torch.uint8, device=x.device),
    "randperm of halves": lambda x: torch.randperm(2050, dtype=torch.half, device=x.device),
    "tensor_split": lambda x: x.tensor_split(torch.tensor(2.0, device=x.device)),
}


@pytest.mark.parametrize("op", WRONG.values(), ids=WRONG.keys())
def test_arguments_without_a_meaning_raise(op):
    with pytest.raises((RuntimeError, IndexError)) as wanted:
        op(A.clone())
    message = re.escape(str(wanted.value).partition("\n")[0].partition(", but got")[0])
    with pytest.raises(wanted.type, match=message):
        op(A.jax())


def test_what_just_fits_does_not_raise():
    x = torch.ones(100, dtype=torch.uint8, device="jax").random_(256)
    assert x.float().std() > 30
    assert set(torch.randint(0, 2, (50,), dtype=torch.bool, device="jax").tolist()) == {True, False}
    assert torch.randperm(2049, dtype=torch.half, device="jax").sum() > 0
    assert torch.ones(3, device="jax").uniform_(2, 2).tolist() == [2, 2, 2]
    wide = F.conv_transpose1d(A.jax()[None], A.jax()[:, None], stride=2, output_padding=1)
    assert wide.shape == (1, 1, 5)
