"""Batches that are spread over a mesh: each process gives the rows that it has read.

x = torch_xla_lite.from_process_local(rows, "data")
for x, y in torch_xla_lite.shard_loader(loader, "data"):
    ...
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from torch_xla_lite.startup.late_jax import jax

from .. import _XLAC
from ..lowering.base import decomposition
from . import sharding
from .base import placements

if TYPE_CHECKING:
    from jax.sharding import NamedSharding


def from_process_local(tensor: torch.Tensor, *spec: Any) -> torch.Tensor:
    """A tensor of which each process has a part.

    Args:
      tensor: this process's rows, other ones than those of all other processes, and as many;
        on the CPU. They are divided among its devices.
      spec: how the whole tensor is divided, as in `shard`; by default the first dimension, along
        the `batch` of `set_mesh`, or all axes of the mesh.

    Raises:
      ValueError: the devices cannot share the rows evenly.

    Returns:
      The whole tensor, on `'jax'`. With one process it is `shard(tensor, *spec)`.

    Example, of 4 processes that read 8 rows each:
      >>> torch_xla_lite.from_process_local(torch.randn(8, 16), "data").shape
      torch.Size([32, 16])
    """
    spec = spec or (sharding.batch_axes(),)
    if jax.process_count() == 1:
        return sharding.shard(tensor, *spec)
    number = sharding.number_of_spec(spec, tensor.dim())
    place = placements.sharding_of(number)
    mesh = placements.mesh()
    # Where processes share rows, as those of tensor parallelism do, each has its own at first.
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(mesh.axis_names))
    is_shared = _processes_share_rows(place)
    whole = (jax.process_count() * tensor.shape[0], *tensor.shape[1:])
    sharding.check_spec(whole, (tuple(mesh.axis_names),) if is_shared else spec)
    rows = decomposition.as_numpy(tensor.cpu()).copy()
    with jax.enable_x64(True):
        array = jax.make_array_from_process_local_data(spread if is_shared else place, rows)
        array = placements.mover(place)(array) if is_shared else array
    return _XLAC.from_jax(array, number)


@functools.lru_cache(maxsize=256)
def _processes_share_rows(place: NamedSharding) -> bool:
    axes = place.spec[0] if place.spec else None
    size = place.mesh.devices.size
    rows_of: dict[int, set[int]] = {}
    indices = jax.sharding.NamedSharding(
        place.mesh, jax.sharding.PartitionSpec(axes)
    ).devices_indices_map((size,))
    for device, (rows,) in indices.items():
        rows_of.setdefault(device.process_index, set()).update(range(*rows.indices(size)))
    return sum(map(len, rows_of.values())) > size


class shard_loader:
    """A loader whose batches are spread over the mesh: what each process reads are its rows.

    Args:
      loader: gives batches: tensors, or tuples, lists and dicts that contain them.
      spec: see `from_process_local`.

    Example:
      >>> sampler = DistributedSampler(data, jax.process_count(), jax.process_index())
      >>> for x, y in torch_xla_lite.shard_loader(DataLoader(data, 32, sampler=sampler), "data"):
    """

    def __init__(self, loader: Any, *spec: Any) -> None:
        self.loader = loader
        self.spec = spec

    def __getattr__(self, name: str) -> Any:
        if name == "loader":  # Not there yet, in a copy.
            raise AttributeError(name)
        return getattr(self.loader, name)

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        def spread(value: Any) -> Any:
            is_batch = isinstance(value, torch.Tensor) and value.dim() > 0
            return from_process_local(value, *self.spec) if is_batch else value

        for batch in self.loader:
            yield pytree.tree_map(spread, batch)
