"""ATen kernels inside XLA programs give what torch gives, for every type of argument and output."""

import os
import struct
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch

from torch_xla_lite.lowering.base.ffi import call_infallible, lower_by_ffi
from torch_xla_lite.lowering.base.tags import WRAPPED_NUMBER, Tag

pytestmark = pytest.mark.needs("kernels")

NUMPY_DTYPES = {torch.bfloat16: ml_dtypes.bfloat16, torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn}


class Call:
    """One op call, written down as the recorder writes it."""

    def __init__(self, op_name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        name, _, overload = op_name.removeprefix("aten::").partition(".")
        self.op_name = op_name
        self.op = getattr(getattr(torch.ops.aten, name), overload or "default")
        self.words: list[int] = []
        self.operands: list[jax.Array] = []
        for position, argument in enumerate(self.op._schema.arguments):
            if position < len(args):
                value = args[position]
            else:
                value = kwargs.get(argument.name, argument.default_value)
            self._write(value, str(argument.type))

    def _write(self, value: Any, kind: str) -> None:
        if isinstance(value, torch.Tensor):
            self.words.append(Tag.TENSOR)
            self.operands.append(to_jax(value))
        elif value is None:
            self.words.append(Tag.NONE)
        elif isinstance(value, bool):
            self.words.append(Tag.BOOL.head(value))
        elif isinstance(value, torch.dtype):
            self.words += [Tag.INT, CODES[value]]
        elif isinstance(value, int):
            self.words += [Tag.INT, value]
        elif isinstance(value, float):
            self.words += [Tag.DOUBLE, bits(value)]
        elif isinstance(value, complex):
            self.words += [Tag.COMPLEX, bits(value.real), bits(value.imag)]
        elif isinstance(value, str):
            self.words.append(Tag.STRING.head(len(value)))
            data = value.encode()
            data += b"\0" * (-len(data) % 8)
            self.words += struct.unpack(f"<{len(data) // 8}Q", data)
        elif "List[int]" in kind:
            self.words += [Tag.INT_LIST.head(len(value)), *value]
        elif "List[float]" in kind:
            self.words += [Tag.DOUBLE_LIST.head(len(value)), *map(bits, value)]
        elif "List[bool]" in kind:
            self.words += [Tag.BOOL_LIST.head(len(value)), *map(int, value)]
        else:
            self.words.append(Tag.LIST.head(len(value)))
            for item in value:
                self._write(item, kind)


CODES = {torch.float32: 6, torch.float64: 7, torch.int64: 4, torch.bfloat16: 15}


def bits(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def to_jax(tensor: torch.Tensor) -> jax.Array:
    if tensor.dtype in NUMPY_DTYPES:
        width = {1: torch.uint8, 2: torch.int16}[tensor.element_size()]
        return jnp.asarray(tensor.view(width).numpy().copy().view(NUMPY_DTYPES[tensor.dtype]))
    return jnp.asarray(tensor.resolve_conj().numpy().copy())


def to_torch(array: jax.Array) -> torch.Tensor:
    values = np.array(array)
    for torch_dtype, numpy_dtype in NUMPY_DTYPES.items():
        if values.dtype == numpy_dtype:
            width = {1: np.uint8, 2: np.int16}[values.itemsize]
            return torch.from_numpy(values.view(width)).view(torch_dtype)
    return torch.from_numpy(values)


def flatten(result: Any) -> list[torch.Tensor | None]:
    if isinstance(result, torch.Tensor):
        return [result]
    flat: list[torch.Tensor | None] = []
    for item in result:
        flat += [None] if item is None else flatten(item)
    return flat


def struct_of(tensor: torch.Tensor) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tensor.shape, to_jax(tensor.new_empty(0)).dtype)


def run_by_ffi(call: Call, outs: Sequence[Any], scalars: Sequence[Any] = ()) -> list[Any]:
    with jax.enable_x64(True):
        program = jax.jit(
            lambda operands, scalars: lower_by_ffi(
                call.op_name, call.words, operands, scalars, outs
            )
        )
        results = program(call.operands, [np.asarray(scalar) for scalar in scalars])
        return [None if result is None else to_torch(result) for result in results]


def check(op_name: str, *args: Any, **kwargs: Any) -> None:
    """Runs the op eagerly and in an XLA program, and compares all outputs."""
    with jax.enable_x64(True):
        call = Call(op_name, args, kwargs)
        expected = flatten(call.op(*args, **kwargs))
        outs = [None if out is None else struct_of(out) for out in expected]
    for actual, wanted in zip(run_by_ffi(call, outs), expected, strict=True):
        if wanted is None:
            assert actual is None
        else:
            torch.testing.assert_close(actual, wanted, rtol=0, atol=0, equal_nan=True)


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=dtype, generator=generator)


@pytest.mark.few_daily(4)
@pytest.mark.parametrize(
    "dtype",
    [
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.complex64,
        torch.complex128,
    ],
)
def test_each_dtype_keeps_its_values(dtype):
    check("aten::flip", torch.tensor([[0, 1], [2, 3]]).to(dtype), [0, 1])


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn])
def test_dtypes_with_few_kernels_can_be_copied(dtype):
    check("aten::view", torch.tensor([0, 1, 2, 3]).to(dtype), [2, 2])


