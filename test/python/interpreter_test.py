"""A graph that is met for the first time is interpreted, with the results that it is to have."""

import gc
import math
import time

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import torch_xla_lite
from test.python import tiers
from test.python.programs import run
from test.python.tiers import counts
from torch_xla_lite import _XLAC, debug
from torch_xla_lite.compiler import costs, new_graphs
from torch_xla_lite.debug import times
from torch_xla_lite.lowering.base import target


@pytest.fixture(autouse=True)
def _interprets_first():
    with tiers.as_by_default(), tiers.compiling_what_comes_back():
        yield


def test_a_graph_is_compiled_when_it_comes_back():
    x = torch.ones(100).jax()
    counts_by_step = []
    for _ in range(3):
        assert (x * 2).tolist() == [2] * 100
        counts_by_step.append(counts())
    assert counts_by_step == [(1, 0, 0), (1, 1, 1), (1, 1, 2)]


def test_a_long_loop_over_small_arrays_compiles_nothing():
    costs.register()
    x = torch.ones(4, 4).jax()
    for _ in range(2000):
        (x * 2).sum().item()
    assert counts() == (2000, 0, 0)


def test_a_device_with_memory_of_its_own_compiles_what_is_large(monkeypatch):
    monkeypatch.setattr(target, "platform", lambda: "gpu")
    assert (torch.ones(3).jax() * 2).tolist() == [2, 2, 2]
    assert counts() == (1, 0, 0)
    assert (torch.ones(20_000).jax() * 2)[:2].tolist() == [2, 2]
    assert counts()[1:] == (1, 1)


def test_a_variable_switches_it_off():
    code = (
        "import torch, torch_xla_lite; (torch.ones(2).jax() + 1).cpu();"
        "m = torch_xla_lite.debug.metrics();"
        "print(m['interpretations'], m['compiles'] + m['loads'])"
    )
    for value, wanted in (("first", "0 1"), ("", "1 0")):
        done = run(code, TORCH_XLA_LITE_COMPILE=value)
        assert done.stdout.split() == wanted.split()


def test_the_margin_loss_of_no_rows_is_the_mean_of_nothing():
    # torch's kernel returns memory that nothing has written to.
    loss = F.multi_margin_loss(torch.ones(0, 5).jax(), torch.ones(0).long().jax())
    assert loss.isnan()


def test_rows_beyond_the_table_of_bags_end_no_process():
    empty, offset = torch.zeros(1, dtype=torch.int64).jax(), torch.zeros(1, dtype=torch.int64).jax()
    bad, row = torch.full((1,), 1 << 38).jax(), torch.ones(1, 3).jax()
    backward = torch.ops.aten._embedding_bag_per_sample_weights_backward
    with pytest.raises(IndexError, match="out of range"):
        backward(row, torch.ones(4, 3).jax(), bad, offset, empty, 0).tolist()
    backward = torch.ops.aten._embedding_bag_dense_backward
    result = backward(row, bad, offset, offset + 1, empty, 4, False, 0, None)
    assert result.shape == (4, 3) and result.cpu().sum() <= 3


