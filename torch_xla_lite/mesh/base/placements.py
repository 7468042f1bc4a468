"""Numbers for the places of data on a mesh of devices, for the bridge (csrc/ir/placement.h).

    number = placements.number_of(NamedSharding(mesh, PartitionSpec("data")), ndim=2)
    placements.sharding_of(number)
    placements.text_of(number)      # the same in every process
    placements.spec_text(number)    # "P('data')"

0 is the one device. The upper half of another number is that of its mesh, from 1; the lower half
that of the sharding, where 0 is data that each device has in full.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_xla_lite.startup.late_jax import jax, jnp

from . import distributed

if TYPE_CHECKING:
    from jax.sharding import Mesh, NamedSharding, Sharding

# What a dimension is divided by: nothing, an axis of the mesh, or several.
Spec = tuple[Any, ...]

# The step and the result that give a value of a graph, and where that is to be; None for wherever
# XLA leaves it.
Root = tuple[int, int, int | None]

ONE_DEVICE = 0

# The op that says where its result is.
CONSTRAIN = "torch_xla_lite::constrain"

_lock = threading.Lock()


@dataclasses.dataclass
class _Known:
    """A mesh, and the placements on it that have numbers."""

    mesh: Mesh
    specs: list[Spec]


_meshes: list[_Known] = []


_current: Mesh | None = None


def set_mesh(mesh: Mesh | None) -> None:
    """Sets the mesh of the process, with axes that XLA's partitioner divides along: torch's ops say
    nothing of them."""
    global _current
    _current = mesh and _automatic(mesh)
    if _current is not None:
        with _lock:
            _number_of_mesh(_current)


def _automatic(mesh: Mesh) -> Mesh:
    return jax.sharding.Mesh(
        mesh.devices,
        mesh.axis_names,
        axis_types=(jax.sharding.AxisType.Auto,) * len(mesh.axis_names),
    )


def current() -> Mesh | None:
    """The mesh of the process, if one is set."""
    return _current


def has_axes(names: Iterable[str]) -> bool:
    """Whether the mesh of the process, if there is one, has these axes."""
    return _current is not None and {*names} <= _current.shape.keys()


def mesh() -> Mesh:
    """The mesh of the process.

    Raises:
      RuntimeError: none is set.
    """
    if _current is None:
        raise RuntimeError(
            "no mesh of devices is set.\n"
            'Set one:  torch_xla_lite.set_mesh(jax.make_mesh((len(jax.devices()),), ("data",)))'
        )
    return _current


def place(array: Any, number: int) -> jax.Array:
    """A copy of an array in the place of a number. If each of several processes calls this with an
    array of its own, these must be equal.

    The device that has the array gets a copy, too: a program may overwrite one of the two.
    """
    sharding = sharding_of(number)
    with jax.enable_x64(True):
        if not sharding.is_fully_addressable:
            if isinstance(array, jax.Array) and not array.is_fully_addressable:
                return mover(sharding)(array)
            host = np.asarray(array)
            distributed.require_same_data(host)
            return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])
        # Put to all devices, an array would share the memory of the one that has it all the same.
        own = jax.device_put(array, array.sharding, may_alias=False)
        return jax.device_put(own, sharding)


@functools.lru_cache(maxsize=256)
def mover(sharding: NamedSharding) -> Callable[[jax.Array], jax.Array]:
    """Copies an array that is divided among processes; all of them call it."""
    return jax.jit(jnp.copy, out_shardings=sharding)


def devices_text(mesh: Mesh | None) -> str:
    """What the program of a graph depends on, of the mesh and the process."""
    if mesh is None:
        return ""
    return f"{_text_of_mesh(mesh)}, process {jax.process_index()} of {jax.process_count()}"


def number_of(sharding: NamedSharding, ndim: int) -> int:
    """The number of a place; equal for shardings that place arrays of `ndim` dimensions alike."""
    with _lock:
        upper = _number_of_mesh(_automatic(sharding.mesh))
        known = _meshes[upper - 1]
        spec = _shortest(sharding, ndim)
        if spec not in known.specs:
            known.specs.append(spec)
        return upper << 16 | known.specs.index(spec)


def _number_of_mesh(mesh: Mesh) -> int:
    for number, known in enumerate(_meshes, start=1):
        if known.mesh == mesh:
            return number
    _meshes.append(_Known(mesh, [()]))
    return len(_meshes)


def _shortest(sharding: NamedSharding, ndim: int) -> Spec:
    """The axes of each dimension, without those of one device, up to the last that is divided."""
    shape = sharding.mesh.shape

    def divided(axes: Any) -> Any:
        names = [axes] if isinstance(axes, str) else list(axes or ())
        names = [name for name in names if shape[name] > 1]
        return tuple(names) if len(names) > 1 else names[0] if names else None

    spec = [divided(axes) for axes in sharding.spec[:ndim]]
    while spec and spec[-1] is None:
        spec.pop()
    return tuple(spec)


def constraint(entries: Sequence[Any]) -> str:
    """What `CONSTRAIN` takes: a spec on the mesh of the process, in which "..." stands for
    dimensions that XLA places. Equal in every process."""
    spec = tuple(tuple(axes) if isinstance(axes, list) else axes for axes in entries)
    return _constraint_on(mesh(), spec)


@functools.lru_cache(maxsize=1024)
def _constraint_on(mesh: Mesh, spec: Spec) -> str:
    return json.dumps([_text_of_mesh(mesh), spec])


def mesh_of_constraint(text: str) -> int:
    """The number of data that each device of the mesh of a `constraint` has."""
    texts = [_text_of_mesh(known.mesh) for known in _meshes]
    return (texts.index(json.loads(text)[0]) + 1) << 16


def mesh_of(numbers: Iterable[int]) -> Mesh | None:
    """The mesh of places; None if all are the one device.

    Raises:
      RuntimeError: there are places on two meshes.
    """
    meshes = {number >> 16 for number in numbers} - {0}
    if len(meshes) > 1:
        first, second = (_text_of_mesh(_meshes[number - 1].mesh) for number in sorted(meshes)[:2])
        raise RuntimeError(
            f"one graph has tensors on two meshes, {first} and {second}.\n"
            "Move the tensors of one of them:  torch_xla_lite.shard(x, ...)"
        )
    return _meshes[meshes.pop() - 1].mesh if meshes else None


def sharding_of(number: int) -> NamedSharding:
    known = _meshes[(number >> 16) - 1]
    return jax.sharding.NamedSharding(
        known.mesh, jax.sharding.PartitionSpec(*known.specs[number & 0xFFFF])
    )


def text_of(number: int) -> str:
    """What stands for a number in every process; empty for the one device."""
    if number == ONE_DEVICE:
        return ""
    known = _meshes[(number >> 16) - 1]
    return f"{_text_of_mesh(known.mesh)} {known.specs[number & 0xFFFF]}"


def spec_text(number: int) -> str:
    """A place as users know it: `P('data')`, "on each device" or "on one device"."""
    if number == ONE_DEVICE:
        return "on one device"
    spec = _meshes[(number >> 16) - 1].specs[number & 0xFFFF]
    return f"P({', '.join(map(repr, spec))})" if spec else "on each device"


def num_bytes(number: int, shape: Sequence[int], element_size: int) -> int:
    """How many bytes of a tensor each device has that has any."""
    dims = shape if number == ONE_DEVICE else sharding_of(number).shard_shape(tuple(shape))
    return math.prod(dims) * element_size


def different_texts(number: int, other: int) -> tuple[str, str]:
    """Two places, with their meshes if they differ in these alone."""
    texts = spec_text(number), spec_text(other)
    return texts if texts[0] != texts[1] else (text_of(number), text_of(other))


@functools.lru_cache(maxsize=16)
def _text_of_mesh(mesh: Mesh) -> str:
    axes = ", ".join(f"{name}: {size}" for name, size in mesh.shape.items())
    return f"({axes}) of devices {[device.id for device in mesh.devices.flat]}"


def number_of_result(sharding: Sharding, mesh: Mesh, ndim: int) -> int:
    """The number of the place of a result of a program for `mesh`."""
    if sharding.is_fully_replicated:
        return number_of(jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()), ndim)
    return number_of(sharding, ndim)
