"""Ops lowered through PyTorch's decompositions: which are, and which are left alone."""

from typing import Any

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from torch_xla_lite import debug
from torch_xla_lite.lowering.base import decomposition, promotion, registry


def run(op_name: str, *args: Any) -> list[np.ndarray] | None:
    """Lowers and runs one op; tensors among the arguments are passed at run time."""
    op, arguments = schema(op_name)
    expected = flatten(op(*args))
    outs = [jax.ShapeDtypeStruct(tuple(out.shape), out.numpy().dtype) for out in expected]
    args = args + tuple(argument.default_value for argument in arguments[len(args) :])
    found: list[bool] = []

    def program(*arrays: jax.Array) -> list[jax.Array]:
        waiting = iter(arrays)
        results = decomposition.decompose(
            op_name, [next(waiting) if isinstance(arg, torch.Tensor) else arg for arg in args], outs
        )
        found.append(results is not None)
        return results or []

    with jax.enable_x64(True):
        arrays = [arg.numpy() for arg in args if isinstance(arg, torch.Tensor)]
        results = [np.asarray(result) for result in jax.jit(program)(*arrays)]
    return results if found[0] else None


def schema(op_name: str) -> tuple[Any, Any]:
    name, _, overload = op_name.removeprefix("aten::").partition(".")
    op = getattr(getattr(torch.ops.aten, name), overload or "default")
    return op, op._schema.arguments


def flatten(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


MATRIX = torch.linspace(0.1, 0.9, 32).reshape(4, 8)


def test_a_decomposition_that_ends_in_an_op_without_lowering_is_left_alone(monkeypatch):
    # It is decomposed into prims.bessel_j0, which stands for the op itself.
    registry.find("aten::special_bessel_j0")
    monkeypatch.delitem(registry.LOWERINGS, "aten::special_bessel_j0")
    assert torch.ops.aten.special_bessel_j0.default in decomposition._table()
    assert run("aten::special_bessel_j0", MATRIX) is None


def test_an_op_without_decomposition_is_left_alone():
    assert run("aten::linalg_cholesky", torch.eye(3)) is None


def test_random_ops_are_never_decomposed():
    assert run("aten::bernoulli", torch.ones(3)) is None


def test_a_decomposition_that_writes_to_a_tensor_is_left_alone(monkeypatch):
    registry.find("aten::diagonal_scatter")
    monkeypatch.delitem(registry.LOWERINGS, "aten::diagonal_scatter")
    assert torch.ops.aten.diagonal_scatter.default in decomposition._table()
    assert run("aten::diagonal_scatter", MATRIX, torch.ones(4)) is None


def test_a_decomposition_in_another_default_dtype_is_left_alone():
    with promotion.default_dtype(np.dtype(np.float64)):
        assert run("aten::_chunk_cat", [MATRIX], 0, 2) is None
    (result,) = run("aten::_chunk_cat", [MATRIX], 0, 2)
    assert result.shape == (2, 16)


def test_users_modes_do_not_see_a_decomposition():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            called.append(op)
            return op(*args, **(kwargs or {}))

    def program(array):
        with Mode():
            return decomposition.decompose("aten::_chunk_cat", [[array], 0, 2], outs)

    called = []
    outs = [jax.ShapeDtypeStruct((2, 16), np.float32)]
    (result,) = jax.jit(program)(MATRIX.numpy())
    assert result.shape == (2, 16)
    assert called == []


@pytest.mark.parametrize("rows", [3, 70_000])
def test_a_wrong_decomposition_of_torch_is_not_used(rows):
    x = torch.linspace(-2, 3, 4 * rows).view(rows, 4)
    labels = torch.tensor([[0, 1, -1, -1]] * rows)
    got = F.multilabel_margin_loss(x.jax(), labels.jax(), reduction="none")
    torch.testing.assert_close(
        got.cpu(), F.multilabel_margin_loss(x, labels, reduction="none"), rtol=1e-5, atol=1e-6
    )


def test_a_wrong_shape_of_torch_is_not_used():
    x, labels = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([0, 2, -1])
    got = F.multilabel_margin_loss(x.jax(), labels.jax(), reduction="none")
    torch.testing.assert_close(got.cpu(), F.multilabel_margin_loss(x, labels, reduction="none"))


@pytest.mark.parametrize(
    ("op", "x"),
    [
        (lambda x, **out: torch.softmax(x, 1, **out), MATRIX),
        (lambda x, **out: torch.log_softmax(x, 1, torch.float64, **out), MATRIX),
        (torch.conj_physical, torch.complex(MATRIX, MATRIX)),
        (torch.linalg.eigvals, torch.eye(3)),
    ],
)
def test_ops_made_of_others_stay_in_the_graph_with_out(op, x):
    wanted = op(x)
    debug.reset_metrics()
    out = torch.empty_like(wanted, device="jax")
    op(x.jax(), out=out)
    torch.testing.assert_close(out.cpu(), wanted)
    assert debug.metrics()["fallbacks"] == {}
