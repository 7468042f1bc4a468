"""Tensors are sent to other processes, as arguments and through queues of torch.multiprocessing."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp

import torch_xla_lite  # noqa: F401

# What a child runs by `exec`, after `describe`, because it cannot import this file. It answers each
# object with how it looks there, the object itself, and a tensor that the child made.
_ECHO = """
import torch
for value in iter(inbox.get, None):
    tensors = [value] if isinstance(value, torch.Tensor) else list(value.parameters())
    outbox.put(([describe(tensor) for tensor in tensors], value, torch.arange(3, device="jax")))
"""


def describe(tensor):
    values = tensor.detach()
    return type(tensor), tensor.requires_grad, values.device.type, values.dtype, values.tolist()


class _Child:
    """A process that runs _ECHO."""

    def __init__(self, method: str) -> None:
        context = mp.get_context(method)
        self._inbox, self._outbox = context.Queue(), context.Queue()
        names = {"inbox": self._inbox, "outbox": self._outbox}
        self._process = context.Process(
            target=exec, args=(inspect.getsource(describe) + _ECHO, names), daemon=True
        )
        self._process.start()

    def echo(self, value: Any) -> Any:
        self._inbox.put(value)
        return self._outbox.get(timeout=120)

    def end(self) -> int | None:
        self._inbox.put(None)
        self._process.join(60)
        return self._process.exitcode


@pytest.fixture(
    scope="module", params=["spawn", pytest.param("forkserver", marks=pytest.mark.nightly)]
)
def child(request: pytest.FixtureRequest) -> Iterator[_Child]:
    started = _Child(request.param)
    yield started
    assert started.end() == 0


_TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    "values": lambda: torch.arange(6.0, device="jax").view(2, 3) * 2,
    "bool": lambda: torch.tensor([True, False], device="jax"),
    "bfloat16": lambda: torch.ones(2, device="jax", dtype=torch.bfloat16),
    "number": lambda: torch.tensor(3, device="jax"),
    "empty": lambda: torch.ones(0, 3, device="jax"),
    "leaf": lambda: torch.ones(2, device="jax", requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2, device="jax")),
    "frozen parameter": lambda: torch.nn.Parameter(torch.ones(2, device="jax"), False),
    "transposed view": lambda: torch.arange(6, device="jax").view(2, 3).t(),
    "row": lambda: torch.arange(6, device="jax").view(2, 3)[1],
    "conjugate": lambda: torch.tensor([1 + 2j], device="jax").conj(),
}


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("name", _TENSORS)
def test_a_tensor_keeps_its_values_on_the_way_to_a_process_and_back(
    child: _Child, name: str
) -> None:
    tensor = _TENSORS[name]()
    there, returned, made_there = child.echo(tensor)
    assert there == [describe(tensor)]
    assert describe(returned) == describe(tensor)
    assert describe(made_there) == describe(torch.arange(3, device="jax"))


def test_a_module_is_sent_with_its_parameters_and_buffers(child: _Child) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).to("jax")
    there, returned, _ = child.echo(module)
    assert there == [describe(parameter) for parameter in module.parameters()]
    for name, value in module.state_dict().items():
        assert describe(returned.state_dict()[name]) == describe(value)


@pytest.mark.nightly
def test_an_argument_of_a_process_is_a_copy() -> None:
    tensor = torch.zeros(2, device="jax")
    context = mp.get_context("spawn")
    outbox = context.Queue()
    program = "tensor.add_(1); outbox.put(tensor.tolist())"
    process = context.Process(target=exec, args=(program, {"tensor": tensor, "outbox": outbox}))
    process.start()
    assert outbox.get(timeout=120) == [1, 1]
    process.join(60)
    assert tensor.tolist() == [0, 0]


def _sent(value: Any) -> Any:
    pickler = mp.reductions.reduction.ForkingPickler
    return pickler.loads(pickler.dumps(value))


def test_tensors_of_one_message_share_memory_where_the_originals_do() -> None:
    base = torch.zeros(4, device="jax")
    sent, row = _sent([base, base.view(2, 2)[1]])
    row.fill_(1)
    assert sent.tolist() == [0, 0, 1, 1]


def test_a_result_of_autograd_is_refused_as_on_the_cpu() -> None:
    tensor = torch.ones(2, device="jax", requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="refusing to serialize non-leaf tensor"):
        _sent(tensor)


def test_a_storage_is_sent_as_its_bytes() -> None:
    storage = torch.arange(3.0, device="jax").untyped_storage()
    assert _sent(storage).tolist() == storage.cpu().tolist()


def test_cpu_tensors_share_memory_with_the_receiver() -> None:
    tensor = torch.zeros(2)
    _sent(tensor).fill_(1)
    assert tensor.tolist() == [1, 1]
