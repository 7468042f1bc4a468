"""Several processes that run one program on a mesh of all their devices.

    torch_xla_lite.distributed.initialize()       # before the first use of device 'jax'
    torch_xla_lite.set_mesh(jax.make_mesh((8,), ("data",)))
    for x, y in torch_xla_lite.shard_loader(loader):      # batches.py
        ...

Start them by `python -m torch_xla_lite.launch -n 4 train.py` or by torchrun; jax reads SLURM's
variables. All record the same operations on tensors of the same shapes; each reads its own rows of
a batch.

A process that fails ends the others, whose last line names it and its cause. One that lives and
does nothing ends them after `_PATIENCE`. Programs are compared when they are compiled, and data
that is on one device when it gets to all. What has run is compared with what process 0 has run
twice a second, and at the end; with TORCH_XLA_LITE_CHECK_PROCESSES=1 before each run.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import ipaddress
import itertools
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from torch_xla_lite.startup.late_jax import jax

from ...startup import late_jax, patches, program_lines, variables
from ...startup.patches import Patch
from .program_history import History

CHECK = "TORCH_XLA_LITE_CHECK_PROCESSES"

# The exit status of a process that ends because another one failed, which says why.
PEER_FAILED = 75

# How long a process may do something else while others wait for it, in seconds: read data, or write
# a checkpoint. torch.distributed takes as long for a hang.
_PATIENCE = 600

# A process is gone if it is silent for so long, in seconds.
_HEARTBEAT = 10

_FAILED = "torch_xla_lite/state/failed"
_FINISHED = "torch_xla_lite/state/finished"
# What process 0 has run.
_HISTORY = "torch_xla_lite/history"
# Of each process that has not gone on for a while: the number of its programs, and their last.
_PROGRESS = "torch_xla_lite/progress"

# What this process has run on the mesh, and the line of the last program.
_history = History()
_line = "the start"

# Since when this process has been waiting for the others in `_exchange`.
_waits_since = math.inf

# The status and the line of the last call of sys.exit.
_exit: tuple[object, str] | None = None

# Set when process 0 has ended well: its store is gone soon.
_is_over = threading.Event()

# Set when jax has taken leave of all processes.
_has_ended = threading.Event()


def initialize(
    coordinator: str | None = None, num_processes: int | None = None, process: int | None = None
) -> None:
    """Connects the processes of a program.

    Args:
      coordinator: host and port of process 0, such as "10.0.0.1:1234".
      num_processes: how many there are.
      process: the number of this one, from 0. All three come from the variables that torchrun and
        torch_xla_lite.launch set, or from SLURM's, if they are not given.

    Raises:
      RuntimeError: the device was used before, or TORCH_XLA_LITE_COMPILE is "background": when a
        graph is compiled then depends on time, and not alike in all processes.
      ValueError: neither arguments nor variables say who the processes are.
    """
    if os.environ.get("TORCH_XLA_LITE_COMPILE") == "background":
        raise RuntimeError(
            "graphs that are compiled in the background differ between processes.\n"
            "Leave it out:  unset TORCH_XLA_LITE_COMPILE"
        )
    given = _given_to_jax(coordinator, num_processes, process)
    # jax would catch SIGTERM and go on.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(**given, heartbeat_timeout_seconds=_HEARTBEAT)
    except ValueError as error:
        raise ValueError(
            f"who the processes are is unknown: {error}\n"
            "Start them:  python -m torch_xla_lite.launch -n 4 train.py"
        ) from None
    except RuntimeError as error:
        if "before any JAX" not in str(error):
            raise
        raise RuntimeError(
            "the device was used before the processes were connected.\n"
            "Call torch_xla_lite.distributed.initialize() once, at the start of the program"
        ) from None
    if _state().num_processes > 1:
        _end_together()


def _given_to_jax(
    coordinator: str | None, num_processes: int | None, process: int | None
) -> dict[str, Any]:
    """The arguments, and what torchrun says; nothing if jax finds SLURM's variables by itself."""
    environ = os.environ
    if coordinator is None and "MASTER_ADDR" not in environ:
        return {}
    # Where torchrun and torch.distributed listen is another port.
    port = int(environ.get("MASTER_PORT", 29500)) + 1
    address = coordinator or f"{environ['MASTER_ADDR']}:{port}"
    given: dict[str, Any] = {"coordinator_address": address}
    if _is_loopback(address.rpartition(":")[0]):
        given["coordinator_bind_address"] = address
    for name, value, variable in (
        ("num_processes", num_processes, "WORLD_SIZE"),
        ("process_id", process, "RANK"),
    ):
        if value is not None or variable in environ:
            given[name] = int(environ[variable]) if value is None else value
    if "LOCAL_RANK" in environ:
        given["local_device_ids"] = [int(environ["LOCAL_RANK"])]
    return given


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# --- the end --------------------------------------------------------------------------------------


