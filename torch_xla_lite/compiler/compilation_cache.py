"""Stores compiled programs on disk, from where other processes of the same user load them.

    key = compilation_cache.key(description)     # None where nothing can be kept
    program = compilation_cache.load(key)
    if program is None:
        program = Program(...)
        compilation_cache.store(key, program)

A key is a hash of the graph and of everything else that decides its machine code: this package,
torch, jax, their settings, the processor. A program found by it needs neither tracing nor XLA.

An entry is one file: the SHA-256 of the key and of what follows, a line of JSON, jax's serialised
executable. It appears by a rename, so processes never see half of one; an entry that is damaged or
cannot be loaded counts as absent and is replaced. Loading a program is running it, so folder and
entry must be the user's alone (private_folder.py); otherwise a line on the standard error says why
nothing is kept.

The folder holds at most `caches.PROGRAMS_LIMIT`. Reading the sizes of 20,000 files takes 80 ms, so
a process does that when it stores its first program, and again after each sixteenth of the limit
that it stores; each time it leaves a sixteenth free. One process stays within the limit, and n at
once may pass it by n - 1 sixteenths.

jax has a persistent cache of its own, which JAX_COMPILATION_CACHE_DIR switches on. What jax loads
from it can be called and not be serialised again: XLA's CPU backend would leave the machine code
out. Such a program is not stored here; another process finds it where this one did.

TORCH_XLA_LITE_COMPILATION_CACHE=0 switches the cache off.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jaxlib
import numpy as np
import torch

from torch_xla_lite.startup.late_jax import jax

from ..lowering.base import ffi, kernels
from ..startup import caches, variables
from . import private_folder

if TYPE_CHECKING:
    from jax.sharding import Mesh

_VARIABLE = "TORCH_XLA_LITE_COMPILATION_CACHE"

# How many bytes this process may store before it reads the sizes of all files again. Threads change
# it without a lock: if a number is lost, they are read a little later or earlier.
_may_store = 0

# Variables of this package that leave the machine code as it is.
_DECIDE_NOTHING = (
    _VARIABLE,
    "TORCH_XLA_LITE_CHECK_PROCESSES",
    "TORCH_XLA_LITE_COMPILE",
    "TORCH_XLA_LITE_PENDING_LIMIT",
    "TORCH_XLA_LITE_PROGRESS",
    "TORCH_XLA_LITE_SYNC_AFTER_STEP",
    *variables.BUILD_TIME,
)

_DIGEST = hashlib.sha256().digest_size

_PROCESSORS = Path("/proc/cpuinfo")


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled graph.

    Attributes:
      executables: functions of the leaves and the scalars, see compilation.function_of: one, or two
        (foreign_code.py); none before it is compiled.
      order: of two, where each result is among the results of the first, then of the second.
      fallbacks: ops that run as ATen kernels in it, one for each call.
      foreign: ops that call any code outside XLA in it.
      checks: for each element of its last result the step of the graph, the message and the name
        of the exception. The element says whether it failed; if there are none, there is no such
        result.
      gathered: ops that each device of a mesh runs on all of the data, one for each call.
      targets: names of the custom calls in it.
      collectives: of a program for a mesh, see communication.of_program.
      storable: whether its executables can be serialised.
      is_loaded: whether they were on disk.
    """

    order: tuple[int, ...]
    fallbacks: tuple[str, ...]
    foreign: frozenset[str]
    checks: tuple[tuple[int, str, str], ...]
    gathered: tuple[str, ...]
    executables: tuple[Callable[..., list], ...] = ()
    targets: frozenset[str] = frozenset()
    collectives: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    storable: bool = True
    is_loaded: bool = False


def targets(hlo: str) -> frozenset[str]:
    """The custom calls in a program, as it was lowered or compiled, by name."""
    return frozenset(re.findall(r'custom_call(?: @|_target=")([\w.]+)', hlo))


def key(description: str, settings: str) -> str | None:
    """The name of the entry of a graph; None when the cache is off or has no place.

    Args:
      description: all that this process was told about the graph, without addresses.
      settings: what else decides how it is compiled, beside those of this process.
    """
    if _folder() is None:
        return None
    # Read each time: a program may change them, also for one thread.
    of_jax = [(name, getattr(jax.config, name, value)) for name, value in _settings()]
    digest = hashlib.sha256(_fingerprint())
    digest.update(repr(of_jax).encode())
    digest.update(description.encode())
    digest.update(settings.encode())
    return _beginning(description) + digest.hexdigest()


