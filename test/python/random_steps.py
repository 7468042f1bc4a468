"""What random programs are made of: functions of tensors and small numbers, and first tensors."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor
DTYPES = (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32, torch.float64)


def dim_of(x: Tensor, number: int) -> int:
    return number % x.ndim


def index_of(x: Tensor, dim: int, number: int) -> int:
    return number % x.size(dim)


def slice_of(x: Tensor, a: int, b: int) -> slice:
    return slice(a, a + b, 1 + (a + b) % 2)


def positions(x: Tensor, dim: int, a: int, b: int) -> Tensor:
    """Some indices of a dimension, of which some may be equal."""
    return torch.arange(a, a + b, device=x.device) % x.size(dim)


def unique_positions(x: Tensor, dim: int, a: int) -> Tensor:
    return torch.arange(min(a, x.size(dim)), device=x.device)


def mask_of(x: Tensor) -> Tensor:
    return x > 0


def along(x: Tensor, function: Callable, a: int, keepdim: int) -> Tensor:
    return function(x, dim=dim_of(x, a), keepdim=keepdim % 2 == 1)


def leaf(x: Tensor) -> Tensor:
    return x.detach().clone().requires_grad_()


def with_new_memory(x: Tensor, owner: Tensor, change: Callable[[Tensor], Any]) -> None:
    """What is added to the memory of a CPU tensor is undefined; on jax it is zero."""
    if x.requires_grad or owner.requires_grad or x.dtype != owner.dtype:
        raise TypeError("it has a gradient, or another dtype")
    storage = owner.untyped_storage()
    before = storage.nbytes()
    change(x)
    if owner.is_cpu:
        torch.empty(0, dtype=torch.uint8).set_(storage)[before:] = 0


def set_part(x: Tensor, y: Tensor, a: int) -> None:
    if x.shape == (a,):
        raise ValueError("torch does not let the storage grow for what has the size")
    with_new_memory(x, y, lambda x: x.set_(y.untyped_storage(), a % 3, (a,), (1,)))


def strided(x: Tensor, a: int, b: int) -> Tensor:
    if not x.numel():
        raise ValueError("where it begins follows from strides of dimensions of one element")
    return x.as_strided((a, b), (1, a))


# Of one tensor and two numbers.
VIEWS: dict[str, Callable[[Tensor, int, int], Any]] = {
    "select": lambda x, a, b: x.select(dim_of(x, a), index_of(x, dim_of(x, a), b)),
    "slice": lambda x, a, b: x[slice_of(x, a, b)],
    "slice of the last": lambda x, a, b: x[..., slice_of(x, a, b)],
    "narrow": lambda x, a, b: x.narrow(dim_of(x, a), b % 3, 1),
    "t": lambda x, a, b: x.t(),
    "transpose": lambda x, a, b: x.transpose(dim_of(x, a), dim_of(x, b)),
    "permute": lambda x, a, b: x.permute([*range(1, x.ndim), 0]),
    "view": lambda x, a, b: x.view(-1),
    "view of two": lambda x, a, b: x.view(-1, max(a, 1)),
    "unsqueeze": lambda x, a, b: x.unsqueeze(a % (x.ndim + 1)),
    "squeeze": lambda x, a, b: x.squeeze(),
    "expand": lambda x, a, b: x.expand(a, *x.shape),
    "diagonal": lambda x, a, b: x.diagonal(a - 2),
    "unfold": lambda x, a, b: x.unfold(dim_of(x, a), b, 1 + a % 2),
    "split": lambda x, a, b: x.split(max(a, 1), dim_of(x, b))[-1],
    "unsafe_split": lambda x, a, b: x.unsafe_split(max(a, 1))[-1],
    "chunk": lambda x, a, b: x.chunk(max(a, 1))[0],
    "unbind": lambda x, a, b: x.unbind(dim_of(x, a))[-1],
    "detach": lambda x, a, b: x.detach(),
    "bits": lambda x, a, b: x.view(torch.int32),
    "as_strided": strided,
    "movedim": lambda x, a, b: x.movedim(dim_of(x, a), 0),
}
RESULTS: dict[str, Callable[[Tensor, int, int], Any]] = {
    "clone": lambda x, a, b: x.clone(),
    "contiguous copy": lambda x, a, b: x.reshape(-1).clone(),
    "to": lambda x, a, b: x.to(DTYPES[a]),
    "leaf": lambda x, a, b: leaf(x),
    "read": lambda x, a, b: (x.detach().tolist(), None)[1],
    "neg": lambda x, a, b: -x,
    "abs": lambda x, a, b: x.abs(),
    "relu": lambda x, a, b: x.relu(),
    "add number": lambda x, a, b: x + (a - 2),
    "multiply by a float": lambda x, a, b: x * (a / 2),
    "divide by number": lambda x, a, b: x // (a + 1),
    "clamp": lambda x, a, b: x.clamp(-a, b),
    "sum": lambda x, a, b: x.sum(),
    "sum of": lambda x, a, b: along(x, torch.sum, a, b),
    "mean of": lambda x, a, b: along(x.float(), torch.mean, a, b),
    "amax of": lambda x, a, b: along(x, torch.amax, a, b),
    "prod of": lambda x, a, b: along(x, torch.prod, a, b),
    "any of": lambda x, a, b: along(x, torch.any, a, b),
    "logsumexp of": lambda x, a, b: along(x, torch.logsumexp, a, b),
    "softmax": lambda x, a, b: x.softmax(dim_of(x, a)),
    "log_softmax": lambda x, a, b: x.log_softmax(dim_of(x, a)),
    "var": lambda x, a, b: x.var(),
    "norm": lambda x, a, b: x.norm(),
    "cumsum": lambda x, a, b: x.cumsum(dim_of(x, a)),
    "sort": lambda x, a, b: x.sort(dim_of(x, a))[0],
    "max of": lambda x, a, b: along(x, torch.max, a, b)[0],
    "flip": lambda x, a, b: x.flip(dim_of(x, a)),
    "roll": lambda x, a, b: x.roll(a, dim_of(x, b)),
    "rot90": lambda x, a, b: x.rot90(a),
    "repeat": lambda x, a, b: x.repeat(a, *[1] * (x.ndim - 1)),
    "tril": lambda x, a, b: x.tril(a - 2),
    "pad": lambda x, a, b: torch.nn.functional.pad(x, (a, b - 2)),
    "take rows": lambda x, a, b: x[positions(x, 0, a, b)],
    "index_select": lambda x, a, b: x.index_select(dim_of(x, a), positions(x, dim_of(x, a), b, a)),
    "gather": lambda x, a, b: x.gather(0, torch.zeros_like(x, dtype=torch.int64)),
    "masked": lambda x, a, b: x[mask_of(x)],
    "masked rows": lambda x, a, b: x[mask_of(x.select(1, 0))],
    "nonzero": lambda x, a, b: x.nonzero(),
    "new zeros": lambda x, a, b: x.new_zeros(a, b),
    "index_fill": lambda x, a, b: x.index_fill(
        dim_of(x, a), positions(x, dim_of(x, a), 0, b % 2), a
    ),
}
WRITES: dict[str, Callable[[Tensor, int, int], Any]] = {
    "fill_": lambda x, a, b: x.fill_(a),
    "zero_": lambda x, a, b: x.zero_(),
    "add_ number": lambda x, a, b: x.add_(a - 2),
    "mul_ number": lambda x, a, b: x.mul_(a),
    "relu_": lambda x, a, b: x.relu_(),
    "neg_": lambda x, a, b: x.neg_(),
    "write row": lambda x, a, b: x.__setitem__(index_of(x, 0, a), b),
    "write slice": lambda x, a, b: x.__setitem__(slice_of(x, a, b), a),
    "write masked": lambda x, a, b: x.__setitem__(mask_of(x), a),
    "write rows": lambda x, a, b: x.__setitem__(positions(x, 0, a, b), a),
    "masked_fill_": lambda x, a, b: x.masked_fill_(mask_of(x), a),
    "index_fill_": lambda x, a, b: x.index_fill_(0, positions(x, 0, a, b), b),
    "t_": lambda x, a, b: x.t_(),
    "unsqueeze_": lambda x, a, b: x.unsqueeze_(0),
    "squeeze_": lambda x, a, b: x.squeeze_(),
    "transpose_": lambda x, a, b: x.transpose_(dim_of(x, a), dim_of(x, b)),
    "resize_": lambda x, a, b: with_new_memory(x, x, lambda x: x.resize_(a, b)),
}
# Of two tensors and a number.
OF_TWO: dict[str, Callable[[Tensor, Tensor, int], Any]] = {
    "add": lambda x, y, a: x + y,
    "sub": lambda x, y, a: x.sub(y, alpha=a),
    "mul": lambda x, y, a: x * y,
    "div": lambda x, y, a: x / y,
    "floor_divide": lambda x, y, a: x // y,
    "remainder": lambda x, y, a: x % y,
    "maximum": lambda x, y, a: torch.maximum(x, y),
    "less": lambda x, y, a: x < y,
    "and": lambda x, y, a: x & y,
    "where": lambda x, y, a: torch.where(x > 0, x, y),
    "cat": lambda x, y, a: torch.cat([x, y], a % 2),
    "stack": lambda x, y, a: torch.stack([x, y]),
    "matmul": lambda x, y, a: x @ y,
    "slice_scatter": lambda x, y, a: x.slice_scatter(y, a % 2).clone(),
    "select_scatter": lambda x, y, a: x.select_scatter(y, 0, index_of(x, 0, a)).clone(),
    "diagonal_scatter": lambda x, y, a: x.diagonal_scatter(y).clone(),
    "add_": lambda x, y, a: x.add_(y),
    "mul_": lambda x, y, a: x.mul_(y),
    "copy_": lambda x, y, a: x.copy_(y),
    "copy_ from the CPU": lambda x, y, a: x.copy_(y.cpu()),
    "add into": lambda x, y, a: torch.add(y.clone(memory_format=torch.contiguous_format), a, out=x),
    "set_": lambda x, y, a: with_new_memory(x, y, lambda x: x.set_(y)),
    "set_ to a part": set_part,
    "data": lambda x, y, a: with_new_memory(x, y, lambda x: setattr(x, "data", y)),
    "write row of": lambda x, y, a: x.__setitem__(index_of(x, 0, a), y),
    "write rows of": lambda x, y, a: x.__setitem__(slice_of(x, a, 2), y),
    "write masked of": lambda x, y, a: x.__setitem__(mask_of(x), y),
    "index_add_": lambda x, y, a: x.index_add_(0, positions(x, 0, a, len(y)), y),
    "index_copy_": lambda x, y, a: x.index_copy_(0, unique_positions(x, 0, len(y)), y),
    "scatter_": lambda x, y, a: x.scatter_(0, torch.zeros_like(y, dtype=torch.int64)[:1], y),
    # Of itself, the CPU reads what it has written.
    "masked_scatter_": lambda x, y, a: x.masked_scatter_(mask_of(x), y.clone()),
}
OF_ONE = {**VIEWS, **RESULTS, **WRITES}
# What the CPU raises for a step that it refuses.
REFUSALS = (IndexError, OverflowError, RuntimeError, TypeError, ValueError, ZeroDivisionError)


def apply(name: str, x: Tensor, y: Tensor, a: int, b: int) -> Tensor | None:
    """The step's result: None for most that write."""
    return OF_ONE[name](x, a, b) if name in OF_ONE else OF_TWO[name](x, y, a)


def layout(x: Tensor) -> list[int]:
    """The strides of dimensions that have several elements, and the offset."""
    strides = [step for size, step in zip(x.shape, x.stride(), strict=True) if size > 1]
    return [*strides, x.storage_offset()]


@dataclasses.dataclass(frozen=True)
class Start:
    """A tensor: -2, -1, 0, 1, 2, -2, ..."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    def on(self, device: str) -> Tensor:
        count = torch.Size(self.shape).numel()
        values = (torch.arange(count) % 5 - 2).view(self.shape)
        return values.to(device, self.dtype, copy=True)
