"""call_jax: jax functions as recorded ops, on device jax and on the CPU."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import torch_xla_lite
from torch_xla_lite import call_jax, debug
from torch_xla_lite.compiler import jax_programs

DEVICES = pytest.mark.parametrize("device", ["cpu", "jax"])


def values(device: str = "jax") -> torch.Tensor:
    return torch.linspace(-1, 1, 12).reshape(3, 4).to(device)


def assert_equal(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found.detach().cpu(), expected.detach().cpu())


@pytest.fixture(autouse=True)
def _from_zero() -> None:
    torch_xla_lite.sync()
    debug.reset_metrics()


def affine(parameters: dict, x: jax.Array, *, scale: float) -> dict:
    return {"out": scale * (x @ parameters["w"] + parameters["b"]), "size": (x.size, None)}


@pytest.mark.few_daily(1)
@DEVICES
def test_tensors_are_arrays_in_pytrees_and_the_rest_is_static(device: str):
    w, b = torch.ones(4, 2, device=device), torch.arange(2.0).to(device)
    found = call_jax(affine, {"w": w, "b": b}, values(device), scale=2.0)
    assert_equal(found["out"], 2 * (values() @ w.to("jax") + b.to("jax")))
    assert found["size"][0].item() == 12
    assert found["out"].device.type == device


def test_a_call_is_one_op_in_the_graph_of_its_neighbours():
    x = values()
    torch_xla_lite.sync()
    debug.reset_metrics()
    assert_equal(
        call_jax(lambda v: jnp.sin(v) * 2, x.relu()) + 1, values("cpu").relu().sin() * 2 + 1
    )
    metrics = debug.metrics()
    assert metrics["recorded_ops"] == 3
    assert (metrics["compiles"] + metrics["loads"], metrics["interpretations"]) == (1, 0)


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_one_element_may_have_any_stride(device: str):
    x = torch.arange(8.0, device=device).view(2, 4)[:1, 1]
    assert call_jax(lambda v: v * 2, x).tolist() == [2]


def test_a_function_is_traced_once_for_each_signature():
    traced = []

    def noted(x: jax.Array, exponent: float) -> jax.Array:
        traced.append((x.shape, x.dtype, exponent))
        return x**exponent

    for _ in range(3):
        call_jax(noted, values(), 2)
    call_jax(noted, values(), 3)
    call_jax(noted, values()[0], 2)
    call_jax(noted, values().bfloat16(), 2)
    for _ in range(3):
        call_jax(noted, values(), float("nan"))
    assert len(traced) == len(set(traced)) == 5


@pytest.mark.parametrize("value", [1, 1.0, True])
def test_equal_values_of_different_types_are_different(value: float):
    found = call_jax(lambda x, v: x * 0 + len(type(v).__name__), values(), value)
    assert found[0, 0].item() == len(type(value).__name__)


@pytest.mark.parametrize("kind", [float, complex, np.float32, np.float64])
def test_zeros_of_both_signs_are_different(kind: type):
    x = torch.ones(1, device="jax")
    found = [
        call_jax(lambda x, v: jnp.copysign(x, np.real(v)), x, kind(zero)).item()
        for zero in (0.0, -0.0)
    ]
    assert found == [1, -1]


# --- dtypes ---------------------------------------------------------------------------------------


@DEVICES
def test_a_function_sees_jax_as_the_user_has_set_it(device: str):
    count = torch.arange(3).to(device)
    assert call_jax(lambda n: n + jnp.arange(3), count).dtype == torch.int32
    with jax.enable_x64(True):
        assert call_jax(lambda n: n + jnp.arange(3), count).dtype == torch.int64


@DEVICES
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128, torch.bfloat16, torch.bool])
def test_other_dtypes_keep_theirs(device: str, dtype: torch.dtype):
    x = torch.tensor([0.5, 0.0]).to(dtype)
    found = call_jax(jnp.copy, x.to(device))
    assert found.dtype == dtype
    assert_equal(found, x)


def test_a_dtype_that_torch_lacks_is_refused():
    with pytest.raises(TypeError, match="dtype int4, which torch does not have"):
        call_jax(lambda x: x.astype(jnp.int4), values())


# --- arrays that are no tensors -------------------------------------------------------------------


@DEVICES
def test_jax_and_numpy_arrays_are_arguments_too(device: str):
    x = values(device)
    assert_equal(call_jax(jnp.add, x, np.ones((3, 4), np.float32)), x + 1)
    assert_equal(call_jax(jnp.add, x, jnp.ones((3, 4))), x + 1)


@DEVICES
def test_numbers_of_numpy_have_the_width_of_jax(device: str):
    x = values(device)
    assert call_jax(jnp.add, x, np.ones((3, 4))).dtype == torch.float32
    assert call_jax(jnp.add, x.double(), np.full((3, 4), 0.1))[0, 3].item() == 0.1 + x[0, 3].item()
    with jax.enable_x64(True):
        assert call_jax(jnp.add, x, np.ones((3, 4))).dtype == torch.float64
        wide = jnp.ones((3, 4))
    assert call_jax(jnp.add, x, wide).dtype == torch.float64
    assert call_jax(jnp.add, x, np.ones((3, 4))).dtype == torch.float32


def test_without_tensors_the_result_is_on_device_jax():
    assert call_jax(lambda: jnp.arange(3)).tolist() == [0, 1, 2]
    assert call_jax(jnp.negative, np.arange(3)).tolist() == [0, -1, -2]


@DEVICES
def test_a_captured_array_is_a_constant(device: str):
    factor = jnp.arange(4.0)
    assert_equal(call_jax(lambda x: x * factor, values(device)), values() * torch.arange(4.0).jax())


def test_a_captured_tensor_is_refused():
    factor = torch.arange(4.0).to("jax")
    with pytest.raises(TypeError, match=r"captures a tensor on jax, .*\nPass it as an argument: "):
        call_jax(lambda x: x * factor, values())


@pytest.mark.few_daily(1)
@DEVICES
def test_typed_random_keys_go_in_and_their_data_comes_out(device: str):
    key = jax.random.key(3)
    with torch.device(device):
        halves = call_jax(jax.random.split, key)
        found = call_jax(jax.random.normal, key, shape=(2,))
        further = call_jax(jax.random.normal, halves[1], shape=(2,))
    assert found.tolist() == jax.random.normal(key, (2,)).tolist()
    assert further.tolist() == jax.random.normal(jax.random.split(key)[1], (2,)).tolist()


# --- gradients ------------------------------------------------------------------------------------


def of_jax(function: Callable, x: torch.Tensor, order: int) -> float:
    for _ in range(order):
        function = jax.grad(function)
    return float(function(x.item()))


@pytest.mark.few_daily(1)
@DEVICES
def test_gradients_and_gradients_of_gradients_are_those_of_jax(device: str):
    def function(v: jax.Array) -> jax.Array:
        return jnp.sin(v) ** 3

    x = torch.tensor(0.5, device=device, requires_grad=True)
    y = call_jax(function, x)
    for order in (1, 2, 3):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(of_jax(function, x, order), rel=1e-5)


@DEVICES
@pytest.mark.parametrize("twice", [False, True])
def test_each_operand_has_its_own_gradient(device: str, twice: bool):
    x, y, z = (
        torch.tensor(value, device=device, requires_grad=value != 3) for value in (2.0, 3.0, 5.0)
    )
    result = call_jax(lambda x, y, z: x**2 * y * z, x, y, z)
    found = torch.autograd.grad(result, (x, z), create_graph=twice)
    assert [gradient.item() for gradient in found] == [60, 12]


def test_the_gradient_of_complex_numbers_is_torch_s():
    z = torch.tensor([1 + 2j, 0.5 - 0.3j], requires_grad=True)
    w = z.detach().to("jax").requires_grad_()
    (z * z * z.exp()).abs().sum().backward()
    call_jax(lambda v: v * v * jnp.exp(v), w).abs().sum().backward()
    assert_equal(w.grad, z.grad)


def test_results_that_are_unused_or_no_floats_need_no_gradient():
    x = values().requires_grad_()
    found = call_jax(lambda v: (jnp.sin(v), jnp.argsort(v), jnp.exp(v)), x)
    assert [y.requires_grad for y in found] == [True, False, True]
    found[0].sum().backward()
    assert_equal(x.grad, values().cos())


def test_a_gradient_of_the_function_s_own_is_used():
    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))
    x = values().requires_grad_()
    (call_jax(clipped, x) * 5).sum().backward()
    assert_equal(x.grad, torch.ones(3, 4))


def test_residuals_that_are_operands_or_results_are_not_computed_again():
    x = values().requires_grad_()
    torch_xla_lite.sync()
    y = call_jax(lambda v: jnp.exp(v) * v, x)
    (outputs,) = [
        step[3] for step in torch_xla_lite._XLAC.pending_graph()[0] if isinstance(step[0], str)
    ]
    assert len(outputs) <= 3
    y.sum().backward()
    assert_equal(x.grad, values().exp() * (values() + 1))


def test_a_random_function_has_the_same_numbers_in_its_gradient():
    x, key = values().requires_grad_(), jax.random.key(1)
    y = call_jax(lambda v, k: v * jax.random.bernoulli(k, 0.5, v.shape), x, key)
    y.sum().backward()
    assert_equal(x.grad * values(), y)


@pytest.mark.parametrize("device", ["cpu", pytest.param("jax", marks=pytest.mark.nightly)])
def test_gradcheck(device: str):
    x = torch.rand(2, 3, dtype=torch.float64, device=device, requires_grad=True)
    function = functools.partial(call_jax, lambda v: jnp.tanh(v) @ v.T)
    assert torch.autograd.gradcheck(function, (x,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, (x,))


# --- transforms of torch --------------------------------------------------------------------------


def sine(x: torch.Tensor) -> torch.Tensor:
    return call_jax(lambda v: jnp.sin(v) * jnp.exp(v).sum(), x)


def sine_of_torch(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * x.exp().sum()


TRANSFORMS = {
    "vmap": torch.vmap,
    "vmap of another dimension": lambda f: torch.vmap(f, in_dims=-1, out_dims=1),
    "vmap twice": lambda f: torch.vmap(torch.vmap(f)),
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum()),
    "vmap of grad": lambda f: torch.vmap(torch.func.grad(lambda x: f(x).sum())),
    "grad of vmap": lambda f: torch.func.grad(lambda x: torch.vmap(f)(x).sum()),
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (x * 2,)),
    "jacrev": torch.func.jacrev,
    "jacfwd": torch.func.jacfwd,
    "hessian": lambda f: torch.func.hessian(lambda x: f(x).sum()),
}


@pytest.mark.few_daily(1)
@DEVICES
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_of_torch(device: str, name: str):
    transform = TRANSFORMS[name]
    torch.testing.assert_close(
        torch.utils._pytree.tree_map(torch.Tensor.cpu, transform(sine)(values(device))),
        transform(sine_of_torch)(values("cpu")),
        rtol=1e-4,
        atol=1e-5,
    )


def test_vmap_of_a_tensor_that_needs_a_gradient():
    x = values().requires_grad_()
    torch.vmap(sine)(x).sum().backward()
    y = values("cpu").requires_grad_()
    torch.vmap(sine_of_torch)(y).sum().backward()
    assert_equal(x.grad, y.grad)


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(4, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return call_jax(jnp.matmul, x + 1, self.w)


@pytest.mark.few_daily(1)
@DEVICES
def test_an_exported_module_has_gradients_too(device: str):
    exported = torch.export.export(Layer().to(device), (values(device),)).module()
    exported(values(device)).sum().backward()
    (gradient,) = (parameter.grad for parameter in exported.parameters())
    assert_equal(gradient, (values() + 1).sum(0)[:, None].expand(4, 2))


def test_compiled_code_calls_it_between_two_graphs():
    compiled = torch.compile(lambda x: call_jax(jnp.sin, x + 1) * 2, backend="eager")
    assert_equal(compiled(values()), (values("cpu") + 1).sin() * 2)


# --- programs in programs -------------------------------------------------------------------------


def test_a_kernel_of_pallas():
    from jax.experimental import pallas

    def doubled(x_ref, out_ref):
        out_ref[...] = x_ref[...] * 2

    @jax.custom_vjp
    def double(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pallas.pallas_call(doubled, out_shape=shape, interpret=True)(x)

    double.defvjp(lambda x: (double(x), None), lambda _, gradient: (double(gradient),))
    x = values().requires_grad_()
    y = call_jax(double, x)
    y.sum().backward()
    assert_equal(y, values() * 2)
    assert_equal(x.grad, torch.full((3, 4), 2.0))


def test_a_loop_of_jax_is_one_in_each_direction():
    def loop(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 5, lambda i, y: y * 2 + x * i, x)

    assert_equal(call_jax(loop, values()), values() * 58)
    struct = jax.ShapeDtypeStruct((3,), np.float32)
    program = jax_programs.trace(lambda x: loop(x).sum() ** 2, [struct], "", x64=False)[0]
    for part in (program.linearized((0,)).program, program.backward((0,), (0,))):
        assert str(part._jaxpr).count("scan[") == 1


# --- refusals -------------------------------------------------------------------------------------


def test_tensors_on_two_devices_are_refused():
    with pytest.raises(
        RuntimeError, match="expected all tensors on one device, found jax:0 and cpu"
    ):
        call_jax(jnp.add, values(), values("cpu"))


def test_a_tracer_is_refused():
    with pytest.raises(TypeError, match=r"call_jax got a tracer.*\nCall the function itself there"):
        jax.jit(lambda v: call_jax(jnp.sin, v))(jnp.ones(3))


def test_a_captured_tracer_is_refused():
    with pytest.raises(TypeError, match="captures a tracer"):
        jax.jit(lambda v: call_jax(lambda x: x + v, values()))(jnp.ones(4))


def test_an_argument_that_cannot_be_hashed_is_refused_by_type():
    with pytest.raises(TypeError, match=r"neither an array nor hashable, .*: set \(in call_jax\)"):
        call_jax(lambda x, names: x, values(), {"a"})


def test_an_error_of_the_function_is_raised_by_the_call():
    with pytest.raises(TypeError, match="dot_general requires"):
        call_jax(jnp.matmul, values(), values())
