"""Indexing, gathering and scattering.

Indices may be negative where torch allows it. One out of range reads the nearest element, or is not
written, and is reported (checks.py).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base import mesh
from torch_xla_lite.lowering.base.checks import check, index_in_range
from torch_xla_lite.lowering.base.promotion import (
    Operand,
    broadcast,
    canonical_dim,
    convert,
    full,
    index_dtype,
    is_integral,
    opmath,
)
from torch_xla_lite.lowering.base.registry import Unsupported, lower
from torch_xla_lite.lowering.binary import scaled, to_bool

Indices = list[jax.Array | None]


def _key(indices: Indices) -> tuple[object, ...]:
    """torch's list of indices as a numpy index; both order the resulting dimensions alike."""
    key = [slice(None) if index is None else index for index in indices]
    if any(index is not None and _is_mask(index) for index in indices):
        raise Unsupported("a mask as an index: the shape of the result depends on its values")
    return tuple(key)


def _check(x: jax.Array, indices: Indices) -> None:
    if len(indices) > x.ndim:
        raise Unsupported("too many indices: torch's kernel raises")
    for size, index in zip(x.shape, indices, strict=False):
        if index is not None and size == 0 and index.size > 0:
            raise Unsupported("an index for no elements: torch's kernel raises")
        if index is not None and index.dtype.kind != "b":
            _check_slices(x, index, size, wraps=True)


@lower("aten::index.Tensor", shares="self=nothing")
@lower("aten::_unsafe_index.Tensor")
def index(self: jax.Array, indices: Indices) -> jax.Array:
    _check(self, indices)
    return self.at[_key(indices)].get(mode="promise_in_bounds")


@lower("aten::_unsafe_masked_index")
def unsafe_masked_index(
    self: jax.Array, mask: jax.Array, indices: Indices, fill: Operand, *, outs
) -> jax.Array:
    if not self.size:
        return full(outs[0].shape, fill, self.dtype)
    taken = self.at[_key(indices)].get(mode="clip")
    return lax.select(broadcast(mask, taken.shape), taken, full(taken.shape, fill, taken.dtype))


@lower(
    "aten::index_put",
    one_dtype="self values",
    shares="self=same values=nothing",
    refused_if="misfit_indices",
    rewrites=True,
)
@lower("aten::_unsafe_index_put")
@lower("aten::_index_put_impl", refused_if="misfit_indices")
def index_put(
    self: jax.Array,
    indices: Indices,
    values: jax.Array,
    accumulate: bool = False,
    unsafe: bool = False,
) -> jax.Array:
    given = [index for index in indices if index is not None]
    if len(given) == 1 and _is_mask(given[0]):
        return _put_by_mask(self, indices, values, accumulate)
    indices = _masks_as_positions(self, indices)
    key = _key(indices)
    _check(self, indices)
    place = self.at[key]
    selected = jax.eval_shape(lambda x: x[key], self).shape
    pairs = zip(reversed(values.shape), reversed(selected), strict=False)
    if values.ndim > len(selected) or any(own not in (1, size) for own, size in pairs):
        # XLA takes any values where no element is written.
        raise Unsupported("values of another shape: torch's kernel raises")
    values = convert(values, self.dtype)
    if not accumulate:
        return place.set(values, mode="promise_in_bounds")
    if self.dtype == np.bool_:
        return place.max(values, mode="promise_in_bounds")
    return place.add(values, mode="promise_in_bounds")


def _is_mask(index: jax.Array) -> bool:
    return index.dtype in (np.bool_, np.uint8)


def _masks_as_positions(x: jax.Array, indices: Indices) -> Indices:
    """The indices, with the positions of True elements in place of a mask. The other indices say
    how many these are: in `x[mask, labels] = 1` there is a True element for each label."""
    if not any(index is not None and _is_mask(index) for index in indices):
        return indices
    shapes = [index.shape for index in indices if index is not None and not _is_mask(index)]
    shape = np.broadcast_shapes(*shapes)
    if not shape or shape[-1] == 1:
        raise Unsupported("a mask as an index: the number of positions depends on its values")
    result: Indices = []
    for index in indices:
        if index is None or not _is_mask(index):
            result.append(index)
            continue
        if index.size == 0 or index.shape != x.shape[len(result) : len(result) + index.ndim]:
            raise Unsupported("a mask that is empty or of another shape: torch's kernel may raise")
        result.extend(_positions(to_bool(index), shape[-1]))
    return result


