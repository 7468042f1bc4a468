"""The same values, divided among the devices of a mesh in a given way."""

import json

import jax
from jax.sharding import NamedSharding, PartitionSpec

from torch_xla_lite.lowering.base import mesh
from torch_xla_lite.lowering.base.registry import lower


@lower("torch_xla_lite::constrain")
def constrain(self: jax.Array, spec: str) -> jax.Array:
    """spec: of placements.py, `constraint`: for each dimension null, an axis of the mesh, or a list
    of axes; at the end perhaps "...", for dimensions that XLA places."""
    _, axes_of_dims = json.loads(spec)
    entries = [tuple(axes) if isinstance(axes, list) else axes for axes in axes_of_dims]
    if entries[-1:] == ["..."]:
        entries[-1:] = [PartitionSpec.UNCONSTRAINED] * (self.ndim - len(entries) + 1)
    place = NamedSharding(mesh.current(), PartitionSpec(*entries))
    return jax.lax.with_sharding_constraint(self, place)
