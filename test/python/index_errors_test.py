"""An index out of range raises when a value is read, whatever op it was given to."""

import gc
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as F

import torch_xla_lite
from test.python import tiers
from test.python.programs import lines, run, run_file

X = torch.arange(12.0).reshape(3, 4)
BAD, NEGATIVE, GOOD = (torch.tensor(v) for v in ([0, 7], [0, -5], [0, 2]))


def scatter(x, i, name, *args, **kwargs):
    return getattr(x, name)(0, i[:, None], *args, **kwargs)


def filled(x, rows=2):
    return torch.ones(rows, 4, device=x.device)


OPS = {
    "index": lambda x, i: x[i],
    "index of the second dimension": lambda x, i: x[:, i],
    "setitem": lambda x, i: x.clone().index_put_((i,), filled(x)),
    "index_put": lambda x, i: x.index_put((i,), filled(x), accumulate=True),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_add": lambda x, i: x.index_add(0, i, filled(x)),
    "index_copy": lambda x, i: x.index_copy(0, i, filled(x)),
    "index_fill": lambda x, i: x.index_fill(0, i, 5),
    "index_reduce": lambda x, i: x.index_reduce(0, i, filled(x), "amax"),
    "take": lambda x, i: x.take(i * 3),
    "put": lambda x, i: x.put(i * 3, torch.ones(2, device=x.device)),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "scatter": lambda x, i: scatter(x, i, "scatter", filled(x)),
    "scatter of a number": lambda x, i: scatter(x, i, "scatter", 5),
    "scatter_add": lambda x, i: scatter(x, i, "scatter_add", filled(x)),
    "scatter_reduce": lambda x, i: scatter(x, i, "scatter_reduce", filled(x), reduce="amax"),
    "embedding": lambda x, i: F.embedding(i, x),
    "embedding_bag": lambda x, i: F.embedding_bag(i, x, torch.zeros(1, dtype=i.dtype).to(x.device)),
    "nll_loss": lambda x, i: F.nll_loss(x[:2, :3], i),
    "nll_loss2d": lambda x, i: F.nll_loss(x[:2, :3, None], i[:, None]),
    "cross_entropy": lambda x, i: F.cross_entropy(x[:2, :3], i),
    "multi_margin_loss": lambda x, i: F.multi_margin_loss(x[:2, :3], i),
    "max_unpool": lambda x, i: F.max_unpool1d(x[:2, :1], i[:, None] // 2, 2),
}
ops = pytest.mark.parametrize("op", OPS.values(), ids=OPS.keys())


@pytest.mark.few_daily(12)
@ops
@pytest.mark.parametrize("index", [BAD, NEGATIVE], ids=["too large", "negative"])
def test_reading_the_result_raises(op, index):
    with pytest.raises((IndexError, RuntimeError)):
        op(X, index)
    result = op(X.jax(), index.jax())
    with pytest.raises(IndexError, match="out of range: it must be in"):
        result.tolist()


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("offsets", [[1, 2], [0, 4], [0, 2, 1], [0, -1]], ids=str)
def test_offsets_of_bags_that_are_no_ranges_raise(mode, offsets):
    rows, offsets = torch.tensor([0, 1, 2], device="jax"), torch.tensor(offsets, device="jax")
    result = F.embedding_bag(rows, X.jax(), offsets, mode=mode)
    with pytest.raises(RuntimeError, match="offsets must begin with 0, not decrease"):
        result.tolist()


def test_a_bag_at_the_end_may_be_empty():
    rows, offsets = torch.tensor([0, 1, 2]), torch.tensor([0, 0, 3, 3])
    for last in (False, True):
        got = F.embedding_bag(rows.jax(), X.jax(), offsets.jax(), include_last_offset=last)
        wanted = F.embedding_bag(rows, X, offsets, include_last_offset=last)
        torch.testing.assert_close(got.cpu(), wanted)


def test_negative_indices_count_from_the_end_where_torch_counts_them():
    index = torch.tensor([-1, -3])
    assert torch.equal(X.jax()[index.jax()].cpu(), X[index])
    assert torch.equal(X.jax().take(index.jax()).cpu(), X.take(index))


def test_an_ignored_class_is_no_error():
    labels = torch.tensor([0, -100, 2])
    got = F.cross_entropy(X.jax(), labels.jax())
    torch.testing.assert_close(got.cpu(), F.cross_entropy(X, labels))


def test_the_error_names_the_op_and_the_range():
    with pytest.raises(IndexError, match=r"must be in \[0, 3\) \(in aten::embedding\)"):
        F.embedding(BAD.jax(), X.jax()).sum().item()


def test_an_error_is_raised_once_and_breaks_nothing():
    x, index = X.jax(), BAD.jax()
    rows = x[index]
    with pytest.raises(IndexError):
        rows.sum().item()
    assert x.sum().item() == 66
    assert rows.shape == (2, 4)
    x[x > 0] = X.flatten()[:2].jax()
    with pytest.raises(IndexError, match="2 values were assigned to another number"):
        x.tolist()
    assert x.tolist() == X.tolist()


def test_another_value_of_the_graph_raises_too():
    """As on CUDA, but the tensors stay usable."""
    lost = X.jax()[BAD.jax()]
    other = X.jax() + 1
    with pytest.raises(IndexError):
        other.tolist()
    assert other.sum().item() == 78
    del lost


@pytest.mark.parametrize("take", [torch.from_dlpack, jax.dlpack.from_dlpack, np.from_dlpack])
def test_data_that_leaves_by_dlpack_raises(take):
    with pytest.raises(IndexError):
        take(X.jax()[BAD.jax()])
    torch_xla_lite.sync()


def test_two_programs_that_fail_before_a_read_raise_once():
    kept = []
    for index in (BAD, NEGATIVE):
        kept.append(X.jax()[index.jax()])
        torch_xla_lite.sync()
    with pytest.raises(IndexError):
        torch.jax.synchronize()
    torch.jax.synchronize()


def test_bytes_are_checked_by_their_value():
    table = torch.arange(300.0).jax()
    index = torch.tensor([250, 3], dtype=torch.int64)
    assert table.gather(0, index.jax()).tolist() == [250, 3]


def test_passed_checks_are_forgotten_without_a_read():
    from torch_xla_lite.compiler import index_errors

    x, index = X.jax(), GOOD.jax()
    for _ in range(20):
        x = x + x[index].sum()
        torch_xla_lite.sync()
    x.tolist()
    gc.collect()
    assert len(index_errors._of_this_thread.checks) == 0


def test_the_error_of_a_thread_is_raised_there_and_nowhere_else():
    ran, read = threading.Event(), threading.Event()

    def run() -> list[list[float]]:
        rows = X.jax()[BAD.jax()]
        torch_xla_lite.sync()
        torch_xla_lite._XLAC.to_jax(rows).block_until_ready()
        ran.set()
        read.wait()
        return rows.tolist()

    with ThreadPoolExecutor(1) as pool:
        rows = pool.submit(run)
        ran.wait()
        assert (X.jax() + 1).sum().item() == 78
        read.set()
        with pytest.raises(IndexError):
            rows.result()


def test_threads_read_valid_rows_at_once():
    """A list of all threads was changed by one while another read it."""

    def work(row: int) -> float:
        index = torch.tensor([1, row]).jax()
        return sum(X.jax()[index].sum().item() for _ in range(100))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, range(3))) == [2800, 4400, 6000]


