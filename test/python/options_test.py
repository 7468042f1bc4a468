"""Where a call says that its result is to be: honoured or refused, for each op of torch."""

import pytest
import torch

import torch_xla_lite  # noqa: F401  device jax

# The values for arguments of a type, for most ops: whatever the CPU takes is called on jax.
VALUES = {
    "List[int]": [2, 3],
    "int": 3,
    "number": 1,
    "float": 1.0,
    "bool": False,
}


def _schemas() -> list[torch.FunctionSchema]:
    """Those with the arguments layout, device, and pin_memory."""
    options = {"layout", "device", "pin_memory"}
    return [
        schema
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::")
        and schema.name != "aten::_make_dep_token"
        and options <= {argument.name for argument in schema.arguments}
    ]


def _arguments(schema: torch.FunctionSchema, home: str) -> list[object]:
    """The arguments without defaults; tensors are on device `home`."""
    arguments: list[object] = []
    for argument in schema.arguments:
        if argument.has_default_value() or argument.kwarg_only:
            break
        kind = str(argument.real_type)
        if kind == "Tensor":
            is_scalar = argument.name in ("start", "end")
            arguments.append(torch.ones([] if is_scalar else [2, 3], device=home))
        else:
            arguments.append([3, 1] if argument.name == "stride" else VALUES.get(kind))
    return arguments


def _op(schema: torch.FunctionSchema) -> torch._ops.OpOverload:
    packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"))
    return getattr(packet, schema.overload_name or "default")


def _call(schema: torch.FunctionSchema, home: str, **options: object) -> torch.Tensor:
    for argument in schema.arguments:
        if argument.name == "dtype" and not argument.has_default_value():
            options["dtype"] = torch.float32
    return _op(schema)(*_arguments(schema, home), **options)


def _works(schema: torch.FunctionSchema, **options: object) -> bool:
    try:
        return isinstance(_call(schema, "cpu", **options), torch.Tensor)
    except (RuntimeError, TypeError, NotImplementedError, IndexError):
        return False


CALLS = [s for s in _schemas() if _works(s, device="cpu") and _works(s, device="meta")]


def _name(schema: torch.FunctionSchema) -> str:
    return f"{schema.name.removeprefix('aten::')}.{schema.overload_name}".rstrip(".")


def test_most_schemas_are_called():
    assert len(CALLS) >= 45
    names = {_name(schema) for schema in CALLS}
    assert {"zeros_like", "new_empty", "new_empty_strided", "linspace.Tensor_Tensor"} <= names


@pytest.mark.parametrize("schema", CALLS, ids=_name)
def test_the_device_is_honoured(schema: torch.FunctionSchema):
    for device in ("cpu", "meta", "jax"):
        result = _call(schema, "jax", device=device)
        assert result.device.type == device
        expected = _call(schema, "cpu", device="meta")
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    with pytest.raises((NotImplementedError, RuntimeError)):
        _call(schema, "jax", device="xla")


@pytest.mark.parametrize("schema", CALLS, ids=_name)
def test_other_layouts_are_refused(schema: torch.FunctionSchema):
    with pytest.raises((NotImplementedError, RuntimeError)):
        _call(schema, "jax", device="jax", layout=torch.sparse_coo)


# aten::to has nothing to copy.
@pytest.mark.parametrize("schema", [s for s in CALLS if s.name != "aten::to"], ids=_name)
def test_pinned_memory_is_refused(schema: torch.FunctionSchema):
    with pytest.raises(RuntimeError, match="pin"):
        _call(schema, "jax", device="jax", pin_memory=True)


def _has_memory_format(schema: torch.FunctionSchema) -> bool:
    return any(argument.name == "memory_format" for argument in schema.arguments)


@pytest.mark.parametrize("schema", filter(_has_memory_format, CALLS), ids=_name)
def test_the_memory_format_is_honoured(schema: torch.FunctionSchema):
    for device in ("cpu", "jax"):
        arguments = [
            torch.ones(2, 3, 4, 5, device="jax") if isinstance(value, torch.Tensor) else value
            for value in _arguments(schema, "jax")
        ]
        if not isinstance(arguments[0], torch.Tensor):
            arguments[0] = [2, 3, 4, 5]
        result = _op(schema)(*arguments, device=device, memory_format=torch.channels_last)
        assert result.is_contiguous(memory_format=torch.channels_last)


def test_a_module_becomes_empty_elsewhere():
    module = torch.nn.Linear(3, 2).to("jax").to_empty(device="meta")
    assert module.weight.is_meta


def test_a_copy_to_another_layout_is_refused():
    with pytest.raises(RuntimeError, match="layout"):
        torch.ops.aten._to_copy(torch.ones(2, device="jax"), layout=torch.sparse_coo)
