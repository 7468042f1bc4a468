"""Ops that depend on values stay in the graph: no ATen kernel, no compilation for new values."""

import pytest
import torch
import torch.nn.functional as F

import torch_xla_lite
from torch_xla_lite import debug

ROWS = [torch.tensor(mask) for mask in ([1, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 0])]
ELEMENTS = [torch.tensor([[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 0]]).roll(n, 0) for n in range(3)]
LENGTHS = [torch.tensor(lengths) for lengths in ([9, 7], [10, 4], [8, 10])]
TARGETS = [torch.tensor(lengths) for lengths in ([3, 1], [2, 3], [0, 2])]
OFFSETS = [torch.tensor(ends, dtype=torch.int32) for ends in ([2, 5, 8], [0, 8, 8], [3, 4, 8])]


def put(x, mask, values, accumulate=False):
    return x.index_put((mask.bool(),), values, accumulate)


def assign(x, *key, values):
    y = x * 2
    y[key] = values
    return y


def places(x, *indices):
    return torch.tensor(indices, device=x.device)


def ctc(log_probs, lengths, targets, **options):
    labels = torch.tensor([[1, 2, 2], [3, 3, 4]], device=log_probs.device)
    return F.ctc_loss(log_probs, labels, lengths, targets, **options)


def grouped(a, b, offsets):
    return torch._grouped_mm(a, b, offs=offsets)


# Of a matrix, rows and values that need gradients, and of what changes from step to step: marks of
# rows, or of elements.
X = (torch.randn(4, 3), torch.randn(3, 3), torch.randn(6))
OF_ROWS = {
    "x[rows] = number": lambda x, v, w, m: assign(x, m.bool(), values=5.0),
    "x[rows] = row": lambda x, v, w, m: assign(x, m.bool(), values=v[0]),
    "x[rows] = rows": lambda x, v, w, m: assign(x, m.bool(), values=v),
    "x[rows, 1] = values": lambda x, v, w, m: assign(x, m.bool(), 1, values=v[0]),
    "x[rows, places] = number": lambda x, v, w, m: assign(
        x, m.bool(), places(x, 2, 0, 1), values=5.0
    ),
    "x[rows, places] = values": lambda x, v, w, m: assign(
        x, m.bool(), places(x, 2, 2, -3), values=v[0].detach()
    ),
    "x[places, columns] adds": lambda x, v, w, m: (
        (x * 2).t().index_put((places(x, 1, 1, 0), m.bool()), v[0].detach(), True)
    ),
    "x[:, columns] = columns": lambda x, v, w, m: assign(x.t(), slice(None), m.bool(), values=v),
    "x[:, columns] = a column": lambda x, v, w, m: assign(
        x.t(), slice(None), m.bool(), values=v[:, :1]
    ),
    "x[rows] = values without gradients": lambda x, v, w, m: assign(x, m.bool(), values=v.detach()),
    "index_put": lambda x, v, w, m: put(x, m, v),
    "index_put adds": lambda x, v, w, m: put(x, m, v, True),
    "index_put adds a row": lambda x, v, w, m: put(x, m, v[:1], True),
    "_index_put_impl_": lambda x, v, w, m: torch.ops.aten._index_put_impl_(
        (x * 2).detach(), [m.bool()], v.detach(), True
    ),
    "index_fill with a number": lambda x, v, w, m: x.index_fill(0, m, torch.tensor(5.0)),
    "x[rows] = integer": lambda x, v, w, m: assign(x, m.bool(), values=torch.tensor(5)),
    "x[:, columns] = integer": lambda x, v, w, m: assign(
        x.t(), slice(None), m.bool(), values=torch.tensor(5)
    ),
    "weighted bincount": lambda x, v, w, m: (
        torch.bincount(m + 1, v.detach().new_ones(4), minlength=9) + x.sum()
    ),
}
OF_ELEMENTS = {
    "x[elements, places] = number": lambda x, v, w, m: assign(
        torch.stack([x, x + 1], 2), m.bool(), places(x, 0, 1, 1, 1, 0), values=5.0
    ),
    "x[elements] = values": lambda x, v, w, m: assign(x, m.bool(), values=w[:5]),
    "masked_scatter": lambda x, v, w, m: x.masked_scatter(m.bool(), w),
    "masked_fill": lambda x, v, w, m: x.masked_fill(m.bool(), w[0]),
    "masked_fill_": lambda x, v, w, m: (x * 2).masked_fill_(m.bool(), w[0]),
    "masked_fill with a number": lambda x, v, w, m: (
        x + x.detach().masked_fill(m.bool(), torch.tensor(5.0))
    ),
    "masked_fill_ with a number": lambda x, v, w, m: (
        x + (m * 2).masked_fill_(m.bool(), torch.tensor(5))
    ),
    "sum over a mask": lambda x, v, w, m: torch.where(m.bool(), x, 0).sum() / m.sum(),
    "bincount": lambda x, v, w, m: torch.bincount(m.flatten() * 3 % 7, minlength=9) + x.sum(),
}
# The op, its inputs that need gradients, and what changes.
CASES = {
    **{name: (function, X, ROWS) for name, function in OF_ROWS.items()},
    **{name: (function, X, ELEMENTS) for name, function in OF_ELEMENTS.items()},
    "x[one row, places] = number": (
        lambda x, v, w, m: assign(x, m == m.max(), places(x, 2, 0), values=5.0),
        X,
        [torch.randperm(4) for _ in range(3)],
    ),
    **{
        f"ctc_loss {options}": (
            lambda x, lengths, options=options: ctc(x.log_softmax(-1), *lengths, **options),
            (torch.randn(10, 2, 5),),
            list(zip(LENGTHS, TARGETS, strict=True)),
        )
        for options in ({}, {"reduction": "none"}, {"reduction": "sum", "blank": 4})
    },
    "grouped_mm of rows": (grouped, (torch.randn(8, 16), torch.randn(3, 16, 8)), OFFSETS),
    "grouped_mm of columns": (grouped, (torch.randn(3, 16, 8), torch.randn(8, 8)), OFFSETS),
    "grouped_mm of a sum": (grouped, (torch.randn(16, 8), torch.randn(8, 16)), OFFSETS),
}


