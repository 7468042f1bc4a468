"""Checks the requirements of a build before it starts: Python, packages, a compiler, a user.

    check(root, installed(BUILT_AGAINST, sys.path), os.environ)     # BuildError, or all is well
    check_compiler(os.environ)                                      # the same, in 0.1 s

It runs only when .bazelrc.generated must be written, so it does not slow down other builds. It does
not import torch or jax: with a broken one, the user gets a message instead of a traceback.
"""

import os
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages, toolchain

# Examples of the files that the build reads from each package.
_FILES = {
    "torch": (
        "version.py",
        "include/ATen/ATen.h",
        "include/torch/library.h",
        "lib/libc10.so",
        "lib/libtorch_cpu.so",
        "lib/libtorch_python.so",
    ),
    "jaxlib": ("include/xla/ffi/api/ffi.h",),
    "pybind11": ("include/pybind11/pybind11.h",),
}

_COMPILERS = "gcc 11, clang 14"
# What the sources use of C++20 and older compilers lack.
_FEATURES = """\
#include <bit>
#include <compare>
#include <concepts>
#include <span>
#include <string>
static_assert(std::integral<int> && std::bit_cast<unsigned>(1.0f) != 0);
struct Point { int x = 0, y = 0; auto operator<=>(const Point&) const = default; };
constexpr Point kPoint{.x = 1};
static_assert(kPoint > Point{} && std::string_view("ab").starts_with('a'));
template <typename T> requires std::floating_point<T> T Half(std::span<const T> x) { return x[0]; }
float Call() { const float x[] = {1}; return Half<float>(x); }
"""


class PackagesMissing(BuildError):
    """Packages that a build needs are not installed for this interpreter."""


def check(
    root: Path,
    installed: Mapping[str, packages.Package],
    environ: Mapping[str, str],
    any_version: bool = False,
) -> None:
    """Makes the checks that take no time; `check_compiler` is the other one.

    Args:
      root: of the tree, where requirements.txt is.
      installed: the installed packages, at least those of packages.BUILT_AGAINST that were found.
      environ: usually os.environ.
      any_version: whether versions are not checked.

    Raises:
      BuildError: the first requirement that is not met.
    """
    check_python(sys.implementation.name, Path(sysconfig.get_path("include")))
    check_packages(packages.wanted(root), installed)
    if not any_version:
        check_versions(packages.accepted(root), installed)
    check_places(installed, packages.own_folders())
    check_files(installed)
    check_headers(installed["torch"])
    check_user(os.getuid(), environ)


def check_python(implementation: str, include: Path) -> None:
    """Checks that extension modules can be compiled for this interpreter."""
    if implementation != "cpython":
        raise BuildError(
            f"{sys.executable} is {implementation}, and torch exists for CPython only.",
            "Make an environment with CPython:  python3 -m venv .venv",
        )
    if not (include / "Python.h").exists():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise BuildError(
            f"The C headers of {sys.executable} are missing: there is no {include / 'Python.h'}.",
            f"Install them, then run the command again:  sudo apt-get install python{version}-dev",
        )


def check_cache(folder: Path, what: str) -> None:
    """Checks that the user may write to a folder of Bazel, which need not exist yet."""
    place = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(place, os.W_OK):
        raise BuildError(
            f"{what} {folder}, and you may not write to {place}.",
            "Name another folder:  export XDG_CACHE_HOME=... "
            "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS=--output_user_root=...",
        )


def check_packages(pins: Mapping[str, str], installed: Mapping[str, packages.Package]) -> None:
    """Checks that the packages of BUILT_AGAINST are installed."""
    missing = [name for name in packages.BUILT_AGAINST if name not in installed]
    if not missing:
        return
    problem = "\n".join(f"{name} is not installed for {sys.executable}." for name in missing)
    requirements = [f"{name}=={pins[name]}" if name in pins else name for name in missing]
    raise PackagesMissing(problem, f"Install it:  {packages.install_command(requirements)}")


def check_versions(
    accepted: Mapping[str, packages.Versions], installed: Mapping[str, packages.Package]
) -> None:
    """Checks that the installed versions are among those that a build takes.

    No remedy is to install another torch: it would replace one for CUDA by one for the CPU.
    """
    for name, versions in accepted.items():
        package = installed[name]
        if not versions.contain(package.version):
            raise BuildError(
                f"{name} {package.version}, in {package.info.parent}, is not among the versions "
                f"that this tree is\nbuilt with: {name} {versions}.",
                "Use an environment with one of them, or try this one:  "
                "export TORCH_XLA_LITE_ANY_VERSION=1",
            )