def _beginning(description: str) -> str:
    return hashlib.sha256(description.encode()).hexdigest()[:16]


def is_on() -> bool:
    """Whether programs are kept for other processes."""
    return _folder() is not None


def may_contain(description: str) -> bool:
    """Whether there is an entry of a graph, for some settings. This asks jax for nothing."""
    folder = _folder()
    if folder is None:
        return False
    beginning = _beginning(description)
    with contextlib.suppress(OSError):
        return any(name.startswith(beginning) for name in os.listdir(folder))
    return False


def contains(key: str | None) -> bool:
    """Whether there is an entry of this name. It may turn out to be damaged."""
    folder = _folder()
    return key is not None and folder is not None and (folder / key).is_file()


def load(key: str | None, mesh: Mesh | None) -> Program | None:
    """The program of a key, ready to be called on the first device or on those of a mesh; None when
    there is none that can be used."""
    if key is None or _folder() is None:
        return None
    try:
        with opened() as folder, open(private_folder.open_file(folder, key), "rb") as file:
            content = file.read()
            os.utime(file.fileno())  # Used last, removed last.
        if content[:_DIGEST] != _checksum(key, content[_DIGEST:]):
            return None
        header, _, executables = content[_DIGEST:].partition(b"\n")
        program = _deserialize(json.loads(header), executables, mesh)
    # Any error is a miss: jax has no single error for an executable that does not load.
    except Exception:
        return None
    return program


def store(key: str | None, program: Program) -> None:
    """Stores a program, unless it cannot be serialised or the disk is full."""
    if key is None or _folder() is None or not program.storable:
        return
    try:
        serialized = [_serialized(part) for part in program.executables]
    # jax has no one error for what it cannot serialize, such as a callback.
    except Exception:
        return
    header = {
        # For each executable its size in bytes, and how many arrays it takes and gives.
        "executables": [
            (len(data), takes.num_leaves, gives.num_leaves) for data, takes, gives in serialized
        ],
        "order": program.order,
        "fallbacks": program.fallbacks,
        "foreign": sorted(program.foreign),
        "checks": program.checks,
        "gathered": program.gathered,
        "targets": sorted(program.targets),
        "collectives": program.collectives,
    }
    body = json.dumps(header).encode() + b"\n" + b"".join(data for data, _, _ in serialized)
    try:
        with opened() as folder:
            write(folder, key, _checksum(key, body) + body)
            _keep_limit(folder, len(body))
    except OSError:
        return


def write(folder: int, name: str, content: bytes) -> None:
    """Puts a file in the place of another one, or of a folder."""
    temporary = f".new-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with open(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(content)
        try:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except IsADirectoryError:
            shutil.rmtree(name, dir_fd=folder)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(temporary, dir_fd=folder)
        raise


def _serialized(executable: Any) -> tuple[bytes, Any, Any]:
    """jax keeps beside an executable what divided its kernels among devices, which is not called
    any more. It cannot be serialised."""
    # Imported here and below, because a program that compiles nothing does not need it.
    from jax.experimental import serialize_executable

    unloaded = executable._executable._unloaded_executable
    divides = "jax._src.custom_partitioning"
    unloaded.keepalive = [x for x in unloaded.keepalive or () if type(x).__module__ != divides]
    return serialize_executable.serialize(executable)


