"""Writes .bazelrc.generated, which .bazelrc imports: Bazel's settings for this machine.

    python -m bazel.pybuild.machine.configure     # a bare `bazel build //...` then uses this Python

The file contains the interpreter, the versions of the packages that the C++ code is built against
(after an upgrade Bazel reads them again), the folder of the disk cache, and flags that only newer
versions of Bazel have. A second file, .bazelrc.generated.json, contains the facts on which these
settings depend. `develop` compares the facts in milliseconds, and inspects the machine again only
when they have changed. A third file, with permissions for this user only, contains the remote
cache and its credentials.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild import files, lock
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.machine import cuda, find_bazel, packages, toolchain
from bazel.pybuild.options import Options
from bazel.pybuild.variables import PREFIX, without_secrets

FILE = ".bazelrc.generated"
STATE = f"{FILE}.json"
REMOTE_CACHE = f"{FILE}.remote-cache"

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


# Bazel 4 names outputs in a way that workers do not know any more.
_NO_EXECUTION = (
    "# An unknown option: Bazel's error quotes it.",
    "build:remote-exec --remote_execution_needs_Bazel_7.7.1",
)


_DEBIANS_MODULES = Path("/usr/share/bazel/rules/cc/MODULE.bazel")
# Modules that Bazel's own ones name and that a C++ build never loads. Debian lacks them.
_NEVER_LOADED = ("apple_support", "buildozer", "protobuf", "zlib")
# Bazel's tools for `bazel coverage`, by the name that its extension gives them.
_COVERAGE = "bazel_tools~remote_coverage_tools_extension~remote_coverage_tools"


class Facts(NamedTuple):
    """What the settings depend on; files with their times."""

    code: dict[str, int | None]
    pins: dict[str, str]
    python: str
    bazel: str
    bazel_files: dict[str, int | None]
    bazelisk: str
    compiler: str
    toolchain: dict[str, int | None]
    cache: str
    cuda: list[str]
    packages: dict[str, list[str | int]]
    environment: list[str]
    buildgrid: str


class State(NamedTuple):
    """The configuration of a tree.

    Attributes:
      facts: everything that the settings depend on.
      toolchain: files of the compiler and of what it uses -> their times.
      settings: the content of .bazelrc.generated.
      has_cuda: whether the package gets a CUDA library.
      cuda: that, and the reason, as a line for the user.
    """

    facts: Facts
    toolchain: dict[str, int | None]
    settings: str
    has_cuda: bool
    cuda: str


def ensure(
    root: Path, bazel: find_bazel.Bazel, options: Options, environ: Mapping[str, str]
) -> State:
    """Writes .bazelrc.generated and the file of the remote cache if they are missing or outdated.

    It holds the lock of the tree: a build of another environment must not use these settings.

    Args:
      root: of the tree.
      bazel: to call; the settings depend on the flags that it has.
      options: the startup options matter, because other ones would restart Bazel's server.
      environ: usually os.environ.

    Raises:
      BuildError: a requirement of the build is not met; the file did not change.
    """
    with lock.exclusive(root, wait=options.waits):
        state = _ensure_settings(root, bazel, options, environ)
        _ensure_remote_cache(root, bazel, options)
        return state


def _ensure_settings(
    root: Path, bazel: find_bazel.Bazel, options: Options, environ: Mapping[str, str]
) -> State:
    installed = _installed()
    facts = _facts(root, bazel, installed, options, environ)
    current = read(root)
    if current is not None and current.facts == facts:
        tools = current.toolchain
        if tools == _times(tools):
            return current
    from bazel.pybuild.machine import preflight

    preflight.check(root, installed, environ)
    if not any(option.startswith("--disk_cache=") for option in options.build_options):
        preflight.check_cache(cache_home(environ))
    decision, flags, host, cross = _inspect(root, bazel, options, environ)
    lines = settings(installed, decision, flags, host, cross, environ)
    if "enable_bzlmod" in flags and _is_debians(bazel):
        lines += _replaced_modules(root)
    text = "".join(f"{line}\n" for line in lines)
    tools = _times([*host.files, *cross.files])
    state = State(facts, tools, text, decision.packaged, decision.line)
    import json

    files.replace(root / FILE, state.settings)
    values = {**state._asdict(), "facts": facts._asdict()}
    files.replace(root / STATE, json.dumps(values, indent=1) + "\n")
    return state


def _inspect(
    root: Path, bazel: find_bazel.Bazel, options: Options, environ: Mapping[str, str]
) -> tuple[cuda.Cuda, frozenset[str], toolchain.Toolchain, toolchain.Toolchain]:
    """What takes seconds to find out: CUDA, Bazel's flags, the toolchains of this machine and ARM.

    They are found out side by side. Most of the time they wait for compilers, and for Bazel's
    server to start, which the build needs anyway.
    """
    from concurrent.futures import ThreadPoolExecutor

    from bazel.pybuild.machine import preflight

    with ThreadPoolExecutor() as pool:
        flags = pool.submit(_known_flags, root, bazel, options)
        gpu = pool.submit(cuda.inspect, options, environ)
        preflight.check_compiler(environ)
        host, cross = toolchain.inspect(environ), toolchain.inspect_cross(environ)
        return gpu.result(), flags.result(), host, cross


def _ensure_remote_cache(root: Path, bazel: find_bazel.Bazel, options: Options) -> None:
    """Writes the file that defines --config=remote-cache; removes it without a remote cache."""
    file = root / REMOTE_CACHE
    if options.remote_cache is None:
        file.unlink(missing_ok=True)
        return
    from bazel.pybuild.machine import remote_cache

    wanted = "".join(f"{line}\n" for line in remote_cache.lines(options))
    if not file.exists() or file.read_text() != wanted or file.stat().st_mode & 0o077:
        if options.remote_cache_read_token or options.remote_cache_write_token:
            _close_logs(root, bazel, options)
        files.replace(file, wanted, 0o600)


def _close_logs(root: Path, bazel: find_bazel.Bazel, options: Options) -> None:
    """Closes the folder with Bazel's logs to other users: Bazel 4 writes credentials to them."""
    import subprocess

    command = [str(bazel.executable), *options.startup_options, "info", "output_base"]
    environ = without_secrets(os.environ)
    process = subprocess.run(
        command, cwd=root, env=environ, capture_output=True, text=True, check=False
    )
    folder = Path(process.stdout.strip())
    if folder.is_absolute() and folder.is_dir():
        folder.chmod(0o700)


