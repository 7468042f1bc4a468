"""The mesh of devices that a graph is traced for, and custom calls that each device runs on its
own part.

    with on_mesh(mesh):                           # while a graph for a mesh is compiled
        loss = convolution(...)                   # calls `partitioned` below

XLA cannot divide a custom call: it would gather the operands, and each device would run the whole
call. `partitioned` says along which dimensions it may be divided.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from torch_xla_lite.lowering.base import merged_dims
from torch_xla_lite.startup.late_jax import jax

if TYPE_CHECKING:
    from jax.sharding import Mesh, NamedSharding

_mesh: ContextVar[Mesh | None] = ContextVar("_mesh", default=None)
# The ops of the graph that no rule divides, one for each call: each device runs them on all of the
# data.
gathered: ContextVar[list[str]] = ContextVar("gathered")

Kernel: TypeAlias = (
    "Callable[[Sequence[jax.Array], Sequence[jax.ShapeDtypeStruct]], Sequence[jax.Array]]"
)


@contextlib.contextmanager
def on_mesh(mesh: Mesh | None) -> Iterator[None]:
    """Says for which mesh the body traces and compiles."""
    mesh_before, gathered_before = _mesh.set(mesh), gathered.set([])
    try:
        with merged_dims.remembered(mesh is not None):
            yield
    finally:
        _mesh.reset(mesh_before)
        gathered.reset(gathered_before)


def current() -> Mesh | None:
    """The mesh that the graph is traced for; None for a graph of one device."""
    return _mesh.get()


def note_gathered(op: str) -> None:
    """Says that the graph calls code that XLA cannot divide."""
    if current() is not None:
        gathered.get().append(op)


def partitioned(
    kernel: Kernel,
    operands: Sequence[jax.Array],
    outs: Sequence[jax.ShapeDtypeStruct],
    *,
    takes: Sequence[str],
    gives: Sequence[str],
    along: str,
) -> list[jax.Array]:
    """`kernel(operands, outs)`, on a mesh run by each device on its part.

    Example: a convolution, of which each device has some images and the whole weight:
      >>> takes, gives = ["n c h w", "o i k l"], ["n o p q"]
      >>> partitioned(kernel, [x, w], [y], takes=takes, gives=gives, along="n")

    Args:
      kernel: calls the custom call on arrays, for results of given shapes and dtypes.
      operands, outs: of the whole call.
      takes, gives: a name for each dimension of each operand and result. Equal names are one
        dimension of the call.
      along: the names of the dimensions along which the call may be divided. A result without such
        a dimension is the sum of what the devices compute.
    """
    if current() is None or not along:
        return list(kernel(operands, outs))
    from jax.experimental.custom_partitioning import custom_partitioning

    @custom_partitioning
    def function(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(kernel(arrays, outs))

    def partition(mesh: Mesh, arg_shapes: Sequence[Any], _: Any) -> tuple:
        axes = _axes(mesh, takes, arg_shapes, along.split())

        def placed(names: str) -> NamedSharding:
            return jax.sharding.NamedSharding(
                mesh, jax.sharding.PartitionSpec(*(axes.get(name) for name in names.split()))
            )

        def of_device(*arrays: jax.Array) -> tuple[jax.Array, ...]:
            parts = [
                jax.ShapeDtypeStruct(placed(names).shard_shape(out.shape), out.dtype)
                for names, out in zip(gives, outs, strict=True)
            ]
            results = kernel(arrays, parts)
            return tuple(
                _summed(result, [axes[name] for name in axes if name not in names.split()])
                for names, result in zip(gives, results, strict=True)
            )

        return mesh, of_device, tuple(map(placed, gives)), tuple(map(placed, takes))

    names = dict.fromkeys(" ".join([*takes, *gives]).split())
    function.def_partition(
        partition=partition,
        sharding_rule=f"{', '.join(takes)} -> {', '.join(gives)}",
        need_replication_factors=tuple(name for name in names if name not in along.split()),
    )
    return list(function(*operands))


def elementwise(call: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    """`call(x)`, of which each element depends on that of `x`; on a mesh run by each device on its
    part. XLA may divide `x` along a part of an axis, too, for which jax has no name."""
    if current() is None:
        return call(x)
    from jax.experimental.custom_partitioning import custom_partitioning

    def partition(mesh: Mesh, arg_shapes: Sequence[Any], _: Any) -> tuple:
        place = arg_shapes[0].sharding
        return mesh, call, place, (place,)

    dims = " ".join(f"d{dim}" for dim in range(x.ndim))
    function = custom_partitioning(call)
    function.def_partition(
        partition=partition, sharding_rule=f"{dims} -> {dims}", decode_shardings=False
    )
    return function(x)


def _axes(
    mesh: Mesh, takes: Sequence[str], operands: Sequence[Any], along: Sequence[str]
) -> dict[str, Any]:
    """The axes of the mesh along which each dimension of a call is divided: as its operands are,
    if each device gets as much."""
    axes: dict[str, Any] = {}
    for names, operand in zip(takes, operands, strict=True):
        spec = operand.sharding.spec
        for name, axis, size in zip(names.split(), spec, operand.shape, strict=False):
            used = [axis] if isinstance(axis, str) else list(axis or ())
            parts = math.prod(mesh.shape[name] for name in used)
            if name in along and used and size % parts == 0:
                axes.setdefault(name, axis)
    return axes


def _summed(array: jax.Array, axes: Sequence[Any]) -> jax.Array:
    for axis in axes:
        array = jax.lax.psum(array, axis)
    return array
