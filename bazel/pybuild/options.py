"""The environment variables of the build: the only code that reads them, and their typed values.

    options = read({"MAX_JOBS": "2", "DEBUG": "1"})
    options.max_jobs     # 2
    options.mode         # Mode.DEBUG

A name that starts with TORCH_XLA_LITE_ and is not in the table is an error, and so is a value of
the wrong type: a misspelt option that is silently ignored is noticed only after a whole build.
"""

import enum
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bazel.pybuild.errors import BuildError
from bazel.pybuild.variables import (
    CACHE_URL,
    PREFIX,
    SECRET,
    VARIABLES,
    Secret,
    Switch,
    Variable,
    setting_name,
)


class Mode(enum.Enum):
    """How the C++ code is compiled."""

    RELEASE = "release"
    DEBUG = "debug"
    RELEASE_WITH_DEBUG_INFO = "release with debug information"


class WheelKind(enum.Enum):
    """What a wheel contains: everything, or one of its two halves."""

    ALL = "everything"
    LIBRARY = "libraries and headers"
    PYTHON = "Python code and its extension module"


class Options(NamedTuple):
    """Values of the variables that a build reads.

    Attributes:
      bazel: Bazel to call, a path or a name on PATH; None to search for one.
      startup_options: for Bazel itself, before the word `build`.
      build_options: for `bazel build`; they come last and override others.
      mode: how to compile.
      max_jobs: how many compilers run at once; None for Bazel's default.
      verbose: whether Bazel prints every command.
      wheel_kind: what wheels contain.
      any_version: whether versions of torch and jax are not checked.
      cuda: whether the CUDA library is built.
      cuda_home: the CUDA toolkit to use; None to search for one.
      cuda_home_from: the variable that set cuda_home.
      cuda_arch_list: GPU architectures as the user wrote them; None for the default.
      prioritized_text: whether a linker script places hot functions first; None if the user did not
        set the variable. with_platform_defaults replaces None by False where it has no benefit.
      archive_time_s: timestamp of the files in wheels and source distributions, in seconds since
        1970; None for a constant.
      version: of wheels and source distributions; None for the one in pyproject.toml.
      build_number: of wheels.
      remote_cache: URL of the remote cache; None for none.
      remote_cache_read_token: credentials that the server asks of readers.
      remote_cache_write_token: credentials of writers; None to read only.
      remote_cache_certificate: PEM file with the authority that signed the server's certificate;
        None for the authorities of the system.
    """

    bazel: str | None = None
    startup_options: tuple[str, ...] = ()
    build_options: tuple[str, ...] = ()
    mode: Mode = Mode.RELEASE
    max_jobs: int | None = None
    verbose: bool = False
    wheel_kind: WheelKind = WheelKind.ALL
    any_version: bool = False
    cuda: Switch = Switch.AUTO
    cuda_home: str | None = None
    cuda_home_from: str = "CUDA_HOME"
    cuda_arch_list: str | None = None
    prioritized_text: bool | None = None
    archive_time_s: int | None = None
    version: str | None = None
    build_number: int | None = None
    remote_cache: str | None = None
    remote_cache_read_token: Secret | None = None
    remote_cache_write_token: Secret | None = None
    remote_cache_certificate: str | None = None

    @property
    def waits(self) -> bool:
        """Whether a command waits for another one in the same tree, as Bazel does by default."""
        return "--noblock_for_lock" not in self.startup_options


_BY_NAME = {variable.name: variable for variable in VARIABLES}


def read(environ: Mapping[str, str]) -> Options:
    """Reads the variables of the table.

    Args:
      environ: usually os.environ.

    Raises:
      BuildError: a TORCH_XLA_LITE_ name that is not in the table, a value of the wrong type, or
        two that exclude each other.
    """
    values, wrong = _read(environ)
    if wrong:
        raise wrong[0]
    # The same precedence as in PyTorch.
    home = "CUDA_PATH" if values["CUDA_PATH"] and not values["CUDA_HOME"] else "CUDA_HOME"
    kind = WheelKind.LIBRARY if values["BUILD_LIB_WHL"] else WheelKind.ALL
    mode = Mode.RELEASE
    if values["REL_WITH_DEB_INFO"]:
        mode = Mode.RELEASE_WITH_DEBUG_INFO
    if values["DEBUG"]:
        mode = Mode.DEBUG
    return Options(
        bazel=values["TORCH_XLA_LITE_BAZEL"],
        startup_options=values["TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS"] or (),
        build_options=values["TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"] or (),
        mode=mode,
        max_jobs=values["MAX_JOBS"],
        verbose=bool(values["VERBOSE"]),
        wheel_kind=WheelKind.PYTHON if values["BUILD_PYTHON_ONLY"] else kind,
        any_version=bool(values["TORCH_XLA_LITE_ANY_VERSION"]),
        cuda=values["USE_CUDA"] or Switch.AUTO,
        cuda_home=values[home],
        cuda_home_from=home,
        cuda_arch_list=values["TORCH_CUDA_ARCH_LIST"],
        prioritized_text=values["USE_PRIORITIZED_TEXT_FOR_LD"],
        archive_time_s=values["SOURCE_DATE_EPOCH"],
        version=values["TORCH_XLA_LITE_BUILD_VERSION"],
        build_number=values["TORCH_XLA_LITE_BUILD_NUMBER"],
        remote_cache=values["TORCH_XLA_LITE_REMOTE_CACHE"],
        remote_cache_read_token=values["TORCH_XLA_LITE_REMOTE_CACHE_READ_TOKEN"],
        remote_cache_write_token=values["TORCH_XLA_LITE_REMOTE_CACHE_WRITE_TOKEN"],
        remote_cache_certificate=values["TORCH_XLA_LITE_REMOTE_CACHE_CERTIFICATE"],
    )


