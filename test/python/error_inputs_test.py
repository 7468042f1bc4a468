"""Calls of torch's database of ops that the CPU refuses raise here what they raise there.

The database names some; others are samples with one tensor of another size or dtype, or in a dtype
that the op does not take.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from typing import Any

import pytest
import torch

from test.python import database, tiers


def named(op: Any) -> list[Any]:
    if op.error_inputs_func is None:
        return []
    torch.manual_seed(0)
    return [error.sample_input for error in op.error_inputs("cpu")]


def misfits(op: Any) -> Iterator[Any]:
    for dtype in (torch.float32, torch.int64, torch.bool):
        for sample in database.samples(op, dtype, 2):
            yield from database.misfits(sample)


DTYPES = ("bfloat16", "float16", "int32", "uint8", "bool", "complex64")
SOURCES: dict[str, Callable[[Any], Iterable[Any]]] = {
    "named": named,
    "misfits": misfits,
    **{dtype: lambda op, dtype=dtype: database.refused(op, dtype) for dtype in DTYPES},
}
# What may differ, and why: all calls of an op, or one by its number.
DIFFERENT = {
    "named": {
        "an index is checked where it is used, by another error": (
            "gather:4 scatter:3 scatter_add:3"
        ),
        "an op reads all its operands before it writes": "cat:6 kthvalue:0",
        "dtypes have their names of Python": "multinomial:2",
    },
    "misfits": {
        "torch's kernel ends the process, or reads other memory": """linalg_lstsq* native_batch_norm
            _native_batch_norm_legit _batch_norm_with_update nn_functional_batch_norm
            nn_functional_batch_norm_without_cudnn _chunk_cat nn_functional_pdist""",
        "an index is checked where it is used, by another error": """nn_functional_cross_entropy
            __getitem__ index_put put take nn_functional_nll_loss masked_scatter""",
        "the lowering computes what torch's kernel refuses": """stft index_fill dist
            slice_scatter index_copy baddbmm fft_* renorm""",
        "the lowering fails, when a value is read": """_softmax_backward_data as_strided_scatter
            native_group_norm nn_functional_binary_cross_entropy_with_logits index_select
            nn_functional_scaled_dot_product_attention _unsafe_masked_index_put_accumulate
            nn_functional_embedding nn_functional_grid_sample grid_sampler_2d""",
        "another check comes first": """nn_functional_linear_cross_entropy_chunked tensor_split
            nn_functional_linear_cross_entropy_chunked_none nn_functional_ctc_loss""",
    },
    "bfloat16": {"the lowering fails, when a value is read": "complex polar"},
    "float16": {"XLA has no such dtype": "polar stft linalg_eig linalg_eigvals"},
    "bool": {"the lowering fails, when a value is read": "arange addmm addmm_decomposed"},
    "complex64": {
        "the lowering fails, when a value is read": "special_*",
        "another check comes first": "quantile nanquantile",
    },
    "all dtypes": {
        "another check comes first": "nn_functional_scaled_dot_product_attention",
        "dtypes have their names in the text": "stft",
    },
}
# Parts of the database, each a test.
PARTS = 8
DAILY = ("cat", "gather", "index_select", "masked_select", "scatter", "sum")
DAILY += ("nn_functional_conv1d", "nn_functional_gelu")


# The op whose kernel raised, the remedy, and the layout for which a kernel has a name of its own.
_DETAILS = re.compile(r"^aten::[\w.]+: | \(in aten.*|. Please clone\(\).*|_channels_last")
_PLACES = re.compile(
    r"jax:0|\bcpu\b|\bjax\b|\b(torch\.|CPU|Meta|jax)([a-zA-Z0-9]+?)(Tensor|Type)(?=[\[{])"
)


def raised(op: Any, sample: Any) -> tuple[type, str] | None:
    """The type and the first line of the error that the call, or the read of its result, raises."""
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = op(sample.input, *sample.args, **sample.kwargs)
            torch.jax.synchronize()
    except Exception as error:
        text = next(iter(str(error).splitlines()), "")
        return type(error), _PLACES.sub("DEVICE", _DETAILS.sub("", text))
    del result
    return None


def differences(name: str, source: str) -> list[str]:
    op, different = database.ops()[name], []
    reasons = [*DIFFERENT.get(source, {}).values()]
    reasons += DIFFERENT["all dtypes"].values() if source in DTYPES else ()
    known = [x for x in " ".join(reasons).split() if fnmatch(name, x.partition(":")[0])]
    if any(":" not in x for x in known):
        return []
    for number, sample in enumerate(SOURCES[source](op)):
        moved = database.outcome(lambda x=sample: database.moved(x, "jax"))
        wanted = raised(op, sample)
        # Some are of sparse tensors, some are errors of newer versions only.
        if wanted is None or isinstance(moved, Exception) or f"{name}:{number}" in known:
            continue
        got = raised(op, moved)
        # Lowerings take more dtypes than kernels (refused_dtypes_test.py).
        takes_more = got is None and (source in DTYPES or wanted[0] is NotImplementedError)
        if got != wanted and not takes_more:
            different.append(f"{number}: {got}, not {wanted}")
    return different


_interprets = tiers.autouse(tiers.interpreting)


@pytest.mark.parametrize("name", DAILY)
@pytest.mark.parametrize("source", ["named", "misfits"])
def test_the_errors_of_an_op_are_those_of_the_cpu(name: str, source: str):
    assert database.found([name], lambda name: differences(name, source)) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("source", SOURCES)
def test_the_errors_of_each_op_are_those_of_the_cpu(source: str, part: int):
    names = database.part(part, PARTS, [*database.ENDLESS, *database.UNCHECKED])
    assert database.found(names, lambda name: differences(name, source)) == {}
