"""The command line of a build.

command = build_command(bazel, options, root / "build")
command.arguments      # ("/usr/bin/bazel", "build", ..., "//torch_xla_lite:outputs")
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild.machine import resources
from bazel.pybuild.options import Mode, Options, WheelKind

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
      folder: for the files that Bazel writes about the build; None if it writes none.
      caching: the arguments that are options for the remote cache; with them, Bazel writes
        credentials to its event file.
    """

    arguments: tuple[str, ...]
    targets: tuple[str, ...] = ()
    folder: Path | None = None
    caching: tuple[str, ...] = ()

    @property
    def written(self) -> tuple[Path, ...]:
        """The files for its events, and for the actions that it ran or found in a cache."""
        return tuple(self.folder / name for name in _WRITTEN) if self.folder else ()

    def without_caches(self) -> "Command":
        """The same command, which uses no cache."""
        words = self.arguments[: len(self.arguments) - len(self.targets)]
        kept = (word for word in words if word not in self.caching)
        return self._replace(arguments=(*kept, "--disk_cache=", *self.targets), caching=())


_WRITTEN = ("events.json", "execution.bin")


def reporting(folder: Path) -> tuple[str, ...]:
    """The options with which Bazel writes the files of `Command.written`."""
    return (
        f"--build_event_json_file={folder / _WRITTEN[0]}",
        # In every version of Bazel, only the execution log says what each action was and if it ran.
        "--config=report",
    )


def build_command(
    bazel: Path,
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
    arguments = [str(bazel), *options.startup_options, "build", *caching]
    if options.verbose:
        arguments += ["--subcommands"]
    else:
        # Our last line says what was built.
        arguments += ["--ui_event_filters=-info"]
    if not (sys.stderr.isatty() if terminal is None else terminal):
        # In a log, each report of the progress is a line or more.
        arguments += ["--noshow_progress"]
    arguments += _MODE_OPTIONS[options.mode]
    arguments += _WHEEL_OPTIONS.get(options.wheel_kind, [])
    if options.prioritized_text:
        arguments += ["--define=link_order=on"]
    jobs = options.max_jobs or resources.jobs()
    if jobs is not None:
        # With a remote cache more actions than that wait for answers; they are no processes.
        flag = "--local_cpu_resources" if caching else "--jobs"
        arguments += [f"{flag}={jobs}"]
    arguments += reporting(folder)
    arguments += options.build_options
    targets = _TARGETS[options.wheel_kind]
    if headers and options.wheel_kind is not WheelKind.PYTHON:
        targets += (_HEADERS,)
    if cuda and options.wheel_kind is not WheelKind.PYTHON:
        targets += (_CUDA,)
    return Command((*arguments, *targets), targets, folder, tuple(caching))
