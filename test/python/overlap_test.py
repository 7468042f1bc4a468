"""Writes to memory that an operand shares: refused where torch's CPU kernels refuse them."""

from collections.abc import Callable

import pytest
import torch

import torch_xla_lite  # noqa: F401

Write = Callable[[torch.Tensor, torch.Tensor], object]


def rows(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([2, 0, 1], device=x.device)


# Each writes to `x` what it computes from `y`. database_test.py has the others.
WRITES: dict[str, Write] = {
    "copy_": lambda x, y: x.copy_(y),
    "assignment": lambda x, y: x.__setitem__(slice(None), y),
    "sort out": lambda x, y: torch.sort(y, out=(x, torch.empty_like(rows(x)))),
    "mse_loss out": lambda x, y: torch.ops.aten.mse_loss.out(y, torch.ones_like(y), 0, out=x),
    "index_put_": lambda x, y: x.index_put_((rows(x),), y),
    "assignment through indices": lambda x, y: x.__setitem__(rows(x), y),
    "cat out": lambda x, y: torch.cat([y[:1], y[1:]], out=x),
    "sum out": lambda x, y: torch.sum(y[None], 0, out=x),
    "clone out": lambda x, y: torch.ops.aten.clone.out(y, out=x),
    "relu out": lambda x, y: torch.ops.aten.relu.out(y, out=x),
    "masked_scatter_": lambda x, y: x.masked_scatter_(torch.ones_like(x, dtype=torch.bool), y),
    "masked_fill_ with a tensor": lambda x, y: x.masked_fill_(rows(x) > 1, y[1]),
}

# Two parts of a vector.
PARTLY = {
    "one behind": lambda b: (b[1:4], b[0:3]),
    "one ahead": lambda b: (b[1:4], b[2:5]),
    "of a matrix": lambda b: (b.view(2, 4)[0, 1:], b[2:5]),
}
APART = {
    "beside": lambda b: (b[1:4], b[4:7]),
    "with gaps": lambda b: (b[2:7:2], b[0:5:2]),
    "another tensor": lambda b: (b[1:4], b.clone()[:3]),
}
WHOLE = {"the same": lambda b: (b[1:4],) * 2, "an equal view": lambda b: (b[1:4], b[1:4])}


def numbers(device: str) -> torch.Tensor:
    return torch.arange(1.0, 9.0).to(device)


def outcome(device: str, write: Write, parts: Callable) -> tuple[bool, list[float]]:
    """Whether it was refused, and what is in memory afterwards."""
    memory = numbers(device)
    try:
        write(*parts(memory))
    except RuntimeError as error:
        assert "refer to a single memory location" in str(error)
        return True, memory.tolist()
    return False, memory.tolist()


@pytest.mark.few_daily(6)
@pytest.mark.parametrize("parts", [*PARTLY.values(), *WHOLE.values()], ids=[*PARTLY, *WHOLE])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_to_what_is_read_is_refused_as_on_the_cpu(write, parts):
    ours, expected = outcome("jax", write, parts), outcome("cpu", write, parts)
    assert ours[0] == expected[0]
    if ours[0]:
        assert ours == expected


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("parts", APART.values(), ids=APART)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_beside_what_is_read_is_not_refused(write, parts):
    assert not outcome("jax", write, parts)[0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(x.t()),
        lambda x: x.copy_(x.t()),
        lambda x: x.div_(x[0]),
        lambda x: x.div_(x[0, 0]),
        lambda x: x.view(torch.int32)[0].copy_(x[0, :2]),
    ],
)
def test_a_matrix_is_not_written_with_elements_at_other_places(write):
    for device in ("cpu", "jax"):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            write(torch.ones(3, 3, dtype=torch.float64).to(device))


def test_a_conjugated_operand_is_copied_first():
    def added(device: str) -> torch.Tensor:
        x = torch.tensor([1 + 2j, 3 - 1j, 2j]).to(device)
        x[1:].add_(x[:-1].conj())
        return x.cpu()

    assert added("jax").tolist() == added("cpu").tolist()


def test_parts_of_a_tensor_that_has_grown_are_compared_by_place():
    x = numbers("jax")
    tail = x[4:]
    x.resize_(12)
    tail[:2].add_(x[:2])
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        tail[:2].add_(x[3:5])


