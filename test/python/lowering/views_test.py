import math
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from comparison import check, scalar_type, to_torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_xla_lite.lowering.base import registry, target
from torch_xla_lite.lowering.views import _box

aten = torch.ops.aten
X = torch.arange(24.0).reshape(2, 3, 4)

VIEWS = {
    "view": (aten.view.default, [4, 6]),
    "permute": (aten.permute.default, [2, 0, 1]),
    "transpose": (aten.transpose.int, 0, -1),
    "unsqueeze": (aten.unsqueeze.default, -2),
    "select": (aten.select.int, 1, -1),
    "slice": (aten.slice.Tensor, 2, 1, 4, 2),
    "slice from the end": (aten.slice.Tensor, 1, -2, 100),
    "empty slice": (aten.slice.Tensor, 1, 2, 1),
    "expand": (aten.expand.default, [5, 2, 3, 4]),
    "diagonal": (aten.diagonal.default, 1, 1, 2),
    "diagonal below": (aten.diagonal.default, -1, 0, 2),
    "as_strided": (aten.as_strided.default, [3, 2], [4, 1], 5),
    "unfold": (aten.unfold.default, 2, 2, 1),
    "alias": (aten.alias.default,),
}
views = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())


@pytest.fixture(autouse=True, scope="module")
def no_custom_calls():
    """They are in the extension, without which these tests run. overwriting_test has them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "fuses_too_much", lambda: False)
        yield


def write(op, args, base: torch.Tensor, value: torch.Tensor, output: int | None = None):
    encoded = [scalar_type(arg) if isinstance(arg, torch.dtype) else arg for arg in args]
    padded = [a.default_value for a in op._schema.arguments[1 + len(args) :]]
    with jax.enable_x64(True):
        program = jax.jit(
            lambda base, value: registry.write_view(
                op.name(), [None, *encoded, *padded], base, value, output
            )
        )
        return to_torch(program(base.numpy(), value.numpy()))


@pytest.mark.few_daily(5)
@views
def test_reading_a_view(view):
    op, *args = view
    check(op, X, *args)


@pytest.mark.few_daily(5)
@pytest.mark.parametrize("name", [name for name in VIEWS if name not in ("expand", "unfold")])
def test_writing_through_a_view(name):
    op, *args = VIEWS[name]
    wanted = X.clone()
    value = -op(X, *args) - 100
    op(wanted, *args).copy_(value)
    assert torch.equal(write(op, args, X, value), wanted)


@pytest.mark.parametrize("output", [0, 1])
def test_writing_through_one_of_several_views(output):
    wanted = X.clone()
    aten.split.Tensor(wanted, 2, 2)[output].fill_(7)
    assert torch.equal(
        write(aten.split.Tensor, [2, 2], X, torch.full((2, 3, 2), 7.0), output), wanted
    )


@pytest.mark.few_daily(2)
@pytest.mark.parametrize(
    "dtype", [torch.int32, torch.int64, torch.float64, torch.uint8, torch.complex64]
)
def test_the_same_bytes_as_another_dtype(dtype):
    check(aten.view.dtype, X, dtype)
    check(aten.view.dtype, X.to(dtype), torch.float32)


def test_writing_through_bytes():
    wanted = X.clone()
    value = torch.zeros(2, 3, 16, dtype=torch.uint8)
    wanted.view(torch.uint8).copy_(value)
    assert torch.equal(write(aten.view.dtype, [torch.uint8], X, value), wanted)


def test_squeeze_and_split():
    x = torch.randn(1, 3, 1)
    check(aten.squeeze, x)
    check(aten.squeeze.dims, x, [0, 1])
    check(aten.split.Tensor, X, 2, 1)
    check(aten.split_with_sizes, X, [1, 3], -1)
    check(aten.unbind.int, X, 1)


def test_gradients_of_views():
    check(aten.select_backward, torch.randn(2, 4), [2, 3, 4], 1, -1)
    check(aten.slice_backward, torch.randn(2, 3, 2), [2, 3, 4], 2, 1, 4, 2)
    check(aten.slice_backward, torch.randn(2, 0, 4), [2, 3, 4], 1, 3, 9, 1)
    check(aten.diagonal_backward, torch.randn(2, 3), [2, 3, 4], 1, 1, 2)
    check(aten.unfold_backward, torch.randn(2, 3, 3, 2), [2, 3, 4], 2, 2, 1)


def test_scattering_into_a_copy():
    check(aten.select_scatter, X, torch.ones(2, 4), 1, -2)
    check(aten.slice_scatter, X, torch.ones(2, 3, 2), 2, 0, 4, 2)
    check(aten.diagonal_scatter, X, torch.ones(2, 3), 1, 1, 2)
    check(aten.as_strided_scatter, X, torch.ones(2, 2), [2, 2], [6, 1], 3)


def at_run_time(name: str, args, out_shape, index: int) -> np.ndarray:
    out = [jax.ShapeDtypeStruct(out_shape, np.dtype(np.float32))]
    with jax.enable_x64(True):
        program = jax.jit(lambda x, i: registry.call(name, [x, *args(i)], out)[0])
        return np.array(program(X.numpy(), np.int64(index)))


@pytest.mark.parametrize("index", [0, 2])
def test_an_index_known_only_at_run_time(index):
    got = at_run_time("aten::select.int", lambda i: [1, i], (2, 4), index)
    assert (got == X[:, index].numpy()).all()


@pytest.mark.parametrize("step", [1, 2])
def test_a_start_known_only_at_run_time(step):
    got = at_run_time("aten::slice.Tensor", lambda i: [2, i, None, step], (2, 3, 2), 1)
    assert (got == X[:, :, 1 : 1 + 2 * step : step].numpy()).all()


def test_writing_at_an_index_known_only_at_run_time():
    with jax.enable_x64(True):
        program = jax.jit(
            lambda x, v, i: registry.write_view("aten::select.int", [None, 0, i], x, v)
        )
        got = np.array(program(X.numpy(), jnp.zeros((3, 4), np.float32), np.int64(1)))
    wanted = X.clone()
    wanted[1] = 0
    assert (got == wanted.numpy()).all()


bounds = st.one_of(st.none(), st.integers(-6, 6))


@settings(max_examples=20, deadline=None)
@given(bounds, bounds, st.integers(1, 3))
def test_any_slice_reads_and_writes_as_in_torch(start, end, step):
    x = torch.arange(10.0).reshape(2, 5)
    check(aten.slice.Tensor, x, 1, start, end, step)
    wanted = x.clone()
    value = torch.full_like(aten.slice.Tensor(x, 1, start, end, step), -1)
    aten.slice.Tensor(wanted, 1, start, end, step).copy_(value)
    assert torch.equal(write(aten.slice.Tensor, [1, start, end, step], x, value), wanted)


def test_a_strided_view_that_is_a_box_is_sliced():
    generator = random.Random(0)
    found = 0
    for _ in range(2000):
        shape = [generator.randint(1, 5) for _ in range(generator.randint(0, 4))]
        steps = [math.prod(shape[d + 1 :]) * generator.randint(1, 2) for d in range(len(shape))]
        steps = [step + generator.choice([0, 0, 0, 1]) for step in steps]
        size = [generator.randint(1, 4) for _ in steps]
        offset = generator.randint(0, 6)
        positions = offset + sum(
            np.expand_dims(np.arange(n) * step, tuple(range(1, len(size) - d)))
            for d, (n, step) in enumerate(zip(size, steps, strict=True))
        )
        box = _box(shape, size, steps, offset)
        if box is None:
            continue
        found += 1
        elements = np.arange(math.prod(shape)).reshape(shape)
        taken = elements[tuple(slice(part.start, part.stop, part.step) for part in box)]
        assert np.array_equal(taken.reshape(size), np.broadcast_to(positions, size)), (shape, size)
    assert found > 200
