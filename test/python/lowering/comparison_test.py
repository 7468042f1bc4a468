"""`comparison` makes parameters of the same numbers as the recorder."""

from typing import Any

import torch
from comparison import is_constant

from torch_xla_lite.compiler import words
from torch_xla_lite.debug.graph_view import pending
from torch_xla_lite.lowering.base import registry

_NUMBERS = (0, 1, -1, 2, 3, 4, 5, -2.5, 0.5, 7.25, True, 1j)
_VALUES = {
    "Tensor": lambda: torch.ones(2, 2, device="jax"),
    "List[Tensor]": lambda: [torch.ones(2, 2, device="jax")],
    "List[int]": lambda: [2, 2],
    "bool": lambda: False,
    "int": lambda: 1,
    "Optional[Device]": lambda: "jax",
}


def _value(argument: torch.Argument, number: complex, is_number: bool) -> Any:
    kind = str(argument.real_type)
    if is_number:
        return [number] if kind.startswith("List[") else number
    if argument.default_value is None and kind in _VALUES:
        return _VALUES[kind]()
    return argument.default_value


def _recorded(op: str, schema: torch.FunctionSchema, values: list[Any]) -> dict[str, Any]:
    """What the recorder keeps of a call; empty if torch refuses the call."""
    name, _, overload = op.removeprefix("aten::").partition(".")
    function = getattr(getattr(torch.ops.aten, name), overload or "default")
    arguments = list(zip(schema.arguments, values, strict=True))
    try:
        results = function(
            *(value for argument, value in arguments if not argument.kwarg_only),
            **{argument.name: value for argument, value in arguments if argument.kwarg_only},
        )
        steps = [step for step in pending().steps if step[0] == op]
        del results
    except (RuntimeError, NotImplementedError, IndexError):
        return {}
    return words.constants(op, steps[0][1]) if len(steps) == 1 else {}


def test_the_recorder_keeps_the_same_numbers():
    compared, different = set(), []
    for op in registry.DECLARED:
        facts = registry.find(op).facts
        schema = torch._C._get_schema(*words.split_name(op))
        numbers = {
            argument.name
            for argument in schema.arguments
            if "number" in str(argument.real_type) or argument.name in facts.runtime_floats.split()
        }
        for number in _NUMBERS if numbers else ():
            values = [_value(a, number, a.name in numbers) for a in schema.arguments]
            recorded = _recorded(op, schema, values)
            for argument in schema.arguments if recorded else ():
                kept = recorded[argument.name]
                (kept,) = kept if isinstance(kept, list) and len(kept) == 1 else (kept,)
                if argument.name in numbers:
                    compared.add(op)
                    expected = is_constant(op, argument, number)
                    if expected == str(kept).startswith("a number"):
                        different.append((op, argument.name, number))
    assert different == []
    assert len(compared) > 100
