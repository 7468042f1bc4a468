"""What cannot wait says so: reads while a graph is compiled or run, and forked processes."""

import pytest

from bazel.pytest_plugin import mostly_nightly
from test.python import programs

OP = """
import os, sys, threading
import torch, torch_xla_lite

@torch.library.custom_op("test::op", mutates_args=(), device_types="cpu")
def op(x: torch.Tensor) -> torch.Tensor:
    return kernel(x)

op.register_fake(torch.empty_like)

def message(work):
    try:
        print(work())
    except RuntimeError as error:
        print("was read while a graph is compiled or run" in str(error))

pending = torch.zeros(2, device="jax") + 1
x = torch.zeros(2).to("jax")
"""


@pytest.mark.nightly
def test_a_lowering_that_reads_a_pending_tensor_raises():
    printed = programs.lines(f"""{OP}
torch_xla_lite.register_lowering("test::op")(lambda x: x + pending.tolist()[0])
value = op(x)
message(torch_xla_lite.sync)
print(value.tolist(), pending.tolist())
""")
    # What the lowering read is computed by then.
    assert printed == ["True", "[1.0, 1.0] [1.0, 1.0]"]


def test_a_kernel_that_reads_a_pending_tensor_raises():
    printed = programs.lines(f"""{OP}
def kernel(x):
    return x + later.tolist()[0]

value = op(x)
compile_graph = torch_xla_lite.compiler.compiler.compile_graph
def record_another(*graph):
    global later
    later = torch.zeros(2, device="jax") + 2
    return compile_graph(*graph)
torch_xla_lite.compiler.compiler.Compiler.compile = staticmethod(record_another)
torch_xla_lite.compiler.compiler.register()
message(lambda: value.tolist())
print(later.tolist())
""")
    assert printed == ["True", "[2.0, 2.0]"]


@pytest.mark.nightly
def test_another_thread_may_read_a_pending_tensor_while_a_kernel_runs():
    printed = programs.lines(f"""{OP}
started, read = threading.Event(), threading.Event()
def kernel(x):
    started.set()
    read.wait(0.3)  # Not for long: the other thread may have to wait for this kernel.
    return x + 1

def read_another():
    started.wait()
    message(lambda: (pending * 2).tolist())
    read.set()

thread = threading.Thread(target=read_another)
thread.start()
result = op(x).tolist()
thread.join()
print(result)
""")
    assert printed == ["[2.0, 2.0]", "[1.0, 1.0]"]


@pytest.mark.nightly
def test_a_del_that_reads_a_pending_tensor_while_a_graph_is_compiled_raises():
    done = programs.run(f"""{OP}
class Reader:
    def __del__(self):
        print(pending.tolist())

def lowering(x):
    Reader()
    return x + 1

torch_xla_lite.register_lowering("test::op")(lowering)
print(op(x).tolist())
""")
    assert done.stdout.splitlines() == ["[1.0, 1.0]"], done.stderr
    assert "was read while a graph is compiled or run" in done.stderr


def test_a_child_that_is_forked_during_a_sync_gets_an_error():
    printed = programs.lines(f"""{OP}
started, forked = threading.Event(), threading.Event()

def kernel(x):
    started.set()
    forked.wait(60)
    return x + 1

torch_xla_lite._XLAC.set_compile_when("repeated")  # XLA does not start.
value = op(x)
thread = threading.Thread(target=value.tolist)
thread.start()
started.wait()
if os.fork() == 0:
    try:
        (x + 1).tolist()
    except RuntimeError as error:
        print(str(error).splitlines()[0], flush=True)
    os._exit(0)
forked.set()
os.wait()
thread.join()
""")
    assert printed == [
        "device jax cannot be used in a forked process: XLA's threads were not forked."
    ]


@pytest.mark.parametrize("children", mostly_nightly([20, 100], [20]))
def test_children_that_are_forked_while_another_thread_records_can_drop_tensors(children: int):
    printed = programs.lines(f"""{OP}
children = {children}
stop = False

def record():
    while not stop:
        y = x + 1
        del y

thread = threading.Thread(target=record)
thread.start()
for _ in range(children):
    tensors = [x[i % 2] + 1 for i in range(4)]
    if os.fork() == 0:
        del tensors
        os._exit(0)
    os.wait()
stop = True
thread.join()
print("done")
""")
    assert printed == ["done"]
