"""torch's database of ops in all variants of database.py, and the memory of results.

The CPU, interpreted and compiled graphs give one answer, for all samples that the CPU computes.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pytest
import torch

from test.python import database, tiers
from torch_xla_lite import _XLAC

F32, I32 = torch.float32, torch.int32
_FLOATS = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5)
_LARGEST = torch.iinfo(I32).max
VALUES = {F32: _FLOATS, I32: (0, 1, -1, _LARGEST, ~_LARGEST)}
DTYPES = (
    *(torch.bool, torch.uint8, I32, torch.int64, torch.float16, torch.bfloat16),
    *(F32, torch.float64, torch.complex64),
)
MIXED = {F32: (F32, torch.float64, torch.complex64), I32: (torch.uint8, torch.int64, F32)}
VARIANTS: dict[str, Callable[[Any, torch.dtype], Iterator[Any]]] = {
    "sample": lambda sample, dtype: iter([sample]),
    "views": lambda sample, dtype: database.views(sample),
    "empty": lambda sample, dtype: database.emptied(sample),
    "tiny": lambda sample, dtype: database.tiny(sample, dtype, VALUES[dtype]),
    "paired": lambda sample, dtype: database.paired(sample, DTYPES),
    "mixed": lambda sample, dtype: database.paired(sample, MIXED[dtype]),
}
# What may differ, by the reason: in all variants, or in one variant or mode.
ALWAYS_DIFFERENT = {
    "XLA has no such dtype": "chalf",
    "the signs of singular vectors": "svd_lowrank pca_lowrank",
    "there are no sparse tensors": "to_sparse",
    "a copy of the sample is not in the middle of a memory": "as_strided_partial_views",
}
DIFFERENT: dict[str, dict[str, str]] = {
    "sample": {"which of several equal elements is meant": "argsort sort"},
    "inplace": {
        "the first sample draws no random numbers, later ones do": """nn_functional_alpha_dropout
            nn_functional_dropout nn_functional_dropout2d nn_functional_dropout3d
            nn_functional_feature_alpha_dropout_with_train""",
        "a mask of more elements is refused when a value is read": "masked_scatter",
    },
    "out": {
        "torch does not give `out` another size": "normal normal_number_mean",
        "which of several equal elements is meant": "kthvalue topk",
        "the signs of eigenvectors": "linalg_eigh",
        "torch's kernel does not write an `out` with gaps": "nn_functional_gelu",
    },
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
        "the phase of a number near 2^31 is lost in float32": """special_airy_ai
            special_bessel_j0 special_bessel_j1 special_bessel_y1""",
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


class Walk(NamedTuple):
    variant: str
    dtype: torch.dtype
    mode: str = "forward"
    limit: int = 3  # Samples of an op.

    def pairs(self, names: Iterable[str]) -> Iterator[tuple[database.Call, Any]]:
        for call in (database.Call(database.ops()[name], self.mode) for name in names):
            for sample in call.samples(self.dtype, self.limit):
                for made in VARIANTS[self.variant](sample, self.dtype):
                    yield call, made


WALKS = [
    *(Walk("empty", F32), Walk("empty", F32, "backward"), Walk("empty", I32)),
    *(Walk("tiny", F32), Walk("tiny", I32), Walk("paired", F32, limit=1)),
    *(Walk("sample", F32, "inplace", 12), Walk("sample", I32, "inplace")),
    *(Walk("mixed", F32, "inplace"), Walk("mixed", I32, "inplace")),
    *(Walk("sample", F32, "out"), Walk("sample", I32, "out"), Walk("sample", torch.bool)),
    *(Walk("views", F32, limit=1), Walk("views", F32, "backward", 1)),
]
PARTS = 8  # Of the database, each a test.
all_parts = pytest.mark.parametrize("part", range(PARTS))


@pytest.mark.nightly
@all_parts
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: "-".join(map(str, walk)))
def test_all_ops_give_one_answer(walk: Walk, part: int):
    different = ALWAYS_DIFFERENT | DIFFERENT.get(walk.variant, {}) | DIFFERENT.get(walk.mode, {})
    reasons = [*database.ENDLESS, *different.values()]
    reasons += database.UNCHECKED if walk.variant in ("empty", "tiny") else ()
    names = database.part(part, PARTS, reasons)
    assert database.differences([*walk.pairs(names)]) == []


@pytest.mark.parametrize(
    ("walk", "names"),
    [
        (Walk("sample", F32, "inplace"), "add index_copy"),
        (Walk("mixed", I32, "inplace"), "clamp"),
        (Walk("sample", F32, "out", 2), "cumsum gather"),
        (Walk("sample", torch.bool), "eq prod"),
        (Walk("views", F32, "backward", 1), "addmm nn_functional_layer_norm"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, Walk) else value,
)
def test_some_ops_give_one_answer(walk: Walk, names: str):
    assert database.differences([*walk.pairs(names.split())]) == []


# Some of each file of lowerings. All of them take minutes, most of which torch takes for samples.
OF_EACH_FILE = """
    nn_functional_softplus add remainder nn_functional_conv2d cdist nn_functional_embedding linspace
    fft_rfft index_add scatter_reduce_mean linalg_inv nn_functional_smooth_l1_loss
    nn_functional_nll_loss addmm nn_functional_layer_norm nn_functional_max_pool2d prod var
    logsumexp cumsum roll tril log_softmax topk searchsorted special_hermite_polynomial_h addcdiv
    where expm1 lgamma nn_functional_interpolate_bilinear diagonal slice_scatter"""


def once(names: Iterable[str]) -> Iterator[tuple[database.Call, Any]]:
    """A call of each op, and of its gradient."""
    for op in (database.ops()[name] for name in names):
        dtype = F32 if F32 in op.dtypes else torch.int64
        for mode in ["forward"] + ["backward"] * (op.supports_autograd and dtype == F32):
            call = database.Call(op, mode)
            yield from ((call, sample) for sample in call.samples(dtype, 3)[-1:])


def test_some_ops_of_each_file_of_lowerings_give_one_answer():
    assert database.differences([*once(OF_EACH_FILE.split())]) == []


@pytest.mark.nightly
@all_parts
def test_a_call_of_each_op_and_its_gradient_give_one_answer(part: int):
    reasons = [*database.ENDLESS, *database.UNCHECKED, *ALWAYS_DIFFERENT.values()]
    assert database.differences([*once(database.part(part, PARTS, reasons))]) == []


# --- special values -------------------------------------------------------------------------------

# How many ops of the database the interpreter computes with its own kernels.
NUM_COMPARED = {F32: 560, I32: 330}
# What may differ between interpreted and compiled graphs, and why.
DIFFERENT_VALUES = {
    "a partial result is beyond float32, and torch has it in float64": """
        linalg_vector_norm native_group_norm native_layer_norm nn_functional_batch_norm
        nn_functional_instance_norm nn_functional_scaled_dot_product_attention std std_mean
        std_mean_unbiased std_unbiased trapezoid trapz var var_mean var_mean_unbiased
        var_unbiased""",
    "sums in another order, of which one has both infinities": """
        _upsample_bilinear2d_aa addbmm baddbmm fft_fft fft_fft2 fft_hfft fft_hfft2 fft_hfftn
        fft_ifft fft_ifft2 fft_ihfft fft_ihfft2 fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2
        linalg_lu_solve lu_solve stft""",
    "a small difference of large sums, of which each is rounded": """
        nn_functional_linear_cross_entropy nn_functional_linear_cross_entropy_chunked
        nn_functional_linear_cross_entropy_chunked_none""",
    "decompositions of matrices with NaN, infinities or elements of 1e19": """
        cholesky_inverse linalg_cholesky linalg_cholesky_ex linalg_eig linalg_eigh linalg_eigvals
        linalg_eigvalsh linalg_inv linalg_inv_ex linalg_lu linalg_lu_factor linalg_lu_factor_ex
        linalg_qr linalg_tensorinv linalg_tensorsolve lu matrix_exp qr""",
    "the signs of singular vectors": "pca_lowrank svd_lowrank",
    "which of several equal elements is meant": "argsort kthvalue mode sort topk",
    "torch's kernel has another result in its vectors than in the rest": """
        fmod nn_functional_gelu remainder""",
    "series that do not converge there": """
        special_airy_ai special_zeta""",
    "torch's loop ends at NaN before it has a result of an order above 1": """
        special_chebyshev_polynomial_t special_chebyshev_polynomial_u
        special_chebyshev_polynomial_v special_chebyshev_polynomial_w
        special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
        special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w""",
}


def compare(name: str, dtype: torch.dtype) -> tuple[int, list[str]]:
    """How many calls were interpreted with special values, and what differs when compiled."""
    call, count, different = database.Call(database.ops()[name]), 0, []
    for one in call.samples(dtype, 2):
        samples = [*database.special(one, dtype, database.VALUES[dtype])]
        first = database.interpreted([lambda x=x: call.record(x) for x in samples])
        # Errors, such as of division by zero, are those of the compiled graph.
        kept = [(x, y.result) for x, y in zip(samples, first, strict=True) if y.is_interpreted]
        again = database.compiled([lambda x=x: call.record(x) for x, _ in kept])
        for (sample, wanted), got in zip(kept, again, strict=True):
            count += 1
            if text := database.difference(sample, got, wanted):
                different.append(f"{sample}: compiled, not interpreted: {text}")
    return count, different


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", database.VALUES, ids=str)
def test_special_values_give_one_answer_interpreted_and_compiled(dtype: torch.dtype):
    names = [x for x in database.part(0, 1) if dtype in database.ops()[x].dtypes]
    with tiers.using(tiers.per_op(interpretation=1, compilation=1e9)):
        compared = {name: compare(name, dtype) for name in names}
    _XLAC.set_compile_when("first")
    may_differ = {*" ".join(DIFFERENT_VALUES.values()).split()}
    different = {name: found[0] for name, (_, found) in compared.items() if found}
    assert {name: text for name, text in different.items() if name not in may_differ} == {}
    assert sum(count > 0 for count, _ in compared.values()) >= NUM_COMPARED[dtype]


# --- memory ---------------------------------------------------------------------------------------


def shares_other_memory(name: str, limit: int = 12) -> list[Any]:
    """Samples of which a write to the result changes other arguments than on the CPU."""
    call, different = database.Call(database.ops()[name]), []
    for sample in call.samples(F32, limit):
        changed = [
            database.outcome(lambda d=d, x=sample: database.changed_by_writes(call, x, d))
            for d in ("jax", "cpu")
        ]
        if not isinstance(changed[1], Exception) and database.difference(sample, *changed):
            different.append(sample)
    return different


@pytest.mark.parametrize("name", ["reshape", "split", "unsafe_chunk", "unsafe_split"])
def test_a_write_to_a_result_changes_the_arguments_that_it_changes_on_the_cpu(name: str):
    assert shares_other_memory(name, limit=4) == []


@pytest.mark.nightly
@all_parts
def test_a_write_to_a_result_of_each_op_changes_the_arguments_that_it_does_on_the_cpu(part: int):
    reasons = [*database.ENDLESS, *database.UNCHECKED, *ALWAYS_DIFFERENT.values()]
    names = database.part(part, PARTS, reasons)
    assert database.found(names, shares_other_memory) == {}


# Of row-major arguments, beside strides that no row-major tensor has. docs/usage.md says so.
OTHER_STRIDES = (
    *("cholesky", "empty_strided", "fft_", "linalg_", "lu", "new_empty_strided"),
    *("pca_lowrank", "qr", "svd", "triangular_solve"),
)


def lie_differently(name: str, limit: int = 4) -> list[Any]:
    call = database.Call(database.ops()[name])
    return [
        sample
        for sample in call.samples(F32, limit)
        if all(x.is_contiguous() for x in database.tensors(sample))
        and database.outcome(lambda x=sample: database.has_other_strides(call, x)) is True
    ]


@pytest.mark.parametrize("name", ["argwhere", "matmul", "rot90", "sum"])
def test_results_lie_in_memory_as_on_the_cpu(name: str):
    assert not lie_differently(name, limit=2)


@pytest.mark.nightly
@all_parts
def test_results_of_each_op_lie_in_memory_as_on_the_cpu_or_as_the_docs_say(part: int):
    reasons = [*database.ENDLESS, *database.UNCHECKED, *ALWAYS_DIFFERENT.values()]
    names = [x for x in database.part(part, PARTS, reasons) if not x.startswith(OTHER_STRIDES)]
    assert database.found(names, lie_differently) == {}