# Also those that float32 cannot have.
_NUMBERS = [2, 0.1, 3.5e38, -1e300, 16777217, 2**53 + 1, 1e-46, math.inf, math.nan]
_OF_NUMBERS = {
    "add": lambda x, number: torch.add(x, number, alpha=3),
    "rsub": lambda x, number: number - x,
    "div": lambda x, number: number / x,
    "remainder": lambda x, number: x % number,
    "gt": lambda x, number: x > number,
    "copysign": torch.copysign,
    "xlogy": torch.xlogy,
    "mul_": lambda x, number: (x + 1).mul_(number),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("name", _OF_NUMBERS)
def test_numbers_are_rounded_as_on_the_cpu(name, dtype):
    costs.register()  # So small a graph is never compiled.
    x = torch.tensor([-2.5, 0.3, 7]).to(dtype)
    for number in _NUMBERS:
        if name == "mul_" and dtype == torch.int64 and not isinstance(number, int):
            continue
        expected = _OF_NUMBERS[name](x, number)
        actual = _OF_NUMBERS[name](x.jax(), number).cpu()
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    assert debug.metrics()["compiles"] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cell", [torch.nn.LSTMCell, torch.nn.GRUCell])
def test_recurrent_cells_of_new_sizes_compile_nothing(cell, bias, dtype):
    torch.manual_seed(0)
    layer = cell(3, 4, bias, dtype=dtype)
    for batch in (1, 2, 3):
        x = torch.randn(2, batch, 3, dtype=dtype)
        gradients = []
        for device in ("cpu", "jax"):
            layer.zero_grad()
            layer.to(device)
            inputs = x.to(device).detach().requires_grad_()
            state = layer(inputs[1], layer(inputs[0]))
            if cell is torch.nn.LSTMCell:  # h, c, and both
                state = (state[0], state[1], torch.cat(state))[batch - 1]
            state.square().sum().backward()
            leaves = [inputs, *layer.parameters()]
            gradients.append([leaf.grad.cpu().float() for leaf in leaves])
        tolerance = 1e-5 if dtype == torch.float32 else 0.05
        torch.testing.assert_close(*gradients, rtol=tolerance, atol=tolerance)
    assert counts()[1] == 0


@pytest.mark.parametrize("cell", [torch.nn.LSTMCell, torch.nn.GRUCell])
def test_a_compiled_graph_continues_an_interpreted_recurrent_cell(cell):
    torch.manual_seed(0)
    layer, x = cell(3, 4), torch.randn(2, 3)
    gradients = []
    for device, then in (("cpu", "first"), ("jax", "first"), ("jax", "repeated")):
        layer.zero_grad()
        layer.to(device)
        _XLAC.set_compile_when("first" if then == "repeated" else "repeated")
        state = layer(x.to(device))
        loss = (state[0] if isinstance(state, tuple) else state).square().sum()
        loss.item()
        _XLAC.set_compile_when(then)
        loss.backward()
        gradients.append([parameter.grad.cpu() for parameter in layer.parameters()])
    for got in gradients[1:]:
        torch.testing.assert_close(got, gradients[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(4,), (2, 4), (2, 5, 4)], ids=str)
def test_linear_of_complex_numbers_has_the_gradient_of_the_cpu(shape):
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(dims, dtype=torch.complex64) for dims in (shape, (3, 4), (3,)))
    grad = torch.randn(*shape[:-1], 3, dtype=torch.complex64)

    def gradients(device):
        leaves = [value.to(device).requires_grad_() for value in (x, weight, bias)]
        found = torch.autograd.grad(F.linear(*leaves), leaves, grad.to(device), create_graph=True)
        second = torch.autograd.grad(found[1].abs().sum(), leaves[0])
        return [value.detach().cpu() for value in (*found, *second)]

    interpreted, compiled = gradients("jax"), gradients("jax")
    torch.testing.assert_close(interpreted, gradients("cpu"))
    torch.testing.assert_close(compiled, interpreted)


@pytest.mark.parametrize("has_mask", [False, True])
def test_attention_reads_rows_of_transposed_operands(has_mask):
    # Images of convolutions: their channels, which are the rows of the attention, come first.
    images = torch.randn(4, 2, 3, 8, 5, generator=torch.Generator().manual_seed(1))
    mask = torch.randn(5, 5, generator=torch.Generator().manual_seed(2))

    def results(images, mask):
        images = images.detach().requires_grad_()
        q, k, v, weight = images.mT
        found = F.scaled_dot_product_attention(q, k, v, mask.mT if has_mask else None)
        (gradient,) = torch.autograd.grad(found, images, weight)
        return found.detach().cpu(), gradient.cpu()

    wanted = results(images, mask)
    torch.testing.assert_close(results(images.jax(), mask.jax()), wanted, rtol=1e-4, atol=1e-5)
    assert counts()[1:] == (0, 0)


def test_the_gradient_of_a_group_norm_reads_transposed_gradients():
    x, weight, bias, rows = torch.randn(4, 2, 4, 6, generator=torch.Generator().manual_seed(1))

    def gradients(x, weight, bias, rows):
        inputs = [
            tensor.detach().requires_grad_() for tensor in (x, weight[0, :, 0], bias[0, :, 0])
        ]
        found = F.group_norm(inputs[0], 2, *inputs[1:]).mT
        return [
            gradient.cpu() for gradient in torch.autograd.grad(found, inputs, rows.reshape(2, 6, 4))
        ]

    wanted = gradients(x, weight, bias, rows)
    found = gradients(x.jax(), weight.jax(), bias.jax(), rows.jax())
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_attention_with_dropout_draws_the_numbers_of_the_compiled_graph():
    q = torch.randn(2, 4, 5, 8, generator=torch.Generator().manual_seed(1)).jax()
    draw = lambda: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)  # noqa: E731
    torch.testing.assert_close(*drawn_twice(draw, seed=3, offset=5), rtol=1e-4, atol=1e-5)


