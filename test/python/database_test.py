"""torch's database of ops at the edges: no or one element, two dtypes, writes to results.

The CPU, interpreted and compiled graphs give one answer, for all samples that the CPU computes.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch

from test.python import database

_FLOATS = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5)
_LARGEST = torch.iinfo(torch.int32).max
VALUES = {torch.float32: _FLOATS, torch.int32: (0, 1, -1, _LARGEST, ~_LARGEST)}
DTYPES = (
    *(torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16),
    *(torch.float32, torch.float64, torch.complex64),
)
VARIANTS: dict[str, Callable[[Any, torch.dtype], Iterator[Any]]] = {
    "empty": lambda sample, dtype: database.emptied(sample),
    "tiny": lambda sample, dtype: database.tiny(sample, dtype, VALUES[dtype]),
    "paired": lambda sample, dtype: database.paired(sample, DTYPES),
    "paired with doubles": lambda sample, dtype: database.paired(sample, (dtype, torch.float64)),
}
DAILY = {
    "complex": ("paired with doubles", torch.float32),
    "index_fill": ("empty", torch.float32),
    "index_put": ("empty", torch.float32),
    "linalg_solve_triangular": ("paired with doubles", torch.float32),
    "log_softmax": ("tiny", torch.float32),
    "matrix_exp": ("tiny", torch.float32),
    "nn_functional_soft_margin_loss": ("paired with doubles", torch.float32),
    "remainder": ("empty", torch.int32),
    "select_scatter": ("paired with doubles", torch.float32),
    "slice_scatter": ("paired with doubles", torch.float32),
    "softmax": ("tiny", torch.float32),
}


# What may differ, by the reason: in a variant, or in all.
DIFFERENT = {
    "empty": {
        "torch's kernel does not broadcast the sum if the matrix is empty": "addmv",
        "torch's kernel leaves the mean uninitialised": """nn_functional_multi_margin_loss
            nn_functional_multilabel_margin_loss""",
        "torch's kernel gives an empty tensor its own shape": "nn_functional_pixel_unshuffle",
        "torch's kernel of the gradient ends the process": "nn_functional_pdist",
    },
    "tiny": {
        "torch's kernel ends the process": "_chunk_cat",
        "torch's kernel takes NaN, which ends the process in larger matrices": "linalg_eigvals",
        "XLA's factors of infinities are wrong, so they are refused": """cholesky linalg_cholesky
            linalg_cholesky_ex""",
        "a weight is zero or almost zero beside an infinity": """nn_functional_interpolate_linear
            nn_functional_interpolate_bilinear nn_functional_interpolate_trilinear
            nn_functional_upsample_bilinear""",
    },
    "paired": {
        "torch rounds each step to the narrower dtype, a compiled graph once": """__rdiv__
            _batch_norm_with_update ldexp nn_functional_binary_cross_entropy_with_logits
            nn_functional_cosine_embedding_loss nn_functional_cosine_similarity
            nn_functional_kl_div nn_functional_poisson_nll_loss
            nn_functional_soft_margin_loss""",
        "torch's kernel multiplies halves by integers": """
            nn_functional_linear_cross_entropy_chunked
            nn_functional_linear_cross_entropy_chunked_none""",
    },
}
ALWAYS_DIFFERENT = {
    "XLA has no such dtype": "chalf",
    "the signs of singular vectors": "svd_lowrank pca_lowrank",
    "there are no sparse tensors": "to_sparse",
}
# torch's kernels read beyond their tensors, or a value says how many steps they take.
ENDLESS = (
    *("_segment_reduce_lengths", "_segment_reduce_offsets", "bincount", "lu_unpack"),
    *("nn_functional_embedding_bag", "repeat_interleave"),
    *("special_laguerre_polynomial_l", "special_legendre_polynomial_p"),
)
MATRIX = [
    ("empty", torch.float32, "forward"),
    ("empty", torch.float32, "backward"),
    ("empty", torch.int32, "forward"),
    ("tiny", torch.float32, "forward"),
    ("tiny", torch.int32, "forward"),
    ("paired", torch.float32, "forward"),
]
# Of the database, each a test.
PARTS = 8


def part_of_the_database(part: int) -> dict[str, Any]:
    names = [name for name in database.ops() if name not in ENDLESS][part::PARTS]
    return {name: database.ops()[name] for name in names}


def differences(
    op: Any, variant: str, dtype: torch.dtype, *, mode: str = "forward", limit: int = 6
) -> list[str]:
    found = database.samples(op, dtype, limit, mode=mode)
    made = [x for sample in found for x in VARIANTS[variant](sample, dtype)]
    return database.differences(database.Call(op, mode), made)


@pytest.mark.nightly
@pytest.mark.parametrize("name", DAILY)
def test_an_op_gives_one_answer(name: str):
    assert differences(database.ops()[name], *DAILY[name], limit=1) == []


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("variant", "dtype", "mode"), MATRIX, ids=str)
def test_all_ops_give_one_answer(variant: str, dtype: torch.dtype, mode: str, part: int):
    reasons = ALWAYS_DIFFERENT | DIFFERENT[variant]
    may_differ = {name for names in reasons.values() for name in names.split()}
    limit = 1 if variant == "paired" else 3
    found = {
        name: texts[0]
        for name, op in part_of_the_database(part).items()
        if name not in may_differ
        and (texts := differences(op, variant, dtype, mode=mode, limit=limit))
    }
    assert found == {}


# Some of each file of lowerings. All of them take minutes, most of which torch takes for samples.
OF_EACH_FILE = """
    nn_functional_softplus add remainder nn_functional_conv2d cdist nn_functional_embedding linspace
    fft_rfft index_add scatter_reduce_mean linalg_inv nn_functional_smooth_l1_loss
    nn_functional_nll_loss addmm nn_functional_layer_norm nn_functional_max_pool2d prod var
    logsumexp cumsum roll tril log_softmax topk searchsorted special_hermite_polynomial_h addcdiv
    where expm1 lgamma nn_functional_interpolate_bilinear diagonal slice_scatter"""


def differences_of_a_call(names: Iterable[str]) -> list[str]:
    """Of a sample of each op, and of its gradient."""
    pairs = []
    for op in (database.ops()[name] for name in names):
        dtype = torch.float32 if torch.float32 in op.dtypes else torch.int64
        for mode in ["forward"] + ["backward"] * (op.supports_autograd and dtype.is_floating_point):
            samples = database.samples(op, dtype, 3, mode=mode)
            pairs += [(database.Call(op, mode), x) for x in samples[-1:]]
    return database.differences_of(pairs)


def test_some_ops_of_each_file_of_lowerings_give_one_answer():
    assert differences_of_a_call(OF_EACH_FILE.split()) == []


# What may differ, beside what always does.
DIFFERENT_ONCE: dict[str, str] = {}


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_a_call_of_each_op_and_its_gradient_give_one_answer(part: int):
    reasons = ALWAYS_DIFFERENT | DIFFERENT_ONCE
    may_differ = {name for names in reasons.values() for name in names.split()}
    assert differences_of_a_call(part_of_the_database(part).keys() - may_differ) == []


def shares_other_memory(op: Any, limit: int) -> list[Any]:
    """Samples of which a write to the result changes other arguments than on the CPU."""
    call, found = database.Call(op), []
    for sample in database.samples(op, torch.float32, limit):
        changed = [
            database.outcome(lambda d=d, x=sample: database.changed_by_writes(call, x, d))
            for d in ("jax", "cpu")
        ]
        if not isinstance(changed[1], Exception) and database.difference(sample, *changed):
            found.append(sample)
    return found


@pytest.mark.parametrize("name", ["reshape", "split", "unsafe_chunk", "unsafe_split"])
def test_a_write_to_a_result_changes_the_arguments_that_it_changes_on_the_cpu(name: str):
    assert shares_other_memory(database.ops()[name], limit=4) == []


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_a_write_to_a_result_of_each_op_changes_the_arguments_that_it_does_on_the_cpu(part: int):
    found = {
        name: samples[0]
        for name, op in part_of_the_database(part).items()
        if name != "chalf" and (samples := shares_other_memory(op, limit=12))
    }
    assert found == {}


# Of row-major arguments, beside strides that no row-major tensor has. docs/usage.md says so.
OTHER_STRIDES = (
    *("cholesky", "empty_strided", "fft_", "linalg_", "lu", "new_empty_strided"),
    *("pca_lowrank", "qr", "svd_lowrank", "triangular_solve"),
)


def lies_differently(op: Any, limit: int) -> bool:
    call = database.Call(op)
    return any(
        database.outcome(lambda x=sample: database.has_other_strides(call, x)) is True
        for sample in database.samples(op, torch.float32, limit)
        if all(x.is_contiguous() for x in database.tensors(sample))
    )


@pytest.mark.parametrize("name", ["argwhere", "matmul", "rot90", "sum"])
def test_results_lie_in_memory_as_on_the_cpu(name: str):
    assert not lies_differently(database.ops()[name], limit=2)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_results_of_each_op_lie_in_memory_as_on_the_cpu_or_as_the_docs_say(part: int):
    ops = part_of_the_database(part).items()
    found = {name for name, op in ops if lies_differently(op, limit=4)}
    assert {name for name in found if not name.startswith(OTHER_STRIDES)} == set()
