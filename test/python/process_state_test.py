"""What the first use of the device changes in a process that has not imported jax."""

import json
import os
import subprocess
import sys

# Prints the names of what a program changes. The states are of Python, of the libraries that a
# program imports before it uses the device, and of the process.
_PROGRAM = """
import ctypes, decimal, faulthandler, gc, json, locale, logging, os, random
import multiprocessing, resource, signal, socket, sys, tempfile, threading, time, warnings
import numpy as np
import torch

libm = ctypes.CDLL(None)


def state():
    umask = os.umask(0)
    os.umask(umask)
    return {
        "random numbers of Python": random.getstate(),
        "random numbers of numpy": [str(part) for part in np.random.get_state(legacy=True)],
        "random numbers of torch": torch.get_rng_state().tolist(),
        "warnings": [warnings.filters[:], warnings.showwarning],
        "locale": locale.setlocale(locale.LC_ALL),
        "time zone": [time.tzname, os.environ.get("TZ")],
        "signal handlers of Python": {n: signal.getsignal(n) for n in signal.valid_signals()},
        "environment": dict(os.environ),
        "threads of Python": sorted(thread.name for thread in threading.enumerate()),
        "floating-point environment": [libm.fegetround(), libm.fegetexcept()],
        "subnormal numbers": [float(np.float32(1e-40) * np.float32(1)), (torch.ones(1) * 1e-40)[0]],
        "errors of numpy": np.geterr(),
        "printing of numpy": np.get_printoptions(),
        "printing of torch": vars(torch._tensor_str.PRINT_OPTS).copy(),
        "start method": multiprocessing.get_start_method(allow_none=True),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "threads of torch": [torch.get_num_threads(), torch.get_num_interop_threads()],
        "modes of torch": [torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()],
        "hooks": [sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook],
        "tracing": [sys.gettrace(), sys.getprofile(), threading.gettrace()],
        "module search": [sys.path[:], sys.path_hooks[:]],
        "finders of modules": sys.meta_path[:],
        "limits of Python": [sys.getrecursionlimit(), sys.getswitchinterval()],
        "garbage collector": [gc.isenabled(), gc.get_threshold(), gc.get_debug()],
        "callbacks of the garbage collector": gc.callbacks[:],
        "logging": [logging.root.level, logging.root.handlers[:], logging.lastResort],
        "decimal numbers": str(decimal.getcontext()),
        "limits of the process": [resource.getrlimit(n) for n in range(16)],
        "umask": umask,
        "folders": [os.getcwd(), tempfile.gettempdir()],
        "fault handler": faulthandler.is_enabled(),
        "sockets": socket.getdefaulttimeout(),
        "standard files": [sys.stdin, sys.stdout, sys.stderr],
    }


np.random.seed(0)
random.seed(0)
torch.optim.Adam([torch.zeros(1, requires_grad=True)]).zero_grad()  # imports torch's compiler
state()
before = state()
import torch_xla_lite
x = torch.ones(3, 3).to("jax").requires_grad_()
model = torch.nn.Linear(3, 3, device="jax")
optimizer = torch.optim.Adam(model.parameters())
for when in ("repeated", "first"):
    torch_xla_lite._XLAC.set_compile_when(when)
    model(torch.linalg.svd(x).U).square().sum().backward()
    optimizer.step()
    (x @ x).tolist()
after = state()
changed = {name: [before[name], after[name]] for name in before if before[name] != after[name]}
variables = sorted({*os.environ} - {*before["environment"]})
print(json.dumps([list(changed), variables]))
"""

# What changes and has to.
_EXPECTED = {
    "callbacks of the garbage collector",  # XLA frees what was dropped without Python's lock.
    "environment",
    "finders of modules",  # after_import.py changes other libraries when they are imported.
}
# jax sets them for the libraries that it loads, also in the process of this test.
_VARIABLES = {"TF_CPP_MIN_LOG_LEVEL", "TPU_SKIP_MDS_QUERY"}


def test_the_first_use_of_the_device_changes_nothing_that_it_need_not():
    environ = {name: text for name, text in os.environ.items() if name not in _VARIABLES}
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    changed, variables = json.loads(done.stdout.splitlines()[-1])
    assert {*changed} == _EXPECTED
    assert {*variables} == _VARIABLES
