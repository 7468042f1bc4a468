"""Calls Bazel.

    command = build_command(bazel, options, root / "build")
    with started(command, root) as process:
        ...    # runs while Bazel works
    process.returncode

Bazel writes to a terminal directly. In a log, lines about its progress are left out.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from bazel.pybuild.machine import find_bazel
from bazel.pybuild.machine.find_bazel import Bazel
from bazel.pybuild.options import Mode, Options, WheelKind
from bazel.pybuild.variables import without_secrets

INTERRUPTED = 8  # As Bazel ends after Ctrl-C.

# The targets whose files become part of the package.
_TARGETS = {
    WheelKind.ALL: ("//torch_xla_lite:outputs",),
    WheelKind.LIBRARY: ("//torch_xla_lite:library_outputs",),
    WheelKind.PYTHON: ("//torch_xla_lite:python_outputs",),
}

# Additional targets of wheels; an editable install has the headers in the tree.
_HEADERS = "//torch_xla_lite:headers"
_CUDA = "//torch_xla_lite:cuda_outputs"

# A Python-only wheel is linked to the installed library; see third_party/torch_xla_lite_lib.
_WHEEL_OPTIONS = {WheelKind.PYTHON: ["--define=torch_xla_lite_lib=installed"]}

_MODE_OPTIONS = {
    # .bazelrc sets this mode, also for a bare `bazel build`.
    Mode.RELEASE: [],
    Mode.DEBUG: ["--compilation_mode=dbg"],
    Mode.RELEASE_WITH_DEBUG_INFO: ["--copt=-g", "--strip=never"],
}


class Command(NamedTuple):
    """A call of Bazel.

    Attributes:
      arguments: the whole command line.
      targets: labels to build; they are the last arguments.
      events: file for Bazel's build events.
      log: file for Bazel's log of the actions that it ran or found in a cache.
      profile: file for the times of actions.
      filtered: whether lines about the progress are left out.
      caching: options for the remote cache; with them, Bazel writes credentials to `events`.
    """

    arguments: tuple[str, ...]
    targets: tuple[str, ...]
    events: Path
    log: Path
    profile: Path
    filtered: bool
    caching: tuple[str, ...] = ()

    def without_cache(self) -> "Command":
        """The same command without the remote cache."""
        kept = tuple(word for word in self.arguments if word not in self.caching)
        return self._replace(arguments=kept, caching=())

    def without_results(self) -> "Command":
        """The same command, which reads no result from the caches."""
        words = self.arguments[: -len(self.targets)]
        fresh = ("--noremote_accept_cached", "--disk_cache=")
        return self._replace(arguments=(*words, *fresh, *self.targets))


def build_command(
    bazel: Bazel,
    options: Options,
    folder: Path,
    terminal: bool | None = None,
    *,
    headers: bool = False,
    cuda: bool = False,
    caching: Sequence[str] = (),
) -> Command:
    """The command for a build.

    Args:
      bazel: to call.
      options: from the environment.
      folder: for the files that Bazel writes about the build.
      terminal: whether the output is a terminal; None to find out.
      headers: whether to build the public headers together with the libraries.
      cuda: whether to build the CUDA library together with the others.
      caching: options for the remote cache.
    """
    events, log, profile = (
        folder / name for name in ("events.json", "execution.bin", "profile.gz")
    )
    arguments = [str(bazel.executable), *options.startup_options, "build", *caching]
    if options.verbose:
        arguments += ["--subcommands"]
    else:
        # Our last line says what was built. Warnings, errors and progress are not filtered.
        arguments += ["--ui_event_filters=-info"]
    filtered = not (sys.stderr.isatty() if terminal is None else terminal)
    if filtered:
        # In a log, each report of the progress is a line; one every five seconds is enough.
        arguments += ["--show_progress_rate_limit=5"]
    arguments += _MODE_OPTIONS[_mode(options)]
    arguments += _WHEEL_OPTIONS.get(options.wheel_kind, [])
    if options.prioritized_text:
        arguments += ["--define=link_order=on"]
    if options.max_jobs is not None:
        # With a remote cache more actions than that wait for answers; they are no processes.
        flag = "--local_cpu_resources" if caching else "--jobs"
        arguments += [f"{flag}={options.max_jobs}"]
    arguments += [f"--build_event_json_file={events}"]
    # Bazel writes this file in any case, to a folder of its own.
    arguments += [f"--profile={profile}"]
    # With a cache by gRPC, the paths of outputs would be those of the server.
    arguments += ["--nobuild_event_json_file_path_conversion"]
    # In every version of Bazel, only the execution log says what each action was and if it ran.
    arguments += ["--config=report"]
    arguments += options.build_options
    targets = _TARGETS[options.wheel_kind]
    if headers and options.wheel_kind is not WheelKind.PYTHON:
        targets += (_HEADERS,)
    if cuda and options.wheel_kind is not WheelKind.PYTHON:
        targets += (_CUDA,)
    filtered = filtered and not options.verbose
    words = (*arguments, *targets)
    return Command(words, targets, events, log, profile, filtered, tuple(caching))


def _mode(options: Options) -> Mode:
    """The compilation mode; debug files need debug information."""
    if options.debug_files and options.mode is Mode.RELEASE:
        return Mode.RELEASE_WITH_DEBUG_INFO
    return options.mode


@contextmanager
def started(command: Command, root: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Starts a build, and waits for it at the end of the block.

    Event files of an earlier build are removed first. Bazel writes all variables and options to its
    event file; so it gets no variable with credentials, and options with credentials make the file
    private.

    Raises:
      KeyboardInterrupt: as of `child`.
    """
    command.events.parent.mkdir(parents=True, exist_ok=True)
    for file in (command.events, command.log, command.profile):
        file.unlink(missing_ok=True)
    if command.caching:
        command.events.touch(0o600)
    environ = without_secrets(os.environ)
    # Who watches a cache sends SIGINT, which bazelisk does not pass on to Bazel.
    group = bool(command.caching)
    with child(command.arguments, root, environ, filtered=command.filtered, group=group) as process:
        yield process


