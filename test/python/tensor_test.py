"""XLATensor2, and how data leaves the device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import torch_xla_lite
from test.python import programs
from torch_xla_lite import XLATensor2
from torch_xla_lite.lowering.base import registry


@pytest.mark.parametrize("other", [torch.ones(2), torch.ones(2, device="meta"), [1.0], None])
def test_nothing_else_is_an_xla_tensor(other):
    assert not isinstance(other, XLATensor2)


def test_its_type_is_torch_tensor():
    assert type(torch.ones(2, device="jax")) is torch.Tensor
    assert issubclass(XLATensor2, torch.Tensor)


@pytest.mark.parametrize("values", [[0.0, 1.0, 2.0], jnp.arange(3.0)], ids=type)
def test_it_is_made_from_a_list_or_a_jax_array(values):
    made = XLATensor2(values)
    assert isinstance(made, XLATensor2)
    assert made.tolist() == [0.0, 1.0, 2.0]


def test_torch_gives_a_cpu_tensor():
    there = torch.arange(3, device="jax").torch()
    assert there.device.type == "cpu"
    assert there.tolist() == [0, 1, 2]
    assert there.torch() is there


@pytest.mark.parametrize("copy", [torch.Tensor.torch, torch.Tensor.numpy])
def test_what_leaves_the_device_is_a_copy_that_can_be_written(copy):
    source = torch.zeros(2, device="jax")
    copy(source)[0] = 5
    assert source.tolist() == [0, 0]


def test_gradients_flow_through_torch():
    source = torch.ones(2, device="jax", requires_grad=True)
    (source.torch() * torch.tensor([2.0, 3.0])).sum().backward()
    assert source.grad.tolist() == [2, 3]


NOT_OF_NUMPY = (torch.bfloat16, *(x for x in registry.OF_TORCH if "float8" in str(x)))
OF_NUMPY = [x for x in registry.OF_TORCH if x not in NOT_OF_NUMPY]


@pytest.mark.parametrize("dtype", OF_NUMPY, ids=str)
def test_numpy_keeps_dtype_and_values(dtype):
    source = torch.tensor([[0, 1], [2, 3]]).to(dtype)
    result = source.to("jax").numpy()
    assert result.dtype == source.numpy().dtype
    assert (result == source.numpy()).all()


def test_numpy_of_a_tensor_that_needs_a_gradient_raises_as_on_the_cpu_unless_it_is_forced():
    tensor = torch.ones(2, device="jax", requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        tensor.numpy()
    assert tensor.numpy(force=True).tolist() == [1, 1]


def test_numpy_of_a_view_is_the_view():
    base = torch.arange(6.0, device="jax").view(2, 3)
    assert base.t().numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_tolist_of_every_shape(shape):
    values = torch.arange(int(np.prod(shape))).view(shape)
    assert values.to("jax").tolist() == values.tolist()


def test_numpy_and_jax_take_it():
    assert np.asarray(torch.ones(2, device="jax"), dtype=np.int64).tolist() == [1, 1]
    assert jnp.sin(jnp.asarray(torch.zeros(2, device="jax"))).tolist() == [0, 0]


def test_a_later_write_does_not_change_the_array_that_jax_got():
    tensor = torch.zeros(3, device="jax")
    array = jnp.asarray(tensor)
    tensor += 1
    torch_xla_lite.sync()
    assert array.tolist() == [0, 0, 0]
    assert tensor.tolist() == [1, 1, 1]


def test_a_cpu_tensor_has_no_jax_array():
    assert not hasattr(torch.ones(2), "__jax_array__")


def test_what_is_made_of_a_cpu_tensor_still_shares_its_memory():
    tensor = torch.zeros(3)
    tensor.numpy()[0] = np.from_dlpack(tensor)[2] + 5
    torch.from_dlpack(tensor)[1] = 6
    assert tensor.tolist() == [5, 6, 0]


def test_printing_compiles_nothing_but_the_value():
    tensor = torch.arange(5000, device="jax")
    torch_xla_lite.sync()
    torch_xla_lite.debug.reset_metrics()
    assert "4999" in repr(tensor)
    assert torch_xla_lite.debug.metrics()["compiles"] == 0


def test_printing_shows_the_device_and_the_gradient_function():
    assert repr(torch.ones(2, device="jax")) == "tensor([1., 1.], device='jax:0')"
    tensor = torch.ones(2, device="jax", requires_grad=True) * 2
    assert repr(tensor) == "tensor([2., 2.], device='jax:0', grad_fn=<MulBackward0>)"


@pytest.mark.parametrize("convert", [bool, int, float, "{:.2f}".format])
def test_python_numbers(convert):
    assert convert(torch.tensor(3, device="jax")) == convert(3)


def test_it_can_be_an_index_iterated_and_searched():
    tensor = torch.arange(3, device="jax")
    assert ["a", "b"][tensor[1]] == "b"
    assert [int(item) for item in tensor] == [0, 1, 2]
    assert 2 in tensor
    assert len(tensor) == 3


# --- arrays of jax --------------------------------------------------------------------------------


def test_a_tracer_is_refused():
    with pytest.raises(TypeError, match="found a tracer"):
        jax.jit(XLATensor2)(jax.numpy.ones(2))


def test_a_deleted_array_is_refused():
    array = jax.numpy.ones(2)
    array.delete()
    with pytest.raises(RuntimeError, match="deleted or donated"):
        XLATensor2(array)


@pytest.mark.parametrize("read", [torch.Tensor.tolist, torch.Tensor.cpu, lambda x: (x + 1).cpu()])
def test_the_error_of_an_array_that_was_deleted_later_is_raised(read):
    array = jax.numpy.ones(2)
    tensor = XLATensor2(array)
    array.delete()
    with pytest.raises(RuntimeError, match=r"[Aa]rray has been deleted"):
        read(tensor)


@pytest.mark.needs("cpu")
@pytest.mark.nightly
def test_arrays_on_another_device_are_refused_and_those_of_a_mesh_are_not():
    program = """
import jax, torch_xla_lite
from jax.sharding import Mesh, NamedSharding, PartitionSpec
first, second = jax.devices()
mesh = Mesh([first, second], "x")
for place in (first, second, NamedSharding(mesh, PartitionSpec("x"))):
    try:
        print((torch_xla_lite.XLATensor2(jax.device_put(jax.numpy.ones(2), place)) + 1).tolist())
    except ValueError as error:
        print(str(error).splitlines()[-1])
"""
    done = programs.run(program, check=True, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    refused = "Move it first:  jax.device_put(array, jax.local_devices()[0])"
    assert done.stdout.splitlines() == ["[2.0, 2.0]", refused, "[2.0, 2.0]"]


def test_a_weakly_typed_array_is_an_array_of_its_dtype():
    assert (XLATensor2(jax.numpy.asarray(1.5) * 2) + torch.ones(2, device="jax")).tolist() == [4, 4]


DTYPES = sorted({v for v in vars(torch).values() if isinstance(v, torch.dtype)}, key=str)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_device_takes_the_dtypes_of_the_table_and_no_others(dtype):
    if dtype not in registry.OF_TORCH:
        with pytest.raises((TypeError, RuntimeError)):
            torch.empty(8, dtype=dtype).to("jax")
        return
    value = torch.zeros(16, dtype=torch.uint8).view(dtype).jax()
    assert torch_xla_lite._XLAC.to_jax(value).dtype == registry.OF_TORCH[dtype]
    assert value.cpu().view(torch.uint8).tolist() == [0] * 16