def _checksum(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()


def _deserialize(header: dict, executables: bytes, mesh: Mesh | None) -> Program:
    names = frozenset(header["targets"])
    _prepare(names)
    devices = jax.local_devices()[:1] if mesh is None else list(mesh.devices.flat)
    loaded = []
    for size, num_arguments, num_results in header["executables"]:
        loaded.append(_load_executable(executables[:size], num_arguments, num_results, devices))
        executables = executables[size:]
    return Program(
        executables=tuple(loaded),
        order=tuple(header["order"]),
        fallbacks=tuple(header["fallbacks"]),
        foreign=frozenset(header["foreign"]),
        checks=tuple((step, message, error) for step, message, error in header["checks"]),
        gathered=tuple(header["gathered"]),
        targets=names,
        collectives={kind: (count, size) for kind, (count, size) in header["collectives"].items()},
        is_loaded=True,
    )


def _prepare(targets: frozenset[str]) -> None:
    """Does for custom calls what lowering them does: without it a loaded program would crash."""
    if targets & ffi.TARGETS:
        ffi.register()
    if any(name.startswith("torch_xla_lite.") for name in targets - ffi.TARGETS):
        kernels.register()
    if any(name.startswith("lapack_") for name in targets):
        from jaxlib import lapack

        # Binds all of LAPACK's functions to those of scipy.
        lapack.prepare_lapack_call("getrf_ffi", np.dtype(np.float32))


def _load_executable(
    data: bytes, num_arguments: int, num_results: int, devices: list[jax.Device]
) -> Callable[..., list]:
    from jax.experimental import serialize_executable

    return serialize_executable.deserialize_and_load(
        data,
        jax.tree_util.tree_structure(((0,) * num_arguments, {})),
        jax.tree_util.tree_structure([0] * num_results),
        execution_devices=devices,
    )


@functools.cache
def _folder() -> Path | None:
    """Where the entries are; None when the cache is off, or no folder is private to the user."""
    if not variables.enabled(os.environ, _VARIABLE, default="1"):
        return None
    try:
        with opened():
            return caches.programs(os.environ)
    except private_folder.NotPrivateError as error:
        if sys.stderr is not None:
            print(f"torch_xla_lite: compiled programs are not kept: {error}", file=sys.stderr)
    except (OSError, RuntimeError):
        pass
    return None


@contextlib.contextmanager
def opened() -> Iterator[int]:
    """The descriptor of the folder, which is made if it was removed since the program began.

    It is opened for each use: a program may close descriptors that it did not open."""
    home = caches.home(os.environ)
    folder = private_folder.open_folder(home.parent, home.name, caches.programs(os.environ).name)
    try:
        if stat.S_IMODE(os.fstat(folder).st_mode) != 0o700:
            os.fchmod(folder, 0o700)
        yield folder
    finally:
        os.close(folder)


def _keep_limit(folder: int, stored: int) -> None:
    """Makes room in the folder, if this process may have filled it by the bytes it has stored."""
    global _may_store
    _may_store -= stored
    if _may_store < 0:
        _may_store = caches.PROGRAMS_LIMIT // 16
        _remove_oldest(folder, caches.PROGRAMS_LIMIT - _may_store)


def _remove_oldest(folder: int, limit: int) -> None:
    """Removes the least recently used files until the size of a folder is within a limit."""
    files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # Another process removed it.
            if not entry.is_dir(follow_symlinks=False):
                files.append((status.st_mtime_ns, status.st_size, entry.name))
    size = sum(size for _, size, _ in files)
    for _, bytes_freed, name in sorted(files):
        if size <= limit:
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        size -= bytes_freed


@functools.cache
def _settings() -> list[tuple[str, object]]:
    return sorted(jax.config.values.items())


@functools.cache
def _fingerprint() -> bytes:
    """Hash of everything that determines machine code and is constant in a process."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for file in sorted([*package.rglob("*.py"), *package.rglob("*.so")]):
        digest.update(f"{file.relative_to(package)} {file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    device = jax.devices()[0]
    facts = [
        torch.__version__,
        torch.version.git_version,
        jax.__version__,
        jaxlib.__version__,
        np.__version__,
        platform.python_version(),
        device.device_kind,
        device.client.platform_version,
        _processor(),
        # XLA divides loops among as many threads as there are processors.
        len(os.sched_getaffinity(0)),
        sorted((name, value) for name, value in os.environ.items() if _decides_code(name)),
    ]
    digest.update(repr(facts).encode())
    return digest.digest()


def _decides_code(variable: str) -> bool:
    prefixes = ("JAX_", "NPROC", "PJRT_", "XLA_", variables.PREFIX)
    return variable.startswith(prefixes) and variable not in _DECIDE_NOTHING


def _processor() -> str:
    """The model and the features of the processor, as Linux describes them."""
    wanted = ("model name", "flags", "CPU implementer", "CPU part", "Features")
    lines = _PROCESSORS.read_text(encoding="utf-8").splitlines()
    return platform.machine() + "".join(sorted({x for x in lines if x.startswith(wanted)}))
