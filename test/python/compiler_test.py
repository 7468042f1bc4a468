"""What the compiler makes of a graph: counts of operations, because times depend on the machine."""

import jax
import jax.numpy as jnp
import numpy as np

from torch_xla_lite import compiler


def test_scalars_are_decoded_together_and_not_one_by_one():
    def numbers(packed):
        scalars = compiler._Scalars.unpack(packed)
        float32 = [scalars.take(1).number(np.dtype(np.float32)) for _ in range(50)]
        return float32 + [scalars.take(1).number(np.dtype(np.int64)) for _ in range(50)]

    with jax.enable_x64(True):
        values = np.r_[np.arange(50.0).view(np.int32), np.arange(50).view(np.int32)]
        packed = jnp.asarray(values.reshape(100, 2))
        operations = str(jax.make_jaxpr(numbers)(packed))
        assert operations.count("bitcast_convert_type") == 2
        assert [x.item() for x in numbers(packed)] == [*range(50), *range(50)]
