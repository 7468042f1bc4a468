"""Checks what builds need on this machine, for `doctor`.

    python -m bazel.pybuild.commands.doctor     # a JSON list in each line, after a mark

`setup.py doctor` and `torch-xla-lite doctor` are one command, torch_xla_lite/commands/doctor.py: it
prints what this file finds, and then what it finds about the package.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bazel.pybuild import options as options_table
from bazel.pybuild.cache import folders, remote_cache
from bazel.pybuild.commands.finding import MARK, Finding
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.install import editable
from bazel.pybuild.machine import cuda, find_bazel, packages, preflight, toolchain
from bazel.pybuild.options import Options
from bazel.pybuild.variables import PREFIX, VARIABLES, without_secrets

_ROOT = Path(__file__).resolve().parents[3]
_GIB = 1 << 30
# Bazelisk may have to download a Bazel first.
_BAZEL_TIMEOUT_S = 30


def inspect(options: Options, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Checks one part after the other.

    Args:
      options: from the environment.
      environ: usually os.environ.
    """
    checks: dict[str, Callable[[], Finding | str]] = {
        "Bazel": lambda: _bazel(options, environ),
        "compiler": lambda: _compiler(environ),
        "linker": lambda: _linker(environ),
        "packages": lambda: _packages(options, environ),
        "CUDA toolkit": lambda: cuda.inspect(options, environ).line,
        "remote cache": lambda: _remote_cache(options),
        "disk space": lambda: _space(folders.home(environ)),
        "editable install": _editable,
    }
    for name, check in checks.items():
        try:
            found = check()
        except BuildError as error:
            found = Finding(name, False, error.problem, error.remedy)
        except OSError as error:
            *problem, remedy = message(error).splitlines()
            found = Finding(name, False, "\n".join(problem), remedy)
        yield Finding(name, True, found) if isinstance(found, str) else found


def _bazel(options: Options, environ: Mapping[str, str]) -> str:
    """The Bazel that builds call. It is started, because any program can have its name."""
    bazel = find_bazel.find(options.bazel, environ.get("PATH", ""))
    command = [str(bazel), "--version"]
    # A file and not a pipe: after the time is up, nothing waits for processes of the program.
    with tempfile.TemporaryFile() as file:
        try:
            process = subprocess.run(
                command,
                cwd=_ROOT,
                env=without_secrets(environ),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=_BAZEL_TIMEOUT_S,
                check=False,
            )
            file.seek(0)
            output = file.read().decode(errors="replace")
            if process.returncode == 0 and "bazel" in output:
                return str(bazel)
            problem = output.strip() or f"nothing, and exits with {process.returncode}"
        except subprocess.TimeoutExpired:
            problem = f"nothing within {_BAZEL_TIMEOUT_S} s"
        except OSError as error:
            problem = str(error)
    if not options.bazel:
        raise find_bazel.cannot_start(bazel, command, _ROOT, problem)
    raise BuildError(
        f"TORCH_XLA_LITE_BAZEL={options.bazel} is not a Bazel that works; it says:\n{problem}",
        "Correct it, or unset it to use what is on PATH:  unset TORCH_XLA_LITE_BAZEL",
    )


def _compiler(environ: Mapping[str, str]) -> str:
    preflight.check_compiler(environ)
    program = toolchain.compiler(environ)
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return f"{said.splitlines()[0]}; it compiles C++20"


def _linker(environ: Mapping[str, str]) -> Finding | str:
    # Bazel links with gold if there is one.
    gold = shutil.which("ld.gold", path=environ.get("PATH"))
    if gold:
        return gold
    remedy = "Install it:  sudo apt-get install binutils"
    return Finding("linker", True, "ld.gold is missing; other linkers are slower", remedy)


def _packages(options: Options, environ: Mapping[str, str]) -> str:
    installed = packages.installed(packages.BUILT_AGAINST, packages.search_path())
    preflight.check(_ROOT, installed, environ, options.any_version)
    return ", ".join(f"{name} {package.version}" for name, package in sorted(installed.items()))


def _remote_cache(options: Options) -> Finding:
    answers, text = remote_cache.describe(options)
    remedy = "" if answers else "Builds go on without it:  python setup.py options"
    return Finding("remote cache", answers, text, remedy)


def _space(cache: Path) -> Finding | str:
    """The free space of the folders that a build writes to; a first build needs about 1 GB."""
    folders = [folder for folder in (_ROOT, cache) if folder.exists()]
    free, folder = min((shutil.disk_usage(folder).free, folder) for folder in folders)
    detail = f"{free / _GIB:.1f} GiB are free for {folder}"
    if free > 5 * _GIB:
        return detail
    remedy = "Remove what earlier builds stored:  torch-xla-lite cache --clear"
    return Finding("disk space", free > _GIB, detail, remedy)


def _editable() -> Finding | str:
    site = editable.site_folder()
    if editable.in_place(_ROOT, site):
        return f"{sys.executable} imports the package from {_ROOT}"
    editable.check(site, editable.commands_folder())
    detail = f"{sys.executable} has no current editable install of {_ROOT}"
    return Finding("editable install", True, detail, "Install it:  python setup.py develop")


def main() -> None:
    """Prints the findings."""
    # The checks of the package report names that nothing reads.
    names = {variable.name for variable in VARIABLES}
    known = {n: v for n, v in os.environ.items() if n in names or not n.startswith(PREFIX)}
    try:
        options = options_table.read(known)
    except BuildError as error:
        _tell(Finding("build options", False, error.problem, error.remedy))
        options = Options()
    for finding in inspect(options, os.environ):
        _tell(finding)


def _tell(finding: Finding) -> None:
    # On a line of its own, whatever the start of the interpreter has printed.
    print(f"\n{MARK}{json.dumps(finding)}", flush=True)


if __name__ == "__main__":
    main()
