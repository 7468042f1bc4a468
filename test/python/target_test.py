"""What is chosen by platform, as far as a CPU can show it: the choices for a GPU run here."""

import re

import jax
import numpy as np
import pytest
import torch
from jax import lax

import torch_xla_lite
from torch_xla_lite import debug
from torch_xla_lite.compiler import compilation_cache, tracing
from torch_xla_lite.compiler.recorded_graph import RecordedGraph
from torch_xla_lite.lowering import linalg, matmul, reduction, scan, sort, views
from torch_xla_lite.lowering.base import checks, registry, target


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are compiled as for a GPU, one op as if it had no lowering. XLA still runs them on
    the CPU."""
    monkeypatch.setattr(target, "platform", lambda: "gpu")
    monkeypatch.setattr(compilation_cache, "key", lambda *_: None)
    registry.find("aten::special_bessel_j0")
    monkeypatch.delitem(registry.LOWERINGS, "aten::special_bessel_j0")
    torch_xla_lite._XLAC.clear_cache()
    debug.reset_metrics()
    yield
    torch_xla_lite._XLAC.clear_cache()


X = torch.linspace(-2, 3, 12).view(3, 4)
OPS = {
    "one result": (torch.special.bessel_j0, X),
    "several results": (torch.unique_consecutive, X.round()),
    "float64": (torch.special.bessel_j0, X.double()),
    "int64": (lambda x: torch.nn.functional.multilabel_margin_loss(x, LABELS.to(x.device)), X),
    "a number": (lambda x: torch.ops.aten._add_relu(x, x, alpha=3), X),
    "no elements": (torch.special.bessel_j0, X[:0]),
    "no dimension": (torch.special.bessel_j0, X[0, 0]),
    "complex64": (torch.logcumsumexp, torch.complex(X, -X), 1),
    "complex128": (torch.logcumsumexp, torch.complex(X, -X).to(torch.complex128), 1),
}
LABELS = torch.tensor([[0, 1, -1, -1]] * 3)


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("case", OPS.values(), ids=OPS.keys())
def test_an_op_without_a_lowering_goes_through_the_host(gpu, case):
    op, x, *rest = case
    torch.testing.assert_close(op(x.jax(), *rest).cpu(), op(x, *rest))
    assert sum(debug.metrics()["fallbacks"].values()) == 1


def test_a_step_with_such_an_op_overwrites_its_weights(gpu):
    weights = torch.ones(5).to("jax")
    torch_xla_lite.sync()
    weights.add_(torch.special.bessel_j0(torch.zeros(5).to("jax")))
    assert weights.tolist() == [2] * 5


def test_an_error_of_a_kernel_on_the_host_names_the_op(gpu):
    labels = torch.tensor([[0, 9, -1, -1]] * 3).jax()
    loss = torch.nn.functional.multilabel_margin_loss(X.jax(), labels)
    with pytest.raises(RuntimeError, match=r"aten::multilabel_margin_loss_forward: .*range"):
        loss.item()


IN_32_BITS = {
    "searchsorted": lambda x: sort._searchsorted(x, x, right=False),
    "cummax": lambda x: scan.cummax(x, 0)[1],
    "count_nonzero": reduction.count_nonzero,
    "as_strided": lambda x: views.strided_positions([3, 2], [1, 1], 0, x.size).astype(np.int64),
}


@pytest.mark.parametrize("name", IN_32_BITS)
def test_counts_and_places_have_64_bits_only_as_results(name: str):
    with jax.enable_x64(True):
        text = str(jax.make_jaxpr(IN_32_BITS[name])(np.ones(5, np.float32)))
    assert text.count(":i64[") == 1


def precisions(dtype: np.dtype) -> set:
    struct = jax.ShapeDtypeStruct((4, 4), dtype)
    traced = jax.make_jaxpr(lambda a, b: matmul.dot(a, b, (((1,), (0,)), ((), ()))))(struct, struct)
    return {eqn.params["precision"] for eqn in traced.eqns if "precision" in eqn.params}


def dtype_of_product(*operands: jax.ShapeDtypeStruct) -> np.dtype:
    linear = lambda *given: matmul.linear(*given)  # noqa: E731  one that jax has not traced
    equations = jax.make_jaxpr(linear)(*operands).eqns
    return next(e.outvars[0].aval.dtype for e in equations if e.primitive.name == "dot_general")


def test_a_product_is_rounded_by_its_kernel_unless_something_is_added(request):
    matrix, bias = (jax.ShapeDtypeStruct(shape, jax.numpy.bfloat16) for shape in ((4, 4), (4,)))
    assert dtype_of_product(matrix, matrix) == np.float32
    request.getfixturevalue("gpu")
    assert dtype_of_product(matrix, matrix) == jax.numpy.bfloat16
    assert dtype_of_product(matrix, matrix, bias) == np.float32


PRODUCTS = {
    "lstm": lambda x: torch.nn.LSTM(4, 3, proj_size=2, device=x.device)(x)[0],
    "bilinear": lambda x: torch.nn.Bilinear(4, 4, 2, device=x.device)(x, x),
    "affine_grid": lambda x: torch.nn.functional.affine_grid(x[:, :2, :3], [2, 3, 4, 5], True),
    "matrix_exp": lambda x: torch.matrix_exp(x[:, :3, :3]),
    "attention": lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x),
    "convolution": lambda x: torch.nn.Conv1d(3, 2, 2, device=x.device)(x),
    "transposed convolution": lambda x: torch.nn.ConvTranspose1d(3, 2, 2, device=x.device)(x),
    "householder_product": lambda x: torch.linalg.householder_product(x.mT, x[:, :, 0]),
}


@pytest.mark.nightly
@pytest.mark.parametrize("function", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_so_do_all_products_of_its_programs(gpu, monkeypatch: pytest.MonkeyPatch, function):
    texts = []
    lower_graph = tracing.lower_graph

    def keep_text(*arguments):
        lowered = lower_graph(*arguments)
        texts.extend(part.as_text() for part in lowered.parts)
        return lowered

    monkeypatch.setattr(tracing, "lower_graph", keep_text)
    x = torch.linspace(-1, 1, 24).view(2, 3, 4).jax().requires_grad_()
    torch.autograd.grad(function(x).square().sum(), x)[0].cpu()
    products = re.findall(r"(?:dot_general|stablehlo\.convolution).*", "".join(texts))
    assert products
    highest = re.compile(r"precision(_config)? = \[.*HIGHEST.*HIGHEST.*\]")
    assert [line for line in products if not highest.search(line)] == []


@pytest.fixture
def settings():
    """Of torch, as a process begins with, and again at the end."""

    def reset() -> None:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.fp32_precision = "none"
        torch.backends.fp32_precision = "none"

    reset()
    yield
    reset()


@pytest.mark.parametrize(
    ("choose", "precision"),
    [
        (lambda: None, "HIGHEST"),
        (lambda: torch.set_float32_matmul_precision("highest"), "HIGHEST"),
        (lambda: torch.set_float32_matmul_precision("high"), "HIGH"),
        (lambda: torch.set_float32_matmul_precision("medium"), "DEFAULT"),
        (lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True), "HIGH"),
        (lambda: setattr(torch.backends, "fp32_precision", "ieee"), "HIGHEST"),
        (lambda: setattr(torch.backends, "fp32_precision", "tf32"), "HIGH"),
        (lambda: setattr(torch.backends, "fp32_precision", "bf16"), "DEFAULT"),
    ],
)
def test_the_settings_of_torch_choose_the_precision(gpu, settings, choose, precision: str):
    choose()
    assert precisions(np.float32) == {(lax.Precision[precision],) * 2}
    assert precisions(np.float16) == {None}
    with jax.default_matmul_precision("tensorfloat32"):
        assert precisions(np.float32) == {(lax.Precision.HIGH,) * 2}


def test_a_graph_is_compiled_once_for_each_precision(gpu, settings):
    x = X.jax()
    torch_xla_lite.sync()
    debug.reset_metrics()
    made_for = []
    for name in ("highest", "high", "highest", "high", "medium"):
        torch.set_float32_matmul_precision(name)
        torch.testing.assert_close((x @ x.T).cpu(), X @ X.T)
        made_for.append(len(debug.explain_recompile()))
    assert [count - made_for[0] for count in made_for] == [0, 1, 1, 1, 2]


def test_programs_on_disk_have_the_precision_in_their_keys(gpu, settings, monkeypatch):
    keys = []
    monkeypatch.setattr(compilation_cache, "key", lambda *text: keys.append(text))
    for name in ("highest", "high"):
        torch.set_float32_matmul_precision(name)
        RecordedGraph.of([], []).key()
    assert keys[0] != keys[1]


@pytest.mark.parametrize("dtype", [torch.int32, torch.float64, torch.complex64], ids=str)
def test_bits_are_split_behind_a_barrier(gpu, dtype):
    """XLA for GPUs ends the process when one kernel computes a value and its bytes."""
    result = jax.ShapeDtypeStruct((12 * dtype.itemsize,), np.dtype(np.uint8))
    function = lambda x: views.view_dtype(x, np.dtype(np.uint8), outs=[result])  # noqa: E731
    names = [
        equation.primitive.name
        for equation in jax.make_jaxpr(function)(X.flatten().to(dtype).numpy()).eqns
    ]
    assert names.index("bitcast_convert_type") == names.index("optimization_barrier") + 1


def test_eigenvalues_of_what_is_not_finite_are_not_searched():
    """cuSOLVER fails in the middle of the program, where LAPACK returns."""
    matrices = np.array([[[1, np.nan], [0, 1]], [[np.inf, 0], [0, 1]], [[2, 0], [0, 1]]])
    with checks.collect(True):
        values = linalg.linalg_eigvals(jax.numpy.asarray(matrices, np.float32))
    assert np.isfinite(values[:2]).all()
    np.testing.assert_array_equal(sorted(values[2].real), [1, 2])


def test_a_cpu_needs_no_precision():
    assert precisions(np.float32) == {None}


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_of_16_bit_numbers_is_one_kernel(gpu, monkeypatch, is_causal):
    """cuDNN's, which has no code for a CPU: jax's own form has the same meaning."""
    calls = []

    def of_xla(*args, implementation, **options):
        calls.append(implementation)
        return jax_attention(*args, implementation="xla", **options)

    jax_attention = jax.nn.dot_product_attention
    monkeypatch.setattr(jax.nn, "dot_product_attention", of_xla)
    attend = torch.nn.functional.scaled_dot_product_attention

    def train(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        inputs = [torch.randn(2, 3, 8, 16).to(device, torch.bfloat16) for _ in range(3)]
        leaves = [x.requires_grad_() for x in inputs]
        out = attend(*leaves, is_causal=is_causal, scale=0.5)
        (out * out).sum().backward()
        return [out.detach().cpu(), *(x.grad.cpu() for x in leaves)]

    torch.testing.assert_close(train("jax"), train("cpu"), rtol=0.05, atol=0.05)
    assert set(calls) == {"cudnn"}


@pytest.mark.parametrize("reason", [NotImplementedError, RuntimeError])
def test_attention_that_cudnn_refuses_is_made_of_products(gpu, monkeypatch, reason):
    def refuse(*args, **options):
        raise reason("The head dim must be a multiple of 8")

    monkeypatch.setattr(jax.nn, "dot_product_attention", refuse)
    x = torch.randn(1, 1, 4, 3, dtype=torch.bfloat16)
    attend = torch.nn.functional.scaled_dot_product_attention
    torch.testing.assert_close(attend(*[x.jax()] * 3).cpu(), attend(x, x, x))