def check_files(installed: Mapping[str, packages.Package]) -> None:
    """Checks that the packages have the files that the build reads."""
    for name, files in _FILES.items():
        package = installed[name]
        folder = package.info.parent / name
        missing = [file for file in files if not (folder / file).exists()]
        if missing:
            version = package.version.partition("+")[0]
            options = ("--force-reinstall", "--no-deps")
            command = packages.install_command([f"{name}=={version}"], *options)
            raise BuildError(
                f"The installed {name} {package.version} is damaged: {folder} has no {missing[0]}.",
                f"Install it again:  {command}",
            )


def check_headers(torch: packages.Package) -> None:
    """Checks that this torch has the headers that the sources include under these names."""
    from third_party.torch import layers

    if missing := layers.missing(torch.info.parent / "torch" / "include"):
        raise BuildError(
            f"torch {torch.version} has no header {', '.join(missing)}.",
            "Name the one that it has instead, in third_party/torch/layers.py, and include it.",
        )


def check_user(uid: int, environ: Mapping[str, str]) -> None:
    """Checks that the user has a name, without which Bazel does not start."""
    import pwd

    if environ.get("USER"):
        return
    try:
        pwd.getpwuid(uid)
    except KeyError:
        raise BuildError(
            f"uid {uid} has no passwd entry and USER is unset; Bazel needs a user name.",
            f"Name it, and a folder to write to:  export USER=user{uid} HOME=...",
        ) from None


def check_compiler(environ: Mapping[str, str]) -> None:
    """Compiles and links a few lines of C++ with the compiler that Bazel will use."""
    import subprocess
    import tempfile

    compiler = toolchain.compiler(environ)
    if len(words := compiler.split()) > 1 and not os.path.exists(compiler):
        raise BuildError(
            f'CC="{compiler}" is a command with arguments, and Bazel calls one program.',
            "ccache is set up otherwise (docs/build.md#ccache); else write a script that runs it:  "
            f"""printf '#!/bin/sh\\nexec {shlex.join(words)} "$@"\\n' > cc && chmod +x cc""",
        )
    if os.sep in compiler and not os.path.isabs(compiler):
        raise BuildError(
            f"CC={compiler} is a relative path, which Bazel cannot find from its own folders.",
            f"Make it absolute:  export CC={shlex.quote(os.path.abspath(compiler))}",
        )
    remedy = "Install one:  sudo apt-get install g++"
    if environ.get("CC"):
        remedy = "Correct CC, or unset it to use gcc:  unset CC"
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, "-std=c++20", "-shared", "-fPIC", "-x", "c++", "-"]
        try:
            process = subprocess.run(
                [*command, "-o", f"{folder}/line.so", "-lstdc++"],
                input=_FEATURES,
                capture_output=True,
                text=True,
                check=False,
                env={**environ, "LC_ALL": "C"},
            )
            code, output = process.returncode, process.stderr.strip()
        except OSError as error:
            code, output = -1, str(error)
    if code:
        lines = "".join(f"\n  {line}" for line in output.splitlines()[:5])
        reason = f"it said:{lines}" if output else f"it exits with {code}, without a message."
        problem = f"The compiler {compiler} cannot compile C++20; {reason}"
        raise BuildError(f"{problem}\nIt has to be {_COMPILERS} or newer.", remedy)


def check_places(installed: Mapping[str, packages.Package], own: list[str]) -> None:
    """Checks that Bazel's rules find the same packages; they ignore variables and user settings.

    Args:
      installed: the installed packages.
      own: the folders in which the interpreter itself finds packages.
    """
    places = {os.path.realpath(folder) for folder in own}
    requirements = [f"{name}=={package.version}" for name, package in installed.items()]
    for name, package in installed.items():
        if os.path.realpath(package.info.parent) not in places:
            raise BuildError(
                f"{name} is in {package.info.parent}, which is on the import path only because "
                "of PYTHONPATH or your settings; Bazel reads neither.",
                f"Install it for the interpreter itself:  {packages.install_command(requirements)}",
            )


def check_library(version: str, installed: packages.Package | None) -> None:
    """Checks that the library is installed that a Python-only wheel is linked to.

    Args:
      version: of the wheel.
      installed: the installed library, if there is one.
    """
    if installed is not None and installed.version == version:
        return
    name = f"torch_xla_lite_lib {version}"
    problem = f"{name} is not installed for {sys.executable}."
    if installed is not None:
        problem = (
            f"This tree is version {version}, but torch_xla_lite_lib {installed.version} "
            f"is installed\nin {installed.info.parent}."
        )
    raise BuildError(
        f"BUILD_PYTHON_ONLY=1 links to an installed library. {problem}",
        "Make and install the one of this tree:  "
        f"BUILD_PYTHON_ONLY= BUILD_LIB_WHL=1 {sys.executable} setup.py bdist_wheel && "
        f"{sys.executable} -m pip install --no-deps --force-reinstall "
        f"dist/torch_xla_lite_lib-{version}-*.whl",
    )
