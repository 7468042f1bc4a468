"""Averages of weights (torch.optim.swa_utils) that have integers among them.

    average = AveragedModel(model, use_buffers=True)     # of batch norms, which count their steps
    average.update_parameters(model)

torch divides lists of integers by an operation that refuses them. On the CPU it takes no lists.
"""

import functools
from collections.abc import Callable, Sequence

from torch import Tensor
from torch.optim import swa_utils

from ..startup.patches import Patch

Update = Callable[[Sequence[Tensor], Sequence[Tensor], Tensor | int], None]


def _one_by_one(make: Callable[[], Update]) -> Callable[[], Update]:
    @functools.wraps(make)
    def make_update() -> Update:
        of_lists, mean = make(), swa_utils.get_swa_avg_fn()

        def update(averages: Sequence[Tensor], new: Sequence[Tensor], count: Tensor | int) -> None:
            first = averages[0]
            if not first.is_jax or first.is_floating_point() or first.is_complex():
                of_lists(averages, new, count)
                return
            for average, value in zip(averages, new, strict=True):
                average.copy_(mean(average, value, count))

        return update

    return make_update


PATCHES = (
    Patch(
        "torch.optim.swa_utils",
        "get_swa_multi_avg_fn",
        "averages lists of integers by an operation that refuses them",
        _one_by_one,
    ),
)
