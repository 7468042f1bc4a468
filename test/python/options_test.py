"""Where a call says that its result is to be: honoured or refused, for each op of torch."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import torch_xla_lite  # noqa: F401  device jax

# Values of arguments by name, else by type, for most ops: whatever the CPU takes is called on jax.
VALUES = {
    "low": 0,
    "physical_layout": [1, 0],
    "stride": [3, 1],
    "generator": None,
    "dtype": torch.float32,
    "List[int]": [2, 3],
    "int": 3,
    "number": 1,
    "float": 1.0,
    "bool": False,
}


def _schemas(*options: str) -> list[torch.FunctionSchema]:
    """Those with these arguments."""
    return [
        schema
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::")
        and schema.name != "aten::_make_dep_token"
        and {*options} <= {argument.name for argument in schema.arguments}
    ]


def _value(argument: torch.Argument, home: str, sizes: list[int]) -> object:
    kind = str(argument.real_type)
    if argument.name in VALUES or kind not in ("Tensor", "List[Tensor]"):
        return sizes if argument.name == "size" else VALUES.get(argument.name, VALUES.get(kind))
    if argument.name == "high":  # torch reads it.
        return torch.tensor(3)
    tensor = torch.ones([] if argument.name in ("start", "end") else sizes, device=home)
    return [tensor] if kind == "List[Tensor]" else tensor


def _op(schema: torch.FunctionSchema) -> torch._ops.OpOverload:
    packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"))
    return getattr(packet, schema.overload_name or "default")


def _call(
    schema: torch.FunctionSchema, home: str, sizes: tuple[int, ...] = (2, 3), **options: object
) -> Any:
    """Tensors among the arguments are on device `home`; other arguments have their defaults."""
    arguments = {
        argument.name: _value(argument, home, [*sizes])
        for argument in schema.arguments
        if not argument.has_default_value() and argument.name not in options
    }
    positional = [
        arguments.pop(a.name) for a in schema.arguments if not a.kwarg_only and a.name in arguments
    ]
    return _op(schema)(*positional, **arguments, **options)


def _result(schema: torch.FunctionSchema, **options: Any) -> torch.Tensor | None:
    """Of the CPU; None if its kernel takes other arguments."""
    try:
        result = _call(schema, "cpu", **options)
    except (RuntimeError, TypeError, NotImplementedError, IndexError):
        return None
    result = result[0] if isinstance(result, list) else result
    is_dense = isinstance(result, torch.Tensor) and result.layout == torch.strided
    is_known = is_dense and not result.is_quantized and result.dtype != torch.complex32
    return result if is_known else None


CALLS = [
    schema
    for schema in _schemas("layout", "device", "pin_memory")
    if not schema.is_mutable
    and all(_result(schema, device=device) is not None for device in ("cpu", "meta"))
]
IMAGES = {"sizes": (2, 3, 4, 5), "memory_format": torch.channels_last}
FORMATTED = [s for s in _schemas("memory_format") if _result(s, **IMAGES) is not None]


def _name(schema: torch.FunctionSchema) -> str:
    return f"{schema.name.removeprefix('aten::')}.{schema.overload_name}".rstrip(".")


def test_most_schemas_are_called():
    assert len(CALLS) >= 60
    assert len(FORMATTED) >= 20
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


# Not torch.jagged, which torch takes for torch.strided here on each device.
COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
LAYOUTS = (torch.sparse_coo, *COMPRESSED, torch._mkldnn)


@pytest.mark.few_daily(72)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("schema", CALLS, ids=_name)
def test_other_layouts_are_refused(schema: torch.FunctionSchema, layout: torch.layout):
    with pytest.raises((NotImplementedError, RuntimeError)):
        _call(schema, "jax", device="jax", layout=layout)


def _to_sparse(dense: torch.Tensor, layout: torch.layout) -> torch.Tensor:
    blocks = (1, 1) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return dense.to_sparse(layout=layout, blocksize=blocks)


def _parts(sparse: torch.Tensor) -> tuple[torch.Tensor, ...]:
    if sparse.layout == torch.sparse_coo:
        return sparse.coalesce().indices(), sparse.coalesce().values()
    if sparse.layout in (torch.sparse_csr, torch.sparse_bsr):
        return sparse.crow_indices(), sparse.col_indices(), sparse.values()
    return sparse.ccol_indices(), sparse.row_indices(), sparse.values()


SPARSE_CALLS = {
    "to": lambda sparse: sparse.to("jax"),
    "new_zeros": lambda sparse: sparse.new_zeros((2, 2), device="jax"),
    "layout of zeros_like": lambda sparse: torch.zeros_like(
        torch.ones(2, 2, device="jax"), layout=sparse.layout
    ),
    "to_sparse": lambda sparse: _to_sparse(torch.eye(2, device="jax"), sparse.layout),
    "parts": lambda sparse: _of_parts(sparse)(*_parts(sparse), (2, 2), device="jax"),
    "parts on jax": lambda sparse: _of_parts(sparse)(*(x.jax() for x in _parts(sparse))),
}


def _of_parts(sparse: torch.Tensor) -> Callable[..., torch.Tensor]:
    return getattr(torch, f"{str(sparse.layout).removeprefix('torch.')}_tensor")


@pytest.mark.parametrize("layout", (torch.sparse_coo, *COMPRESSED), ids=str)
@pytest.mark.parametrize("make", SPARSE_CALLS.values(), ids=SPARSE_CALLS.keys())
def test_sparse_tensors_are_refused(make: Callable[..., object], layout: torch.layout):
    with pytest.raises(NotImplementedError, match="device jax has dense tensors only"):
        make(_to_sparse(torch.eye(2), layout))


def test_a_sparse_tensor_of_zeros_and_one_of_mkldnn_are_refused():
    with pytest.raises(NotImplementedError, match="device jax has dense tensors only"):
        torch.ops.aten.sparse_coo_tensor.size((2, 3), device="jax")
    with pytest.raises(NotImplementedError, match="device jax has dense tensors only"):
        torch.eye(3, device="jax").to_mkldnn()


# aten::to has nothing to copy.
@pytest.mark.parametrize("schema", [s for s in CALLS if s.name != "aten::to"], ids=_name)
def test_pinned_memory_is_refused(schema: torch.FunctionSchema):
    with pytest.raises(RuntimeError, match="pin"):
        _call(schema, "jax", device="jax", pin_memory=True)


@pytest.mark.parametrize("schema", FORMATTED, ids=_name)
def test_the_memory_format_is_honoured(schema: torch.FunctionSchema):
    result = _call(schema, "jax", **IMAGES)
    result = result[0] if isinstance(result, list) else result
    assert result.stride() == _result(schema, **IMAGES).stride()


@pytest.mark.parametrize("schema", [s for s in CALLS if s in FORMATTED], ids=_name)
def test_the_memory_format_is_honoured_elsewhere(schema: torch.FunctionSchema):
    for device in ("cpu", "jax"):
        result = _call(schema, "jax", device=device, **IMAGES)
        assert result.is_contiguous(memory_format=torch.channels_last)


def test_a_module_becomes_empty_elsewhere():
    module = torch.nn.Linear(3, 2).to("jax").to_empty(device="meta")
    assert module.weight.is_meta


def test_a_copy_to_another_layout_is_refused():
    with pytest.raises(RuntimeError, match="layout"):
        torch.ops.aten._to_copy(torch.ones(2, device="jax"), layout=torch.sparse_coo)
