"""Assignments, in-place operations, `out=` and copies write on jax what they write on the CPU."""

import pytest
import torch

import torch_xla_lite  # noqa: F401

# --- indexing as assignment -----------------------------------------------------------------------


def test_assign_through_a_cpu_index_tensor():
    base = torch.zeros(4, device="jax")
    base[torch.tensor([3, 0])] = 1
    assert base.tolist() == [1, 0, 0, 1]


def test_an_index_out_of_range_raises_as_on_the_cpu():
    with pytest.raises(IndexError, match="out of bounds"):
        torch.zeros(3, device="jax")[3]


# --- in-place operations --------------------------------------------------------------------------


# random_programs_test.py and database_test.py have the others.


@pytest.mark.parametrize("step", [1, 2], ids=["dense", "a view"])
def test_an_op_in_place_computes_in_the_wider_dtype_of_its_operands(step):
    x, y = torch.full((4,), 1e8), torch.full((4 // step,), 1e8 + 1e-3, dtype=torch.float64)
    wanted, got = x.clone(), x.jax()
    wanted[::step].sub_(y)
    got[::step].sub_(y.jax())
    torch.testing.assert_close(got.cpu(), wanted)


def test_the_gradient_of_an_op_in_place_that_computes_in_a_wider_dtype():
    def gradients(device: str) -> list[torch.Tensor]:
        x = torch.ones(2, device=device, requires_grad=True)
        y = torch.full((2,), 3.0, dtype=torch.float64, device=device, requires_grad=True)
        (x * 1).mul_(y).sum().backward()
        return [x.grad.cpu(), y.grad.cpu()]

    assert [g.tolist() for g in gradients("jax")] == [g.tolist() for g in gradients("cpu")]


# Each writes to `out`, of size zero.
OUT = {
    "gelu": lambda x, out: torch._C._nn.gelu(x, out=out),
    "gelu of another form": lambda x, out: torch._C._nn.gelu(x, approximate="tanh", out=out),
    "gelu_backward": lambda x, out: torch.ops.aten.gelu_backward.grad_input(x, x, grad_input=out),
    "_stack": lambda x, out: torch.ops.aten._stack.out([x, x], 1, out=out),
    "range": lambda x, out: torch.ops.aten.range.out_(0, 3, out=out),
}


@pytest.mark.parametrize("op", OUT.values(), ids=OUT.keys())
def test_out_is_as_on_the_cpu(op):
    x = torch.tensor([[-1.0, 0.5, 2.0], [0.0, 1.0, -3.0]])
    out, expected = (torch.empty(0, device=device) for device in ("jax", "cpu"))
    op(x.jax(), out)
    op(x, expected)
    torch.testing.assert_close(out.cpu(), expected)


def test_one_tensor_does_not_take_results_of_different_sizes():
    x = torch.ones(2, 3, device="jax")
    with pytest.raises(RuntimeError, match="one tensor cannot hold several results"):
        torch.linalg.svd(torch.ones(2, 3, device="jax"), out=(x, x, x))


def test_what_no_longer_fitted_comes_back():
    x = torch.arange(4.0, device="jax")
    x.resize_(2).add_(5)
    assert x.resize_(4).tolist() == [5, 6, 2, 3]


def test_memory_that_grows_is_still_shared():
    x = torch.arange(4.0, device="jax")
    tail, twin = x[2:], x.detach()
    x.resize_(6)
    x.add_(1)
    tail.mul_(10)
    assert x.tolist() == [1, 2, 30, 40, 1, 1]
    assert twin.tolist() == [1, 2, 30, 40]


def test_a_resized_view_goes_on_in_the_memory_of_its_base():
    base = torch.arange(6.0, device="jax")
    assert base[2:4].resize_(3).tolist() == [2, 3, 4]
    assert base[4:].resize_(4).add_(1).tolist() == [5, 6, 1, 1]
    assert base.tolist() == [0, 1, 2, 3, 5, 6]


def test_an_out_tensor_that_is_resized_leaves_the_memory_of_others_as_it_is():
    out = torch.arange(4.0, device="jax")
    other = out.detach()
    with pytest.warns(UserWarning, match="was resized"):
        torch.add(torch.ones(2, device="jax"), 1, out=out)
    assert out.tolist() == [2, 2]
    assert other.tolist() == [2, 2, 2, 3]


def test_a_view_beyond_the_memory_raises_as_on_the_cpu():
    for device in ("cpu", "jax"):
        with pytest.raises(RuntimeError, match="are out of bounds for storage of size 16"):
            torch.zeros(4, device=device).as_strided((10,), (1,))


def test_set_to_a_storage_sees_it_in_the_tensors_own_dtype():
    one = torch.ones(1, device="jax")
    as_bytes = torch.empty(0, dtype=torch.uint8, device="jax").set_(one.untyped_storage())
    assert as_bytes.tolist() == [0, 0, 128, 63]
    as_bytes[2] = 0
    assert one.item() == 0.5


def test_set_to_nothing_leaves_the_memory_to_others():
    x = torch.ones(3, device="jax")
    other = x.detach()
    assert x.set_().tolist() == []
    assert other.tolist() == [1, 1, 1]


def test_a_tensor_whose_memory_is_gone_is_not_copied():
    x = torch.ones(4)
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="has a storage of 0"):
        x.to("jax")


@pytest.mark.nightly
def test_a_view_of_a_million_views_can_be_dropped():
    x = torch.ones(1, 2, device="jax")
    for _ in range(1_000_000):
        x = x.t()
    del x


def _resizing(resize, memory_format):
    """A call of `resize` with sizes or a tensor of these sizes, as the function asks for."""
    sizes = [1, 2, 3, 4]
    return lambda x: resize(
        x, x.new_zeros(sizes) if "_as" in resize.__name__ else sizes, memory_format=memory_format
    )


@pytest.mark.few_daily(6)
@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize(
    "resize",
    [
        torch.Tensor.resize_,
        torch.Tensor.resize_as_,
        torch.ops.aten.resize,
        torch.ops.aten.resize_as,
    ],
    ids=lambda resize: resize.__name__,
)
@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[:24],
        lambda x: x[3:],
        lambda x: x[:24].view(1, 2, 3, 4).to(memory_format=torch.channels_last),
    ],
    ids=["row-major", "later", "channels_last"],
)
def test_resize_orders_the_memory_in_the_format(make, resize, memory_format):
    expected, result = (
        _resizing(resize, memory_format)(make(torch.arange(30.0, device=device)))
        for device in ("cpu", "jax")
    )
    assert result.stride() == expected.stride()
    assert result.tolist() == expected.tolist()


