"""Calls that torch's CPU kernels refuse raise the same error here, at the call."""

import pytest
import torch
import torch.nn.functional as F

from test.python import refusals

A = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
ROWS, CLASSES = torch.tensor([0, 1]), torch.tensor([0, 1])


def rows(x: torch.Tensor) -> torch.Tensor:
    return ROWS.to(x.device)


def generator(x: torch.Tensor) -> torch.Generator:
    return torch.Generator(x.device)


# Calls with two matrices of floats.
MIXED_FLOATS = {
    "nll_loss": lambda a, b: F.nll_loss(a, CLASSES.to(a.device), b[0]),
    "cross_entropy": lambda a, b: F.cross_entropy(a, CLASSES.to(a.device), b[0]),
    "nll_loss2d": lambda a, b: F.nll_loss(a[..., None], CLASSES.to(a.device)[:, None], b[0]),
    "grid_sample": lambda a, b: F.grid_sample(a[None, None], b[None, None]),
    "grid_sample of volumes": lambda a, b: F.grid_sample(
        a[None, None, None], b[:, [0, 1, 1]][None, None, None]
    ),
    "embedding_bag": lambda a, b: F.embedding_bag(
        rows(a)[None], a, per_sample_weights=b[:1], mode="sum"
    ),
    "batch_norm": lambda a, b: F.batch_norm(a, a[0], a[1], b[0], b[0], training=True),
    "binomial": lambda a, b: torch.binomial(a, b),
    "index_copy": lambda a, b: a.index_copy(0, rows(a), b),
    "index_put": lambda a, b: a.index_put((rows(a),), b),
    "index_put_": lambda a, b: a.clone().index_put_((rows(a),), b, accumulate=True),
    "setitem": lambda a, b: a.clone().__setitem__(rows(a), b),
    "put": lambda a, b: a.put(rows(a), b[0]),
}


@pytest.mark.parametrize("name", MIXED_FLOATS)
def test_floats_of_two_widths_raise(name: str):
    refusals.check(MIXED_FLOATS[name], A, A.double())


MIXED_DTYPES = {
    "huber_loss": lambda d: F.huber_loss(A.to(d), A.double().to(d)),
    "ldexp": lambda d: torch.ldexp(torch.tensor(True).to(d), torch.tensor(2.5).half().to(d)),
    "soft_margin_loss": lambda d: F.soft_margin_loss(A.half().to(d), A.to(d), reduction="none"),
}


@pytest.mark.parametrize("op", MIXED_DTYPES.values(), ids=MIXED_DTYPES.keys())
def test_two_dtypes_give_the_one_that_they_give_on_the_cpu(op):
    found, expected = op("jax"), op("cpu")
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    torch.testing.assert_close(found.cpu(), expected)


def test_an_outer_product_beside_a_wide_number_is_wide():
    number = torch.tensor(2.5, dtype=torch.float64)
    found, expected = (torch.addr(*(x.to(d) for x in (number, *A))) for d in ("jax", "cpu"))
    assert found.dtype == expected.dtype and torch.equal(found.cpu(), expected)


def test_autocast_makes_one_dtype_of_two():
    with torch.autocast("jax", torch.bfloat16):
        assert F.linear(A.jax(), A.bfloat16().jax()).dtype == torch.bfloat16