PROGRAM = """
import torch, torch_xla_lite
table = torch.ones(3, 4, device="jax")
index = torch.tensor([0, 7], device="jax")
rows = table[index]  # this line
torch_xla_lite.sync()
print("ran")
print(rows.tolist())
"""


def test_checked_mode_raises_when_the_graph_runs_and_names_the_line(tmp_path):
    process = run_file(tmp_path / "program.py", PROGRAM, TORCH_XLA_LITE_CHECK_INDICES="1")
    assert "ran" not in process.stdout
    assert "IndexError" in process.stderr
    assert "program.py:5" in process.stderr


def test_without_checks_the_nearest_element_is_read():
    ran, rows = lines(PROGRAM, TORCH_XLA_LITE_CHECK_INDICES="0")
    assert ran == "ran" and rows.startswith("[[1.0, 1.0")


ASSERTIONS = {
    "torch._assert_async": "torch._assert_async(x.sum() > 99, 'few'); print(x.tolist())",
    "multinomial": "print(torch.multinomial(x - 2, 2).tolist())",
}


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("value", ["", "1"])
@pytest.mark.parametrize("name", ASSERTIONS)
def test_the_read_that_runs_an_assertion_raises_it(name: str, value: str):
    x = "import torch, torch_xla_lite; x = torch.arange(3., device='jax') + 1; "
    done = run(x + ASSERTIONS[name], TORCH_XLA_LITE_CHECK_INDICES=value)
    assert done.stdout == ""
    assert f"(in aten::{name.removeprefix('torch.')})" in done.stderr


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, device="jax")


