"""Ops of other libraries, with and without lowerings."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import pytest
import torch

import torch_xla_lite
from test.python import tiers
from torch_xla_lite import debug
from torch_xla_lite.lowering import LoweringError


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    """For ops that torch.library.custom_op does not define: with Scalars, overloads, tags."""
    made = torch.library.Library("custom_ops_test", "FRAGMENT")
    yield made
    made._destroy()


@pytest.fixture(autouse=True)
def _from_zero() -> None:
    torch_xla_lite.sync()
    debug.reset_metrics()


def ran_as_one_op() -> bool:
    metrics = debug.metrics()
    return metrics["recorded_ops"] == 1 and not metrics["fallbacks"]


def on_jax() -> torch.Tensor:
    """0, 1, 2, 3, uploaded: nothing is recorded for it."""
    return torch.arange(4.0).to("jax")


@torch.library.custom_op("custom_ops_test::cubed", mutates_args=())
def cubed(x: torch.Tensor) -> torch.Tensor:
    return x * x * x


cubed.register_fake(torch.empty_like)


@torch_xla_lite.register_lowering("custom_ops_test::cubed")
def _cubed_lowering(x: jax.Array) -> jax.Array:
    return x**3


def _cubed_backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
    (x,) = ctx.saved_tensors
    return 3 * x * x * gradient


cubed.register_autograd(
    _cubed_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)


def test_an_op_with_a_lowering_is_recorded_whole_though_torch_could_take_it_apart():
    assert cubed(on_jax()).tolist() == [0, 1, 8, 27]
    assert ran_as_one_op()


def test_on_the_cpu_the_op_is_what_it_was():
    assert cubed(torch.arange(4.0)).tolist() == [0, 1, 8, 27]
    assert debug.metrics()["recorded_ops"] == 0


def test_its_gradient_is_the_one_that_was_registered_with_torch():
    x = on_jax().requires_grad_()
    cubed(x).sum().backward()
    assert x.grad.tolist() == [0, 3, 12, 27]
    assert not debug.metrics()["fallbacks"]


def test_an_op_without_a_lowering_runs_its_cpu_kernel_in_the_graph():
    @torch.library.custom_op("custom_ops_test::plain", mutates_args=(), device_types="cpu")
    def plain(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    plain.register_fake(torch.empty_like)
    assert plain(on_jax()).tolist() == [1, 2, 3, 4]
    assert debug.metrics()["fallbacks"] == {"custom_ops_test::plain": 1}


MODES = pytest.mark.parametrize("mode", ["first", "repeated"])


@MODES
def test_a_kernel_that_gives_another_dtype_than_its_fake_function_raises(
    library: torch.library.Library, mode: str
):
    library.define("doubles(Tensor x) -> Tensor")
    library.impl("doubles", lambda x: x.double(), "CPU")
    library.impl("doubles", torch.empty_like, "Meta")
    error = pytest.raises(RuntimeError, match=r"doubles.*has dtype Double, but its fake .* Float")
    with tiers.mode(mode), error:
        torch.ops.custom_ops_test.doubles(on_jax()).tolist()


@MODES
@pytest.mark.parametrize("has_fake", [True, False])
def test_a_kernel_that_writes_to_an_argument_without_saying_so_raises_and_changes_nothing(
    library: torch.library.Library, has_fake: bool, mode: str
):
    name = "writes" if has_fake else "writes_at_once"
    library.define(f"{name}(Tensor x, Tensor[] others) -> Tensor")
    library.impl(name, lambda x, others: others[0].t().add_(x).sum(), "CPU")
    if has_fake:
        library.impl(name, lambda x, others: x.new_empty(()), "Meta")
    x, one = on_jax().view(2, 2), torch.ones((), device="jax")
    same = x.clone()
    text = rf"::{name} writes to its argument others.*\n.*mutates"
    with tiers.mode(mode), pytest.raises(RuntimeError, match=text):
        getattr(torch.ops.custom_ops_test, name)(one, [x]).item()
    assert same.tolist() == x.tolist() == [[0, 1], [2, 3]]


def test_an_op_that_is_defined_once_more_has_its_new_schema_and_kernel():
    """As where a cell of a notebook runs again."""
    x = on_jax()
    for k in range(12):
        count = k % 3 + 1
        library = torch.library.Library("custom_ops_test", "FRAGMENT")
        library.define(f"redefined({', '.join(f'Tensor x{i}' for i in range(count))}) -> Tensor")
        library.impl("redefined", lambda *xs, k=k: sum(xs) + k, "CPU")
        if k % 2:
            library.impl("redefined", lambda *xs: torch.empty_like(xs[0]), "Meta")
        result = torch.ops.custom_ops_test.redefined(*[x] * count)
        assert result.tolist() == [count * i + k for i in range(4)]
        library._destroy()


def test_a_lowering_may_come_after_the_op_was_called():
    @torch.library.custom_op("custom_ops_test::late", mutates_args=(), device_types="cpu")
    def late(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    late.register_fake(torch.empty_like)
    late(on_jax()).tolist()
    torch_xla_lite.register_lowering("custom_ops_test::late")(lambda x: x + 1)
    debug.reset_metrics()
    assert late(on_jax()).tolist() == [1, 2, 3, 4]
    assert ran_as_one_op()


def test_a_new_scalar_compiles_nothing(library: torch.library.Library):
    library.define("scaled(Tensor x, Scalar factor) -> Tensor")
    library.impl("scaled", lambda x, factor: torch.empty_like(x), "Meta")
    torch_xla_lite.register_lowering("custom_ops_test::scaled")(lambda x, factor: x * factor)
    values = [torch.ops.custom_ops_test.scaled(on_jax(), factor).tolist() for factor in (2.0, 3.0)]
    assert values == [[0, 2, 4, 6], [0, 3, 6, 9]]
    assert debug.metrics()["compiles"] == 1


def test_a_lowering_can_ask_for_scalars_as_python_numbers(library: torch.library.Library):
    library.define("powered(Tensor x, Scalar exponent) -> Tensor")
    library.impl("powered", lambda x, exponent: torch.empty_like(x), "Meta")
    exponents = []

    @torch_xla_lite.register_lowering("custom_ops_test::powered", constants=True)
    def _powered(x: jax.Array, exponent: float) -> jax.Array:
        exponents.append(exponent)
        return x**exponent

    torch.ops.custom_ops_test.powered(on_jax(), 3).tolist()
    assert exponents == [3]


def test_each_overload_has_a_lowering_of_its_own(library: torch.library.Library):
    library.define("moved.by_one(Tensor x) -> Tensor")
    library.impl("moved.by_one", torch.empty_like, "Meta")
    torch_xla_lite.register_lowering("custom_ops_test::moved.by_one")(lambda x: x + 1)
    assert torch.ops.custom_ops_test.moved.by_one(on_jax()).tolist() == [1, 2, 3, 4]
    assert ran_as_one_op()


def test_a_random_op_draws_from_the_device_s_generator(library: torch.library.Library):
    tags = (torch.Tag.nondeterministic_seeded,)
    library.define("noise(Tensor x) -> Tensor", tags=tags)
    library.impl("noise", torch.empty_like, "Meta")

    @torch_xla_lite.register_lowering("custom_ops_test::noise")
    def _noise(x: jax.Array, *, key: jax.Array) -> jax.Array:
        return jax.random.normal(key, x.shape, x.dtype)

    torch.jax.manual_seed(0)
    first, second = (torch.ops.custom_ops_test.noise(on_jax()).tolist() for _ in range(2))
    torch.jax.manual_seed(0)
    assert first != second
    assert torch.ops.custom_ops_test.noise(on_jax()).tolist() == first


@torch.library.custom_op("custom_ops_test::pushed", mutates_args=("queue",), device_types="cpu")
def pushed(queue: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Shifts the queue by one, puts the value at its end, and gives what fell out."""
    out = queue[0].clone()
    queue.copy_(torch.cat([queue[1:], value[None]]))
    return out


