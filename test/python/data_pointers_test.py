"""No op of torch fails on jax because it asks for a tensor's memory, which is not there."""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from test.python import tiers

# They end the process, on each device, if a tensor is left out or has a shape that does not fit.
UNCHECKED = re.compile("aten::(_thnn_differentiable_(gru|lstm)_cell_backward|_sobol_engine_.*)")

SHAPES = [(2, 3), (3,), (), (2, 3, 4, 4), (4, 4), (2, 3, 4)]
DTYPES = [torch.float32, torch.int64, torch.bool, torch.uint8, torch.int32, torch.float16]
DAILY = [((2, 3), torch.float32), ((3,), torch.int64)]


_interprets = tiers.autouse(tiers.as_by_default)


def is_unrecorded(schema: torch.FunctionSchema) -> bool:
    """Whether torch's own kernel serves the op on each device, and takes a tensor."""
    name = f"{schema.name}.{schema.overload_name}".rstrip(".")
    if not name.startswith("aten::") or UNCHECKED.fullmatch(schema.name):
        return False
    try:
        is_composite = torch._C._dispatch_has_kernel_for_dispatch_key(
            name, "CompositeImplicitAutograd"
        )
    except RuntimeError:  # An op of TorchScript only.
        return False
    return is_composite and any("Tensor" in str(a.real_type) for a in schema.arguments)


def values(
    schema: torch.FunctionSchema, shape: tuple[int, ...], dtype: torch.dtype
) -> Iterator[tuple[str, Any]]:
    """A value for each argument without a default. Most ops take them for some shape and dtype."""

    def ones() -> torch.Tensor:
        return torch.ones(shape, dtype=dtype, device="jax")

    by_type = {
        "List[Tensor]": [ones(), ones()],
        "List[Optional[Tensor]]": [ones()],
        "List[int]": [1] * max(len(shape), 1),
        "List[float]": [1.0, 1.0],
        "List[bool]": [True, True],
        "int": 1,
        "number": 1,
        "float": 0.5,
        "bool": False,
        "str": "mean",
        "Device": torch.device("jax"),
    }
    for argument in schema.arguments:
        if argument.has_default_value():
            continue
        kind = str(argument.real_type)
        is_tensor = kind in ("Tensor", "Optional[Tensor]")
        yield argument.name, ones() if is_tensor else by_type.get(kind)


def misses_memory(schema: torch.FunctionSchema, shape: tuple[int, ...], dtype: torch.dtype) -> bool:
    packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"))
    op = getattr(packet, schema.overload_name or "default")
    keywords = {argument.name for argument in schema.arguments if argument.kwarg_only}
    arguments = dict(values(schema, shape, dtype))
    try:
        result = op(
            *[value for name, value in arguments.items() if name not in keywords],
            **{name: value for name, value in arguments.items() if name in keywords},
        )
        for x in tree_leaves(result):
            if isinstance(x, torch.Tensor):
                x.cpu()
    except Exception as error:
        return "data pointer" in str(error)
    return False


SCHEMAS = {str(s): s for s in torch._C._jit_get_all_schemas() if is_unrecorded(s)}


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        pytest.param(*pair, marks=() if pair in DAILY else pytest.mark.nightly)
        for pair in itertools.product(SHAPES, DTYPES)
    ],
    ids=str,
)
def test_no_op_misses_memory(shape: tuple[int, ...], dtype: torch.dtype):
    assert len(SCHEMAS) > 700
    assert [name for name, s in SCHEMAS.items() if misses_memory(s, shape, dtype)] == []


def state(device: str) -> torch.Tensor:
    """The state of an engine of two dimensions."""
    zeros = torch.zeros(2, 30, dtype=torch.int64, device=device)
    return torch._sobol_engine_initialize_state_(zeros, 2)


def draw(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    start = torch.zeros(2, dtype=torch.int64, device=device)
    return torch._sobol_engine_draw(start, 3, state(device), 2, 0, dtype=torch.float32)


def shift(device: str) -> torch.Tensor:
    start = torch.zeros(2, dtype=torch.int64, device=device)
    return torch._sobol_engine_ff_(start, 5, state(device), 2, 0)


def scramble(device: str) -> torch.Tensor:
    matrices = torch.eye(30, dtype=torch.int64, device=device).expand(2, 30, 30).clone()
    return torch._sobol_engine_scramble_(state(device), matrices, 2)


CALLS: dict[str, Callable[[str], Any]] = {
    "choose_qparams_optimized": lambda device: torch.choose_qparams_optimized(
        torch.linspace(-1, 2, 20).to(device), 20, 200, 0.16, 8
    ),
    "_saturate_weight_to_fp16": lambda device: torch._saturate_weight_to_fp16(
        torch.tensor([[1e6, -1e6, 2.0]]).to(device)
    ),
    "_sobol_engine_draw": draw,
    "_sobol_engine_ff_": shift,
    "_sobol_engine_scramble_": scramble,
}


@pytest.mark.parametrize("name", CALLS)
def test_ops_that_read_memory_run_on_the_cpu(name: str):
    found, expected = (tree_leaves(CALLS[name](device)) for device in ("jax", "cpu"))
    assert all(x.device.type == "jax" for x in found)
    assert [x.tolist() for x in found] == [x.tolist() for x in expected]


@pytest.mark.parametrize("name", ["fbgemm_pack_gemm_matrix_fp16", "fbgemm_linear_quantize_weight"])
def test_weights_of_quantized_modules_are_refused(name: str):
    with pytest.raises(NotImplementedError, match="no quantized tensors"):
        getattr(torch, name)(torch.ones(2, 3, device="jax"))
