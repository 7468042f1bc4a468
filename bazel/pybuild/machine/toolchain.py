"""Computes a fingerprint of compiler, assembler, linker and C library, which Bazel does not hash.

Bazel hashes the sources, the flags and the compiler's path, but not the compiler. Two machines that
share a cache and have different compilers would use each other's objects. So a hash of all that
changes object code without being an input becomes part of the key of every cached action:

    inspect(os.environ).fingerprint               # "3f1a0c9b2d44"
    python -m bazel.pybuild.machine.toolchain     # prints it; workers announce it

It covers the content of the programs (also those that the compiler starts), of the libraries that
they load and of the files that the linker adds, the compiler's default options, and the text of the
standard headers. No path is part of it. nvcc and its programs are inputs of what they compile
(third_party/cuda).
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine.find_bazel import which

# The PATH of actions (incompatible_strict_action_env); the compiler finds its programs there.
_ACTION_PATH = "/bin:/usr/bin:/usr/local/bin"
# Programs that every compilation or link needs, and those that compilers have in part. cc1
# preprocesses assembler.
_NEEDED = ("as", "ld")
_OPTIONAL = ("cc1", "cc1plus", "collect2", "ld.bfd", "ld.gold", "ld.lld", "mold")
# Programs that Bazel starts itself, found on the user's PATH; dwp is not on all machines.
_TOOLS = ("ar", "nm", "objcopy", "strip")
_DWP = "dwp"
# Files that the compiler adds to a link.
_LINKED = (
    *("Scrt1.o", "crt1.o", "crti.o", "crtn.o", "crtbegin.o", "crtbeginS.o", "crtend.o"),
    *("crtendS.o", "libc.so", "libc.so.6", "libc_nonshared.a", "libgcc.a", "libgcc_s.so"),
    *("libgcc_s.so.1", "libm.so", "libm.so.6", "libstdc++.a", "libstdc++.so"),
)
# These include nearly all headers of the two standard libraries.
_HEADERS = "".join(
    f"#include <{name}>\n"
    for name in (
        *("algorithm", "array", "atomic", "bit", "chrono", "cmath", "csignal", "cstring"),
        *("exception", "functional", "initializer_list", "limits", "list", "map", "memory"),
        *("mutex", "numeric", "optional", "ostream", "random", "set", "span", "stdexcept"),
        *("string", "string_view", "thread", "tuple", "typeinfo", "unordered_map"),
        *("unordered_set", "utility", "variant", "vector"),
        *("dlfcn.h", "features.h", "pthread.h", "unistd.h"),
    )
)

# The version of gcc in continuous integration.
_TESTED = "12"


class Toolchain(NamedTuple):
    """A compiler and all that it uses.

    Attributes:
      fingerprint: twelve hexadecimal digits that differ when the toolchain does.
      files: those that the fingerprint depends on, and the folders of the standard headers.
      watched: a few of the files, small ones, at least one of which changes with each upgrade.
      is_tested: whether it is the one that continuous integration builds with.
    """

    fingerprint: str
    files: list[Path]
    watched: tuple[Path, ...] = ()
    is_tested: bool = False


def inspect(environ: Mapping[str, str]) -> Toolchain:
    """The toolchain for this machine.

    Raises:
      BuildError: one of the programs cannot be run.
    """
    import hashlib

    name = compiler(environ)
    search = environ.get("PATH", os.defpath)
    program = which(name, search)
    if program is None:
        raise _unknown(name, "No such file or directory")
    asked = [f"-print-prog-name={part}" for part in (*_NEEDED, *_OPTIONAL)]
    asked += [f"-print-file-name={part}" for part in _LINKED]
    answers = [Path(_run(program, option).strip()) for option in asked]
    programs = [which(str(answer), _ACTION_PATH) for answer in answers[: -len(_LINKED)]]
    # Their names may begin with the target: x86_64-linux-gnu-as.
    needed = programs[: len(_NEEDED)]
    tools = [which(tool, search) for tool in _TOOLS]
    for part, found in zip((*_NEEDED, *_TOOLS), (*needed, *tools), strict=True):
        if found is None:
            raise _unknown(part, "No such file or directory")
    present = [found for found in (*programs, *tools, which(_DWP, search)) if found]
    for found in present:
        _run(found, "--version")
    linked = [file for file in answers[-len(_LINKED) :] if file.is_file()]
    contents = [program, *present, *linked]
    # The options of the commands that the compiler would run; it chooses the names of some files.
    defaults = _run(program, "-###", "-x", "c++", "/dev/null", "-shared", "-o", "/dev/null")
    options = " ".join(word for word in defaults.split() if "/" not in word)
    headers = _run(program, "-E", "-dD", "-std=c++20", "-x", "c++", "-", text=_HEADERS)
    # Lines that begin with "# 1" name the file that the next lines are from.
    markers = [line for line in headers.splitlines() if line.startswith("# ")]
    code = "\n".join(line for line in headers.splitlines() if not line.startswith("# "))
    folders = {Path(line.split('"')[1]).parent for line in markers if '"/' in line}
    libraries = _libraries(program, *present) | _plugins(defaults)
    parts = [_hash(file) for file in contents]
    # In an order that does not depend on paths.
    parts += sorted({_hash(file) for file in libraries})
    parts += [options, code]
    return Toolchain(
        hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12],
        sorted({*(file.resolve() for file in (*contents, *libraries)), *folders}),
        # Compiler, assembler, linker and C library are in packages of their own. Bazel reads all of
        # a file that it watches, so it watches nothing large. Not resolved: a link may get another
        # target.
        (program, *filter(None, needed), *(file for file in linked if file.name == "crti.o")),
        _run(program, "-dumpversion").partition(".")[0].strip() == _TESTED
        and "clang" not in _run(program, "--version"),
    )


def compiler(environ: Mapping[str, str]) -> str:
    """The C++ compiler that Bazel's own configuration picks: CC, else gcc."""
    return environ.get("CC") or "gcc"


def files(environ: Mapping[str, str]) -> list[Path]:
    """The programs on PATH that are part of a toolchain. Nothing is started to find them."""
    search = environ.get("PATH", os.defpath)
    names = [compiler(environ), *_NEEDED, *_OPTIONAL, *_TOOLS, _DWP]
    found = [which(name, search) for name in names]
    return sorted({path.resolve() for path in found if path})


def _libraries(*programs: Path) -> set[Path]:
    """What they load: arithmetic of cc1plus is in gmp and mpfr, most of `as` and `ld` in libbfd."""
    # It fails if one of them is a script, and lists the libraries of the others.
    printed = _run(Path("ldd"), *map(str, programs), is_checked=False)
    words = {word for word in printed.split() if word.startswith("/")}
    return {Path(word) for word in words if not word.endswith(":")}  # That is a program's.


def _plugins(commands: str) -> set[Path]:
    """The libraries that a linker loads, by the commands of a compiler."""
    found = {Path(name) for name in re.findall(r' -plugin "?([^" ]+)', commands)}
    return {file for file in found if file.is_file()}


def _hash(file: Path) -> str:
    import hashlib

    return hashlib.sha256(file.read_bytes()).hexdigest()


def _run(program: Path, *options: str, text: str = "", is_checked: bool = True) -> str:
    """What a program prints, run as an action would."""
    import subprocess

    try:
        process = subprocess.run(
            [program, *options],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env={"LC_ALL": "C", "PATH": _ACTION_PATH},
        )
    except OSError as error:
        raise _unknown(str(program), str(error.strerror)) from None
    if process.returncode and is_checked:
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