WRONG = {
    "celu": lambda x: F.celu(x, 0.0),
    "celu_ of -0": lambda x: torch.celu_(x, -0.0),
    "gradient of elu_": lambda x: torch.ops.aten.elu_backward(x, -1.0, 1, 1, True, x),
    "gradient of leaky_relu_": lambda x: torch.ops.aten.leaky_relu_backward(x, x, -1.0, True),
    "t_ of three dimensions": lambda x: x[None].t_(),
    "index_fill with int32": lambda x: x.index_fill(0, rows(x).int(), 1.0),
    "index_fill with floats": lambda x: x.index_fill(0, rows(x).float(), x[0, 0]),
    "sort": lambda x: x.sort(2),
    "slice_scatter": lambda x: x.slice_scatter(x, 2),
    "slice_scatter in a number": lambda x: x[0, 0].slice_scatter(x[0, 0]),
    "index_select of no rows": lambda x: x[:0].index_select(0, rows(x)),
    "embedding of no rows": lambda x: F.embedding(rows(x), x[:0]),
    "_foreach_mul_ of a list": lambda x: torch._foreach_mul_([x.clone(), x.long()], 2.5),
    "an index of no rows": lambda x: x[:0][rows(x)],
    "an index of no columns": lambda x: x[:, :0][rows(x), rows(x)],
    "an index of a number": lambda x: x[0, 0].index_put((rows(x),), x[0]),
    "values without indices": lambda x: x.index_put((rows(x)[:0],), x),
    "sums without indices": lambda x: x.index_put((rows(x)[:0],), x, accumulate=True),
    "more values than places": lambda x: x.index_put_((rows(x), rows(x)), x[0].repeat(2)),
    "more sums than places": lambda x: x.index_put_((rows(x),), x.repeat(1, 2), accumulate=True),
    "places of two numbers": lambda x: x.index_put_((rows(x), rows(x).repeat(2)), x[0, 0]),
    "index_select by a matrix": lambda x: x.index_select(0, x.long()[:1] * 0),
    "index_select of a number": lambda x: x[0, 0].index_select(0, rows(x)[1:]),
    "index_select of no number": lambda x: x[0, 0].index_select(0, rows(x)[:0]),
    "index_select of two numbers": lambda x: x[0, 0].index_select(0, rows(x) * 0),
    "bernoulli_ above 1": lambda x: x.bernoulli_(1.5),
    "bernoulli_ of NaN": lambda x: x.bernoulli_(float("nan")),
    "native_dropout": lambda x: torch.native_dropout(x, 1.5, True),
    "native_dropout of a negative share": lambda x: torch.native_dropout(x, -0.5, None),
    "native_dropout of integers": lambda x: torch.native_dropout(x.long(), 1.0, True),
    "normal_ of NaN": lambda x: x.normal_(0, float("nan")),
    "log_normal_ of NaN": lambda x: x.log_normal_(0, float("nan")),
    "exponential_ of NaN": lambda x: x.exponential_(float("nan")),
    "normal of a negative deviation": lambda x: torch.normal(0.0, -1.0, (2,), device=x.device),
    "noise of another shape": lambda x: torch._C._nn.rrelu_with_noise(x, x[0], 0.1, 0.3, True),
    "mvlgamma": lambda x: x.mvlgamma(0),
    "smooth_l1_loss": lambda x: torch.ops.aten.smooth_l1_loss(x, x + 1, 1, -1.0),
    **{
        f"conv_transpose1d padded by {n}": lambda x, n=n: F.conv_transpose1d(
            x[None], x[:, None], output_padding=n
        )
        for n in (1, -1)
    },
    "uniform_ to NaN": lambda x: x.uniform_(2, float("nan")),
    "uniform_ of a narrow dtype": lambda x: x.half().uniform_(0, 1e6),
    "uniform_ of a wide range": lambda x: x.uniform_(-3e38, 3e38),
    "random_": lambda x: x.random_(2, 1),
    "random_ to 0": lambda x: x.random_(0),
    "random_ of bytes": lambda x: x.byte().random_(-1, 5),
    "random_ of more than bytes": lambda x: x.byte().random_(257),
    "randint": lambda x: torch.randint(300, (2,), dtype=torch.uint8, device=x.device),
    "randint of bools": lambda x: torch.randint(1, 3, (2,), dtype=torch.bool, device=x.device),
    "randint with a generator": lambda x: torch.randint(
        0, (2,), device=x.device, generator=generator(x)
    ),
    "randint of a range with a generator": lambda x: torch.randint(
        2, 1, (2,), device=x.device, generator=generator(x)
    ),
    "randint_like": lambda x: torch.randint_like(x, 0),
    "randint_like of a range": lambda x: torch.randint_like(x, 2, 1),
    "randint_like with a generator": lambda x: torch.randint_like(x, 0, generator=generator(x)),
    "randint_like of a range with a generator": lambda x: torch.randint_like(
        x, 2, 1, generator=generator(x)
    ),
    "multinomial without categories": lambda x: x[:, :0].multinomial(1, True),
    "one_hot of an unknown number of classes": lambda x: F.one_hot(rows(x)[:0]),
    "one_hot of a negative number of classes": lambda x: F.one_hot(rows(x), -2),
    "randperm of bytes": lambda x: torch.randperm(300, dtype=torch.uint8, device=x.device),
    "randperm of halves": lambda x: torch.randperm(2050, dtype=torch.half, device=x.device),
    "searchsorted from an unknown side": lambda x: torch.searchsorted(x, x, side="xx").cpu(),
    "images without channels": lambda x: F.interpolate(
        x[None, None, :][:, :0], scale_factor=2, mode="bilinear"
    ),
    "images without rows": lambda x: F.interpolate(x[None, None, :0], scale_factor=2, mode="area"),
    "a quantile of NaN": lambda x: x.quantile(x[0] * float("nan")).cpu(),
    "a quantile above 1": lambda x: x.nanquantile(x[0]).cpu(),
    "tensor_split": lambda x: x.tensor_split(torch.tensor(2.0, device=x.device)),
}


