"""ATen kernels inside XLA programs give what torch gives, for every type of argument and output."""

import os
import struct
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch
from torch.utils._pytree import tree_map_only

from torch_xla_lite import _XLAC, debug
from torch_xla_lite.lowering.base import decomposition, registry
from torch_xla_lite.lowering.base.ffi import call_infallible, lower_by_ffi
from torch_xla_lite.lowering.base.tags import WRAPPED_NUMBER, Tag

pytestmark = pytest.mark.needs("kernels")
aten = torch.ops.aten


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Compares all results of an op on the CPU and of its kernel in a program of XLA."""
    monkeypatch.setattr(registry, "find", lambda name: None)
    monkeypatch.setattr(decomposition, "decompose", lambda *call: None)

    def compare(op: Any, *args: Any, **kwargs: Any) -> None:
        _XLAC.clear_cache()
        debug.reset_metrics()
        moved = tree_map_only(torch.Tensor, torch.Tensor.jax, args)
        found, wanted = op(*moved, **kwargs), op(*args, **kwargs)
        found = tree_map_only(torch.Tensor, torch.Tensor.cpu, found)
        torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)
        assert debug.metrics()["fallbacks"]

    return compare


def struct_of(*shape: int, dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.dtype(dtype))


def bits(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=dtype, generator=generator)


@pytest.mark.few_daily(4)
@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.complex64, torch.complex128),
    ],
)
def test_each_dtype_keeps_its_values(check, dtype):
    check(aten.flip, torch.tensor([[0, 1], [2, 3]]).to(dtype), [0, 1])


CALLS = {
    "cholesky": (aten.linalg_cholesky_ex, random(4, 4) @ random(4, 4).T + 8 * torch.eye(4)),
    "svd": (aten._linalg_svd, random(5, 3), False, True),
    "qr": (aten.linalg_qr, random(5, 3)),
    "eig": (aten.linalg_eig, random(4, 4)),
    "lu": (aten.linalg_lu_factor_ex, random(3, 4, 4)),
    "fft": (aten._fft_r2c, random(8), [0], 0, True),
    "fft of complex numbers": (aten._fft_c2c, random(4, 8, dtype=torch.complex64), [1], 0, True),
    "topk": (aten.topk, random(3, 7), 2),
    "cumsum": (aten.cumsum, random(3, 4), 1),
    "huber_loss": (aten.huber_loss, random(3, 4), random(3, 4), 1, 0.5),
    "grid_sampler": (aten.grid_sampler_2d, random(1, 2, 4, 4), random(1, 3, 3, 2), 0, 0, False),
    "histc": (aten.histc, random(20), 5),
    "col2im": (aten.col2im, random(1, 8, 4), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1]),
    "lists": (aten._foreach_add.List, [random(2), random(3, 3)], [random(2), random(3, 3)]),
    "a list of scalars": (aten._foreach_mul.ScalarList, [random(2), random(3)], [2.5, 3]),
    "missing tensors": (aten.index.Tensor, random(3, 4, 5), [None, torch.tensor([1, 0])]),
    "a complex number": (aten.add.Scalar, random(3, dtype=torch.complex64), 2 + 1j),
    "no elements": (aten.flip, torch.empty(0, 3), [0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_kernels_of_every_kind_give_what_torch_gives(check, name):
    check(*CALLS[name])


def test_options_of_every_kind(check):
    check(aten.div.Tensor_mode, random(5), random(5), rounding_mode="floor")
    check(aten.sum.dim_IntList, random(3, 4), [1], dtype=torch.float64)


def test_outputs_that_torch_leaves_undefined(check):
    gradient, value = random(2, 3, 4, 4), random(2, 3, 4, 4)
    mean, invstd = value.mean((0, 2, 3)), value.var((0, 2, 3)).rsqrt()
    operands = (gradient, value, None, None, None, mean, invstd, True, 1e-5, [True, False, False])
    check(aten.native_batch_norm_backward, *operands)


def run(op: str, words: list[int], operands: list[Any], *outs: jax.ShapeDtypeStruct) -> list[Any]:
    with jax.enable_x64(True):
        program = jax.jit(lambda operands: lower_by_ffi(op, words, operands, [], outs))
        return jax.block_until_ready(program(operands))


def test_running_statistics_of_the_caller_stay_as_they_are():
    value, mean, var = jnp.ones((2, 3, 4, 4)), jnp.zeros(3), jnp.ones(3)
    words = [Tag.TENSOR, Tag.NONE, Tag.NONE, Tag.TENSOR, Tag.TENSOR, Tag.BOOL.head(True)]
    words += [Tag.DOUBLE, bits(0.1), Tag.DOUBLE, bits(1e-5)]
    outs = (struct_of(2, 3, 4, 4), struct_of(3), struct_of(3))
    run("aten::native_batch_norm", words, [value, mean, var], *outs)
    assert (mean.tolist(), var.tolist()) == ([0, 0, 0], [1, 1, 1])


def test_a_runtime_scalar_is_not_part_of_the_program():
    words = [Tag.TENSOR, Tag.SCALAR.head(7), Tag.SCALAR.head(7)]
    out = jax.ShapeDtypeStruct((3,), np.float32)
    with jax.enable_x64(True):
        program = jax.jit(
            lambda x, low, high: lower_by_ffi("aten::clamp", words, [x], [low, high], [out])[0]
        )
        values = np.array([-5, 0, 5], np.float32)
        assert program(values, 1.0, 2.0).tolist() == [1, 1, 2]
        assert program(values, -1.0, 1.0).tolist() == [-1, 0, 1]
        assert program._cache_size() == 1


def test_a_wrapped_number_promotes_like_a_python_number():
    words = [Tag.TENSOR, Tag.SCALAR.head(7 | WRAPPED_NUMBER)]
    out = jax.ShapeDtypeStruct((2,), np.float32)
    with jax.enable_x64(True):
        values = np.array([1, 2], np.float32)
        program = jax.jit(lambda x, y: lower_by_ffi("aten::mul.Tensor", words, [x], [y], [out])[0])
        assert program(values, 1.5).tolist() == [1.5, 3]


def test_autocast_and_inference_mode_of_the_caller_do_not_reach_the_kernel():
    x, y = random(2, 2), random(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
        words = [Tag.TENSOR, Tag.TENSOR]
        (result,) = run("aten::mm", words, [x.numpy(), y.numpy()], struct_of(2, 2))
    assert np.array_equal(result, x @ y)


INT4 = np.zeros(2, ml_dtypes.int4)
REFUSED = {
    "not positive-definite": ("linalg_cholesky", [Tag.TENSOR, Tag.BOOL.head(False)], (2, 2)),
    "aten::bernoulli draws random numbers": ("bernoulli", [Tag.TENSOR, Tag.NONE], (2, 2)),
    "torch has no op aten::no_such_op": ("no_such_op", [], (2, 2)),
    r"Malformed words .*aten::exp": ("exp", [Tag.STRING], (2, 2)),
    # Another shape than the graph was told.
    "aten::nonzero": ("nonzero", [Tag.TENSOR], (3, 2)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_an_error_names_the_op(message: str):
    op, words, shape = REFUSED[message]
    operands = [np.zeros((2, 2), np.float32)] if words else []
    with pytest.raises(Exception, match=message):
        run(f"aten::{op}", words, operands, struct_of(*shape))


def test_an_element_type_that_torch_has_not_is_refused():
    with pytest.raises(Exception, match="has no torch dtype"):
        run("aten::neg", [Tag.TENSOR], [INT4], struct_of(2, dtype=ml_dtypes.int4))


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@torch.library.custom_op("ffi_test::num_threads", mutates_args=(), device_types="cpu")
def num_threads(x: torch.Tensor) -> torch.Tensor:
    return torch.full_like(x, torch.get_num_threads())


@pytest.mark.parametrize(("work_per_byte", "threads"), [(1, 1), (1 << 20, 3)])
def test_a_kernel_with_much_work_for_each_byte_may_use_several_threads(
    three_threads, work_per_byte, threads
):
    x = np.zeros(2, np.float32)
    with jax.enable_x64(True):
        program = jax.jit(
            lambda x: call_infallible(
                "ffi_test::num_threads",
                [x],
                [jax.ShapeDtypeStruct(x.shape, x.dtype)],
                work_per_byte=work_per_byte,
            )
        )
        assert program(x)[0].tolist() == [threads] * 2


@torch.library.custom_op("ffi_test::rows", mutates_args=(), device_types="cpu")
def rows_of_threads(x: torch.Tensor, whole: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    facts = torch.tensor([float(len(x)), torch.get_num_threads()]).expand(len(x), 2)
    return torch.cat([x * whole.sum(), facts], 1), x.sum(0)


@pytest.mark.parametrize(
    ("rows", "work_per_byte", "batched", "sizes"),
    [
        (5, 1 << 20, "1010", [3, 3, 3, 2, 2]),
        (5, 1, "1010", [5] * 5),  # Too little work.
        (5, 1 << 20, "", [5] * 5),
        (1, 1 << 20, "1010", [1]),  # Fewer rows than threads.
    ],
)
def test_a_batch_is_divided_among_the_threads_of_xla(rows, work_per_byte, batched, sizes):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    x, whole = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4), np.ones(3, np.float32)
    outs = [jax.ShapeDtypeStruct(shape, np.float32) for shape in [(rows, 6), (4,)]]
    try:
        with jax.enable_x64(True):
            program = jax.jit(
                lambda *given: call_infallible(
                    "ffi_test::rows", given, outs, work_per_byte=work_per_byte, batched=batched
                )
            )
            found, total = program(x, whole)
    finally:
        torch.set_num_threads(before)
    assert total.tolist() == x.sum(0).tolist()
    assert (found[:, :4] == 3 * x).all()
    if len(os.sched_getaffinity(0)) > 1:  # XLA has as many threads.
        assert found[:, 4].tolist() == sizes
        is_divided = len(set(sizes)) > 1
        assert set(found[:, 5].tolist()) <= ({1} if is_divided else {1, 2})