def on(device, value):
    if isinstance(value, tuple):
        return tuple(on(device, item) for item in value)
    return value.to(device)


def run(function, inputs, step, device):
    """The result and the gradients, on the CPU."""
    inputs = [x.detach().to(device).requires_grad_() for x in inputs]
    result = function(*inputs, on(device, step))
    if result.requires_grad:
        result.sin().sum().backward()
    return [result.detach().cpu(), *(x.grad.cpu() for x in inputs if x.grad is not None)]


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("name", CASES)
def test_values_are_torchs_and_new_ones_compile_nothing(name):
    function, inputs, steps = CASES[name]
    for number, step in enumerate(steps):
        if number == 2:
            debug.reset_metrics()
        got = run(function, inputs, step, "jax")
        torch.testing.assert_close(got, run(function, inputs, step, "cpu"), rtol=1e-4, atol=1e-5)
    assert debug.metrics()["compiles"] == debug.metrics()["loads"] == 0
    assert debug.metrics()["fallbacks"] == {}


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("ends", [[0, 0, 8], [8, 8, 8], [1, 1, 6], [0, 5, 8]], ids=str)
@pytest.mark.parametrize("dims", ["rows", "columns", "a sum"])
def test_grouped_mm_of_any_sizes_of_groups(dims, ends):
    a, b = {
        "rows": ((8, 16), (3, 16, 4)),
        "columns": ((3, 4, 16), (16, 8)),
        "a sum": ((4, 8), (8, 16)),
    }[dims]
    a, b = torch.randn(a, dtype=torch.bfloat16), torch.randn(b, dtype=torch.bfloat16)
    got = torch._grouped_mm(a.jax(), b.jax(), offs=torch.tensor(ends, dtype=torch.int32).jax())
    assert "bmm" not in str(debug.graph())
    wanted = torch.zeros(got.shape)
    for group, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        part = slice(start, end)
        if dims == "rows":
            wanted[part] = a[part].float() @ b[group].float()
        elif dims == "columns":
            wanted[:, part] = a[group].float() @ b[:, part].float()
        else:
            wanted[group] = a[:, part].float() @ b[part].float()
    assert got.dtype == torch.bfloat16 and got.is_contiguous()
    # Sums are rounded once, to bfloat16.
    torch.testing.assert_close(got.cpu().float(), wanted, rtol=2**-8, atol=1e-5)


def test_grouped_mm_of_another_dtype_is_refused_as_on_the_cpu():
    a, offsets = torch.ones(8, 8, dtype=torch.bfloat16), OFFSETS[0]
    for device in ("cpu", "jax"):
        with pytest.raises(RuntimeError, match="output dtype must match `mat_a` dtype"):
            torch._grouped_mm(
                a.to(device), a.to(device), offs=offsets.to(device), out_dtype=torch.float32
            )


