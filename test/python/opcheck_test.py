"""torch.library.opcheck on device 'jax': what it accepts, and the mistakes that it finds."""

from collections.abc import Callable, Iterator

import jax
import pytest
import torch
from torch.testing._internal.optests.generate_tests import OpCheckError

import torch_xla_lite
from torch_xla_lite import ops

_ALL = dict.fromkeys(
    ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"],
    "SUCCESS",
)


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    made = torch.library.Library("opcheck_test", "FRAGMENT")
    yield made
    made._destroy()


def leaf(device: str = "jax") -> torch.Tensor:
    return torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]]).to(device).requires_grad_()


@torch.library.custom_op("opcheck_test::scaled", mutates_args=(), device_types="cpu")
def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


scaled.register_fake(lambda x, factor: torch.empty_like(x))
scaled.register_autograd(
    lambda ctx, gradient: (gradient * ctx.factor, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
)
torch_xla_lite.register_lowering("opcheck_test::scaled")(lambda x, factor: x * factor)


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_an_op_with_gradient_and_lowering_passes(device: str):
    assert torch.library.opcheck(scaled, (leaf(device), 2.0)) == _ALL


@pytest.mark.nightly
@pytest.mark.parametrize("select", [lambda x: x.t(), lambda x: x[1:], lambda x: x.expand(2, 2, 3)])
def test_views_are_copied_as_inputs(select: Callable[[torch.Tensor], torch.Tensor]):
    assert torch.library.opcheck(scaled, (select(leaf()).detach(), 2.0)) == _ALL


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_an_op_of_ours_passes(device: str):
    arguments = (leaf(device), torch.tensor([2, 0]).to(device), -100)
    op = torch.ops.torch_xla_lite.softmax_cross_entropy.default
    assert ops and torch.library.opcheck(op, arguments) == _ALL


def test_an_op_that_writes_to_an_argument_passes(library: torch.library.Library):
    library.define("doubled_(Tensor(a!) x) -> ()")
    library.impl("doubled_", lambda x: None, "Meta")
    library.impl("doubled_", lambda x: x.mul_(2) and None, "CPU")
    torch_xla_lite.register_lowering("opcheck_test::doubled_")(lambda x: x * 2)
    op = torch.ops.opcheck_test.doubled_.default
    assert torch.library.opcheck(op, (leaf().detach(),)) == _ALL


@pytest.mark.nightly
def test_the_inputs_stay_as_they_were():
    x = leaf()
    torch.library.opcheck(scaled, (x, 2.0))
    assert x.tolist() == leaf("cpu").tolist()
    assert x.grad is None


def test_a_lowering_that_gives_another_shape_than_the_fake_is_found():
    @torch.library.custom_op("opcheck_test::wrong_shape", mutates_args=(), device_types="cpu")
    def wrong_shape(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    wrong_shape.register_fake(torch.empty_like)

    @torch_xla_lite.register_lowering("opcheck_test::wrong_shape")
    def _lowering(x: jax.Array) -> jax.Array:
        return x[:1]

    with pytest.raises(OpCheckError, match="gave shape"):
        torch.library.opcheck(wrong_shape, (leaf().detach(),))


@pytest.mark.parametrize(("device", "key"), [("cpu", "CPU"), ("jax", "PrivateUse1")])
def test_a_gradient_that_is_registered_at_the_wrong_key_is_found(
    library: torch.library.Library, device: str, key: str
):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: torch.Tensor) -> torch.Tensor:
            return x + x

        @staticmethod
        def backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 2

    library.define("misplaced(Tensor x) -> Tensor")
    library.impl("misplaced", torch.empty_like, "Meta")
    library.impl("misplaced", Doubled.apply, key)
    checks = torch.library.opcheck(
        torch.ops.opcheck_test.misplaced.default, (leaf(device),), raise_exception=False
    )
    assert isinstance(checks["test_autograd_registration"], AssertionError)