def test_a_tensor_resized_to_a_format_shares_its_memory():
    x = torch.arange(24.0, device="jax")
    image = x.detach().resize_(1, 2, 3, 4, memory_format=torch.channels_last)
    image[:, 1] = -1
    assert x.tolist() == [i if i % 2 == 0 else -1 for i in range(24)]


@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.preserve_format])
def test_resize_to_a_format_that_does_not_fit_raises_as_on_the_cpu(memory_format):
    for device in ("cpu", "jax"):
        with pytest.raises(RuntimeError, match=r"rank 4|Unsupported memory format"):
            torch.zeros(6, device=device).resize_(2, 3, memory_format=memory_format)


# --- copies between devices -----------------------------------------------------------------------


def test_copy_to_a_view_on_the_cpu():
    target = torch.zeros(2, 2)
    target.t()[0].copy_(torch.tensor([1.0, 2.0], device="jax"))
    assert target.tolist() == [[1, 0], [2, 0]]


def test_a_later_write_on_the_cpu_does_not_change_what_was_copied():
    source = torch.zeros(2)
    copied = source.to("jax")
    source.add_(1)
    assert copied.tolist() == [0, 0]


def test_assigning_a_cpu_tensor_to_an_index_copies_it():
    base = torch.zeros(2, 2, device="jax")
    base[0] = torch.ones(2)
    assert base.tolist() == [[1, 1], [0, 0]]