def drawn_twice(draw, seed, offset):
    """What a random call gives, interpreted and then compiled."""
    results = []
    for when in ("repeated", "first"):
        _XLAC.set_compile_when(when)
        torch.jax.set_rng_state(torch.tensor([seed, offset]).view(torch.uint8))
        result = draw()
        parts = result if isinstance(result, tuple) else (result,)
        results.append([part.cpu() for part in parts])
    metrics = debug.metrics()
    assert (metrics["interpretations"], metrics["executions"]) == (1, 1)
    return results


def empty(*size, dtype=torch.float32):
    return torch.empty(*size, device="jax", dtype=dtype)


def seeded():
    return torch.Generator("jax").manual_seed(5)


RATES = torch.linspace(0.1, 2, 45).view(5, 9)
DRAWS = {
    "dropout": lambda: torch.native_dropout(torch.ones(7, 33).jax().t(), 0.3, True),
    "dropout of half": lambda: torch.native_dropout(torch.full((99,), 1.7).half().jax(), 0.3, True),
    "no dropout": lambda: torch.native_dropout(torch.ones(5).jax(), 0.0, True),
    "dropout of all": lambda: torch.native_dropout(torch.ones(5).jax(), 1.0, True),
    "rand": lambda: torch.rand(3, 5, 7, device="jax"),
    "rand of float64": lambda: torch.rand(5000, device="jax", dtype=torch.float64),
    "rand of half": lambda: torch.rand(5000, device="jax", dtype=torch.half),
    "rand of bfloat16": lambda: torch.rand_like(empty(5000, dtype=torch.bfloat16)),
    "rand of complex": lambda: torch.rand(9, device="jax", dtype=torch.complex64),
    "no numbers": lambda: (torch.rand(0, device="jax"), torch.randperm(0, device="jax")),
    "bernoulli": lambda: torch.bernoulli(torch.linspace(0, 1, 99).view(3, 33).jax().t()),
    "bernoulli of float64": lambda: torch.bernoulli(torch.linspace(0, 1, 99).double().jax()),
    "bernoulli in place": lambda: empty(5, 9).bernoulli_(torch.linspace(0, 1, 9).jax()),
    "bernoulli of a number": lambda: (empty(99).bernoulli_(0.3), empty(9).bernoulli_(1.0)),
    "randint": lambda: torch.randint(10, (99,), device="jax"),
    "randint from below zero": lambda: torch.randint(-(2**62), 2**63 - 1, (99,), device="jax"),
    "randint of a byte": lambda: torch.randint(5, 250, (99,), device="jax", dtype=torch.uint8),
    "with a generator": lambda: (
        torch.rand(9, device="jax", generator=seeded()),
        torch.randint(10, (99,), device="jax", generator=seeded()),
        torch.randint(-3, 5, (99,), device="jax", generator=seeded()),
        torch.randperm(9, device="jax", generator=seeded()),
    ),
    "randint like": lambda: torch.randint_like(empty(99), -3, 5),
    "random of int16": lambda: empty(99, dtype=torch.int16).random_(),
    "random of int64": lambda: empty(99, dtype=torch.int64).random_(),
    "random of half": lambda: empty(99, dtype=torch.half).random_(),
    "random of bool": lambda: empty(99, dtype=torch.bool).random_(),
    "random with bounds": lambda: (empty(99).random_(7), empty(99).random_(-7, 7)),
    "randperm": lambda: torch.randperm(3000, device="jax"),
    "uniform": lambda: empty(5000).uniform_(-0.3, 0.7123),
    "uniform of float64": lambda: empty(5000, dtype=torch.float64).uniform_(-0.3, 0.7123),
    "randn": lambda: torch.randn(3, 5, 7, device="jax"),
    "randn of float64": lambda: torch.randn(5000, device="jax", dtype=torch.float64),
    "randn of bfloat16": lambda: torch.randn_like(empty(99, dtype=torch.bfloat16)),
    "randn of complex": lambda: torch.randn(99, device="jax", dtype=torch.complex64),
    "normal": lambda: empty(5000).normal_(0.1, 1.7),
    "normal of a size": lambda: torch.normal(0.1, 1.7, (3, 5), device="jax"),
    "exponential": lambda: empty(99).exponential_(2.5),
    "log normal": lambda: empty(99).log_normal_(0.5, 2.5),
    "geometric": lambda: empty(99).geometric_(0.3),
    "cauchy": lambda: empty(99).cauchy_(0.1, 3.0),
    "multinomial": lambda: torch.multinomial(torch.linspace(0, 1, 9).jax(), 3),
    "multinomial of one": lambda: torch.multinomial(RATES.jax(), 1),
    "multinomial with replacement": lambda: torch.multinomial(RATES.jax(), 12, True),
    "normal of tensors": lambda: torch.normal(RATES[0].jax(), RATES.jax()),
    "normal of a tensor": lambda: torch.normal(RATES.jax().t(), 1.7),
    "normal around a number": lambda: torch.normal(0.3, RATES.half().jax()),
    "gamma": lambda: torch._standard_gamma(torch.linspace(0.1, 9, 99).jax()),
    "gamma of float64": lambda: torch._standard_gamma(torch.linspace(0.1, 9, 99).double().jax()),
    "shares": lambda: torch.ops.torch_xla_lite.log_gamma(RATES.jax()),
    "poisson": lambda: torch.poisson(torch.linspace(0, 99, 99).view(3, 33).jax().t()),
    "binomial": lambda: torch.binomial(torch.arange(9.0).jax(), torch.linspace(0, 1, 9).jax()),
    "binomial of many": lambda: torch.binomial(RATES.jax() * 99, RATES.jax() / 2),
    "rrelu": lambda: F.rrelu(torch.linspace(-1, 1, 5000).jax(), 0.1, 0.37, training=True),
    "rrelu of half": lambda: F.rrelu(torch.linspace(-1, 1, 99).half().jax(), training=True),
    "rrelu of float64": lambda: F.rrelu(torch.linspace(-1, 1, 99).double().jax(), training=True),
}


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("name", DRAWS)
def test_drawn_numbers_are_those_of_the_compiled_graph(name):
    interpreted, compiled = drawn_twice(DRAWS[name], seed=2**40 + 11, offset=3)
    for one, other in zip(interpreted, compiled, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**62 + 5, -1])