pushed.register_fake(lambda queue, value: torch.empty_like(value))


@torch_xla_lite.register_lowering("custom_ops_test::pushed")
def _pushed_lowering(queue: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
    return queue[0], jnp.concatenate([queue[1:], value[None]])


def test_an_op_that_writes_to_an_argument_is_recorded_too():
    queue, value = on_jax(), torch.tensor(7.0).to("jax")
    assert pushed(queue, value).item() == 0
    assert queue.tolist() == [1, 2, 3, 7]
    assert not debug.metrics()["fallbacks"]


def test_what_it_writes_through_a_view_reaches_the_base():
    base, value = torch.arange(6.0).reshape(2, 3).to("jax"), torch.tensor(7.0).to("jax")
    pushed(base[1], value)
    assert base.tolist() == [[0, 1, 2], [4, 5, 7]]
    assert not debug.metrics()["fallbacks"]


def test_a_lowering_of_this_package_is_not_replaced():
    with pytest.raises(LoweringError, match="aten::relu has a lowering already"):
        torch_xla_lite.register_lowering("aten::relu")(lambda x: x)


def test_a_lowering_that_is_registered_again_replaces_the_first():
    @torch.library.custom_op("custom_ops_test::again", mutates_args=(), device_types="cpu")
    def again(x: torch.Tensor) -> torch.Tensor:
        return x + 0

    again.register_fake(lambda x: torch.empty_like(x))
    results = []
    for number in (2, 3):  # as a cell of a notebook that is edited and runs again
        torch_xla_lite.register_lowering("custom_ops_test::again")(lambda x, n=number: x * n)
        results += [again(torch.ones(2).jax()).tolist() for _ in range(2)]
    assert results == [[2, 2], [2, 2], [3, 3], [3, 3]]


def test_a_replaced_lowering_keeps_its_constants():
    torch.library.define("custom_ops_test::kept", "(Tensor x) -> Tensor")
    torch_xla_lite.register_lowering("custom_ops_test::kept")(lambda x: x)
    with pytest.raises(LoweringError, match="constants=False"):
        torch_xla_lite.register_lowering("custom_ops_test::kept", constants=True)(lambda x: x)


def test_an_op_that_is_not_defined_is_refused_without_a_stack_of_calls():
    text = r"no op custom_ops_test::missing.\nDefine it before"
    with pytest.raises(RuntimeError, match=text) as caught:
        torch_xla_lite.register_lowering("custom_ops_test::missing")(lambda x: x)
    assert len(str(caught.value).splitlines()) == 2


def test_an_op_of_torch_that_has_no_use_for_a_lowering_is_refused():
    with pytest.raises(RuntimeError, match="aten::copy_ has a kernel of its own for device jax"):
        torch_xla_lite.register_lowering("aten::copy_")(lambda x, y: y)


@pytest.mark.parametrize("op", ["aten::frac_", "aten::frac.out"])
def test_a_variant_that_is_recorded_as_another_op_is_refused_with_the_name_of_that(op: str):
    with pytest.raises(RuntimeError, match=rf"{op} is recorded as aten::frac, .*\n.*aten::frac\""):
        torch_xla_lite.register_lowering(op)(lambda x: x)


def test_an_op_that_is_made_of_others_on_every_device_is_refused(library: torch.library.Library):
    library.define("composed(Tensor x) -> Tensor")
    library.impl("composed", lambda x: x + 1, "CompositeImplicitAutograd")
    with pytest.raises(RuntimeError, match="composed is made of other ops on every device"):
        torch_xla_lite.register_lowering("custom_ops_test::composed")(lambda x: x)


def test_what_was_refused_is_not_in_the_table(library: torch.library.Library):
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", torch.empty_like, "Meta")
    refused = torch.library.Library("custom_ops_test", "IMPL")
    refused.impl("twice", lambda x: x + 1, "PrivateUse1")
    with pytest.raises(RuntimeError, match="twice has a kernel of its own for device jax"):
        torch_xla_lite.register_lowering("custom_ops_test::twice")(lambda x: x)
    refused._destroy()
    torch_xla_lite.register_lowering("custom_ops_test::twice")(lambda x: x * 2)
    assert torch.ops.custom_ops_test.twice(on_jax()).tolist() == [0, 2, 4, 6]


def test_an_op_that_only_writes_to_out_runs_on_the_cpu(library: torch.library.Library):
    library.define("into(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    library.impl("into", lambda x, *, out: out.copy_(x + 1), "CPU")
    library.impl("into", lambda x, *, out: out, "Meta")
    torch_xla_lite.register_lowering("custom_ops_test::into")(lambda x, *, out: x + 1)
    out = on_jax()
    torch.ops.custom_ops_test.into(on_jax(), out=out)
    assert out.tolist() == [1, 2, 3, 4]
    assert debug.metrics()["fallbacks"] == {"custom_ops_test::into": 1}


# --- lowerings that call code outside XLA ---------------------------------------------------------


@torch.library.custom_op("custom_ops_test::checked", mutates_args=())
def checked(x: torch.Tensor, limit: int) -> torch.Tensor:
    return x.clone()


checked.register_fake(lambda x, limit: torch.empty_like(x))
traced: list[int] = []


@torch_xla_lite.register_lowering("custom_ops_test::checked")
def _checked_lowering(x: jax.Array, limit: int) -> jax.Array:
    def check(values):
        if values.max() > limit:
            raise ValueError("beyond the limit")
        return values

    traced.append(limit)
    return jax.pure_callback(check, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def test_a_callback_that_fails_says_so_although_its_operand_is_gone():
    with pytest.raises(RuntimeError, match="beyond the limit"):
        checked(torch.ones(5).to("jax"), 0).tolist()


def test_what_is_updated_beside_a_callback_that_fails_can_be_read():
    state = torch.zeros(5).to("jax")
    torch_xla_lite.sync()
    state.add_(1)
    with pytest.raises(RuntimeError, match="beyond the limit"):
        checked(torch.ones(5).to("jax"), 0).tolist()
    assert state.tolist() == [1] * 5
    assert debug.metrics()["compiles"] <= 3


def test_a_graph_with_a_callback_is_traced_once():
    state = torch.zeros(1000).to("jax")
    traced.clear()
    state.add_(checked(state * 2 + 1, 7))
    assert state.tolist() == [1] * 1000
    assert traced == [7]


def momentum_steps(observe: Callable[[torch.Tensor], torch.Tensor]) -> list[int]:
    """Where the weights lie after each of some steps, in whose loss `observe` takes part."""
    weights = torch.linspace(0, 1, 1000).to("jax").requires_grad_()
    optimizer = torch.optim.SGD([weights], lr=0.1, momentum=0.9)
    addresses = []
    for _ in range(4):
        optimizer.zero_grad()
        (weights * observe(weights.detach())).sum().backward()
        optimizer.step()
        torch_xla_lite.sync()
        addresses.append(torch_xla_lite._XLAC.to_jax(weights.detach()).unsafe_buffer_pointer())
    return addresses


FOREIGN = {
    "callback": lambda x: checked(x, 1000),
    "kernel of the CPU": lambda x: torch.igamma(x.abs() + 1, x.abs() + 1),
}


@pytest.mark.parametrize("observe", [torch.cos, *FOREIGN.values()], ids=["none", *FOREIGN])
def test_weights_are_overwritten_though_a_graph_calls_foreign_code(observe):
    assert len(set(momentum_steps(observe))) == 1


@pytest.fixture
def awaited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values are waited for, each time."""
    counts: list[int] = []
    wait = jax.block_until_ready
    monkeypatch.setattr(jax, "block_until_ready", lambda x: counts.append(len(x)) or wait(x))
    return counts


def test_only_foreign_calls_and_what_they_need_are_waited_for(awaited: list[int]):
    momentum_steps(FOREIGN["callback"])
    assert awaited == [1] * 4  # The value of the callback, and not weights, momentum and loss.


def test_that_holds_where_nothing_is_overwritten(awaited: list[int]):
    x = torch.linspace(0, 1, 1000).to("jax")
    incremented, rest = checked(x + 1, 1000), x.cos()
    torch_xla_lite.sync()
    assert awaited == [1]
    torch.testing.assert_close(incremented.cpu(), x.cpu() + 1)
    torch.testing.assert_close(rest.cpu(), x.cpu().cos())