def _positions(mask: jax.Array, size: int) -> list[jax.Array]:
    """The indices of the True elements, `[size]` for each dimension."""
    ranks, count = _ranks(mask)
    failed = (count != size) & (count != 1)
    check(failed, f"a mask that is used with {size} indices has another number of True elements")
    # One True element goes with each of the other indices.
    wanted = jnp.where(count == 1, 0, lax.iota(ranks.dtype, size))
    # Where there are too few, the position is behind the end, and nothing is written there.
    flat = jnp.searchsorted(ranks.reshape(-1), wanted)
    return list(jnp.unravel_index(flat, mask.shape))


def _put_by_mask(x: jax.Array, indices: Indices, values: jax.Array, accumulate: bool) -> jax.Array:
    """`x[:, mask] = values` as a selection, which needs no positions."""
    before = next(i for i, index in enumerate(indices) if index is not None)
    mask = to_bool(indices[before])
    after = x.shape[before + mask.ndim :]
    rank = before + 1 + len(after)
    if values.ndim > rank:
        raise Unsupported("too many dimensions: torch's kernel raises")
    values = lax.expand_dims(convert(values, x.dtype), range(rank - values.ndim))
    rows = values.shape[before]
    if rows == 1:
        values = lax.reshape(
            values, (*values.shape[:before], *[1] * mask.ndim, *values.shape[before + 1 :])
        )
    else:
        order, count = _ranks(mask)
        failed = lax.ne(count, lax.full_like(count, rows))
        check(failed, f"{rows} values were assigned to another number of True elements of a mask")
        mask = lax.bitwise_and(mask, broadcast(lax.bitwise_not(failed), mask.shape))
        if rows == 0:
            return x
        values = jnp.take(values, order, axis=before, mode="clip")
    values = broadcast(values, x.shape)
    mask = lax.broadcast_in_dim(mask, x.shape, range(before, before + mask.ndim))
    if accumulate:
        values = lax.bitwise_or(x, values) if x.dtype == np.bool_ else lax.add(x, values)
    return lax.select(mask, values, x)