@contextmanager
def child(
    command: Sequence[str],
    root: Path,
    environ: Mapping[str, str] | None = None,
    *,
    filtered: bool = False,
    group: bool = False,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Starts a program, and waits for it at the end of the block.

    Without waiting, the next command would find Bazel's server still busy, or pip at work.

    Args:
      command: its command line.
      root: its working directory.
      environ: its environment; None for that of this process.
      filtered: whether lines about Bazel's progress are left out of its messages.
      group: whether SIGINT goes to all processes that it starts, in a process group of its own.

    Raises:
      KeyboardInterrupt: at the end of the block, if SIGINT arrived meanwhile; the program has
        received it and has ended, too.
    """
    # From here on, signals are blocked in this process and its threads, but not in the program.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    interrupted = False
    try:
        process = subprocess.Popen(
            command,
            cwd=root,
            env=environ,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE if filtered else None,
            process_group=0 if group else None,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
        )
        reader = threading.Thread(target=_pass_on, args=(process.stderr,))
        reader.start()
        try:
            yield process
        finally:
            interrupted = _wait(process, group)
            reader.join()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if interrupted:
            raise KeyboardInterrupt


def exit_code(process: "subprocess.Popen[bytes]") -> int:
    """Of a program that has ended, as a shell has it: 128 and the number of a signal."""
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


# Phases of every build, and the end: Bazel repeats it, and our own last lines describe it.
_NOISE = (
    b"Loading:",
    b"Analyzing:",
    b"Computing main repo mapping",
    b"INFO: \n",
    b"INFO: Build completed",
    b"FAILED: Build did NOT complete",
    # Of Bazel 7.
    b"ERROR: Build did NOT complete",
    b"FAILED: \n",
    # Debian's system-wide bazelrc has it.
    b"WARNING: Option 'host_javabase' is deprecated",
    # Bazel 4 has no other name for it.
    b"WARNING: Option 'local_cpu_resources' is deprecated",
    b"[0 / ",
)


# Bazel repeats these for each action, with several lines about each; build.py says it in one line.
_CACHE_FAULTS = tuple(
    b"WARNING: %bRemote Cache:" % what for what in (b"Reading from ", b"Writing to ", b"")
)
_OTHER_MESSAGES = (b"WARNING:", b"ERROR:", b"INFO:", b"DEBUG:", b"FAILED:", b"SUBCOMMAND:", b"[")


def _pass_on(messages: IO[bytes] | None) -> None:
    about_cache = False
    for line in messages or ():
        if line.startswith(_OTHER_MESSAGES + _NOISE):
            about_cache = line.startswith(_CACHE_FAULTS)
        if line.strip() and not about_cache and not line.startswith(_NOISE):
            # Bazel must not stop because the output was closed.
            with suppress(OSError):
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()


_SIGNALS = {signal.SIGINT, signal.SIGCHLD}


def _wait(process: "subprocess.Popen[bytes]", group: bool) -> bool:
    """Waits for a program; returns whether this process was interrupted meanwhile."""
    interrupted = False
    while process.poll() is None:
        received = signal.sigwaitinfo(_SIGNALS)
        if received.si_signo == signal.SIGINT:
            interrupted = True
            # The terminal sends Ctrl-C to its whole group; `kill -INT` reaches this process alone.
            if group:
                os.killpg(process.pid, signal.SIGINT)
            elif received.si_code <= 0:
                process.send_signal(signal.SIGINT)
    return interrupted


def client(options: Options, environ: Mapping[str, str]) -> list[str]:
    """Bazel and its startup options; empty if none is installed and the user named none."""
    try:
        bazel = find_bazel.find(options.bazel, environ.get("PATH", os.defpath))
    except find_bazel.NotInstalled:
        return []
    return [str(bazel.executable), *options.startup_options]


def remove_bazel_files(root: Path, options: Options, environ: Mapping[str, str]) -> None:
    """Ends Bazel's server for a temporary tree, and removes Bazel's files for it.

    Files in an --output_base that the user chose stay, because another tree may use them. Errors
    are ignored: they cost only memory and disk space.
    """
    import hashlib

    bazel = client(options, environ)
    if not bazel:
        return
    calls = {"cwd": root, "env": without_secrets(environ), "check": False, "capture_output": True}
    process = subprocess.run([*bazel, "info", "output_base"], text=True, **calls)
    # Bazel names the folder of a tree by this hash.
    own = hashlib.md5(str(root).encode(), usedforsecurity=False).hexdigest()
    end = ["clean", "--expunge"] if Path(process.stdout.strip()).name == own else ["shutdown"]
    subprocess.run([*bazel, *end], **calls)