def ctc_loss(labels: list[list[int]]) -> torch.Tensor:
    scores = torch.rand(4, 1, 3, device="jax").log_softmax(2)
    lengths = torch.tensor([4], device="jax"), torch.tensor([2], device="jax")
    return F.ctc_loss(scores, torch.tensor(labels, device="jax"), *lengths)


def segments(op: Callable[..., torch.Tensor] = torch.segment_reduce, **sizes) -> torch.Tensor:
    """The sums of segments of three rows, without torch's own check."""
    sizes = {name: torch.tensor(value, device="jax") for name, value in sizes.items()}
    return op(torch.ones(3, 2, device="jax"), "sum", axis=0, unsafe=True, **sizes)


def segments_gradient(data: torch.Tensor, reduce: str, unsafe: bool, **sizes) -> torch.Tensor:
    of_segments = torch.ones(2, 2, device="jax")
    return torch.ops.aten._segment_reduce_backward(of_segments, of_segments, data, reduce, **sizes)


MATRIX = torch.ones(2, 2, device="jax")
PIVOTS = torch.tensor([1, 3], dtype=torch.int32, device="jax")
VALUES = {
    "multinomial": (
        lambda: tensor(0.5, -1.0).multinomial(1),
        r"element < 0 \(in aten::multinomial\)\n",
    ),
    "multinomial of NaN": (lambda: tensor(0.5, math.nan).multinomial(1), "`nan`"),
    "multinomial of infinity": (lambda: tensor(0.5, math.inf).multinomial(1), "`inf`"),
    "multinomial with replacement": (
        lambda: tensor(0.5, -1.0).multinomial(2, True),
        r"encountering probability entry < 0\) \(in aten::multinomial\)\n[^\n]*$",
    ),
    "multinomial of infinity, with replacement": (
        lambda: tensor(0.5, math.inf).multinomial(2, True),
        r"entry = infinity or NaN\) \(in aten::multinomial\)\n[^\n]*$",
    ),
    "an assertion": (
        lambda: torch._assert_async(tensor(0.0), "wrong") or tensor(1.0) + 1,
        r"wrong \(in aten::_assert_async\)",
    ),
    "multinomial of zeros": (lambda: tensor(0.0, 0.0).multinomial(1, True), "probabilities <= 0"),
    "bernoulli": (lambda: tensor(0.5, 1.5).bernoulli(), "p_in >= 0 && p_in <= 1"),
    "bernoulli_": (lambda: tensor(1.0).bernoulli_(tensor(math.nan)), "p_in >= 0 && p_in <= 1"),
    "bernoulli of NaN": (lambda: tensor(math.nan).bernoulli(), "p_in >= 0 && p_in <= 1"),
    "one_hot": (lambda: F.one_hot(tensor(3), 3), "Class values must be smaller than num_classes"),
    "one_hot of -1": (lambda: F.one_hot(tensor(-1), 3), "Class values must be non-negative"),
    "poisson": (lambda: torch.poisson(tensor(-1.0)), "rate to be non-negative"),
    "normal": (lambda: torch.normal(tensor(0.0), tensor(-1.0)), "std >= 0"),
    "binary_cross_entropy": (
        lambda: F.binary_cross_entropy(tensor(0.5, 1.5), tensor(1.0, 1.0)),
        "between 0 and 1",
    ),
    "histc": (lambda: torch.histc(tensor(0.5, math.inf), 3), "histc: range .* is not finite"),
    "masked_scatter of nothing": (
        lambda: tensor(1.0).masked_scatter(tensor(1.0) > 0, tensor()),
        "ource",
    ),
    "segment_reduce": (lambda: segments(lengths=[2, 900]), "segment_reduce"),
    "segment_reduce, with offsets": (lambda: segments(offsets=[0, 3, 900]), "segment_reduce"),
    "gradient of segment_reduce": (
        lambda: segments(segments_gradient, lengths=[2, 900]),
        "segment_reduce",
    ),
    "cholesky": (lambda: MATRIX.neg().cholesky(), "positive-definite"),
    "cholesky_inverse": (lambda: torch.cholesky_inverse(MATRIX * 0), "is zero"),
    "svd": (lambda: torch.linalg.svdvals(MATRIX * math.nan), "non-finite"),
    "eig": (lambda: torch.linalg.eig(MATRIX * math.inf)[0], "infs or NaNs"),
    "eigvals": (lambda: torch.linalg.eigvals(MATRIX * math.nan), "infs or NaNs"),
    "eigh": (lambda: torch.linalg.eigvalsh(torch.eye(5, device="jax") * math.nan), "converge"),
    "lu_solve": (lambda: torch.linalg.lu_solve(MATRIX, PIVOTS, MATRIX), "ivots"),
    "lu_unpack": (lambda: torch.lu_unpack(MATRIX, PIVOTS)[0], "pivots"),
    "ctc_loss": (lambda: ctc_loss([[1, 9]]), "out of range"),
    "searchsorted": (
        lambda: torch.searchsorted(
            tensor(0.0, 1.0), tensor(1.0), sorter=torch.tensor([0, 9]).jax()
        ),
        "out of range: it must be in",
    ),
    "repeats": (lambda: (x := tensor(1, 2)).repeat_interleave(x.int(), output_size=2), "output"),
}


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("mode", ["first", "repeated"])
@pytest.mark.parametrize(("op", "message"), VALUES.values(), ids=VALUES.keys())
def test_values_that_the_cpu_refuses_raise(op, message, mode):
    with tiers.as_by_default():
        torch_xla_lite._XLAC.set_compile_when(mode)
        with pytest.raises((RuntimeError, IndexError), match=message) as error:
            op().tolist()
        # Compiled alone, which no later run of its graph pays for.
        if mode == "repeated" and error.type is torch.linalg.LinAlgError:
            assert torch_xla_lite.debug.metrics()["executions"] == 0


