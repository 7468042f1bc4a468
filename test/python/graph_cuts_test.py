"""Programs that read nothing are cut into graphs, and the first graph serves all steps."""

import threading

import pytest
import torch

import torch_xla_lite
from test.python import programs
from torch_xla_lite.startup import variables


def counts(work):
    """Compilations and executions of `work()`."""
    torch_xla_lite.sync()
    torch_xla_lite.debug.reset_metrics()
    work()
    metrics = torch_xla_lite.debug.metrics()
    return metrics["compiles"], metrics["executions"]


def trainer(device, make_optimizer, width=4):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)
    )
    model.to(device)
    optimizer = make_optimizer(model.parameters())
    inputs = torch.randn(8, 3).to(device)

    def train(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
        return loss

    return train


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1),
    "adamw amsgrad": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, amsgrad=True),
    "adam foreach": lambda parameters: torch.optim.Adam(parameters, lr=0.1, foreach=True),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.1, centered=True),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.1),
    "adadelta": lambda parameters: torch.optim.Adadelta(parameters),
}


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_step_is_an_execution_and_the_first_graph_serves_all(optimizer):
    width = 5 + list(OPTIMIZERS).index(optimizer)  # no graph of another test
    train = trainer("jax", OPTIMIZERS[optimizer], width)
    losses = []
    assert counts(lambda: losses.append(train(6))) == (1, 6)
    expected = trainer("cpu", OPTIMIZERS[optimizer], width)(6)
    torch.testing.assert_close(losses[0].cpu(), expected, rtol=1e-4, atol=1e-5)


def test_a_first_parameter_on_the_cpu_changes_nothing():
    parameters = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(43).to("jax"))]
    optimizer = torch.optim.SGD(parameters, lr=0.1)

    def train():
        for _ in range(6):
            optimizer.zero_grad()
            parameters[1].square().sum().backward()
            optimizer.step()

    assert counts(train) == (1, 6)


def test_an_optimizer_on_the_cpu_starts_nothing():
    pending = torch.arange(3.0, device="jax") + 1
    train = trainer("cpu", OPTIMIZERS["sgd"])
    torch_xla_lite.debug.reset_metrics()
    train(2)
    assert torch_xla_lite.debug.metrics()["executions"] == 0
    assert pending.tolist() == [1, 2, 3]


