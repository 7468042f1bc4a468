"""Computes a fingerprint of compiler, assembler, linker and C library, which Bazel does not hash.

Bazel hashes the sources, the flags and the compiler's path, but not the compiler. Two machines that
share a cache and have different compilers would use each other's objects. So a hash becomes part of
the key of every cached action:

    inspect(os.environ).fingerprint               # "3f1a0c9b2d44"
    python -m bazel.pybuild.machine.toolchain     # prints it; workers announce it

It covers the content of the compiler (which may be a script), of cc1plus, as, ld and the C library,
and what `gcc -v` says of version and configuration. No path is part of it. nvcc and its programs
are inputs of what they compile (third_party/cuda).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine.find_bazel import which

# The PATH of actions (incompatible_strict_action_env); the compiler finds its programs there.
_ACTION_PATH = "/bin:/usr/bin:/usr/local/bin"
# clang has no cc1plus.
_PROGRAMS = ("as", "ld", "cc1plus")
# Two files of the C library. crti.o is small, and in the same package of a distribution.
_LIBC, _SMALL = "libc.so.6", "crti.o"
# The version of gcc in continuous integration.
_TESTED = "gcc version 12."


class Toolchain(NamedTuple):
    """A compiler and what it uses.

    Attributes:
      fingerprint: twelve hexadecimal digits that differ when the toolchain does.
      files: those that the fingerprint depends on.
      watched: a few small files, at least one of which changes with each upgrade.
      is_tested: whether it is the one that continuous integration builds with.
    """

    fingerprint: str
    files: tuple[Path, ...]
    watched: tuple[Path, ...] = ()
    is_tested: bool = False


def compiler(environ: Mapping[str, str]) -> str:
    """The C++ compiler that Bazel's own configuration picks: CC, else gcc."""
    return environ.get("CC") or "gcc"


def files(environ: Mapping[str, str]) -> list[Path]:
    """The programs on PATH that are part of a toolchain. Nothing is started to find them."""
    search = environ.get("PATH", os.defpath)
    found = [which(name, search) for name in (compiler(environ), *_PROGRAMS)]
    return sorted({path.resolve() for path in found if path})


def inspect(environ: Mapping[str, str]) -> Toolchain:
    """The toolchain for this machine.

    Raises:
      BuildError: one of the programs cannot be run.
    """
    import hashlib

    name = compiler(environ)
    program = which(name, environ.get("PATH", os.defpath))
    if program is None:
        raise _unknown(name, "No such file or directory")
    # The other lines have the path of the compiler.
    described = [line for line in _run(program, "-v").splitlines() if "COLLECT_" not in line]
    # Their names may begin with the target: x86_64-linux-gnu-as.
    answers = {part: _run(program, f"-print-prog-name={part}").strip() for part in _PROGRAMS}
    programs = {part: which(answer, _ACTION_PATH) for part, answer in answers.items()}
    for part, found in programs.items():
        if found is None and part != "cc1plus":
            raise _unknown(part, "No such file or directory")
        if found is not None:
            _run(found, "--version")
    libc, small = (Path(_run(program, f"-print-file-name={f}").strip()) for f in (_LIBC, _SMALL))
    used = [program, *filter(None, programs.values()), *([libc] if libc.is_file() else [])]
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in used]
    return Toolchain(
        hashlib.sha256("\0".join([*digests, *described]).encode()).hexdigest()[:12],
        tuple(sorted({file.resolve() for file in used})),
        # Bazel reads all of a file that it watches, so it watches nothing large. Links are not
        # followed, because a link may get another target.
        tuple(file for file in (program, programs["as"], programs["ld"], small) if file.is_file()),
        any(line.startswith(_TESTED) for line in described),
    )


def _run(program: Path, option: str) -> str:
    """What a program prints, run as an action would."""
    import subprocess

    try:
        process = subprocess.run(
            [program, option],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env={"LC_ALL": "C", "PATH": _ACTION_PATH},
        )
    except OSError as error:
        raise _unknown(str(program), str(error.strerror)) from None
    if process.returncode:
        raise _unknown(str(program), f"it exits with {process.returncode}")
    return process.stdout + process.stderr


def _unknown(program: str, reason: str) -> BuildError:
    return BuildError(
        f"{program}, a part of the toolchain, cannot be run: {reason}.\n"
        "It is part of the key of every cached result, so nothing is built without it.",
        "Install it or correct PATH; to choose a compiler:  export CC=/usr/bin/gcc",
    )


if __name__ == "__main__":
    print(inspect(os.environ).fingerprint)