# How similar a name is to one of this build that was meant.
_MISSPELT = 0.7


def from_settings(settings: Mapping[str, Any] | None) -> dict[str, str]:
    """The variables that a build front end was given as config settings, such as `-C cuda=on`.

    The name of a setting is that of its variable without TORCH_XLA_LITE_ and USE_, in lower case
    and with hyphens: `max-jobs`, `cuda`, `bazel-build-options`. The variable's own name is also
    accepted.

    Args:
      settings: name -> text, as PEP 517 has them; None for no settings.

    Raises:
      BuildError: a setting is misspelt, is a variable that the build does not read, or is given
        twice. Settings of other back ends are ignored.
    """
    names = {
        setting_name(variable.name): variable.name
        for variable in VARIABLES
        # Everybody on the machine can read a front end's command line.
        if variable.read_by_build and variable.kind is not SECRET
    }
    all_names = {setting_name(variable.name) for variable in VARIABLES}
    found: dict[str, str] = {}
    for setting, value in (settings or {}).items():
        own = setting_name(setting.upper())
        name = names.get(own, "")
        if name and (name in found or not isinstance(value, str)):
            raise BuildError(
                f"The build setting {setting} is given more than once.",
                f"Give it once:  -C {setting_name(name)}=...",
            )
        if name:
            found[name] = value
        # Some people set settings of other back ends for all that they install.
        elif nearest := _nearest(own, names, cutoff=0 if own in all_names else _MISSPELT):
            raise BuildError(
                f"There is no build setting {setting}. The nearest one is {nearest}.",
                f"Correct it:  -C {nearest}=...    (all of them: python setup.py options)",
            )
    return found


def problems(environ: Mapping[str, str]) -> list[BuildError]:
    """All errors in the variables; `read` raises the first one."""
    return _read(environ)[1]


def _read(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[BuildError]]:
    """The values of the table's variables, and all errors."""
    wrong = [
        _unknown(name)
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in _BY_NAME
    ]
    values = {}
    for variable in VARIABLES:
        try:
            values[variable.name] = _value(variable, environ)
        except BuildError as error:
            wrong.append(error)
    if values.get("USE_ROCM"):
        wrong.append(
            BuildError(
                "USE_ROCM=1, but torch_xla_lite has no kernels for AMD GPUs.",
                "Build without:  unset USE_ROCM",
            )
        )
    if values.get("BUILD_LIB_WHL") and values.get("BUILD_PYTHON_ONLY"):
        wrong.append(
            BuildError(
                "BUILD_LIB_WHL=1 and BUILD_PYTHON_ONLY=1 exclude each other: "
                "each makes one half of the package.",
                "Make one after the other, or unset both for the whole:  "
                "unset BUILD_LIB_WHL BUILD_PYTHON_ONLY",
            )
        )
    return values, wrong


def _value(variable: Variable, environ: Mapping[str, str]) -> Any:
    """The parsed value, or None where the variable is unset or empty."""
    text = environ.get(variable.name, "").strip()
    if not text:
        return None
    if variable.name == "DEBUG" and not text.isalnum():
        # Programs of Node.js read a list of their parts from it, such as express:*.
        return None
    try:
        return variable.kind.parse(text)
    except ValueError:
        # A URL may contain a password.
        printed = "..." if variable.kind in (CACHE_URL, SECRET) else repr(text)
        raise BuildError(
            f"{variable.name}={printed} is not {variable.kind.description}.",
            f"Correct it, or unset it for the default ({variable.default}):  unset {variable.name}",
        ) from None


def _unknown(name: str) -> BuildError:
    names = {setting_name(known): known for known in _BY_NAME}
    return BuildError(
        f"{name} is set, but there is no such variable. "
        f"The nearest one is {names[_nearest(setting_name(name), names)]}.",
        f"Rename it, or unset it:  unset {name}",
    )


def with_platform_defaults(options: Options) -> Options:
    """Switches the order of functions off where the user did not set it, except on 64-bit ARM.

    There the variable stays unset, and a build with CUDA prints advice. This function does not
    search for CUDA: that would start nvcc before the command line is parsed.
    """
    machine = os.uname().machine
    if machine in ("aarch64", "arm64") or options.prioritized_text is not None:
        return options
    return options._replace(prioritized_text=False)


def _nearest(name: str, names: Iterable[str], cutoff: float = 0) -> str:
    """The most similar name; empty if no similarity reaches `cutoff`."""
    import difflib

    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=cutoff)), "")


def checksums(environ: Mapping[str, str]) -> dict[str, int]:
    """Checksums of the variables that can change flags. Options may contain credentials."""
    names = ["CC", *(variable.name for variable in VARIABLES if variable.changes_flags)]
    found = {name: environ[name] for name in names if environ.get(name)}
    if not found:
        return {}
    import zlib

    return {name: zlib.crc32(value.encode()) for name, value in found.items()}
