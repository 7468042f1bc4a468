"""Calls that the CPU may refuse: the device gives the CPU's result, or its error at the call.

check(lambda x: x.sort(2), torch.ones(2))
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_map_only

import torch_xla_lite  # noqa: F401


def check(call: Callable[..., Any], *operands: Any, when_read: bool = False) -> None:
    """Compares type and first line of an error, if need be when the result is read."""
    ours = tree_map_only(torch.Tensor, torch.Tensor.jax, operands)
    theirs = tree_map_only(torch.Tensor, torch.Tensor.clone, operands)
    try:
        wanted = call(*theirs)
    except (RuntimeError, IndexError) as error:
        line = str(error).partition("\n")[0].partition(", but got")[0]
        with pytest.raises(type(error), match=re.escape(line)):
            found = call(*ours)
            if when_read:
                found.tolist()
    else:
        torch.testing.assert_close(call(*ours).cpu(), wanted, rtol=0, atol=0, equal_nan=True)
