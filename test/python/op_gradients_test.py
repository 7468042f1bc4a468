"""torch's database of ops by to_jax: results and gradients are those of torch on the CPU.

An op agrees, or it is refused for a reason that its error tells: it needs a value, so that no jax
function can have it; it draws random numbers; or there is no derivative.
"""

import collections
import random
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch.utils import _pytree

from test.python import database
from torch_xla_lite import to_jax
from torch_xla_lite.interop.torch_functions import Gradient
from torch_xla_lite.lowering.base import registry

GRADIENTS: tuple[Gradient, ...] = ("torch", "jax")
DAILY = (
    *("bfloat16", "cumsum", "index_put", "linalg_cholesky_ex", "linalg_eigh"),
    *("nn_functional_conv_transpose2d", "sgn", "sort"),
)
SAMPLES = 2
# Parts of the database, each a test.
PARTS = 16

# What errors say about refusals.
REFUSALS = {
    r"the function reads a value|a value is read|needs a value": "a value is needed",
    r"reads whether it failed, which": "a value is needed",
    r"writes to its argument": "an argument is written to",
    r"draws random numbers": "random",
    r"calls code outside XLA": "no form for all platforms",
    r"XLA has no element type": "no dtype of XLA",
}
REFUSED_GRADIENTS: dict[Gradient, dict[str, str]] = {
    "torch": {
        r"derivative for .* is not implemented": "torch has no derivative",
        r"cannot resize variables that require grad": "torch has no derivative",
        r"is not differentiable with respect to argument": "torch has no derivative of an argument",
    },
    "jax": {
        r"[Dd]ifferentiation|JVP rule|gradients are only": "jax has no derivative",
        r"Derivatives of non-symmetric eigenvectors": "jax has no derivative",
    },
}

# Ops whose gradients by jax differ, with the reason.
DIFFERENT = {
    "as_strided_scatter": "torch's gradient is that of the memory, and not of the elements",
    "nn_functional_ctc_loss": "torch's gradient takes the input for a result of log_softmax",
    "nn_functional_max_unpool2d": "one of several elements with the same place is written",
    "nn_functional_max_unpool3d": "one of several elements with the same place is written",
    "torch_ops_aten__safe_softmax_default": "a row without finite elements has NaN by jax",
}