def read(root: Path) -> State | None:
    """The configuration of the tree; None if there is none, or if its files were edited."""
    import json

    try:
        values = json.loads((root / STATE).read_text())
        state = State(**{**values, "facts": Facts(**values["facts"])})
        return state if (root / FILE).read_text() == state.settings else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _installed() -> dict[str, packages.Package]:
    wanted = (*packages.BUILT_AGAINST, packages.LIBRARY)
    return packages.installed(wanted, packages.search_path())


def python_executable() -> str:
    """The path of this interpreter, equal for `python setup.py` and `python3 setup.py`.

    With two names for one interpreter, Bazel would read all packages again at each change.
    """
    for name in ("python", f"python{sys.version_info.major}"):
        candidate = os.path.join(sys.prefix, "bin", name)
        if os.path.exists(candidate) and os.path.samefile(candidate, sys.executable):
            return candidate
    return sys.executable


def cache_home(environ: Mapping[str, str]) -> Path:
    """The folder of this project's caches, by the XDG specification."""
    named = environ.get("XDG_CACHE_HOME", "")
    # By that specification, a relative path is invalid and must be ignored.
    try:
        base = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    except RuntimeError:
        raise BuildError(
            f"User {os.getuid()} has no home folder, and HOME is not set.",
            "Name a folder that you may write to:  export HOME=...",
        ) from None
    return base / "torch_xla_lite"


