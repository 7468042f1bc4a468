"""Memory of tensors that are gone is given back at once, without another sync."""

import gc
import threading
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
import torch

import torch_xla_lite
from test.python.programs import run


class Bytes(NamedTuple):
    tensors: int
    arrays: int  # of jax


def live_bytes() -> Bytes:
    gc.collect()
    arrays = sum(array.nbytes for array in jax.live_arrays())
    return Bytes(torch.jax.memory_allocated(), arrays)


@pytest.mark.parametrize("is_read", [False, True])
def test_a_dropped_model_gives_its_memory_back(is_read):
    before = live_bytes()
    model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(40))).to("jax")
    torch_xla_lite.sync()
    if is_read:
        for parameter in model.parameters():
            jnp.asarray(parameter.detach())
        assert live_bytes().arrays > before.arrays
    assert live_bytes().tensors > before.tensors
    del model
    parameter = None
    assert live_bytes() == before


def test_a_tensor_that_is_dropped_on_another_thread_gives_its_memory_back():
    before = live_bytes()
    tensors = [torch.ones(1000).to("jax")]
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    assert live_bytes() == before


def test_a_replaced_value_gives_its_memory_back():
    tensor = torch.ones(1000).to("jax")
    before = live_bytes()
    tensor.copy_(torch.zeros(1000))
    assert live_bytes() == before


def test_a_thread_that_only_uploads_gives_memory_back_itself():
    def work():
        x = torch.ones(1 << 18)
        for _ in range(50):
            jnp.asarray(x.to("jax"))
        sizes.append(sum(array.nbytes for array in jax.live_arrays()))

    before, sizes = live_bytes().arrays, []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert sizes[0] - before < 4 << 20


# Prints by how many MiB a loop grows the process. `work(i)` is the body.
_GROWTH = """
import resource, sys, torch, torch_xla_lite
def megabytes():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20
{work}
work(1)
before = megabytes()
for i in range(2, {rounds}):
    work(i)
print(megabytes() - before)
"""


def growth(work: str, rounds: int) -> float:
    program = _GROWTH.format(work=work, rounds=rounds)
    return float(run(program, check=True, TORCH_XLA_LITE_COMPILE="repeated").stdout)


@pytest.mark.needs("interpreter")
def test_a_cache_that_grows_by_cat_leaves_no_holes_in_the_heap():
    work = """
cache = torch.zeros(1, 0, 512, device="jax")
def work(i):
    global cache
    cache = torch.cat([cache, torch.ones(1, 1, 512, device="jax")], 1)
    (cache.softmax(1) * 2).sum().item()
"""
    assert growth(work, 400) < 40  # The last arrays have 0.8 MiB each. With holes: 300 MiB.


@pytest.mark.needs("interpreter")
@pytest.mark.nightly
def test_what_is_kept_of_graphs_is_bounded():
    work = """
def work(i):
    x = torch.ones(1 + i % 317, 1 + i // 317, device="jax")
    ((x * 2 + 1).relu()).sum().item()
"""
    assert growth(work, 100_000) < 50  # 23, reached after 40,000; without bounds 4.6 kB a graph.


def test_uploads_do_not_pile_up():
    work = """
x = torch.ones(4 << 20)
def work(i):
    x.to("jax")
"""
    assert growth(work, 42) < 320  # of 640; XLA frees what it still copies from a little later


@pytest.mark.needs("cpu")
def test_empty_cache_gives_back_what_is_kept_for_later_arrays():
    work = """
def work(i):
    if i == 1:
        (torch.ones(1 << 21, device="jax") * 2).sum().item()
    else:
        torch.jax.empty_cache()
"""
    assert growth(work, 3) <= -4


# Leaves room for 2,200 mappings, and compiles graphs that take 3,000: about 100 each.
_MANY_GRAPHS = """
import mmap
import torch
import torch_xla_lite

def mappings():
    with open("/proc/self/maps") as file:
        return sum(1 for line in file)

def run(width):
    x = y = torch.ones(4, width).to("jax")
    sums = []
    for factor in range(1, 31):
        y = (y * float(factor)).sum(1, keepdim=True) + x
        sums.append(y.sum(0))
    sum(sums).sum().item()

run(1)
with open("/proc/sys/vm/max_map_count") as file:
    allowed = int(file.read())
# Neighbours with the same protection would be one mapping.
protections = (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)
held = [mmap.mmap(-1, mmap.PAGESIZE, prot=protections[i % 2])
        for i in range(allowed - mappings() - 2200)]
before = mappings()
width = 1
while torch_xla_lite.debug.metrics()["compiles"] < 32:
    width += 1
    run(width)
run(2)
print(mappings() - before)
"""


@pytest.mark.nightly
def test_more_graphs_than_the_system_has_mappings_for():
    done = run(_MANY_GRAPHS, TORCH_XLA_LITE_COMPILE="first", TORCH_XLA_LITE_COMPILATION_CACHE="0")
    assert done.returncode == 0, done.stderr
    # Without the limit, all are kept.
    assert int(done.stdout) < 2200


_CHECKPOINTS = """
import sys, torch, torch_xla_lite
from torch.utils.checkpoint import checkpoint
y = x = torch.randn(4096, 16).to("jax").requires_grad_()
for _ in range(8):
    wide, narrow = torch.nn.Linear(16, 1024).to("jax"), torch.nn.Linear(1024, 16).to("jax")
    layer = torch.nn.Sequential(wide, torch.nn.GELU(), narrow)
    again = {"use_reentrant": sys.argv[1] == "reentrant"}
    y = layer(y) if sys.argv[1] == "plain" else checkpoint(layer, y, **again)
y.square().sum().backward()
assert x.grad.isfinite().all().item()
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])  # kB
"""


@pytest.mark.nightly
def test_activation_checkpoints_save_memory_in_a_compiled_program():
    def peak(how: str) -> int:
        return int(run(_CHECKPOINTS, how, check=True, TORCH_XLA_LITE_COMPILE="first").stdout)

    assert max(peak("reentrant"), peak("not reentrant")) < peak("plain") - 200_000
