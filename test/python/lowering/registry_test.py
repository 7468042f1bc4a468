import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from torch_xla_lite.lowering import registry

aten = torch.ops.aten


def out(*shape: int, dtype: type = np.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.dtype(dtype))


@pytest.fixture
def lowering():
    """Registers a lowering of an op that has none, for the time of one test."""
    added = []

    def add(name, fn, **options):
        assert name not in registry.LOWERINGS
        added.append(name)
        return registry.lower(name, **options)(fn)

    yield add
    for name in added:
        del registry.LOWERINGS[name]


def test_every_lowering_is_named_after_a_functional_op():
    for name in registry.LOWERINGS:
        base, _, overload = name.partition(".")
        schema = torch._C._get_schema(base, overload)
        assert not schema.is_mutable, name


def test_every_output_takes_the_dtype_that_torch_inferred(lowering):
    lowering("aten::nonzero", lambda self: jnp.ones((2,), np.float32))
    (result,) = registry.call("aten::nonzero", [jnp.zeros(3)], [out(2, dtype=np.int32)])
    assert result.dtype == np.int32


def test_an_undefined_output_is_none(lowering):
    lowering("aten::nonzero", lambda self: jnp.ones((2,)))
    assert registry.call("aten::nonzero", [jnp.zeros(3)], [None]) == [None]


def test_a_wrong_shape_is_an_error_that_names_the_op(lowering):
    lowering("aten::nonzero", lambda self: jnp.ones((2,)))
    with pytest.raises(registry.LoweringError, match=r"aten::nonzero.*\(2,\).*\(3,\)"):
        registry.call("aten::nonzero", [jnp.zeros(3)], [out(3)])


def test_a_failing_lowering_is_an_error_that_names_the_op(lowering):
    def fails(self):
        raise ValueError("no such thing")

    lowering("aten::nonzero", fails)
    with pytest.raises(registry.LoweringError, match="aten::nonzero failed: no such thing"):
        registry.call("aten::nonzero", [jnp.zeros(3)], [out(3)])


def test_unsupported_arguments_are_not_an_error_of_the_lowering():
    mask = jnp.array([True, False])
    with pytest.raises(registry.Unsupported):
        registry.call("aten::index.Tensor", [jnp.zeros(2), [mask]], [out(1)])


def test_dtype_arguments_arrive_as_numpy_dtypes_and_device_arguments_not_at_all(lowering):
    received = {}

    def from_file(filename, shared, size, **keywords):
        received.update(keywords)
        return jnp.zeros((size,))

    lowering("aten::from_file", from_file)
    registry.call("aten::from_file", ["name", None, 3, 6, None, "jax", None], [out(3)])
    assert received == {"dtype": np.dtype(np.float32)}


def test_an_op_has_one_lowering():
    with pytest.raises(registry.LoweringError, match="two lowerings"):
        registry.lower("aten::relu")(lambda self: self)


@pytest.mark.parametrize("name", ["aten::add.Tensor", "aten::relu", "aten::arange"])
def test_scalars_are_constants_only_where_a_shape_depends_on_them(name):
    assert registry.LOWERINGS[name].constants == (name == "aten::arange")
