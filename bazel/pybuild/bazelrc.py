"""The lines of .bazelrc.generated: the interpreter, the versions of the packages that the C++ code
is built against (after an upgrade Bazel reads them again), the folder of the disk cache, and flags
that only newer versions of Bazel have.
"""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild import protobuf
from bazel.pybuild.call import client
from bazel.pybuild.machine import cuda, find_bazel, inputs, packages, toolchain
from bazel.pybuild.options import Options
from bazel.pybuild.variables import PREFIX

_LOG = "# The processes that a build started, which is what `setup.py explain` reads."
# Flags that older versions of Bazel reject -> lines for a Bazel that has the flag.
_FLAGS = {
    "experimental_disk_cache_gc_max_size": (
        "# This Bazel can limit the size of the cache.",
        "common --experimental_disk_cache_gc_max_size=5G",
        "",
        "# It reads the disk cache whatever --remote_accept_cached says.",
        "build:rebuild --disk_cache=",
    ),
    "experimental_execution_log_file": (
        _LOG,
        "build:report --experimental_execution_log_file=build/execution.bin",
    ),
    "execution_log_sort": (
        _LOG,
        "build:report --execution_log_binary_file=build/execution.bin --noexecution_log_sort",
    ),
    "enable_bzlmod": (
        "# MODULE.bazel declares the external dependencies; WORKSPACE is for older versions.",
        "common --enable_bzlmod",
    ),
    "enable_workspace": ("common --noenable_workspace",),
    "lockfile_mode": (
        "# The repositories depend on this machine, so their state is in no file of the tree.",
        "common --lockfile_mode=off",
    ),
}
# The code compiles without warnings with gcc 12; other compilers may warn of more.
_WERROR = "build --define=warnings=errors"

_DEBIANS_MODULES = Path("/usr/share/bazel/rules/cc/MODULE.bazel")
# Modules that Bazel's own ones name and that a C++ build never loads. Debian lacks them.
_NEVER_LOADED = ("apple_support", "buildozer", "protobuf", "zlib")
# Bazel's tools for `bazel coverage`, by the name that its extension gives them.
_COVERAGE = "bazel_tools~remote_coverage_tools_extension~remote_coverage_tools"


def settings(
    installed: Mapping[str, packages.Package],
    gpu: cuda.Cuda,
    flags: set[str],
    tools: toolchain.Toolchain,
    cache: Path,
) -> list[str]:
    """The lines of .bazelrc.generated.

    Args:
      installed: the packages that the C++ code is built against, and our own library.
      gpu: the decision about CUDA.
      flags: those of _FLAGS that Bazel has.
      tools: the compiler and what it uses.
      cache: the folder of this project's caches.
    """
    import hashlib

    library = {name: found for name, found in installed.items() if name == packages.LIBRARY}
    others = {name: found for name, found in installed.items() if name != packages.LIBRARY}
    environment = hashlib.sha256("\0".join(packages.environment()).encode()).hexdigest()[:12]
    variables = {
        "PYTHON": inputs.python_executable(),
        # The packages that the C++ code is built against; then all packages that tests can import.
        "FINGERPRINT": f"python-{sys.version.split()[0]},{packages.fingerprint(others)}",
        "ENVIRONMENT": environment,
        **{f"CUDA_{name}": value for name, value in cuda.rule_variables(gpu).items()},
        "TOOLCHAIN": ":".join(map(str, tools.watched)),
    }
    if buildgrid := packages.buildgrid():
        # The test of remote execution runs again when the versions of BuildGrid change.
        variables["BUILDGRID"] = hashlib.sha256(buildgrid.encode()).hexdigest()[:12]
    if library:
        # Separate, so that Bazel does not read torch again when only our library changes.
        variables["LIBRARY"] = packages.fingerprint(library)
    return [
        "# Written by bazel/pybuild/configure.py.",
        "",
        "# Only repository rules read these variables. A rule runs again when a value changes. No",
        "# cache key contains them.",
        *(_option("common", f"--repo_env={PREFIX}{name}={variables[name]}") for name in variables),
        "",
        "# Results of actions, shared by all checkouts of this user.",
        _option("build", f"--disk_cache={cache / 'bazel'}"),
        "",
        "# Compiler, C library and linker. Bazel does not hash them; this adds them to every key.",
        _option("build", f"--remote_default_exec_properties=toolchain={tools.fingerprint}"),
        *(["", _WERROR] if tools.is_tested else []),
        *(line for flag, lines in _FLAGS.items() if flag in flags for line in ("", *lines)),
    ]


def _is_debians(bazel: Path) -> bool:
    """Whether it has modules on the disk, so that it needs no network (/etc/bazel/bazelrc)."""
    return bazel.resolve().parent == Path("/usr/bin") and _DEBIANS_MODULES.exists()


def replaced_modules(root: Path, bazel: Path) -> list[str]:
    """Lines for a Bazel of Debian; none for another one."""
    if not _is_debians(bazel):
        return []
    folder = root / "third_party/bazel_rules/modules"
    return [
        "",
        "# Debian does not package these; empty ones are in their place.",
        *(_option("common", f"--override_module={name}={folder / name}") for name in _NEVER_LOADED),
        _option("common", f"--override_repository={_COVERAGE}={folder / 'remote_coverage_tools'}"),
    ]


def _option(command: str, option: str) -> str:
    """One line of an rc file. Bazel splits it into words as a shell does."""
    return f"{command} {shlex.quote(option)}"


def known_flags(root: Path, bazel: Path, options: Options, environ: Mapping[str, str]) -> set[str]:
    """Those of _FLAGS that this Bazel has. Debian's Bazel does not print its version."""
    import base64
    import binascii

    words = client.without_settings(root, [str(bazel), *options.startup_options])
    command = [*words, "help", "flags-as-proto"]
    try:
        process = client.ask(command, root, environ)
    except OSError as error:
        raise find_bazel.cannot_start(bazel, command, root, str(error)) from None
    if process.returncode != 0:
        raise find_bazel.cannot_start(bazel, command, root, process.stderr.decode(errors="replace"))
    try:
        description = base64.b64decode(process.stdout)
    except binascii.Error:
        description = b""  # This Bazel does not know the command.
    # A FlagCollection of Bazel's bazel_flags.proto: messages whose first field is the name.
    flags = {flag.text(1) for flag in protobuf.Message(description).messages(1)}
    return flags & _FLAGS.keys()
