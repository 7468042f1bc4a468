import pytest
import torch
from comparison import check, run

from torch_xla_lite.lowering.base.registry import Unsupported

aten = torch.ops.aten
X = torch.randn(4, 5, 6)


def indices(*shape: int, below: int = 4) -> torch.Tensor:
    return torch.randint(0, below, shape)


@pytest.mark.parametrize(
    "key",
    [
        [indices(3)],
        [None, indices(3), indices(3)],
        [indices(2, 1), None, indices(3) - 4],
        [torch.tensor(2), indices(2, 2)],
        [None, None, torch.empty(0, dtype=torch.int64)],
    ],
)
def test_indexing_by_tensors(key):
    check(aten.index.Tensor, X, key)


def test_a_mask_cannot_be_an_index_in_a_graph():
    with pytest.raises(Unsupported):
        run(aten.index.Tensor, X, [X > 0], expected=[torch.empty(3)])


@pytest.mark.parametrize("accumulate", [False, True])
def test_putting_by_index(accumulate):
    check(aten.index_put, X, [torch.tensor([0, 2])], torch.randn(2, 5, 6), accumulate)
    check(aten.index_put, X, [None, torch.tensor([1, -1])], torch.randn(6), accumulate)
    check(aten.index_put, X, [X > 0], torch.tensor(3.0), accumulate)
    check(aten.index_put, X, [torch.tensor([True, False, True, True])], torch.ones(1), accumulate)


def test_accumulating_counts_every_repetition():
    check(aten.index_put, X, [torch.tensor([1, 1, 1])], torch.ones(3, 5, 6), True)


def test_accumulated_bools_stay_true():
    values = torch.tensor([False, True, False])
    check(aten.index_put, torch.arange(4) > 1, [torch.tensor([3, 0, 1])], values, True)


@pytest.mark.parametrize("dim", [0, -1])
def test_slices_by_index(dim):
    index = indices(3)
    source = torch.randn([3 if d == dim % 3 else n for d, n in enumerate(X.shape)])
    check(aten.index_select, X, dim, index)
    check(aten.index_add, X, dim, index, source, alpha=2.5)
    check(aten.index_copy, X, dim, torch.tensor([3, 0, 1]), source)
    check(aten.index_fill.int_Scalar, X, dim, index, 7.5)
    check(aten.index_fill.int_Tensor, X, dim, index, torch.tensor(7.5))


def test_positions_in_the_flattened_tensor():
    check(aten.take, X, indices(3, 3, below=100) - 50)
    check(aten.put, X, torch.tensor([3, -7]), torch.randn(2))
    check(aten.put, X, torch.tensor([3, 3]), torch.randn(2), True)


def test_gather_of_fewer_elements():
    check(aten.gather, X, 1, indices(2, 7, 3))
    check(aten.gather, torch.tensor(3.0), 0, torch.tensor([0, 0]))
    check(aten.gather, X, 0, torch.empty(0, 5, 6, dtype=torch.int64))


def test_scatter():
    places = torch.arange(3).view(1, 3, 1).expand(4, 3, 6).contiguous()
    check(aten.scatter.src, X, 1, places, torch.randn(4, 5, 6))
    check(aten.scatter.value, X, 2, indices(3, 4, 2), 3.5)
    check(aten.scatter_add, X, 0, indices(4, 5, 3), torch.randn(4, 5, 6))
    check(aten.scatter.reduce, X, 0, indices(2, 5, 6), torch.randn(4, 5, 6), reduce="multiply")


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce(reduce, include_self):
    options = {"include_self": include_self}
    check(aten.scatter_reduce.two, X, 1, indices(4, 3, 6), torch.randn(4, 3, 6), reduce, **options)
    whole = torch.arange(20).reshape(4, 5)
    check(aten.scatter_reduce.two, whole, 1, indices(4, 3), indices(4, 3), reduce, **options)


def test_the_mean_of_complex_numbers_by_index():
    x, source = torch.complex(X, -X)[..., 0], torch.complex(X, X * 2)[..., 0]
    places = torch.tensor([0, 2, 2, 0, 0])
    check(aten.index_reduce, x, 1, places, source, "mean")
    places = places.expand(4, 5).contiguous()
    check(aten.scatter_reduce.two, x, 1, places, source, "mean", include_self=True)


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_index_reduce(reduce):
    check(aten.index_reduce, X, 1, indices(7), torch.randn(4, 7, 6), reduce)


def test_masked_scatter_and_its_gradient():
    mask = X > 0
    check(aten.masked_scatter, X, mask, torch.randn(200))
    check(aten.masked_scatter_backward, X, mask, [int(mask.sum())])


@pytest.mark.parametrize("size", [3, 200])
def test_as_many_positions_of_nonzeros_as_asked_for(size):
    check(aten.nonzero_static, X > 1, size=size)


@pytest.mark.parametrize("masked", [[True, True, True, True], [True, False, False, True]])
def test_masked_indices_out_of_range_are_those_of_the_nearest_element(masked):
    places, mask = torch.tensor([0, 7, -9, 2]), torch.tensor(masked)
    values = torch.arange(1.0, 5)
    check(aten._unsafe_masked_index_put_accumulate, torch.zeros(3), mask, [places], values)
    check(aten._unsafe_masked_index, torch.arange(3.0), mask, [places], 9.0)