@pytest.mark.parametrize("offset", [0, 1, 2**31, 2**32 + 5])
def test_each_seed_and_offset_gives_the_numbers_of_the_compiled_graph(seed, offset):
    interpreted, compiled = drawn_twice(lambda: torch.rand(9, device="jax"), seed, offset)
    assert torch.equal(*interpreted, *compiled)


@pytest.mark.needs("interpreter")
@pytest.mark.few_daily(6)
@pytest.mark.parametrize("draw", DRAWS)
def test_no_draw_is_compiled(draw):
    result = DRAWS[draw]()
    torch_xla_lite.sync()
    assert counts()[1:] == (0, 0)
    del result


def test_clear_cache_drops_the_programs_of_single_operations():
    for programs in (1, 2):
        empty(9, dtype=torch.complex64).uniform_(2, 3).cpu()
        _XLAC.clear_cache()
        assert counts()[1] == programs


def test_another_generator_of_jax_gives_its_numbers_at_once():
    import jax

    before = jax.config.jax_default_prng_impl
    jax.config.update("jax_default_prng_impl", "rbg")
    try:
        torch.rand(9, device="jax").cpu()
    finally:
        jax.config.update("jax_default_prng_impl", before)
    assert counts()[:2] == (1, 1)


def test_a_result_shares_no_memory_that_is_overwritten_later():
    x = torch.arange(6.0).jax()
    alias = x.detach().view(2, 3) + 0  # Its kernel may give back its operand.
    view = x.view(3, 2).contiguous()
    torch_xla_lite.sync()
    for _ in range(4):
        x = x * 2
        torch_xla_lite.sync()
        _XLAC.set_compile_when("first")  # Later rounds donate x's memory.
        gc.collect()
    assert alias.flatten().tolist() == view.flatten().tolist() == [0, 1, 2, 3, 4, 5]
    assert x.tolist() == [0, 16, 32, 48, 64, 80]