def test_as_many_values_as_true_elements_are_needed():
    x, mask = torch.zeros(4, device="jax"), ROWS[0].bool().jax()
    for values in (torch.ones(2), torch.ones(4), torch.ones(2, requires_grad=True)):
        y = x + 1
        y[mask] = values.jax()
        with pytest.raises((IndexError, RuntimeError), match="number of"):
            y.tolist()
    with pytest.raises(IndexError, match="more True elements"):
        x.masked_scatter(mask, torch.ones(2).jax()).tolist()


def test_as_many_places_as_true_elements_are_needed():
    x = torch.zeros(4, 3, device="jax")
    for count in (0, 2, 4):
        y = x + 1
        y[torch.arange(4).jax() < count, torch.tensor([2, 0, 1]).jax()] = 5
        with pytest.raises(IndexError):
            y.tolist()
    assert x.tolist() == torch.zeros(4, 3).tolist()


@pytest.mark.parametrize("accumulate", [False, True])
def test_no_values_are_put_where_no_element_is_true(accumulate: bool):
    """As for a batch without images, in models of text and images."""
    x, values = torch.ones(2, 4, 3).jax(), torch.ones(0, 3, requires_grad=True)
    mask = torch.zeros(2, 4, dtype=torch.bool).jax()
    assert x.index_put((mask,), values.detach().jax(), accumulate).tolist() == x.tolist()
    x.index_put((mask,), values.jax(), accumulate).sum().backward()
    assert values.grad.shape == (0, 3)
    mask[0, 1] = True
    with pytest.raises(IndexError, match="0 values were assigned"):
        x.index_put((mask,), values.detach().jax(), accumulate).tolist()


def test_ctc_loss_of_targets_without_labels():
    x, lengths = torch.randn(4, 2, 3).log_softmax(-1), torch.tensor([4, 3])
    none = torch.zeros(2, 0, dtype=torch.int64)
    wanted = F.ctc_loss(x, none, lengths, lengths * 0, reduction="none")
    got = F.ctc_loss(x.jax(), none.jax(), lengths.jax(), lengths.jax() * 0, reduction="none")
    torch.testing.assert_close(got.cpu(), wanted)


def test_a_failed_assertion_raises_at_the_next_read():
    x = torch.ones(3, device="jax")
    torch._assert_async((x > 0).all(), "all is well")
    assert x.sum().item() == 3
    torch._assert_async((x > 1).all(), "x is too small")
    torch._assert_async(x.sum())
    y = x + 1
    with pytest.raises(RuntimeError, match="x is too small"):
        y.tolist()
    assert y.tolist() == [2, 2, 2]
    assert "aten::_assert_async" not in debug.metrics()["fallbacks"]


def test_comparing_tensors_and_errors_of_factorisations_read_one_value():
    a, b = torch.eye(3), torch.tensor([1.0, float("nan")])
    x, y = a.jax(), b.jax()
    debug.reset_metrics()
    assert torch.equal(x, x.clone()) and torch.equal(x, x.double())
    assert not torch.equal(x, y) and not torch.equal(y, y)
    assert torch.allclose(x, x + 1e-9) and not torch.allclose(x, x + 1e-3)
    assert torch.allclose(y, y, equal_nan=True) and not torch.allclose(y, y)
    torch.testing.assert_close(torch.linalg.inv(x * 2).cpu(), a / 2)
    with pytest.raises(torch.linalg.LinAlgError, match=r"linalg.inv: The diagonal element 1 is"):
        torch.linalg.inv(x * 0)
    assert debug.metrics()["fallbacks"] == {}