def _ranks(mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The position of each True element among all of them, in the shape of the mask, and their
    number."""
    ones = convert(lax.reshape(mask, (mask.size,)), index_dtype(mask.size))
    ends = lax.cumsum(ones)
    count = ends[-1] if mask.size else lax.reduce_sum(ones, (0,))
    return lax.reshape(lax.sub(ends, lax.full_like(ends, 1)), mask.shape), count


def _added(place: Any, values: jax.Array, **options: str) -> jax.Array:
    """Bools have no sum in XLA; torch's is `or`."""
    return (
        place.max(values, **options) if values.dtype == np.bool_ else place.add(values, **options)
    )


@lower("aten::_unsafe_masked_index_put_accumulate", one_dtype="self values")
def unsafe_masked_index_put_accumulate(
    self: jax.Array, mask: jax.Array, indices: Indices, values: jax.Array
) -> jax.Array:
    if not self.size:
        return self
    kept = lax.select(broadcast(mask, values.shape), values, lax.full_like(values, 0))
    return _added(self.at[_key(indices)], kept, mode="clip")


@lower(
    "aten::index_select",
    shares="self=nothing",
    elements="self",
    refused_if="no_rows",
    shape="index_select",
)
def index_select(self: jax.Array, dim: int, index: jax.Array) -> jax.Array:
    if self.ndim == 0:
        return self
    dim = canonical_dim(dim, self.ndim)
    index_in_range(index, self.shape[dim])
    key = (*(slice(None),) * dim, index if index.ndim else index[None])
    return self.at[key].get(mode="promise_in_bounds", wrap_negative_indices=False)


@lower("aten::take", shares="self=nothing index=nothing")
def take(self: jax.Array, index: jax.Array) -> jax.Array:
    index_in_range(index, self.size, wraps=True)
    return lax.reshape(self, (self.size,)).at[index].get(mode="promise_in_bounds")


@lower(
    "aten::put",
    one_dtype="self source",
    shares="source=nothing",
    refused_if="misfit_places",
    rewrites=True,
)
def put(
    self: jax.Array, index: jax.Array, source: jax.Array, accumulate: bool = False
) -> jax.Array:
    index_in_range(index, self.size, wraps=True)
    place = lax.reshape(self, (self.size,)).at[lax.reshape(index, (index.size,))]
    values = lax.reshape(convert(source, self.dtype), (source.size,))
    return lax.reshape(_added(place, values) if accumulate else place.set(values), self.shape)


# Whole slices along one dimension: index_select, index_add ...


def _slices(x: jax.Array, dim: int, index: jax.Array):
    flat = lax.reshape(index, (index.size,))
    return x.at[(*(slice(None),) * dim, flat)]


def _as_row(x: jax.Array) -> jax.Array:
    return x if x.ndim else lax.reshape(x, (1,))


def _check_slices(x: jax.Array, index: jax.Array, size: int, *, wraps: bool = False) -> None:
    """torch's kernels do not read the indices of slices without elements."""
    if x.size:
        index_in_range(index, size, wraps=wraps)


def _over_slices(
    self: jax.Array, dim: int, index: jax.Array, source: jax.Array, update
) -> jax.Array:
    x = _as_row(self)
    source = _as_row(convert(source, self.dtype))
    dim = canonical_dim(dim, x.ndim)
    _check_slices(x, index, x.shape[dim])
    place = _slices(x, dim, index)
    return lax.reshape(update(place, source), self.shape)


@lower("aten::index_add", one_dtype="self source", shares="self=same source=nothing")
def index_add(
    self: jax.Array, dim: int, index: jax.Array, source: jax.Array, *, alpha: Operand = 1
) -> jax.Array:
    if self.dtype == np.bool_:
        source = lax.bitwise_and(to_bool(source), full(source.shape, alpha, source.dtype))
    else:
        source = scaled(source, alpha)
    return _over_slices(self, dim, index, source, _added)


@lower(
    "aten::index_copy",
    one_dtype="self source",
    shares="self=same source=nothing",
    rewrites=True,
)
def index_copy(self: jax.Array, dim: int, index: jax.Array, source: jax.Array) -> jax.Array:
    return _over_slices(self, dim, index, source, lambda place, s: place.set(s))


@lower(
    "aten::index_fill.int_Scalar", "aten::index_fill.int_Tensor", dtypes="index=l", rewrites=True
)
def index_fill(self: jax.Array, dim: int, index: jax.Array, value: Operand) -> jax.Array:
    x = _as_row(self)
    dim = canonical_dim(dim, x.ndim)
    _check_slices(x, index, x.shape[dim], wraps=True)
    place = _slices(x, dim, index)
    return lax.reshape(place.set(convert(value, self.dtype)), self.shape)


@lower(
    "aten::index_reduce", refuses="bc", one_dtype="self source", shares="self=same source=nothing"
)
def index_reduce(
    self: jax.Array,
    dim: int,
    index: jax.Array,
    source: jax.Array,
    reduce: str,
    *,
    include_self: bool = True,
) -> jax.Array:
    x, source = _as_row(self), _as_row(source)
    dim = canonical_dim(dim, x.ndim)
    index_in_range(index, x.shape[dim])
    spread = lax.broadcast_in_dim(_as_row(index), source.shape, (dim,))
    return lax.reshape(_reduced(x, dim, spread, source, reduce, include_self), self.shape)


# Single elements along one dimension: gather and scatter.


def _coordinates(index: jax.Array, dim: int) -> tuple[jax.Array, ...]:
    """Coordinates of the elements that `index` selects: those of its entry, except for `dim`."""
    counters = [lax.broadcasted_iota(index.dtype, index.shape, i) for i in range(index.ndim)]
    counters[dim] = index
    return tuple(counters)


@lower("aten::gather", shares="self=nothing index=same", any_strides=True)
def gather(self: jax.Array, dim: int, index: jax.Array, *, sparse_grad: bool = False) -> jax.Array:
    if index.size == 0:
        return lax.full(index.shape, 0, self.dtype)
    if self.ndim == 0:
        index_in_range(index, 1)
        return broadcast(self, index.shape)
    index_in_range(index, self.shape[canonical_dim(dim, self.ndim)])
    if index.ndim == 0:
        return lax.reshape(self[index], ())
    dim = canonical_dim(dim, self.ndim)
    # In the other dimensions, which may be longer, entries of `index` use their own coordinates.
    limits = [n if i == dim else index.shape[i] for i, n in enumerate(self.shape)]
    x = lax.slice(self, (0,) * self.ndim, limits)
    return jnp.take_along_axis(x, index, axis=dim, mode="promise_in_bounds")


def _scatter(self: jax.Array, dim: int, index: jax.Array, src: jax.Array, update) -> jax.Array:
    if index.size == 0:
        return self
    x, index, src = _as_row(self), _as_row(index), _as_row(src)
    dim = canonical_dim(dim, x.ndim)
    index_in_range(index, x.shape[dim])
    src = lax.slice(src, (0,) * src.ndim, index.shape)
    return lax.reshape(_updated(x, dim, index, src, update), self.shape)


def _updated(x: jax.Array, dim: int, index: jax.Array, src: jax.Array, update) -> jax.Array:
    others = [n == m for i, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)) if i != dim]
    if mesh.current() is None or not all(others):
        return update(x.at[_coordinates(index, dim)], src)

    def row(x: jax.Array, index: jax.Array, src: jax.Array) -> jax.Array:
        return update(x.at[index], src)

    # Each row by itself, so that devices may have different ones.
    for _ in others:
        row = jax.vmap(row)
    rows = [jnp.moveaxis(array, dim, -1) for array in (x, index, src)]
    return jnp.moveaxis(row(*rows), -1, dim)