@pytest.mark.parametrize(
    ("op_name", "args"),
    [
        ("aten::linalg_cholesky_ex", (random(4, 4) @ random(4, 4).T + 8 * torch.eye(4),)),
        ("aten::_linalg_svd", (random(5, 3), False, True)),
        ("aten::linalg_qr", (random(5, 3),)),
        ("aten::linalg_eig", (random(4, 4),)),
        ("aten::linalg_inv_ex", (random(4, 4),)),
        ("aten::linalg_lu_factor_ex", (random(3, 4, 4),)),
        ("aten::_fft_r2c", (random(8), [0], 0, True)),
        ("aten::_fft_c2c", (random(4, 8, dtype=torch.complex64), [1], 0, True)),
        ("aten::topk", (random(3, 7), 2)),
        ("aten::sort", (random(3, 7),)),
        ("aten::cumsum", (random(3, 4), 1)),
        ("aten::huber_loss", (random(3, 4), random(3, 4), 1, 0.5)),
        ("aten::grid_sampler_2d", (random(1, 2, 4, 4), random(1, 3, 3, 2), 0, 0, False)),
        ("aten::histc", (random(20), 5)),
        ("aten::bincount", (torch.tensor([1, 1, 3]),)),
        ("aten::col2im", (random(1, 8, 4), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1])),
    ],
)
def test_kernels_of_every_kind_give_what_torch_gives(op_name, args):
    check(op_name, *args)


def test_strided_results_come_back_dense():
    check("aten::t", random(3, 4))


def test_a_list_argument_and_a_list_result():
    check("aten::_foreach_add.List", [random(2), random(3, 3)], [random(2), random(3, 3)])


def test_a_list_of_scalars():
    check("aten::_foreach_mul.ScalarList", [random(2), random(3)], [2.5, 3])


def test_a_list_with_missing_tensors():
    check("aten::index.Tensor", random(3, 4, 5), [None, torch.tensor([1, 0])])


def test_split_returns_each_piece():
    check("aten::split_with_sizes", random(7, 2), [1, 4, 2])


def test_a_string_argument():
    check("aten::div.Tensor_mode", random(5), random(5), rounding_mode="floor")


def test_a_dtype_argument():
    check("aten::sum.dim_IntList", random(3, 4), [1], dtype=torch.float64)


def test_a_factory_runs_on_the_cpu():
    check("aten::tril_indices", 3, 3, dtype=torch.int64)


def test_a_complex_number_argument():
    check("aten::add.Scalar", random(3, dtype=torch.complex64), 2 + 1j)


def test_empty_tensors():
    check("aten::flip", torch.empty(0, 3), [0])


def test_outputs_that_torch_leaves_undefined():
    gradient, value = random(2, 3, 4, 4), random(2, 3, 4, 4)
    mean, invstd = value.mean((0, 2, 3)), value.var((0, 2, 3)).rsqrt()
    check(
        "aten::native_batch_norm_backward",
        *(gradient, value, None, None, None, mean, invstd, True, 1e-5, [True, False, False]),
    )


def test_running_statistics_of_the_caller_stay_as_they_are():
    value, mean, var = random(2, 3, 4, 4), torch.zeros(3), torch.ones(3)
    args = (value, None, None, mean, var, True, 0.1, 1e-5)
    with jax.enable_x64(True):
        call = Call("aten::native_batch_norm", args, {})
    run_by_ffi(call, [struct_of(out) for out in call.op(*args)])
    assert np.asarray(call.operands[1]).tolist() == [0, 0, 0]
    assert np.asarray(call.operands[2]).tolist() == [1, 1, 1]


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
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
        with jax.enable_x64(True):
            call = Call("aten::mm", (random(2, 2), random(2, 2)), {})
        (result,) = run_by_ffi(call, [jax.ShapeDtypeStruct((2, 2), np.float32)])
    assert torch.equal(result, random(2, 2) @ random(2, 2))


def test_an_error_of_the_kernel_names_the_op():
    with jax.enable_x64(True):
        call = Call("aten::linalg_cholesky", (torch.zeros(2, 2),), {})
    with pytest.raises(Exception, match=r"aten::linalg_cholesky: .*not positive-definite"):
        run_by_ffi(call, [jax.ShapeDtypeStruct((2, 2), np.float32)])


def test_a_random_op_is_refused():
    with jax.enable_x64(True):
        call = Call("aten::bernoulli", (torch.ones(2),), {})
    with pytest.raises(Exception, match="aten::bernoulli draws random numbers"):
        run_by_ffi(call, [jax.ShapeDtypeStruct((2,), np.float32)])


def test_an_unknown_op_is_refused():
    out = jax.ShapeDtypeStruct((2,), np.float32)
    with jax.enable_x64(True), pytest.raises(Exception, match="torch has no op aten::no_such_op"):
        jax.jit(lambda: lower_by_ffi("aten::no_such_op", [], [], [], [out]))()


def test_words_that_do_not_fit_the_schema_are_refused():
    out = jax.ShapeDtypeStruct((2,), np.float32)
    with jax.enable_x64(True), pytest.raises(Exception, match=r"Malformed words .*aten::exp"):
        jax.jit(lambda x: lower_by_ffi("aten::exp", [Tag.STRING], [x], [], [out]))(
            np.zeros(2, "f4")
        )


def test_an_element_type_that_torch_has_not_is_refused():
    out = jax.ShapeDtypeStruct((2,), ml_dtypes.int4)
    with jax.enable_x64(True), pytest.raises(Exception, match="has no torch dtype"):
        jax.jit(lambda x: lower_by_ffi("aten::neg", [Tag.TENSOR], [x], [], [out]))(
            jnp.zeros(2, ml_dtypes.int4)
        )


def test_a_shape_that_differs_from_what_the_graph_was_told_is_refused():
    out = jax.ShapeDtypeStruct((2,), np.int64)
    with jax.enable_x64(True), pytest.raises(Exception, match="aten::nonzero"):
        jax.jit(lambda x: lower_by_ffi("aten::nonzero", [Tag.TENSOR], [x], [], [out]))(np.ones(3))


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
