import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_xla_lite.lowering.base import promotion, registry
from torch_xla_lite.lowering.base.registry import WrappedNumber

DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex64, torch.complex128),
]
tensors = st.builds(
    lambda dtype, ndim: torch.zeros((1,) * ndim, dtype=dtype),
    st.sampled_from(DTYPES),
    st.integers(0, 1),
)
numbers = st.sampled_from([True, 3, 2.5, 1j])


def to_jax(tensor: torch.Tensor) -> np.ndarray:
    return np.zeros(tensor.shape, registry.OF_TORCH[tensor.dtype])


@settings(deadline=None)
@given(tensors, tensors)
def test_two_tensors_promote_as_in_torch(a, b):
    half_complex = torch.result_type(a, b) == torch.complex32
    if half_complex:
        return
    wanted = registry.OF_TORCH[torch.result_type(a, b)]
    assert promotion.result_dtype(to_jax(a), to_jax(b)) == wanted


@settings(deadline=None)
@given(tensors, numbers)
def test_a_tensor_and_a_number_promote_as_in_torch(a, number):
    if torch.result_type(a, number) == torch.complex32:
        return
    wanted = registry.OF_TORCH[torch.result_type(a, number)]
    assert promotion.result_dtype(to_jax(a), number) == wanted
    assert promotion.result_dtype(to_jax(a), WrappedNumber(np.asarray(number))) == wanted


def test_a_number_follows_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert promotion.result_dtype(np.zeros(1, np.int32), 2.5) == np.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("dims", "ndim", "expected"),
    [(None, 2, (0, 1)), ([], 2, (0, 1)), (-1, 3, (2,)), ([2, -3], 3, (0, 2)), (0, 0, ())],
)
def test_canonical_dims(dims, ndim, expected):
    assert promotion.canonical_dims(dims, ndim) == expected