def test_bincount_has_the_length_of_the_largest_value():
    values = torch.tensor([5, 1, 5])
    assert torch.bincount(values.jax(), minlength=3).tolist() == [0, 1, 0, 0, 0, 2]
    assert torch.bincount(values.jax() + 1).tolist() == [0, 0, 1, 0, 0, 0, 2]
    for bad in (torch.tensor([-1]), torch.ones(2, 2, dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="bincount only supports 1-d non-negative"):
            torch.bincount(bad.jax())


def test_bincount_of_a_pending_value_beyond_minlength_raises():
    for value in (5, -2):
        pending = torch.tensor([value, 1]).jax() + 1
        counts = torch.bincount(pending, minlength=3)
        with pytest.raises(RuntimeError, match=r"not in \[0, 3\).*run the graph first"):
            counts.tolist()
    pending = torch.tensor([5, 1]).jax() + 1
    torch_xla_lite.sync()
    assert torch.bincount(pending, minlength=3).tolist() == [0, 0, 1, 0, 0, 0, 1]


@pytest.mark.nightly
def test_ctc_loss_of_what_cannot_be_aligned_is_infinite():
    log_probs = torch.randn(2, 2, 5).log_softmax(-1)
    for zero_infinity in (False, True):
        options = {"reduction": "none", "zero_infinity": zero_infinity}
        arguments = (torch.tensor([2, 2]), torch.tensor([3, 1]))
        x, y = (log_probs.clone().to(device).requires_grad_() for device in ("jax", "cpu"))
        got, wanted = ctc(x, *arguments, **options), ctc(y, *arguments, **options)
        torch.testing.assert_close(got.cpu(), wanted)
        got.sum().backward()
        wanted.sum().backward()
        torch.testing.assert_close(x.grad.cpu(), y.grad, equal_nan=True)


def test_ctc_loss_of_an_infinite_probability_is_not_a_number():
    log_probs, lengths = torch.full((3, 1, 2), torch.inf), torch.tensor([3])
    labels = torch.ones(1, 1, dtype=torch.long)
    arguments = (log_probs, labels, lengths, torch.tensor([1]))
    assert F.ctc_loss(*arguments).isnan()
    assert F.ctc_loss(*(x.jax() for x in arguments)).isnan()


def test_ctc_loss_of_joined_targets_and_of_one_sequence():
    log_probs, labels = torch.randn(10, 2, 5).log_softmax(-1), torch.tensor([1, 2, 2, 3])
    got = F.ctc_loss(log_probs.jax(), labels.jax(), (10, 9), (3, 1))
    torch.testing.assert_close(got.cpu(), F.ctc_loss(log_probs, labels, (10, 9), (3, 1)))
    one = F.ctc_loss(log_probs[:, 0].jax(), labels.jax(), (10,), (4,), reduction="none")
    wanted = F.ctc_loss(log_probs[:, 0], labels, (10,), (4,), reduction="none")
    torch.testing.assert_close(one.cpu(), wanted)


# database_test.py has others.
FACTORIES = {
    "arange": lambda out: torch.arange(1, 7, out=out),
    "arange of another size": lambda out: torch.arange(1, 9, 2, out=out),
    "range": lambda out: torch.range(1, 6, out=out),
    "eye of as many elements": lambda out: torch.eye(6, 1, out=out),
    "linspace of tensors": lambda out: torch.linspace(
        torch.zeros((), device=out.device), torch.ones((), device=out.device), 3, out=out
    ),
    "polygamma_": lambda out: (out + 1).double().polygamma_(1),
    "hann_window": lambda out: torch.ops.aten.hann_window.out(6, out=out),
    "tril_indices": lambda out: torch.ops.aten.tril_indices.out(3, 3, out=out),
}


@pytest.mark.few_daily(3)
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("name", FACTORIES)
def test_a_tensor_is_filled_as_on_the_cpu(name, dtype):
    def filled(device):
        base = torch.zeros(4, 3, dtype=dtype, device=device)
        try:
            return FACTORIES[name](base[1:3]).cpu(), base.cpu()
        except (RuntimeError, NotImplementedError):
            return None

    wanted = filled("cpu")
    debug.reset_metrics()
    got = filled("jax")
    assert (got is None) == (wanted is None)
    if wanted is not None:
        torch.testing.assert_close(got[0], wanted[0])
        assert debug.metrics()["fallbacks"] == {}


def test_random_factories_fill_a_tensor():
    debug.reset_metrics()
    out = torch.zeros(6, device="jax")
    assert torch.normal(0.0, 1.0, (6,), out=out) is out
    assert out.unique().numel() == 6
    order = torch.zeros(6, dtype=torch.int64, device="jax")
    assert torch.randperm(6, out=order).sort().values.tolist() == [0, 1, 2, 3, 4, 5]
    assert set(debug.metrics()["fallbacks"]) <= {"aten::_unique2"}


def test_a_view_can_be_written_again_after_a_gradient_came_in_through_a_mask():
    x, values = torch.zeros(4, device="jax"), torch.ones(4, device="jax", requires_grad=True)
    row = x[1:]
    row[row == 0] = values[1:]
    row.mul_(3)
    x.sum().backward()
    assert values.grad.tolist() == [0, 3, 3, 3]
