"""Runs one op on the device, compiled by its lowering, and compares it with torch on the CPU.

    check(torch.ops.aten.add.Tensor, torch.ones(2), 2.5)

The arguments are those of the op, on the CPU.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_map_only

from bazel.pytest_plugin import require
from torch_xla_lite import _XLAC, debug

Op: TypeAlias = torch._ops.OpOverload | torch._ops.OpOverloadPacket


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [item for part in result for item in flat(part)]
    return [result if result is None or isinstance(result, torch.Tensor) else torch.tensor(result)]


def run(op: Op, *args: Any, key: int = 0, **kwargs: Any) -> list[torch.Tensor | None]:
    """The results of a graph that is traced for this call, and calls no kernel of an op."""
    op = op.default if isinstance(op, torch._ops.OpOverloadPacket) else op
    if "device" in [argument.name for argument in op._schema.arguments]:
        kwargs["device"] = "jax"
    _XLAC.clear_cache()
    torch.manual_seed(key)
    args, kwargs = tree_map_only(torch.Tensor, torch.Tensor.jax, (args, kwargs))
    fallbacks = debug.metrics()["fallbacks"]
    results = [None if x is None else x.cpu() for x in flat(op(*args, **kwargs))]
    assert debug.metrics()["fallbacks"] == fallbacks
    return results


def check(
    op: Op,
    *args: Any,
    rtol: float | None = None,
    atol: float | None = None,
    compare: Sequence[int] | None = None,
    **kwargs: Any,
) -> None:
    """Asserts that the lowering of `op` gives what torch gives; `compare` names the outputs that
    are defined.
    """
    if rtol is not None and rtol <= 1e-6:
        require("rounding")  # Closer than torch's own tolerance.
    op = op.default if isinstance(op, torch._ops.OpOverloadPacket) else op
    expected = flat(op(*args, **kwargs))
    for i, (got, want) in enumerate(zip(run(op, *args, **kwargs), expected, strict=True)):
        if want is None or (compare is not None and i not in compare):
            continue
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True)
