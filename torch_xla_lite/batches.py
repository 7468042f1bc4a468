"""Batches that are spread over a mesh: each process gives the rows that it has read.

x = torch_xla_lite.from_process_local(rows, "data")
for x, y in torch_xla_lite.shard_loader(loader, "data"):
    ...
"""

from collections.abc import Iterator
from typing import Any

import jax
import torch
from torch.utils import _pytree as pytree

from . import _XLAC, placements, sharding


def from_process_local(tensor: torch.Tensor, *spec: Any) -> torch.Tensor:
    """A tensor of which each process has a part.

    Args:
      tensor: this process's rows, of equal shape in all processes; on the CPU.
      spec: how the whole tensor is divided, as in `shard`; by default the first dimension, along
        all axes of the mesh.

    Returns:
      The whole tensor, on `'jax'`. With one process it is `shard(tensor, *spec)`.

    Example, of 4 processes that read 8 rows each:
      >>> torch_xla_lite.from_process_local(torch.randn(8, 16), "data").shape
      torch.Size([32, 16])
    """
    spec = spec or (tuple(placements.mesh().axis_names),)
    if jax.process_count() == 1:
        return sharding.shard(tensor, *spec)
    number = sharding.number_of_spec(spec, tensor.dim())
    with jax.enable_x64(True):
        array = jax.make_array_from_process_local_data(
            placements.sharding_of(number), tensor.detach().cpu().contiguous().numpy().copy()
        )
    return _XLAC.from_jax(array, number)


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

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        def spread(value: Any) -> Any:
            is_batch = isinstance(value, torch.Tensor) and value.dim() > 0
            return from_process_local(value, *self.spec) if is_batch else value

        for batch in self.loader:
            yield pytree.tree_map(spread, batch)