def _state() -> Any:
    """What jax knows of the processes: process_id, num_processes, and the client of the store that
    they share. jax.process_index() would start the devices, and the store has no public name."""
    from jax._src import distributed

    return distributed.global_state


def process() -> tuple[int, int]:
    """The number of this process, and how many there are; starts no device."""
    return (_state().process_id, _state().num_processes) if late_jax.is_imported() else (0, 1)


def _name() -> str:
    return "process {} of {}".format(*process())


def _end_all(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Instead of sys.excepthook: prints the error and ends all processes, which would wait for this
    one for ever."""
    frames = traceback.extract_tb(trace)
    frames = [frame for frame in frames if not program_lines.is_library(frame.filename)] or frames
    if isinstance(error, jax.errors.JaxRuntimeError):
        # Perhaps because another process has ended. That one says why, and `_watch` reads it; if it
        # was killed, the launcher ends this one.
        with _saying_where(frames):
            time.sleep(3)
    at = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    _print("".join(traceback.format_exception(kind, error, trace)).rstrip())
    _fail(f"{_name()} failed: {kind.__name__}: {error}{at}")


@contextlib.contextmanager
def _saying_where(frames: Sequence[traceback.FrameSummary]) -> Iterator[None]:
    """SIGTERM writes these frames, in place of those where the process stands."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    lines = [f'  File "{frame.filename}", line {frame.lineno} in {frame.name}' for frame in frames]

    def end(*_: object) -> None:
        _print("\n".join(["Stack (most recent call first):", *reversed(lines)]))
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _saying_who_calls(exit: Callable[[object], NoReturn]) -> Callable[..., NoReturn]:
    def exit_by(status: object = None, /) -> NoReturn:
        global _exit
        caller = sys._getframe(1)
        _exit = status, f"{caller.f_code.co_filename}:{caller.f_lineno}"
        exit(status)

    return exit_by


_PATCHES = (Patch("sys", "exit", "does not say by which line a process ended", _saying_who_calls),)


def _exit_status() -> int:
    """The exit status if this process ends now, as far as sys.exit was called."""
    status = _exit and _exit[0]
    return status if isinstance(status, int) else int(status is not None)


def _print(text: str) -> None:
    """Writes to the standard error of the process: the hook of torch.distributed collects what is
    printed to sys.stderr, for later."""
    os.write(2, f"{text}\n".encode(errors="replace"))


def _fail(message: str, status: int = 1) -> None:
    """Ends this process and tells the others why."""
    _print(message)
    try:
        _state().client.key_value_set(f"{_FAILED}/{_state().process_id}", message)
        if _state().process_id == 0:
            time.sleep(2)  # It has the store, from which the others read.
    except Exception:
        pass  # The others will miss it.
    sys.stdout.flush()
    os._exit(status)


def _end_together() -> None:
    """Ends all processes where one fails, until all have ended."""
    import faulthandler

    from jax._src.api import clean_up

    sys.excepthook = _end_all
    patches.apply(_PATCHES)
    if not faulthandler.is_enabled():
        # Collectives of different programs may abort.
        faulthandler.enable(file=2, all_threads=False)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # Says where, and ends the process; not those that it forks.
        faulthandler.register(signal.SIGTERM, file=2, all_threads=False, chain=True)
        os.register_at_fork(after_in_child=lambda: faulthandler.unregister(signal.SIGTERM))
    watcher = threading.Thread(target=_watch, daemon=True, name="torch_xla_lite processes")
    watcher.start()

    def end() -> None:
        _has_ended.set()
        watcher.join()

    # They run in reverse: jax waits for all processes meanwhile, and must be watched. A thread that
    # is in its library while the interpreter ends would abort the process.
    atexit.unregister(clean_up)
    for function in (end, clean_up, _note_finished):
        atexit.register(function)


def _note_finished() -> None:
    how = f"ended by sys.exit({_exit[0]!r}) at {_exit[1]}" if _exit and _exit[0] else "ended"
    client, own = _state().client, _state().process_id
    if own == 0:
        _tell_history(client)
    client.key_value_set(f"{_FINISHED}/{own}", f"{len(_history)} {how}")
    if own != 0:
        # jax waits for process 0, too. If that fails, `_watch` ends this process.
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            client.blocking_key_value_get(f"{_FINISHED}/0", 10**9)
            _check_history(client)
            _is_over.set()


def _tell_history(client: Any) -> None:
    client.key_value_set(f"{_HISTORY}/0", _history.text(), allow_overwrite=True)


def _check_history(client: Any) -> None:
    """Ends all processes if process 0 has run something else than this one."""
    for _, text in client.key_value_dir_get(_HISTORY):
        difference = _history.difference(text)
        if difference is None:
            continue
        own, other = difference
        what = "another program" if own.program != other.program else "other numbers"
        _fail(
            f"{_name()} has run {what} than process 0: as program {own.number} of the mesh that at "
            f"{own.line}, and process 0 that at {other.line}.\n{_ALIKE}"
        )


def _watch() -> None:
    """Ends this process when another one has failed, has ended before it ran all programs, or does
    nothing while this one waits for it."""
    runs, since, is_told = -1, 0.0, False
    while not _has_ended.wait(0.5):
        client = _state().client
        if client is None:
            return  # The end of the program.
        try:
            if _state().process_id != 0:
                _check_history(client)
            elif runs != len(_history):
                _tell_history(client)
            entries = dict(client.key_value_dir_get("torch_xla_lite/state"))
        except Exception:
            if _state().client is not None and not _is_over.is_set():
                _leave("process 0, which connects the others, has ended")
            return
        for key, value in entries.items():
            who = int(key.rpartition("/")[2])
            if who == _state().process_id:
                continue
            if key.startswith(_FAILED):
                _leave(value)
                continue
            count, how = value.split(" ", 1)
            if int(count) < len(_history) or time.monotonic() - _waits_since > 2:
                _fail(
                    f"process {who} of {_state().num_processes} {how} after {count} programs of "
                    f"the mesh, and {_name()} goes on: it needs {_line}",
                    # It has a status of its own that says more.
                    status=1 if how == "ended" else PEER_FAILED,
                )
        if runs != len(_history):
            runs, since, is_told = len(_history), time.monotonic(), False
        elif not is_told and time.monotonic() - since > 1:
            # Not in each step: they are many, and so may be the processes.
            _tell_progress(client)
            is_told = True
        elif time.monotonic() - since > _PATIENCE:
            _check_progress(client)


def _tell_progress(client: Any) -> None:
    key = f"{_PROGRESS}/{_state().process_id}"
    client.key_value_set(key, f"{len(_history)} {_line}", allow_overwrite=True)


def _progress(client: Any) -> dict[int, tuple[int, str]]:
    """The number of programs of each other process, and the last of them, as they were told."""
    found = {}
    for key, value in client.key_value_dir_get(_PROGRESS):
        count, line = value.split(" ", 1)
        found[int(key.rpartition("/")[2])] = int(count), line
    found.pop(_state().process_id, None)
    return found


def _check_progress(client: Any) -> None:
    """Ends all processes if one has not run the program that this one waits for."""
    for process, (count, line) in _progress(client).items():
        if count < len(_history):
            _fail(
                f"{_name()} has waited {_PATIENCE} s in {_line} for process {process}, which lives "
                f"and has run nothing since {line}"
            )


def _leave(message: str) -> None:
    if "_TORCH_XLA_LITE_LAUNCHED" not in os.environ:
        _print(message)
    sys.stdout.flush()
    os._exit(_exit_status() or PEER_FAILED)


# --- what must be alike ---------------------------------------------------------------------------

_rounds = itertools.count()

_ALIKE = (
    "All processes must record the same operations on tensors of the same shapes, with the same "
    "numbers, such as a learning rate or a seed"
)


def _exchange(text: str, what: str) -> list[str]:
    """The texts of all processes, in their order, that call this for the same time.

    Raises:
      RuntimeError: a process has not called it; the message says `what` it was for.
    """
    global _line, _waits_since
    number, state, folder = next(_rounds), _state(), "torch_xla_lite/rounds"
    client, own = state.client, state.process_id
    client.key_value_set(f"{folder}/{number}/{own}", text)
    if number > 1:
        # All have read it: they have begun the round after it.
        client.key_value_delete(f"{folder}/{number - 2}/{own}")
    texts = []
    _line, _waits_since = what, time.monotonic()
    try:
        for process in range(state.num_processes):
            texts.append(_text_of(process, f"{folder}/{number}/{process}", what))
    finally:
        _waits_since = math.inf
    return texts


def _text_of(process: int, key: str, what: str) -> str:
    """What another process has set, as soon as it has.

    Raises:
      RuntimeError: it runs another program, or does nothing.
    """
    client = _state().client
    while True:
        try:
            return client.blocking_key_value_get(key, 2_000)
        except Exception as error:
            if "DEADLINE" not in str(error):
                raise
        count, line = _progress(client).get(process, (0, "the start"))
        if count > len(_history):
            raise RuntimeError(
                f"{_name()} needs {what}, and process {process} runs {line}: it records other "
                "operations, or has another batch size.\n"
                "Find out which:  torch_xla_lite.debug.explain_recompile()"
            )
        if time.monotonic() - _waits_since > _PATIENCE:
            raise RuntimeError(
                f"{_name()} needs {what}, and process {process} has done nothing for {_PATIENCE} s "
                f"since {line}"
            )


def require_same_program(description: str, line: str) -> None:
    """Compares the program that this process needs with those of the others.

    Raises:
      RuntimeError: they differ, or a process needs none.
    """
    _require_same(hashlib.sha256(description.encode()).hexdigest(), line)


def _require_same(digest: str, line: str) -> None:
    texts = _exchange(f"program {digest} {line}", f"a program at {line}")
    for process, text in enumerate(texts):
        if text.split(" ")[:2] != ["program", digest]:
            raise RuntimeError(
                f"{_name()} needs a program at {line}, and process {process} another one or data: "
                f"{text.split(' ', 2)[2]}.\n{_ALIKE}"
            )


def require_same_data(array: np.ndarray) -> None:
    """Compares data that is to be on all devices with that of the other processes.

    Raises:
      RuntimeError: it differs.
    """
    file, number = program_lines.place()[:2]
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    shape = f"{array.dtype}[{','.join(map(str, array.shape))}]"
    what = f"a tensor {shape} on all devices at {file}:{number}"
    for process, text in enumerate(_exchange(f"data {digest} {what}", what)):
        kind, its_digest, its = text.split(" ", 2)
        if (kind, its_digest) != ("data", digest) or shape not in its:
            raise RuntimeError(
                f"{_name()} needs {what}, and process {process} has other data: {its}.\n"
                "If each has its own rows:  torch_xla_lite.from_process_local(x, 'data').  If one "
                "is right, make it in all, for example by torch.manual_seed"
            )


def counted(program: Callable[..., list], description: str, line: str) -> Callable[..., list]:
    """A program that all processes run, whose runs are noted."""
    checks = variables.enabled(os.environ, CHECK)
    digest = hashlib.sha256(description.encode()).digest()

    def run(*arguments: Any) -> list:
        global _line
        # They are the last argument, if it takes some.
        last = arguments[-1] if arguments else None
        numbers = last.tobytes() if isinstance(last, np.ndarray) else b""
        if checks:
            _require_same(hashlib.sha256(digest + numbers).hexdigest(), line)
        _history.add(digest, numbers, line)
        _line = f"a program at {line}"
        return program(*arguments)

    return run