def disk_cache(options: Options, environ: Mapping[str, str]) -> Path | None:
    """The folder of the disk cache; None without one."""
    flag = "--disk_cache="
    named = [option for option in options.build_options if option.startswith(flag)]
    if not named:
        return cache_home(environ) / "bazel"
    folder = named[-1].removeprefix(flag)
    return Path(folder) if folder else None


def _facts(
    root: Path,
    bazel: find_bazel.Bazel,
    installed: Mapping[str, packages.Package],
    options: Options,
    environ: Mapping[str, str],
) -> Facts:
    code = [entry.path for entry in os.scandir(Path(__file__).parent) if entry.is_file()]
    pins = packages.wanted(root)
    return Facts(
        code=_times(sorted(code)),
        pins={name: pin for name, pin in pins.items() if name in packages.BUILT_AGAINST},
        python=f"{python_executable()} {sys.version.split()[0]}",
        bazel=str(bazel.executable),
        bazel_files=_times([bazel.executable.resolve(), root / ".bazeliskrc"]),
        bazelisk=environ.get("USE_BAZEL_VERSION", ""),
        # Its name, too: preflight rejects a relative one.
        compiler=toolchain.compiler(environ),
        toolchain=_times(toolchain.files(environ)),
        cache=str(cache_home(environ)),
        cuda=cuda.depends_on(options, environ),
        packages={name: [p.version, p.changed_ns] for name, p in sorted(installed.items())},
        environment=packages.environment(),
        buildgrid=packages.buildgrid(),
    )


def _times(paths: Iterable[str | Path]) -> dict[str, int | None]:
    times: dict[str, int | None] = {}
    for path in paths:
        try:
            # A program that sets the time of modification cannot set the time of change.
            times[str(path)] = max(os.stat(path).st_mtime_ns, os.stat(path).st_ctime_ns)
        except OSError:
            times[str(path)] = None
    return times


def settings(
    installed: Mapping[str, packages.Package],
    gpu: cuda.Cuda,
    flags: frozenset[str],
    host: toolchain.Toolchain,
    cross: toolchain.Toolchain,
    environ: Mapping[str, str],
) -> list[str]:
    """The lines of .bazelrc.generated.

    Args:
      installed: the packages that the C++ code is built against, and our own library.
      gpu: the decision about CUDA.
      flags: those of _FLAGS that Bazel has.
      host: the toolchain for this machine.
      cross: the one for 64-bit ARM.
      environ: usually os.environ.
    """
    import hashlib

    library = {name: found for name, found in installed.items() if name == packages.LIBRARY}
    others = {name: found for name, found in installed.items() if name != packages.LIBRARY}
    environment = hashlib.sha256("\0".join(packages.environment()).encode()).hexdigest()[:12]
    variables = {
        "PYTHON": python_executable(),
        # The packages that the C++ code is built against; then all packages that tests can import.
        "FINGERPRINT": f"python-{sys.version.split()[0]},{packages.fingerprint(others)}",
        "ENVIRONMENT": environment,
        **{f"CUDA_{name}": value for name, value in cuda.facts(gpu).items()},
        "AARCH64": cross.fingerprint,
        "TOOLCHAIN": ":".join(map(str, host.watched)),
    }
    if buildgrid := packages.buildgrid():
        # Tests of cache servers run again when it changes.
        variables["BUILDGRID"] = hashlib.sha256(buildgrid.encode()).hexdigest()[:12]
    headers = installed.get("pybind11")
    if headers is not None and str(headers.info.parent) not in packages.own_folders():
        # The pybind11 of an isolated build, which the interpreter does not find by itself.
        variables["PYBIND11"] = str(headers.info.parent)
    if library:
        # Separate, so that Bazel does not read torch again when only our library changes.
        variables["LIBRARY"] = packages.fingerprint(library)
    return [
        "# Written by bazel/pybuild/machine/configure.py.",
        "",
        "# Only repository rules read these variables. A rule runs again when a value changes. No",
        "# cache key contains them.",
        *(_option("common", f"--repo_env={PREFIX}{name}={variables[name]}") for name in variables),
        "",
        "# Results of actions, shared by all checkouts of this user.",
        _option("build", f"--disk_cache={cache_home(environ) / 'bazel'}"),
        "",
        "# Compiler, C library and linker. Bazel does not hash them; this adds them to every key.",
        _option("build", f"--remote_default_exec_properties=toolchain={host.fingerprint}"),
        *(line for flag, lines in _FLAGS.items() if flag in flags for line in ("", *lines)),
        *([] if "enable_bzlmod" in flags else ["", *_NO_EXECUTION]),
    ]