NOTHING = torch.zeros(3, 0, dtype=torch.int64)
ZERO = torch.zeros(1, 1, dtype=torch.int64)
WITHOUT_ELEMENTS = {
    "remainder": lambda x, i: x % ZERO.to(x.device),
    "fmod": lambda x, i: torch.fmod(x, ZERO.to(x.device)),
    "floor_divide": lambda x, i: x // ZERO.to(x.device),
    "division that truncates": lambda x, i: torch.div(x, ZERO.to(x.device), rounding_mode="trunc"),
    "index": lambda x, i: x[i],
    "setitem": lambda x, i: x.index_put((i,), x[:2]),
    "index_add": lambda x, i: x.index_add(0, i, x[:2]),
    "index_fill": lambda x, i: x.index_fill(0, i, 5),
    "write through a mask": lambda x, i: x.index_put((x > 0,), x[0]),
    "write of rows through a mask": lambda x, i: x.t().index_put((x[0] > 0,), x.t()),
    "gradient of a mask": lambda x, i: torch.autograd.grad(
        (leaf := x.float().requires_grad_())[leaf > 0].sum(), leaf
    )[0],
}


@pytest.mark.parametrize("op", WITHOUT_ELEMENTS.values(), ids=WITHOUT_ELEMENTS.keys())
def test_where_there_are_no_elements_no_divisor_and_no_index_is_bad(op):
    wanted = op(NOTHING, BAD)
    got = op(NOTHING.jax(), BAD.jax()).cpu()
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)


@pytest.mark.nightly
def test_distributions_of_good_values_raise_nothing():
    assert tensor(0.0, 1.0).multinomial(2, True).tolist() == [1, 1]
    assert tensor(0.0, 1.0).bernoulli().tolist() == [0, 1]
    assert torch.poisson(tensor(0.0)).tolist() == [0]
    assert torch.normal(tensor(3.0), tensor(0.0)).tolist() == [3]
    assert F.binary_cross_entropy(tensor(0.0, 1.0), tensor(0.0, 1.0)).item() == 0