@lower("aten::scatter.src", shares="self=same src=nothing", any_strides=True, rewrites=True)
def scatter_src(self: jax.Array, dim: int, index: jax.Array, src: jax.Array) -> jax.Array:
    src = convert(src, self.dtype)
    return _scatter(self, dim, index, src, lambda place, s: place.set(s, mode="promise_in_bounds"))


@lower("aten::scatter.value", shares="self=same src=nothing", any_strides=True, rewrites=True)
def scatter_value(self: jax.Array, dim: int, index: jax.Array, value: Operand) -> jax.Array:
    return scatter_src(self, dim, index, full(index.shape, value, self.dtype))


@lower("aten::scatter_add", shares="self=same src=nothing", any_strides=True)
def scatter_add(self: jax.Array, dim: int, index: jax.Array, src: jax.Array) -> jax.Array:
    if self.dtype == np.bool_:
        return _scatter(self, dim, index, src, lambda place, s: place.max(s))
    src = convert(src, self.dtype)
    return _scatter(self, dim, index, src, lambda place, s: place.add(s, mode="promise_in_bounds"))


@lower("aten::scatter.reduce", shares="self=same src=nothing", any_strides=True)
def scatter_reduce_legacy(
    self: jax.Array, dim: int, index: jax.Array, src: jax.Array, *, reduce: str
) -> jax.Array:
    if reduce == "add":
        return scatter_add(self, dim, index, src)
    return _scatter(self, dim, index, src, lambda place, s: place.multiply(s))


@lower("aten::scatter.value_reduce", shares="self=same src=nothing", any_strides=True)
def scatter_value_reduce(
    self: jax.Array, dim: int, index: jax.Array, value: Operand, *, reduce: str
) -> jax.Array:
    src = full(index.shape, value, self.dtype)
    return scatter_reduce_legacy(self, dim, index, src, reduce=reduce)