def _is_debians(bazel: find_bazel.Bazel) -> bool:
    """Whether it has modules on the disk, so that it needs no network (/etc/bazel/bazelrc)."""
    return bazel.executable.resolve().parent == Path("/usr/bin") and _DEBIANS_MODULES.exists()


def _replaced_modules(root: Path) -> list[str]:
    folder = root / "third_party/bazel_rules/modules"
    return [
        "",
        "# Debian does not package these; empty ones are in their place.",
        *(_option("common", f"--override_module={name}={folder / name}") for name in _NEVER_LOADED),
        _option("common", f"--override_repository={_COVERAGE}={folder / 'remote_coverage_tools'}"),
    ]


def _option(command: str, option: str) -> str:
    """One line of an rc file. Bazel splits it into words as a shell does."""
    import shlex

    return f"{command} {shlex.quote(option)}"


def client_without_settings(root: Path, client: Sequence[str]) -> list[str]:
    """Bazel's client, which then reads no rc file of the tree: the settings may be those of another
    Bazel, with options that this one rejects.

    The tree's startup options are kept: with other ones, Bazel would restart its server.
    """
    import shlex

    startup: list[str] = []
    for file in (root / ".bazelrc", root / ".bazelrc.user"):
        for line in file.read_text().splitlines() if file.exists() else ():
            if line.startswith("startup "):
                startup += shlex.split(line, comments=True)[1:]
    program, *options = client
    return [program, "--noworkspace_rc", *startup, *options]


def _known_flags(root: Path, bazel: find_bazel.Bazel, options: Options) -> frozenset[str]:
    """Those of _FLAGS that this Bazel has. Debian's Bazel does not print its version."""
    import base64
    import binascii
    import subprocess

    client = client_without_settings(root, [str(bazel.executable), *options.startup_options])
    command = [*client, "help", "flags-as-proto"]
    try:
        process = subprocess.run(
            command, cwd=root, env=without_secrets(os.environ), capture_output=True, check=False
        )
    except OSError as error:
        raise find_bazel.cannot_start(bazel, command, root, str(error)) from None
    if process.returncode != 0:
        raise find_bazel.cannot_start(bazel, command, root, process.stderr.decode(errors="replace"))
    try:
        description = base64.b64decode(process.stdout)
    except binascii.Error:
        description = b""
    # A protocol buffer: it contains each name unchanged, after its length.
    return frozenset(name for name in _FLAGS if bytes([len(name)]) + name.encode() in description)


def main() -> int:
    """Writes the file for this interpreter, and prints what it did."""
    root = Path(__file__).resolve().parents[3]
    from bazel.pybuild import options as options_table

    try:
        options = options_table.read(os.environ)
        bazel = find_bazel.find(options.bazel, os.environ.get("PATH", os.defpath))
        before = read(root)
        state = ensure(root, bazel, options, os.environ)
    except (BuildError, OSError) as error:
        print(f"error: {message(error)}", file=sys.stderr)
        return 1
    written = "up to date" if state == before else "written"
    print(f"{FILE}: {written}, for {python_executable()} and {bazel.executable}")
    print(f"{FILE}: CUDA {state.cuda}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
