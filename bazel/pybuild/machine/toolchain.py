"""Computes a fingerprint of the compiler, C library and linker, because Bazel does not hash them.

Bazel hashes the sources, the flags and the compiler's path, but not the compiler. Two machines that
share a cache and have different compilers would use each other's objects. So a hash of these
programs' versions becomes part of the key of every cached action:

    fingerprint(os.environ)     # "3f1a0c9b2d44"

    python -m bazel.pybuild.machine.toolchain     # prints it; workers announce it
"""

import os
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine.find_bazel import which

_LINKERS = ("ld", "ld.gold", "ld.lld", "mold")
# What third_party/aarch64_gcc looks for.
_CROSS = ("aarch64-linux-gnu-g++", "aarch64-linux-gnu-ld")
# Prints the version of the C library, among other macros.
_C_LIBRARY = ("-E", "-dM", "-x", "c++", "-include", "features.h", "/dev/null")
_EMULATORS = ("qemu-aarch64", "qemu-aarch64-static")


def fingerprint(environ: Mapping[str, str]) -> str:
    """Twelve hexadecimal digits that differ when the toolchain does.

    Raises:
      BuildError: one of the programs cannot be run.
    """
    import hashlib

    search = environ.get("PATH", os.defpath)
    said = [_says(compiler(environ), "-v"), _says("ldd", "--version")]
    said += [_says(linker, "--version") for linker in _LINKERS if which(linker, search)]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:12]


def cross_fingerprint(environ: Mapping[str, str]) -> str:
    """The same for the compiler for 64-bit ARM; "none" where there is none.

    Builds for this machine do not depend on it, so it is not in their keys. A repository rule
    (third_party/aarch64_gcc) makes it an input of builds for ARM.
    """
    import hashlib

    search = environ.get("PATH", os.defpath)
    programs = [which(name, search) for name in _CROSS]
    if not all(programs):
        return "none"
    said = [_says(str(program), "-v") for program in programs]
    said += [_says(str(programs[0]), *_C_LIBRARY)]
    said += [emulator for emulator in _EMULATORS if which(emulator, search)]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:12]


def compiler(environ: Mapping[str, str]) -> str:
    """The C++ compiler that Bazel's own configuration picks: CC, else gcc."""
    return environ.get("CC") or "gcc"


def files(environ: Mapping[str, str]) -> list[Path]:
    """The existing files on which the fingerprints depend, with links resolved."""
    search = environ.get("PATH", os.defpath)
    names = [compiler(environ), *_LINKERS, "ldd", *_CROSS, *_EMULATORS]
    found = [which(name, search) for name in names]
    return sorted({path.resolve() for path in found if path})


def _says(program: str, *options: str) -> str:
    import subprocess

    try:
        process = subprocess.run(
            [program, *options],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        raise _unknown(program, str(error.strerror)) from None
    if process.returncode:
        raise _unknown(program, f"it exits with {process.returncode}")
    return process.stdout + process.stderr


def _unknown(program: str, reason: str) -> BuildError:
    return BuildError(
        f"{program}, a part of the toolchain, cannot be run: {reason}.\n"
        "Its version is part of the key of every cached result, so nothing is built without it.",
        "Install it or correct PATH; to choose a compiler:  export CC=/usr/bin/gcc",
    )


if __name__ == "__main__":
    print(fingerprint(os.environ))
