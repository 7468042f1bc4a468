"""Runs one lowering, or else torch's decomposition, and compares it with torch on the CPU.

    check(torch.ops.aten.add.Tensor, torch.ones(2), 2.5)

The arguments are those of the op, on the CPU. Where the schema has a Tensor and the call a Python
number, the lowering gets a `WrappedNumber`, as from the recorder; scalars become runtime parameters
under the same rule as there (`is_constant`). The expected outputs, shapes and dtypes come from
torch itself, and the lowering runs inside `jax.jit`.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import torch

from bazel.pytest_plugin import require
from torch_xla_lite.lowering.base import decomposition, registry

Op: TypeAlias = torch._ops.OpOverload | torch._ops.OpOverloadPacket

# Exponents that are much cheaper than a power.
_CHEAP_POWERS = (0, 0.5, 1, 2, 3, 4)
_CODES = {dtype: code for code, dtype in registry.DTYPES.items()}


def to_jax(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(jnp.bfloat16)
    return tensor.numpy()


def to_torch(array: jax.Array) -> torch.Tensor:
    values = np.array(array)
    if values.dtype == jnp.bfloat16:
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)


def scalar_type(dtype: torch.dtype) -> int:
    return _CODES[to_jax(torch.zeros((), dtype=dtype)).dtype]


def is_constant(op: str, argument: torch.Argument, value: float | complex) -> bool:
    """Whether the recorder keeps a number in the graph, as in csrc/ops/{op_info,call}.cc;
    otherwise it is a runtime parameter. comparison_test compares the two."""
    lowering = registry.find(op)
    name, default = argument.name, argument.default_value
    if lowering is None or lowering.facts.constants:
        return True
    if name in lowering.facts.runtime_floats.split():
        default = None if name == "lr" else argument.default_value or 0
    elif "number" not in str(argument.real_type):
        return True
    elif name == "fill_value":
        default = 0
    if isinstance(value, complex):
        return False
    if value < 0 and name in ("exponent", *lowering.facts.negative.split()):
        return True
    return value == default or (name == "exponent" and value in _CHEAP_POWERS)


def run(
    op: Op, *args: Any, expected: Sequence[Any], key: int | None = None, **kwargs: Any
) -> list[torch.Tensor | None]:
    """The outputs of the lowering of `op`, of the shapes and dtypes of `expected`."""
    op = op.default if isinstance(op, torch._ops.OpOverloadPacket) else op
    name = op.name()
    entry = registry.find(name)
    leaves: list[Any] = []

    def leaf(value: Any) -> tuple[str, int]:
        leaves.append(value)
        return ("leaf", len(leaves) - 1)

    def encode(argument: torch.Argument, kind: str, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, torch.Tensor):
            return leaf(to_jax(value))
        if isinstance(value, torch.dtype):
            return scalar_type(value)
        if kind.startswith("List[") or (
            kind.startswith("Optional[List") and isinstance(value, (list, tuple))
        ):
            inner = kind[kind.index("List[") + 5 : -1]
            return [encode(argument, inner, item) for item in value]
        if kind in ("Tensor", "Optional[Tensor]"):
            return ("wrapped", leaf(np.asarray(value)))
        return value if is_constant(name, argument, value) else leaf(np.asarray(value))

    schema = op._schema
    encoded = []
    for i, argument in enumerate(schema.arguments):
        if i < len(args):
            value = args[i]
        elif argument.name in kwargs:
            value = kwargs[argument.name]
        else:
            value = argument.default_value
        encoded.append(encode(argument, str(argument.real_type), value))

    outs = [
        None
        if out is None
        else jax.ShapeDtypeStruct(tuple(out.shape), to_jax(torch.empty(0, dtype=out.dtype)).dtype)
        for out in expected
    ]

    def program(values: list[Any]) -> list[Any]:
        def decode(item: Any) -> Any:
            if isinstance(item, list):
                return [decode(inner) for inner in item]
            if isinstance(item, tuple) and item[0] == "leaf":
                return values[item[1]]
            if isinstance(item, tuple):
                return registry.WrappedNumber(decode(item[1]))
            return item

        rng = None if key is None else jax.random.key(key)
        decoded = [decode(item) for item in encoded]
        if entry is not None:
            return registry.call(name, decoded, outs, rng)
        results = decomposition.decompose(name, decoded, outs)
        assert results is not None, f"{name} has no lowering and no decomposition"
        return results

    with jax.enable_x64(True):
        results = jax.jit(program)(leaves)
        return [None if result is None else to_torch(result) for result in results]


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [item for part in result for item in flat(part)]
    if result is None or isinstance(result, torch.Tensor):
        return [result]
    return [torch.as_tensor(result)]


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
    actual = run(op, *args, expected=expected, **kwargs)
    for i, (got, want) in enumerate(zip(actual, expected, strict=True)):
        if want is None or (compare is not None and i not in compare):
            continue
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True)