def run(code, **variables):
    done = programs.run("import torch, torch_xla_lite\n" + code, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


TRAIN = """
weight = torch.nn.Parameter(torch.ones(3, device="jax"))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(4):
    weight.square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(torch_xla_lite.debug.metrics()["executions"], weight.sum().item())
"""


@pytest.mark.nightly
def test_the_cut_after_a_step_can_be_switched_off():
    on, off = run(TRAIN), run(TRAIN, TORCH_XLA_LITE_SYNC_AFTER_STEP="0")
    assert (on[0], off[0]) == ("4", "0")
    assert on[1] == off[1]


LOOP = """
x = torch.zeros(4, device="jax")
for _ in range({rounds}):
    for i in range({period}):
        x = x * 0.5 + (i + 1)
metrics = torch_xla_lite.debug.metrics()
print(metrics["compiles"], metrics["executions"], *x.tolist())
"""


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("period", [1, 7, 23])
def test_a_loop_without_an_optimizer_settles_into_a_few_graphs(period):
    code = LOOP.format(period=period, rounds=1200 // period)
    compiles, executions, *values = run(code, TORCH_XLA_LITE_PENDING_LIMIT="50")
    assert int(compiles) <= 3
    assert int(executions) >= 20
    expected = 0.0
    for _ in range(1200 // period):
        for i in range(period):
            expected = expected * 0.5 + (i + 1)
    assert [float(value) for value in values] == pytest.approx([expected] * 4, rel=1e-6)


WRITES = """
out, x = torch.zeros(8, 4, device="jax"), torch.ones(8, 4, device="jax")
for count in (60, 600):
    torch_xla_lite.debug.reset_metrics()
    for i in range(count):
        out[i % 8] = x[i % 8] * i
    print(torch_xla_lite.debug.metrics()["compiles"], *out[:, 0].tolist())
"""


@pytest.mark.nightly
def test_more_writes_in_a_loop_are_not_more_graphs():
    found = run(WRITES, TORCH_XLA_LITE_PENDING_LIMIT="20", TORCH_XLA_LITE_COMPILE="first")
    few, many = found[:9], found[9:]
    assert 1 <= int(few[0]) <= 5
    assert int(many[0]) <= 2
    assert [float(x) for x in many[1:]] == [592, 593, 594, 595, 596, 597, 598, 599]


def test_batches_that_were_dropped_do_not_stay_in_memory():
    code = """
total = torch.zeros((), device="jax")
for _ in range(24):
    total += torch.ones(4_000_000).to("jax").mean()
print(torch_xla_lite.debug.metrics()["executions"], total.item())
"""
    assert run(code) == ["2", "24.0"]


@pytest.mark.nightly
def test_without_a_limit_only_a_read_runs_the_loop():
    code = LOOP.format(period=3, rounds=40)
    assert run(code, TORCH_XLA_LITE_PENDING_LIMIT="0")[:2] == ["0", "0"]


def test_reads_of_another_thread_do_not_raise_the_limit():
    code = """
import concurrent.futures
x = torch.ones(2, device="jax")
with concurrent.futures.ThreadPoolExecutor(1) as other:
    for _ in range(10):
        for _ in range(10):
            x = x * 1.0001
        other.submit(lambda: torch.ones(2, device="jax").add(1).tolist()).result()
print(str(torch_xla_lite.debug.graph()).count("= aten::mul"))
"""
    assert int(run(code, TORCH_XLA_LITE_PENDING_LIMIT="50")[0]) < 50


def test_an_error_at_the_limit_is_raised_where_its_value_is_read():
    code = """
from torch_xla_lite.lowering.base import registry
import dataclasses
def broken(*args, **kwargs):
    raise ValueError("the lowering is broken")
registry.LOWERINGS["aten::cosh"] = dataclasses.replace(registry.find("aten::cosh"), fn=broken)
bad = torch.ones(3, device="jax").cosh()
x = torch.zeros(4, device="jax")
for _ in range(100):
    x = x + 1
print(x.sum().item())
try:
    bad.sum().item()
except RuntimeError as error:
    print("raised")
"""
    assert run(code, TORCH_XLA_LITE_PENDING_LIMIT="20") == ["400.0", "raised"]


@pytest.mark.parametrize("value", ["-1", "many", "1.5"])
def test_a_limit_that_is_no_number_is_refused(value):
    with pytest.raises(ValueError) as caught:
        variables.check({"TORCH_XLA_LITE_PENDING_LIMIT": value})
    assert str(caught.value).splitlines() == [
        f"TORCH_XLA_LITE_PENDING_LIMIT={value} is not understood: it may be a whole number.",
        "Correct it:  export TORCH_XLA_LITE_PENDING_LIMIT=1000"
        "    (or: unset TORCH_XLA_LITE_PENDING_LIMIT)",
    ]


DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.complex128, torch.bool]


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_reference_to_an_old_value_compiles_nothing(dtype):
    state = torch.ones(3, 2, device="jax").to(dtype)

    def step():
        nonlocal state
        state = state.logical_not().to(dtype) if dtype == torch.bool else state * 3 - 1
        torch_xla_lite.sync()

    for _ in range(3):
        step()
    old = state
    expected = old.cpu().clone()
    assert counts(step) == (0, 1)
    assert counts(step) == (0, 1)
    assert torch.equal(old.cpu(), expected)


def test_a_recurrent_state_that_is_kept_compiles_nothing():
    cell = torch.nn.LSTMCell(4, 4).to("jax")
    inputs = torch.randn(2, 4).to("jax")
    state = (torch.zeros(2, 4, device="jax"), torch.zeros(2, 4, device="jax"))

    @torch.no_grad()
    def step():
        nonlocal state
        state = cell(inputs, state)
        torch_xla_lite.sync()

    assert counts(step) == (1, 1)
    step()
    first = state
    assert counts(lambda: [step() for _ in range(4)]) == (0, 4)
    assert all(tensor.isfinite().all() for tensor in first)


def test_a_read_does_not_cut_what_another_thread_has_half_recorded():
    recorded, go_on = threading.Event(), threading.Event()
    results = []

    def other():
        x = torch.arange(4.0, device="jax") * 2
        recorded.set()
        go_on.wait(60)
        results.append(counts(lambda: results.append((x + 1).tolist())))

    thread = threading.Thread(target=other)
    thread.start()
    recorded.wait(60)
    assert torch.ones(2, device="jax").add(1).sum().item() == 4
    go_on.set()
    thread.join()
    # The multiplication was not computed before: it is part of the one graph.
    assert results[0] == [1, 3, 5, 7]
    assert results[1][1] == 1


def test_backward_belongs_to_the_thread_that_calls_it():
    recorded, go_on = threading.Event(), threading.Event()
    results = []

    def other():
        weight = torch.ones(3, device="jax", requires_grad=True)
        (weight * 2).sum().backward()
        recorded.set()
        go_on.wait(60)
        torch_xla_lite.debug.reset_metrics()
        results.append(weight.grad.tolist())
        results.append(torch_xla_lite.debug.metrics()["executions"])

    thread = threading.Thread(target=other)
    thread.start()
    recorded.wait(60)
    torch_xla_lite.sync()
    go_on.set()
    thread.join()
    assert results == [[2, 2, 2], 1]


def test_backward_records_on_the_calling_thread_also_after_inference_mode():
    threads = []

    def other():
        with torch.inference_mode():
            torch.ones(3, device="jax") + 1  # The thread's first op.
        weight = torch.ones(3, device="jax", requires_grad=True)
        weight.register_hook(lambda _: threads.append(threading.current_thread()))
        (weight * 2).sum().backward()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert threads == [thread]