@lower("aten::scatter_reduce.two", shares="self=same src=nothing", any_strides=True)
def scatter_reduce(
    self: jax.Array,
    dim: int,
    index: jax.Array,
    src: jax.Array,
    reduce: str,
    *,
    include_self: bool = True,
) -> jax.Array:
    if index.size == 0:
        return self
    x, index, src = _as_row(self), _as_row(index), _as_row(src)
    dim = canonical_dim(dim, x.ndim)
    index_in_range(index, x.shape[dim])
    src = lax.slice(src, (0,) * src.ndim, index.shape)
    if self.dtype == np.bool_:
        if reduce == "mean":
            raise Unsupported("a mean of bools")
        reduce = {"sum": "amax", "prod": "amin"}.get(reduce, reduce)
    return lax.reshape(_reduced(x, dim, index, src, reduce, include_self), self.shape)


def _neutral(reduce: str, dtype: np.dtype) -> float | int:
    if reduce in ("amax", "amin"):
        if dtype == np.bool_:
            return reduce == "amin"
        if is_integral(dtype):
            info = np.iinfo(dtype)
            return int(info.min if reduce == "amax" else info.max)
        return -np.inf if reduce == "amax" else np.inf
    return 1 if reduce == "prod" else 0


def _reduced(
    x: jax.Array, dim: int, index: jax.Array, src: jax.Array, reduce: str, include_self: bool
) -> jax.Array:
    place = _coordinates(index, dim)
    base, src = opmath(x), opmath(convert(src, x.dtype))
    if not include_self:
        base = base.at[place].set(_neutral(reduce, x.dtype))
    target = base.at[place]
    if reduce in ("amax", "amin"):
        return target.max(src) if reduce == "amax" else target.min(src)
    if reduce == "prod":
        return target.multiply(src)
    total = target.add(src)
    if reduce == "sum":
        return total
    count = lax.full_like(total, 1 if include_self else 0)
    count = count.at[place].add(lax.full_like(src, 1))
    count = lax.select(lax.eq(count, lax.full_like(count, 0)), lax.full_like(count, 1), count)
    return jnp.floor_divide(total, count) if is_integral(total.dtype) else lax.div(total, count)


# Masks.


@lower("aten::masked_scatter", dtypes="mask=b", rewrites=True)
def masked_scatter(self: jax.Array, mask: jax.Array, source: jax.Array, *, outs) -> jax.Array:
    shape = outs[0].shape
    mask = broadcast(to_bool(mask), shape)
    if mask.size == 0:
        return broadcast(self, shape)
    order, count = _ranks(mask)
    failed = lax.gt(count, lax.full_like(count, source.size))
    check(
        failed, f"masked_scatter: the mask has more True elements than the source ({source.size})"
    )
    if source.size == 0:
        return broadcast(self, shape)
    taken = lax.reshape(source, (source.size,)).at[order].get(mode="clip")
    return lax.select(mask, taken, broadcast(self, shape))


@lower("aten::masked_scatter_backward")
def masked_scatter_backward(grad_output: jax.Array, mask: jax.Array, sizes: list[int]) -> jax.Array:
    size = int(np.prod(sizes))
    mask = broadcast(to_bool(mask), grad_output.shape)
    if mask.size == 0:
        return lax.full(sizes, 0, grad_output.dtype)
    order, _ = _ranks(mask)
    # Elements that are masked out get a position beyond the end, where scatter drops them.
    order = lax.select(mask, order, lax.full_like(order, size))
    zeros = lax.full((size,), 0, grad_output.dtype)
    return lax.reshape(zeros.at[order].add(grad_output, mode="drop"), sizes)


@lower("aten::nonzero_static")
def nonzero_static(self: jax.Array, *, size: int, fill_value: int = -1) -> jax.Array:
    if self.ndim == 0:
        return lax.full((size, 0), 0, np.int64)
    places = jnp.nonzero(self, size=size, fill_value=fill_value)
    return jnp.stack(places, axis=1)


@lower("aten::_functional_assert_async.msg")
def functional_assert_async(self: jax.Array, assert_msg: str, dep_token: jax.Array) -> jax.Array:
    if self.size != 1:
        raise Unsupported("an assertion about several values")
    check(lax.bitwise_not(lax.reshape(to_bool(self), ())), assert_msg, RuntimeError)
    return dep_token
