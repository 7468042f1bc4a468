"""A graph that comes back runs by a plan, and gives the bits that its interpreted runs gave."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn import Sequential

import torch_xla_lite
from test.python import database, tiers
from torch_xla_lite import _XLAC, debug

_interprets = tiers.autouse(tiers.interpreting)


def planned() -> int:
    return debug.metrics()["planned"]


def bits(result: Any) -> list[Any]:
    """The bytes of the tensors of a result, with their shapes; what is no tensor as it is."""
    if isinstance(result, torch.Tensor):
        dense = result.detach().cpu().resolve_conj().resolve_neg()
        dense = dense.clone(memory_format=torch.contiguous_format)
        return [(result.dtype, result.shape, dense.reshape(-1).view(torch.uint8).tolist())]
    if isinstance(result, (list, tuple)):
        return [bits(item) for item in result]
    if isinstance(result, dict):
        return [bits([*result.keys()]), bits([*result.values()])]
    return [type(result) if isinstance(result, Exception) else repr(result)]


def runs(function: Callable[[], Any], count: int = 4) -> list[list[Any]]:
    """The bits of runs of a function; those after the second are planned."""
    return [bits(function()) for _ in range(count)]


def check(function: Callable[[], Any]) -> None:
    first, *others = runs(function)
    assert all(other == first for other in others)
    metrics = debug.metrics()
    # The second of four runs makes the plans.
    assert metrics["plans"] > 0
    assert metrics["planned"] == 2 * metrics["plans"]


# --- operations -----------------------------------------------------------------------------------


PARTS = 8
VARIANTS: dict[str, Callable[[Any, torch.dtype], Any]] = {
    "sample": lambda sample, dtype: [sample],
    "empty": lambda sample, dtype: database.emptied(sample),
    "special": lambda sample, dtype: database.special(sample, dtype, database.VALUES[dtype]),
}
WALKS = [
    *(("sample", x, 3) for x in (torch.float32, torch.int32, torch.bfloat16, torch.complex64)),
    *(("empty", torch.float32, 1), ("special", torch.float32, 1), ("special", torch.int32, 1)),
]


def differs(function: Callable[[], Any]) -> bool:
    _XLAC.clear_cache()  # A call that failed was compiled, which gives other bits.
    first, *others = runs(function)
    return others != [first] * 3


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("variant", "dtype", "limit"), WALKS, ids=str)
def test_each_op_of_the_database_gives_the_bits_of_its_first_run(
    variant: str, dtype: torch.dtype, limit: int, part: int
):
    def differences(name: str) -> list[Any]:
        call = database.Call(database.ops()[name])
        made = [x for s in call.samples(dtype, limit) for x in VARIANTS[variant](s, dtype)]
        return [x for x in made if differs(lambda x=x: database.outcome(lambda: call.record(x)))]

    assert database.found(database.part(part, PARTS), differences) == {}
    assert planned() > 0


# --- programs -------------------------------------------------------------------------------------


def through_views(x: torch.Tensor) -> list[torch.Tensor]:
    old = x * 1
    x[1].add_(1)
    x.t()[0] = 5
    x.view(-1)[2:9:3] = 7
    x[:, 1:].mul_(2)
    return [old, x, x.t() + 1, x.expand(2, 3, 4).sum(0)]


PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "one number": lambda x: (x * 2).sum(),
    "numbers": lambda x: (x * 2.5 - 1).add(x, alpha=3).clamp(-0.5, 0.7).pow(2).mean(),
    "comparisons": lambda x: torch.where(x > 0.25, x, -x) * (x < 0.1) + (x == x[0]),
    "a chain in place": lambda x: (x + 1).mul_(2).sub_(3).relu_().sqrt_().sum(1),
    "a result that two need": lambda x: [(y := x.exp()) + 1, y * 2, y.t(), y],
    "views of results": lambda x: (x * 2).t().reshape(2, 6)[:, 1:].softmax(1).sum(0),
    "an expanded operand": lambda x: x[:1].expand(3, 4) * x + x.unfold(0, 2, 1).sum(-1).sum(),
    "writes through views": lambda x: through_views(x.clone()),
    "a write to an expanded view": lambda x: [y := x[0].cpu().jax(), y.expand(2, 4)[0].sin_()][0],
    "a number of the CPU": lambda x: x.index_put((x[0].long(),), torch.tensor(5.0)),
    "products": lambda x: F.linear(x @ x.t(), x.t(), x[0]).log_softmax(-1),
    "no dimensions": lambda x: [x[0, 0].sum(0), x[1, 1].mean(), x[2, 2] * 2 + x],
    "integers": lambda x: ((x * 10).int() + 3).sum() + (x > 0).sum(),
    "what has no kept kernel": lambda x: x.cumsum(0).sort(1).values[:, ::2].flip(0) + 1,
    "lists": lambda x: [
        torch._foreach_div([x, x.t()], [2.0, 3.0]),
        torch._foreach_sub([x, x[0]], [x, x[1]], alpha=2),
        torch._foreach_addcmul([x, x], [x, x + 1], [x[0], x], value=0.5),
        torch._foreach_lerp([x[:2], x[1:]], [x[1:], x[:2]], 0.25),
        torch._foreach_pow([x, x], 2),
        torch._foreach_sqrt([x, x[:0]]),
    ],
    "lists of which each element needs another": lambda x: torch._foreach_add(
        (y := torch._foreach_mul([x, x + 1], 2)), y[::-1]
    ),
    "no elements": lambda x: [x[:0].sum(0) + 1, x[:0] * 2, x[:0].t() @ x[:0], F.linear(x, x[:0])],
    "a random result": lambda x: F.dropout(torch.rand(3, 4, device="jax") + x, 0.5) * 2,
}


def matrix() -> torch.Tensor:
    return (torch.arange(12.0).reshape(3, 4).sin() + 0.2).jax()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_bits_of_its_first_run(name: str):
    x = matrix()

    def run() -> list[Any]:
        torch.manual_seed(0)
        return bits(PROGRAMS[name](x))

    check(run)
    assert bits(x) == bits(matrix())


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_stay_as_they_are_when_the_plan_runs_again(name: str):
    kept, wanted = [], []
    for step in range(5):
        x = matrix() + step / 8
        torch.jax.synchronize()
        torch.manual_seed(0)
        results = PROGRAMS[name](x)
        torch.jax.synchronize()
        kept.append(results)
        wanted.append(bits(results))
    assert [bits(results) for results in kept] == wanted
    assert planned() >= 3


def test_numbers_may_vary():
    x = matrix()
    for number in (2.0, 3.5, -1e30, float("nan"), 0.0):
        wanted = x.cpu().mul(number).add(x.cpu(), alpha=number).gt(number / 2)
        assert (x * number).add(x, alpha=number).gt(number / 2).tolist() == wanted.tolist()
    assert planned() == 3


# Each reads views of x at places that vary with i.
PLACES: dict[str, Callable[[torch.Tensor, int], Any]] = {
    "rows": lambda x, i: [x[i].exp().sum(), x[i : i + 2] @ x[0]],
    "columns": lambda x, i: [x[:, i] + x[i, 1], x.t()[i], x[:, i:3] if i < 3 else x[0]],
    "views of views": lambda x, i: [x[i][1:].neg(), x[i : i + 3][1].view(2, 2).sum(1), x.t()[i][i]],
    "views of results": lambda x, i: [(y := x.cumsum(0))[i], y[i + 1 : i + 2] * 2, (x * 2)[i] + 1],
    "a result that only a row needs": lambda x, i: [(x * 2)[i] * (x.exp() + x[:1].neg()).relu()],
    "rows of results that leave": lambda x, i: [
        x.cumsum(0)[i],
        (x * 2)[i],
        (x.exp() + x[:1].neg()).relu(),
        x.exp().cumsum(0).cumsum(1) * 2,
    ],
    "a result and a row of it": lambda x, i: [(y := x * 2) + y[i]],
    "a view that is written to": lambda x, i: [(y := x.exp())[i].mul_(2), y, y[i + 1].add_(y[i])],
    "a view of what is written to": lambda x, i: [(y := x + 1)[i], y.mul_(2), y[i : i + 1]],
    "rows by other rows": lambda x, i: [
        (y := (x * 4).long().abs() % 4)[i].view(-1, 1).expand(-1, 2) + 1,
        x.gather(1, y[i].expand(6, 4)),
    ],
    "a view without elements that is written to": lambda x, i: [
        (y := x.clone())[i + 1 : i + 3].unfold(0, 0, 1)[i:].view(-1).add_(1),
        y,
    ],
    "views of a view that are written to": lambda x, i: [
        (y := x.clone())[i : i + 3][1:][i % 2 : i % 2 + 1].add_(1),
        y[i : i + 3][1:].t()[i].mul_(2),
        y,
    ],
    "conjugates": lambda x, i: [torch.complex(x, x + 1).conj()[i].imag + 1],
    "a row that stays": lambda x, i: [(y := x.clone())[i], y[i].clone(), y.zero_(), y[i + 1]],
}


@pytest.mark.parametrize("name", PLACES)
def test_places_may_vary(name: str):
    x = (torch.arange(24.0).reshape(6, 4).sin() + 0.2).round(decimals=2)
    for i in (0, 1, 2, 0, 1, 2, 2, 0):
        found, wanted = (PLACES[name](y, i) for y in (x.jax(), x))
        torch.testing.assert_close([y.cpu() for y in found], [*wanted], rtol=1e-6, atol=1e-6)
    assert planned() >= 2 or name == "conjugates"  # These have no plans.


def test_a_leaf_is_overwritten_only_if_what_follows_runs_again():
    x, number = matrix().cpu().bfloat16(), torch.tensor(4.5, dtype=torch.bfloat16)
    check(lambda: bits(x.jax().reciprocal() * number.jax()))


@pytest.mark.parametrize("rows", [(2, 1, 2, 2), (2, 2, 2, 1)])
def test_a_row_may_be_written_where_it_is(rows: tuple[int, ...]):
    x, y = torch.zeros(3).jax(), torch.ones(3, 2).jax()
    for row in rows:
        x = x - 1
        y[row] = y[1]
        y = y.exp()
        y.tolist()
    assert x.tolist() == [-4] * 3


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda x: torch.optim.SGD(x, lr=0.1, momentum=0.9, weight_decay=0.01),
    "SGD, one by one": lambda x: torch.optim.SGD(x, lr=0.1, momentum=0.9, foreach=False),
    "Adam": lambda x: torch.optim.Adam(x, lr=0.1),
    "AdamW": lambda x: torch.optim.AdamW(x, lr=0.1, amsgrad=True),
    "RMSprop": lambda x: torch.optim.RMSprop(x, lr=0.1, centered=True, momentum=0.5),
    "Adagrad": lambda x: torch.optim.Adagrad(x, lr=0.1, lr_decay=0.1),
    "NAdam": lambda x: torch.optim.NAdam(x, lr=0.1),
}


# (module, shape of its inputs): gradients that are not needed, several results, state.
MODELS: dict[str, tuple[Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), (2, 8, 4)),
    "linear without bias": (lambda: Sequential(nn.Linear(4, 8, bias=False), nn.Tanh()), (8, 4)),
    "convolutions": (
        lambda: Sequential(
            *(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 3, 3)),
            *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 3)),
        ),
        (5, 1, 8, 8),
    ),
    "channels that are last": (
        lambda: Sequential(
            nn.LayerNorm(4),
            Permuted(nn.Conv2d(4, 8, 2, groups=2), nn.BatchNorm2d(8), nn.GELU()),
            *(nn.Linear(8, 3), Permuted(nn.MaxPool2d(2), nn.Upsample(scale_factor=2))),
        ),
        (2, 6, 6, 4),
    ),
    "one convolution": (lambda: nn.Conv1d(2, 3, 2, bias=False), (4, 2, 5)),
    "normalizations": (
        lambda: Sequential(
            *(nn.LayerNorm(4, bias=False), nn.LayerNorm(4, elementwise_affine=False)),
            *(nn.GroupNorm(2, 4), nn.BatchNorm1d(4, affine=False), nn.RMSNorm(4)),
        ),
        (6, 4),
    ),
    "embedding": (
        lambda: Sequential(nn.Flatten(), Indices(), nn.Embedding(7, 4), nn.Dropout(0.2)),
        (3, 5),
    ),
    "attention": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        (2, 5, 8),
    ),
    "recurrence": (lambda: First(nn.LSTM(4, 6, batch_first=True)), (2, 5, 4)),
    "activations": (
        lambda: Sequential(
            *(nn.Linear(4, 4), nn.PReLU(), nn.GELU(), nn.SiLU(), nn.Softplus(), nn.ELU()),
            *(nn.Softmax(-1), nn.LogSigmoid()),
        ),
        (3, 4),
    ),
}


class Indices(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.abs() * 3).long() % 7


class Permuted(torch.nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class First(torch.nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self[0](x)[0]


@pytest.mark.parametrize(
    ("optimizer", "model"),
    [
        *((name, "linear") for name in OPTIMIZERS),
        *(("Adam", name) for name in MODELS if name != "linear"),
    ],
)
def test_a_training_step_gives_the_bits_of_its_first_runs(optimizer: str, model: str):
    make, shape = MODELS[model]

    def losses(planned_runs: bool) -> list[Any]:
        torch.manual_seed(0)
        _XLAC.clear_cache()
        module = make().to("jax")
        parameters = [*module.parameters()]
        stepper = OPTIMIZERS[optimizer](parameters)
        inputs = torch.randn(shape).jax()
        found = []
        for _ in range(6):
            if not planned_runs:
                _XLAC.clear_cache()
            stepper.zero_grad()
            loss = module(inputs).square().mean()
            loss.backward()
            stepper.step()
            found.append(bits(loss))
        return [found, bits(parameters)]

    wanted = losses(planned_runs=False)
    assert planned() == 0
    assert losses(planned_runs=True) == wanted
    assert planned() > 2


VIEWERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "another tensor": torch.clone,
    "a tensor of the CPU": torch.Tensor.cpu,
    "an array of jax": torch_xla_lite.jax_view,
    "an array of numpy": lambda x: numpy.asarray(torch_xla_lite.jax_view(x)),
}


UPDATES: dict[str, Callable[[torch.Tensor, int], Any]] = {
    "all": lambda x, step: x.mul_(2).add_(1),
    "a row": lambda x, step: x[step % 3].fill_(step),
    "positions": lambda x, step: x.index_fill_(0, torch.tensor([step % 3]).jax(), step),
}


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("viewer", VIEWERS)
def test_what_was_seen_of_a_value_stays_as_it_was_when_that_is_updated(viewer: str, update: str):
    x, seen, wanted = matrix(), [], []
    for step in range(12):
        UPDATES[update](x, step)
        torch.jax.synchronize()
        if step % 3 == 0:
            seen.append(VIEWERS[viewer](x))
            wanted.append(x.tolist())
    assert [value.tolist() for value in seen] == wanted
    assert planned() >= 7


def test_threads_run_one_plan_each_in_turn():
    x, wanted = matrix(), bits(matrix().cpu().mul(2).exp().sum(0))
    (x * 2).exp().sum(0).cpu()
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: runs(lambda: (x * 2).exp().sum(0), 50), range(4))
        assert [*found] == [[wanted] * 50] * 4
    assert planned() >= 198


def test_an_error_is_that_of_the_first_run():
    x, index, texts = matrix(), torch.tensor([0, 7, 1]).jax(), set()
    for _ in range(4):
        x.index_select(1, index % 4).sum().item()
        with pytest.raises(IndexError) as error:
            (x + 1).index_select(1, index).sum().item()
        texts.add(str(error.value))
    assert (len(texts), planned() > 0) == (1, True)


@pytest.mark.parametrize("deterministic", (False, True))
def test_settings_may_change(deterministic: bool):
    x = torch.arange(4).jax()
    try:
        for dtype in (torch.float32,) * 4 + (torch.float64,) * 4 + (torch.float32,) * 2:
            x[1] *= 1
            torch.set_default_dtype(dtype)
            assert x.tolist() == [0, 1, 2, 3]
            torch.use_deterministic_algorithms(deterministic)
            assert (x * 0.5).sum().dtype == dtype
            assert (x * 0.5).sum().item() == 3
        assert planned() > 0
    finally:
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)


def test_graphs_that_do_not_come_back_have_no_plan():
    for size in range(1, 20):
        torch.ones(size).jax().mul(2).sum().item()
    assert debug.metrics()["plans"] == 0


def test_a_call_on_many_tensors_is_planned_in_seconds():
    tensors = [torch.zeros(1).jax() for _ in range(3000)]
    for number in range(1, 5):
        torch._foreach_add_(tensors, 1)
        assert tensors[-1].item() == number


def test_a_loop_over_numbers_has_one_plan():
    assert [v.item() for v in torch.arange(300.0).jax() if v > 297] == [298, 299]
    assert debug.metrics()["plans"] == 1


def test_what_is_computed_is_read_without_a_graph():
    x = torch.arange(600.0).view(20, 30)
    assert torch.equal(x.jax().t()[2:9, 1::3].cpu(), x.t()[2:9, 1::3])
    assert debug.metrics()["interpretations"] == 0