@pytest.mark.few_daily(48)
@pytest.mark.parametrize("name", WRONG)
def test_arguments_without_a_meaning_raise(name: str):
    refusals.check(WRONG[name], A)


def test_scatter_that_fits():
    x = A.jax()
    assert x.select_scatter(x[0], 0, -1).tolist() == A.select_scatter(A[0], 0, -1).tolist()
    assert x.diagonal_scatter(x[0, :1], -1).tolist() == A.diagonal_scatter(A[0, :1], -1).tolist()
    assert x.diagonal_scatter(x[0, :0], 5).tolist() == A.tolist()
    assert x[0, 0].index_select(0, rows(x)[:1]).tolist() == 1
    assert x.bernoulli_(1).tolist() == [[1, 1], [1, 1]]


def test_reductions_of_no_rows_or_with_slopes_that_have_a_meaning():
    empty = A[:0].jax()
    assert empty.median(1).values.shape == empty.max(1).values.shape == (0,)
    assert empty.mode(1).values.shape == (0,)
    for slope, is_result in ((-1.0, False), (0.5, True)):
        expected = torch.ops.aten.leaky_relu_backward(A, -A, slope, is_result)
        found = torch.ops.aten.leaky_relu_backward(A.jax(), -A.jax(), slope, is_result)
        assert found.tolist() == expected.tolist()


def test_what_just_fits_does_not_raise():
    x = torch.ones(100, dtype=torch.uint8, device="jax").random_(256)
    assert x.float().std() > 30
    assert set(torch.randint(0, 2, (50,), dtype=torch.bool, device="jax").tolist()) == {True, False}
    assert torch.randperm(2049, dtype=torch.half, device="jax").sum() > 0
    assert torch.ones(3, device="jax").uniform_(2, 2).tolist() == [2, 2, 2]
    wide = F.conv_transpose1d(A.jax()[None], A.jax()[:, None], stride=2, output_padding=1)
    assert wide.shape == (1, 1, 5)


# --- dtypes and shapes ----------------------------------------------------------------------------

COMPLEX, NUMBER, MASK = torch.tensor([[2 + 1j]]), torch.tensor([[2]]), torch.tensor([[True]])
OF_DTYPES = {
    "remainder of a number": (torch.remainder, 2, COMPLEX),
    "attention": (
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu,
        *[torch.ones(1, 1, 2, 4, dtype=torch.int32)] * 3,
    ),
    "poisson": (torch.poisson, NUMBER),
    "uniform_": (torch.Tensor.uniform_, NUMBER.clone()),
    "uniform": (torch.ops.aten.uniform, MASK),
    "rand_like": (torch.rand_like, NUMBER),
    "rand": (lambda x: torch.rand(2, dtype=torch.int64, device=x.device), NUMBER),
    "randint": (lambda x: torch.randint(2, (2,), dtype=x.dtype, device=x.device), COMPLEX),
    "randint_like": (torch.randint_like, COMPLEX, 2),
    "randperm": (lambda x: torch.randperm(2, dtype=x.dtype, device=x.device), COMPLEX),
    "randperm of masks": (lambda x: torch.randperm(2, dtype=x.dtype, device=x.device), MASK),
    "random_": (torch.Tensor.random_, COMPLEX.clone()),
    "random_ to 2": (torch.Tensor.random_, COMPLEX.clone(), 2),
    "bernoulli_": (torch.Tensor.bernoulli_, COMPLEX.clone()),
    "bernoulli_ of probabilities": (torch.Tensor.bernoulli_, COMPLEX.clone(), A),
    "gamma": (torch._standard_gamma, NUMBER),
    "dirichlet": (torch._sample_dirichlet, NUMBER),
    "logit_": (lambda x: x.clone().logit_(), NUMBER),
    "ldexp_": (lambda x, y: x.clone().ldexp_(y), NUMBER, NUMBER),
}


@pytest.mark.parametrize("name", OF_DTYPES)
def test_a_dtype_that_an_op_does_not_take_raises(name: str):
    refusals.check(*OF_DTYPES[name])


def test_masks_beside_integers():
    assert (MASK.jax() << 2).tolist() == (MASK << 2).tolist()
    assert torch.gcd(MASK.jax(), NUMBER.jax()).tolist() == torch.gcd(MASK, NUMBER).tolist()
    assert (MASK.jax() % 2).tolist() == (MASK % 2).tolist()