# Ops in place that write to each element of an expanded tensor, which is one location.
EXPANDED: dict[str, Callable[[torch.Tensor], object]] = {
    "normal_": lambda x: x.normal_(),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
    "random_": lambda x: x.random_(4),
    "masked_scatter_": lambda x: x.masked_scatter_(x > 5, x.clone()),
    "dropout": lambda x: torch.nn.functional.dropout(x, inplace=True),
    "__iadd__": lambda x: x.__iadd__(1),
    "_foreach_add_": lambda x: torch._foreach_add_([x], 1.0),
    "copy_": lambda x: x.copy_(torch.arange(3.0).to(x.device)),
    "copy_ from the CPU": lambda x: x.copy_(torch.arange(3.0)),
    "copy_ of a number": lambda x: x.copy_(torch.zeros((), device=x.device)),
    "assignment": lambda x: x.__setitem__(slice(None), torch.arange(3.0).to(x.device)),
    "fill_": lambda x: x.fill_(torch.tensor(2.0)),
    "fill_ with a tensor": lambda x: x.fill_(torch.tensor(2.0, device=x.device)),
    "_foreach_copy_": lambda x: torch._foreach_copy_([x], [torch.arange(3.0).to(x.device)]),
    "out": lambda x: torch.add(x, 1, out=x),
}


@pytest.mark.parametrize("write", EXPANDED.values(), ids=EXPANDED)
def test_an_expanded_tensor_is_not_written(write):
    for device in ("cpu", "jax"):
        base = torch.ones(1).to(device)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write(base.expand(3))
        assert base.tolist() == [1]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.zero_(),
        lambda x: x.fill_(0),
        lambda x: torch._foreach_zero_([x]),
        lambda x: torch._foreach_zero_([x, x]),
    ],
)
def test_an_expanded_tensor_is_filled_with_one_number(write):
    for device in ("cpu", "jax"):
        x = torch.ones(1).to(device).expand(3)
        write(x)
        assert x.tolist() == [0, 0, 0]


def test_an_expanded_tensor_is_not_written_through_indices():
    """torch's CPU kernel warns that it will not do this any more."""
    x = torch.ones(1, device="jax").expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x[rows(x)] = x.clone()


# --- lists of tensors -----------------------------------------------------------------------------

# What the kernels write to the first items is what they read for the next ones. Each gets two
# vectors of four elements and a number.
LISTS: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]] = {
    "twice the same": lambda x, y, z: torch._foreach_add_([x, x], 1.0),
    "a number for each": lambda x, y, z: torch._foreach_mul_([x, x, y], [2.0, 3.0, 4.0]),
    "overlapping parts": lambda x, y, z: torch._foreach_mul_([x[1:], x[:-1]], 2.0),
    "each reads the other": lambda x, y, z: torch._foreach_add_([x[1:], y], [y[1:], x]),
    "copies": lambda x, y, z: torch._foreach_copy_([x, y], [y, x]),
    "one operand for all": lambda x, y, z: torch._foreach_mul_([z, x], z),
    "no operand": lambda x, y, z: torch._foreach_sqrt_([x, x]),
    "numbers in a tensor": lambda x, y, z: torch._foreach_addcdiv_([x, x], [y, y], [x, y], y[:2]),
    "lerp": lambda x, y, z: torch._foreach_lerp_([x, y], [y, x], 0.25),
    "itself": lambda x, y, z: torch._foreach_mul_([x, y], [x, y]),
    "parts that are apart": lambda x, y, z: torch._foreach_add_([x[:2], x[2:]], [x[2:], y[:2]]),
}


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("write", LISTS.values(), ids=LISTS)
def test_lists_of_tensors_that_share_memory_are_written_item_by_item(write):
    def results(device: str) -> list[torch.Tensor]:
        memory = [numbers(device)[:4].clone(), numbers(device)[4:].clone(), numbers(device)[1]]
        write(*memory)
        return [tensor.cpu() for tensor in memory]

    torch.testing.assert_close(results("jax"), results("cpu"))


def test_gradients_that_are_clipped_twice_are_scaled_twice():
    def gradient(device: str) -> torch.Tensor:
        x = torch.ones(3, device=device, requires_grad=True)
        (x * torch.arange(3.0, device=device)).sum().backward()
        torch.nn.utils.clip_grad_norm_([x, x], 0.5)
        return x.grad.cpu()

    torch.testing.assert_close(gradient("jax"), gradient("cpu"))


REFUSED_LISTS: dict[str, Write] = {
    "add": lambda x, y: torch._foreach_add_([x], [y]),
    "add a tensor": lambda x, y: torch._foreach_add_([x[:0], x], y[1]),
    "addcmul": lambda x, y: torch._foreach_addcmul_([x], [y], [x]),
    "lerp": lambda x, y: torch._foreach_lerp_([x], [y], 0.5),
    "copy": lambda x, y: torch._foreach_copy_([x], [y]),
    "maximum": lambda x, y: torch._foreach_maximum_([x], [y]),
    "the second": lambda x, y: torch._foreach_add_([torch.ones_like(x), x], [x, y]),
}


@pytest.mark.few_daily(12)
@pytest.mark.parametrize("parts", [*PARTLY.values(), *WHOLE.values()], ids=[*PARTLY, *WHOLE])
@pytest.mark.parametrize("write", REFUSED_LISTS.values(), ids=REFUSED_LISTS)
def test_an_item_is_not_written_where_its_operand_shares_part_of_it(write, parts):
    assert outcome("jax", write, parts) == outcome("cpu", write, parts)