def test_a_mode_of_the_user_sees_none_of_its_kernels():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            called.append(func)
            return func(*args, **(kwargs or {}))

    called = []
    x = torch.randn(3, 4).jax()
    pending = (x.t() + 1, torch.complex(x, x).conj(), torch.rand(3, device="jax"))
    with Mode():
        torch_xla_lite.sync()
    assert called == []
    assert counts()[0] == 1
    del pending


def three_of(name, seconds=0.0):
    """An op of the user whose program takes some time to compile."""

    @torch.library.custom_op(f"interpreter_test::{name}", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return x * 0 + 3

    def lowering(x):
        time.sleep(seconds)
        return x * 0 + 3

    op.register_fake(lambda x: torch.empty_like(x))
    torch_xla_lite.register_lowering(f"interpreter_test::{name}")(lowering)
    return op


def interpreted_seconds() -> float:
    return sum(row.seconds for row in times.rows() if row.form == "interpreted")


@pytest.mark.needs("interpreter")
def test_the_report_counts_the_compilation_of_an_op_once():
    op = three_of("reported", seconds=0.5)
    before = interpreted_seconds()
    assert (op(torch.ones(2).jax()) + 1).tolist() == [4, 4]
    assert counts() == (1, 1, 0)
    assert new_graphs.all_graphs()[-1].seconds > 0.5
    assert interpreted_seconds() - before < 0.5


@pytest.mark.needs("interpreter")
def test_a_call_that_ran_compiled_is_a_graph_of_one_step():
    op, x = three_of("alone"), torch.ones(3).jax()
    assert (op(x) * 2).tolist() == [6, 6, 6]
    assert counts() == (1, 1, 0)
    assert op(x).tolist() == [3, 3, 3]
    assert counts() == (1, 1, 1)


@pytest.mark.nightly
def test_a_program_survives_more_shapes_than_are_kept():
    def step(base):
        base[1:].t().mul_(2)  # a write through views that are not read
        return base.sum().item()

    _XLAC.set_compile_when("first")
    base = torch.ones(3, 4).jax()
    assert step(base) == 20
    _XLAC.set_compile_when("repeated")
    for size in range(1, 10_000):
        assert torch.ones(size, device="jax").sum().item() == size
    debug.reset_metrics()
    assert step(torch.ones(3, 4).jax()) == 20
    assert counts() == (0, 0, 1)


def explained():
    return [str(graph).partition(": ")[2] for graph in debug.explain_recompile()]


def test_an_interpreted_graph_is_explained_once():
    new_graphs.reset()
    with tiers.using(tiers.per_op(interpretation=1, compilation=100)):
        for size in (131, 131, 132, 131, 132):
            (torch.ones(size).jax() * 5).cpu()
    assert explained() == [
        "the first graph (interpreted)",
        "input 0 is float32[132], was float32[131] (interpreted)",
    ]


def test_a_graph_that_is_compiled_later_keeps_its_cause():
    new_graphs.reset()
    for size in (101, 102, 102):
        (torch.ones(size).jax() * 5).cpu()
    assert explained() == [
        "the first graph (interpreted)",
        "input 0 is float32[102], was float32[101]",
    ]
    assert debug.explain_recompile()[1].seconds > 0


def test_an_interpreted_graph_is_explained_after_its_tensors_are_gone():
    new_graphs.reset()
    for op in (torch.sinh, torch.cosh):
        (op(torch.ones(133).jax()) + 1).cpu()
    gc.collect()
    assert explained()[1] == "aten::cosh where aten::sinh was (interpreted)"


@pytest.mark.needs("interpreter")
def test_the_program_of_an_op_in_an_interpreted_graph_is_explained():
    op = three_of("explained")
    new_graphs.reset()
    for size in (134, 135):
        (op(torch.ones(size).jax()) + 1).cpu()
    part = "interpreter_test::explained, which interpreted graphs run compiled: "
    assert explained() == [
        f"{part}the first graph",
        "the first graph (interpreted)",
        f"{part}input 0 is float32[135], was float32[134]",
        "input 0 is float32[135], was float32[134] (interpreted)",
    ]
