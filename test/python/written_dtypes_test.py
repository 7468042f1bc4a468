"""Ops that write to a tensor of another dtype than their result's compute in that of the result."""

import pytest
import torch

import torch_xla_lite  # noqa: F401  (the device)

X = torch.linspace(-20, 20, 41)
SMALL = torch.tensor([1, 100, 250], dtype=torch.uint8)
WIDE = torch.tensor([300, -5, 7])

OUT = {
    "cos": (torch.cos, (X,), torch.float16),
    "cos of halves": (torch.cos, (X.half(),), torch.float64),
    "tan": (torch.tan, (X,), torch.bfloat16),
    "clamp by tensors": (torch.clamp, (WIDE, WIDE * 0, WIDE * 0 + 5), torch.uint8),
    "shift": (torch.bitwise_right_shift, (WIDE, 1), torch.uint8),
    "floor_divide": (torch.floor_divide, (WIDE, 7), torch.uint8),
    "copysign": (torch.copysign, (X, -1.0), torch.complex64),
    "addcmul": (torch.addcmul, (X, X, X), torch.float64),
    "sum": (torch.sum, (X.half(), 0), torch.float64),
    "cumsum": (torch.cumsum, (X, 0), torch.float16),
}


@pytest.mark.parametrize("name", OUT)
def test_a_result_is_converted_to_the_dtype_of_out(name):
    function, arguments, dtype = OUT[name]
    wanted, got = torch.zeros(0, dtype=dtype), torch.zeros(0, dtype=dtype, device="jax")
    function(*arguments, out=wanted)
    moved = [x.jax() if isinstance(x, torch.Tensor) else x for x in arguments]
    assert function(*moved, out=got) is got
    torch.testing.assert_close(got.cpu(), wanted)


REFUSED = {
    "take": (torch.take, (X, WIDE[2:])),
    "cross": (torch.linalg.cross, (X[:3], X[:3])),
    "clamp": (lambda x, out: torch.clamp(x, 0, 5, out=out), (WIDE,)),
    "conj_physical": (torch.conj_physical, (X,)),
    "bitwise_not": (torch.bitwise_not, (WIDE,)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_out_of_a_dtype_that_torch_refuses_raises(name):
    function, arguments = REFUSED[name]
    with pytest.raises(RuntimeError, match="dtype"):
        function(*arguments, out=torch.zeros(0, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="dtype"):
        function(*[x.jax() for x in arguments], out=torch.zeros(0, device="jax").double())


INPLACE = {
    "clamp_": (lambda x, y: x.clamp_(max=y), SMALL, WIDE),
    "floor_divide_": (lambda x, y: x.floor_divide_(y), SMALL, WIDE),
    "sub_": (lambda x, y: x.sub_(y), torch.tensor([1e8]), torch.tensor([1e8 + 1e-3]).double()),
    "sub_ with a view": (
        lambda x, y: x[::2].sub_(y),
        torch.full((3,), 1e8),
        torch.full((2,), 1e8 + 1e-3, dtype=torch.float64),
    ),
}


@pytest.mark.parametrize("name", INPLACE)
def test_an_op_in_place_computes_in_the_wider_dtype_of_its_operands(name):
    function, x, y = INPLACE[name]
    wanted, got = x.clone(), x.jax()
    function(wanted, y)
    function(got, y.jax())
    torch.testing.assert_close(got.cpu(), wanted)


def test_the_gradient_of_an_op_in_place_that_computes_in_a_wider_dtype():
    def gradients(device: str) -> list[torch.Tensor]:
        x = torch.ones(2, device=device, requires_grad=True)
        y = torch.full((2,), 3.0, dtype=torch.float64, device=device, requires_grad=True)
        (x * 1).mul_(y).sum().backward()
        return [x.grad.cpu(), y.grad.cpu()]

    assert [g.tolist() for g in gradients("jax")] == [g.tolist() for g in gradients("cpu")]