class Called(torch.nn.Module):
    """An op as a function of the tensors of a sample; everything else is fixed."""

    def __init__(self, op: Any, sample: Any) -> None:
        super().__init__()
        leaves, self._tree = _pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self._op, self._leaves = op, leaves
        self._processed = sample.output_process_fn_grad
        self.tensors = [x for x in leaves if isinstance(x, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        given = iter(tensors)
        leaves = [next(given) if isinstance(x, torch.Tensor) else x for x in self._leaves]
        first, args, kwargs = _pytree.tree_unflatten(leaves, self._tree)
        # What is given to the op, and what is made of its results, has gradients: it gets symmetric
        # matrices, and eigenvectors lose their signs.
        results = self._op.gradcheck_wrapper(self._op.op, first, *args, **kwargs)
        results = _pytree.tree_leaves(self._processed(results))
        return [x for x in results if isinstance(x, torch.Tensor)]


def samples(op: Any) -> list[Called]:
    """Some samples in float32, from the whole range."""
    torch.manual_seed(0)
    random.seed(0)
    found = [
        Called(op, sample)
        for sample in op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)
    ]
    found = [module for module in found if all(map(is_plain, module.tensors))]
    return found[:: -(-len(found) // SAMPLES)] if found else []


def is_plain(x: torch.Tensor) -> bool:
    """Whether a tensor is its elements: not sparse, not without memory, no part of a larger one."""
    if x.layout is not torch.strided or x._is_zerotensor():
        return False
    return x.untyped_storage().nbytes() == x.numel() * x.element_size()


def check(module: Called, gradient: Gradient) -> None:
    """Compares results, and the gradients for given cotangents."""
    # Copies, because an op may write to its arguments.
    tensors = [x.detach().clone().requires_grad_(x.requires_grad) for x in module.tensors]
    try:
        expected, again = (module(*(x.clone() for x in tensors)) for _ in range(2))
    except Exception:
        return  # An op of another device.
    if not all(map(is_same, expected, again)):
        return  # Random numbers of the CPU, whose device the sample names.
    wanted = [i for i, x in enumerate(tensors) if x.requires_grad]
    arrays = [as_array(x) for x in tensors]
    fn, _ = to_jax(module, gradient=gradient)

    def function(*values: jax.Array) -> list[jax.Array]:
        of_all = list(arrays)
        for i, value in zip(wanted, values, strict=True):
            of_all[i] = value
        return fn({}, {}, *of_all)[0]

    differentiable = [i for i, x in enumerate(expected) if x.requires_grad]
    if not differentiable:
        assert_close(jax.jit(function)(*(arrays[i] for i in wanted)), expected)
        return
    cotangents = [
        torch.linspace(0.5, 1, expected[i].numel()).to(expected[i].dtype).view(expected[i].shape)
        for i in differentiable
    ]
    gradients = torch.autograd.grad(
        [expected[i] for i in differentiable], [tensors[i] for i in wanted], cotangents,
        allow_unused=True, materialize_grads=True,
    )  # fmt: skip

    @jax.jit
    def both(*values: jax.Array) -> tuple[Any, Any]:
        results, vjp = jax.vjp(function, *values)
        of_all: list[Any] = [
            jnp.zeros_like(x) if jnp.issubdtype(x.dtype, np.inexact)
            else np.zeros(x.shape, jax.dtypes.float0)
            for x in results
        ]  # fmt: skip
        for i, cotangent in zip(differentiable, cotangents, strict=True):
            of_all[i] = as_array(conjugated(cotangent))
        return results, vjp(of_all)

    results, found = both(*(arrays[i] for i in wanted))
    assert_close(results, expected)
    assert_close(found, [conjugated(x) for x in gradients])


def is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(((a == b) | ((a != a) & (b != b))).all())


def conjugated(x: torch.Tensor) -> torch.Tensor:
    """A gradient of torch as one of jax."""
    return x.conj().resolve_conj()


def as_numpy(x: torch.Tensor) -> np.ndarray:
    """The elements; those of bfloat16, which numpy lacks, as float32."""
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy(force=True)


def as_array(x: torch.Tensor) -> jax.Array:
    return jnp.asarray(as_numpy(x), registry.OF_TORCH[x.dtype])


def assert_close(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert a.dtype == registry.OF_TORCH[b.dtype]
        b = as_numpy(b)
        a = np.asarray(a).astype(b.dtype)
        scale = np.abs(b[np.isfinite(b)]).max(initial=1) if b.dtype.kind in "fc" else 0
        np.testing.assert_allclose(a, b, 1e-3, 1e-4 * scale)


def outcome(module: Called, gradient: Gradient) -> str:
    """What an op does: "agrees", or why it is refused."""
    try:
        with jax.enable_x64(True):
            check(module, gradient)
    except (RuntimeError, TypeError, ValueError) as error:
        for pattern, reason in {**REFUSALS, **REFUSED_GRADIENTS[gradient]}.items():
            if re.search(pattern, str(error)):
                return reason
        raise
    return "agrees"


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("name", DAILY)
def test_an_op_of_the_database_agrees(name: str, gradient: Gradient) -> None:
    assert {outcome(module, gradient) for module in samples(database.ops()[name])} == {"agrees"}


@pytest.mark.nightly
@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_ops_agree_or_are_refused(part: int, gradient: Gradient) -> None:
    counts: collections.Counter[str] = collections.Counter()

    def errors(name: str) -> list[str]:
        try:
            counts.update(outcome(module, gradient) for module in samples(database.ops()[name]))
        except Exception as error:
            return [f"{type(error).__name__}: {str(error)[:500]}"]
        return []

    names = database.part(part, PARTS, DIFFERENT if gradient == "jax" else ())
    names = [x for x in names if torch.float32 in database.ops()[x].dtypes and "empty" not in x]
    assert database.found(names, errors) == {}
    assert counts["agrees"] >= 0.8 * counts.total()