def test_a_view_in_place_has_another_shape():
    x = torch.arange(6.0).view(2, 3).jax()
    assert x.t_().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.unsqueeze_(0).shape == (1, 3, 2)


# --- convolutions ---------------------------------------------------------------------------------

# Calls with an image [2, 4, 6 ...] and a weight [4, 4, 3 ...]. error_inputs_test.py has others.
REFUSED_CONVOLUTIONS = {
    "too many strides": lambda op, x, w: op(x, w, stride=[1] * (x.ndim - 1)),
    "negative padding": lambda op, x, w: op(x, w, padding=-1),
    "groups of unequal size": lambda op, x, w: op(x, w, groups=3),
    "other channels": lambda op, x, w: op(x[:, :3], w),
}


@pytest.mark.few_daily(12)
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("name", ["conv", "conv_transpose"])
@pytest.mark.parametrize("refused", REFUSED_CONVOLUTIONS)
def test_a_convolution_that_cannot_be_raises(refused: str, name: str, dims: int):
    op = getattr(F, f"{name}{dims}d")
    x, w = torch.ones(2, 4, *[6] * dims), torch.ones(4, 4, *[3] * dims)
    refusals.check(lambda x, w: REFUSED_CONVOLUTIONS[refused](op, x, w), x, w)


def test_a_transposed_convolution_of_integers():
    x, w = torch.arange(24).view(1, 4, 6), torch.arange(48).view(4, 4, 3)
    found = F.conv_transpose1d(x.jax(), w.jax())
    assert torch.equal(found.cpu(), F.conv_transpose1d(x, w))
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        F.conv_transpose1d(x.int().jax(), w.int().jax())


# --- losses and patches ---------------------------------------------------------------------------

NARROW_CLASSES = {
    "nll_loss": lambda x, t: F.nll_loss(x, t),
    "cross_entropy": lambda x, t: F.cross_entropy(x, t),
    "nll_loss of images": lambda x, t: F.nll_loss(x[..., None], t[:, None]),
    "multi_margin_loss": lambda x, t: F.multi_margin_loss(x, t),
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8, torch.uint8, torch.float32], ids=str)
@pytest.mark.parametrize("loss", NARROW_CLASSES)
def test_classes_of_another_dtype_raise_as_on_the_cpu(loss: str, dtype: torch.dtype):
    refusals.check(NARROW_CLASSES[loss], torch.ones(2, 3), CLASSES.to(dtype))


def test_patches_of_an_image_with_negative_padding_raise():
    refusals.check(lambda x: F.unfold(x, 2, padding=-1), torch.ones(1, 1, 4, 4))


# --- indices --------------------------------------------------------------------------------------


def mask(x: torch.Tensor, *shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.bool, device=x.device)


def places(x: torch.Tensor, *values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64, device=x.device)


def assign(x: torch.Tensor, indices: object, value: object) -> torch.Tensor:
    x[indices] = value
    return x


# Calls with a matrix [3, 2].
REFUSED_INDICES = {
    "a mask of one row": lambda x: assign(x, mask(x, 1), 1),
    "a mask of one column": lambda x: assign(x, mask(x, 3, 1), 1.0),
    "a mask of columns": lambda x: assign(x, (slice(None), mask(x, 1)), 1.0),
    "a mask with rows": lambda x: assign(x, mask(x, 1), x.new_ones(3, 2)),
    "a mask with rows that need a gradient": lambda x: assign(
        x, mask(x, 1), x.new_ones(3, 2, requires_grad=True)
    ),
    "a mask out of place": lambda x: x.index_put((mask(x, 3, 1),), x.new_ones(())),
    "a mask of more dimensions": lambda x: x[0, 0].index_put((mask(x, 2),), x.new_ones(())),
    "a mask that is added": lambda x: x.index_put((mask(x, 1),), x.new_ones(()), accumulate=True),
    "a row of none": lambda x: x[:0][places(x, 1)],
    "a write to a row of none": lambda x: assign(x[:0], places(x, 1), 1.0),
    "fewer places than elements": lambda x: x.put(places(x), x.new_ones(1)),
    "more places than elements": lambda x: x.put(places(x, 1, 2), x.new_ones(1)),
    "a place in nothing": lambda x: x[:0].put(places(x, 0), x.new_ones(1)),
}


@pytest.mark.parametrize("name", REFUSED_INDICES)
def test_indices_that_do_not_fit_raise_at_the_call(name: str):
    refusals.check(REFUSED_INDICES[name], torch.zeros(3, 2))
