"""The table of the environment variables of the build.

Each row has the type of a variable, which says how its text is parsed. options.py reads them. The
variables that the package reads at run time are in run_time.py, a link to the package's file.
"""

import enum
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bazel.pybuild import run_time

PREFIX = "TORCH_XLA_LITE_"


class Secret(str):
    """Text that messages and tracebacks do not show."""

    def __repr__(self) -> str:
        return "<secret>"


class Switch(enum.Enum):
    """Whether a feature is built; AUTO builds it if the packages that it needs are installed."""

    AUTO = "auto"
    ON = "1"
    OFF = "0"


def _flag(text: str) -> bool:
    # The same words as in PyTorch's setup.py.
    word = text.upper()
    if word in ("1", "ON", "YES", "TRUE", "Y"):
        return True
    if word in ("0", "OFF", "NO", "FALSE", "N"):
        return False
    raise ValueError(text)


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return parse


def _switch(text: str) -> Switch:
    if text.lower() == "auto":
        return Switch.AUTO
    return Switch.ON if _flag(text) else Switch.OFF


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text)
        if number < least:
            raise ValueError(text)
        return number

    return parse


def _seconds(text: str) -> int:
    # The specification of SOURCE_DATE_EPOCH allows no sign, space or fraction.
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


def _version(text: str) -> str:
    # Only the normalized form, because file names, requirements and metadata must agree.
    number = r"(0|[1-9]\d*)"
    public = rf"{number}(\.{number})*((a|b|rc){number})?(\.post{number})?(\.dev{number})?"
    part = rf"({number}|(?=[0-9]*[a-z])[a-z0-9]+)"
    if not re.fullmatch(rf"{public}(\+{part}(\.{part})*)?", text, re.ASCII):
        raise ValueError(text)
    return text


def _command(text: str) -> str:
    # A path is relative to the caller's folder, and the build changes to that of the tree.
    return os.path.abspath(text) if os.sep in text else text


def _cache_url(text: str) -> str:
    # Bazel prints the URL in messages, so it must not contain a password.
    server = r"https?://([\w.-]+|\[[\da-fA-F:]+\])(:\d+)?(/[\w./~-]*)?"
    if not re.fullmatch(server, text, re.ASCII):
        raise ValueError(text)
    return text.rstrip("/")


def _secret(text: str) -> Secret:
    # The first form is that of RFC 6750; the second is sent in base64.
    if not re.fullmatch(r"[\w.~+/-]+=*|[^\s:]+:\S+", text, re.ASCII):
        raise ValueError
    return Secret(text)


def _words(text: str) -> tuple[str, ...]:
    import shlex

    return tuple(shlex.split(text))


class Kind(NamedTuple):
    """Type of a variable: a description of its values, and the function that parses them."""

    description: str
    parse: Callable[[str], Any]


FLAG = Kind("0 or 1 (or no, off, false, yes, on, true)", _flag)
# Other programs read these variables, and do not accept the other words of FLAG.
DIGIT = Kind("0 or 1", _one_of("0", "1"))
COMPILE_WHEN = Kind("first, repeated or background", _one_of("first", "repeated", "background"))
SWITCH = Kind("auto, 0 or 1", _switch)
COUNT = Kind("an integer >= 1", _at_least(1))
NATURAL = Kind("an integer >= 0", _at_least(0))
VERSION = Kind("a normalized PEP 440 version, such as 0.2.0.dev1 or 0.2.0+mine", _version)
TIME = Kind("an integer, seconds since 1970", _seconds)
FOLDER = Kind("a folder", os.path.abspath)
FILE = Kind("a file", os.path.abspath)
ARCHITECTURES = Kind("names or numbers of GPU architectures", str)
COMMAND = Kind("a path, or a program on PATH", _command)
CACHE_URL = Kind("http:// or https:// with HOST:PORT and no password", _cache_url)
SECRET = Kind("a token, or USER:PASSWORD", _secret)
WORDS = Kind("arguments, quoted as for a shell", _words)


class Variable(NamedTuple):
    """One row of the table.

    Attributes:
      name: of the environment variable.
      kind: its type.
      default: description of the value that replaces an unset or empty variable.
      meaning: one sentence.
      read_by_build: whether builds read it. The others are in the table so that builds do not call
        them misspelt: this package reads them at run time, or a script does.
      changes_flags: whether it changes the flags of actions, their folder or the targets.
    """

    name: str
    kind: Kind
    default: str
    meaning: str
    read_by_build: bool = True
    changes_flags: bool = False


_RUN_TIME_KINDS = {
    ("0", "1"): DIGIT,
    ("first", "repeated", "background"): COMPILE_WHEN,
    run_time.NUMBER: NATURAL,
}
VARIABLES = (
    Variable(
        "TORCH_XLA_LITE_BAZEL",
        COMMAND,
        "bazelisk on PATH, else bazel on PATH",
        "The Bazel that setup.py calls.",
    ),
    Variable(
        "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS",
        WORDS,
        "none",
        "Options for Bazel itself, such as --output_user_root=/fast/disk. With --noblock_for_lock, "
        "a command fails instead of waiting for another one in this tree.",
    ),
    Variable(
        "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS",
        WORDS,
        "none",
        "Options for `bazel build`; they come last and override all others.",
        changes_flags=True,
    ),
    Variable(
        "TORCH_XLA_LITE_BUILD_VERSION",
        VERSION,
        "that of pyproject.toml",
        "Version of wheels and source distributions; a wheel for CUDA 13.0 gets the suffix +cu130, "
        "unless the version has a local part.",
    ),
    Variable(
        "TORCH_XLA_LITE_BUILD_NUMBER",
        COUNT,
        "none",
        "Build number of wheels: of two wheels with the same version, pip prefers the higher one.",
    ),
    Variable(
        "TORCH_XLA_LITE_REMOTE_CACHE",
        CACHE_URL,
        "none",
        "A server that shares results of actions; see docs/cache.md.",
    ),
    Variable(
        "TORCH_XLA_LITE_REMOTE_CACHE_CERTIFICATE",
        FILE,
        "the authorities of the system",
        "The authority that signed the cache server's certificate, in PEM format.",
    ),
    Variable(
        "TORCH_XLA_LITE_REMOTE_CACHE_READ_TOKEN",
        SECRET,
        "none",
        "What the cache server asks of readers.",
    ),
    Variable(
        "TORCH_XLA_LITE_REMOTE_CACHE_WRITE_TOKEN",
        SECRET,
        "none: results are read and not written",
        "What the cache server asks of writers; with it, new results are stored there.",
    ),
    Variable(
        "DEBUG",
        FLAG,
        "0",
        "Compile without optimisation and with debug information.",
        changes_flags=True,
    ),
    Variable(
        "REL_WITH_DEB_INFO",
        FLAG,
        "0",
        "Compile with optimisation and with debug information; DEBUG=1 overrides it.",
        changes_flags=True,
    ),
    Variable(
        "MAX_JOBS",
        COUNT,
        "the number of processors, or memory divided by 0.7 GB if that is less",
        "How many compilers run at once.",
    ),
    Variable("VERBOSE", FLAG, "0", "Show every command that Bazel runs."),
    Variable(
        "BUILD_LIB_WHL",
        FLAG,
        "0",
        "Make the library wheel, torch_xla_lite_lib: libraries and headers, for every Python.",
        changes_flags=True,
    ),
    Variable(
        "BUILD_PYTHON_ONLY",
        FLAG,
        "0",
        "Make the Python-only wheel, which requires torch_xla_lite_lib of the same version.",
        changes_flags=True,
    ),
    Variable(
        "USE_CUDA",
        SWITCH,
        "auto: if jax or torch is built for CUDA and there is a toolkit of that version",
        "Build the CUDA library; 1 builds it with any jax and torch, and requires a toolkit.",
        changes_flags=True,
    ),
    Variable(
        "CUDA_HOME",
        FOLDER,
        "CUDA_PATH, nvcc on PATH, conda, /usr/local/cuda, NVIDIA's wheels",
        "The CUDA toolkit to build with.",
        changes_flags=True,
    ),
    Variable(
        "CUDA_PATH", FOLDER, "none", "The same; read if CUDA_HOME is unset.", changes_flags=True
    ),
    Variable(
        "TORCH_CUDA_ARCH_LIST",
        ARCHITECTURES,
        "Common: 7.5 8.0 8.6 9.0 10.0 12.0+PTX, those that the toolkit supports",
        "GPU architectures to compile for, such as 8.0;9.0+PTX or Hopper.",
        changes_flags=True,
    ),
    Variable(
        "USE_ROCM",
        FLAG,
        "0",
        "PyTorch's switch for AMD GPUs; there are no kernels for them, and 1 is an error.",
    ),
    Variable(
        "USE_PRIORITIZED_TEXT_FOR_LD",
        FLAG,
        "0",
        "Place the most frequently executed functions side by side when linking (for aarch64).",
        changes_flags=True,
    ),
    Variable(
        "SOURCE_DATE_EPOCH",
        TIME,
        "315532800: the first of January 1980",
        "Timestamp of the files in wheels and source distributions.",
    ),
    *(
        Variable(
            name,
            _RUN_TIME_KINDS[row.values],
            row.default,
            f"Read at run time: {row.meaning}",
            read_by_build=False,
        )
        for name, row in run_time.RUN_TIME.items()
    ),
    Variable(
        "TORCH_XLA_LITE_ANY_VERSION",
        FLAG,
        "0",
        "A build takes any version of torch, jax and jaxlib, not only those of pyproject.toml.",
    ),
    Variable(
        "TORCH_XLA_LITE_CONTAINER",
        DIGIT,
        "detected from files and variables of containers",
        "Read by scripts/update_repos.py, which refuses to run in the development container.",
        read_by_build=False,
    ),
)

SECRETS = frozenset(variable.name for variable in VARIABLES if variable.kind is SECRET)


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for a call of Bazel, which writes all of them to its log and its events."""
    return {name: value for name, value in environ.items() if name not in SECRETS}


def setting_name(variable: str) -> str:
    """The name of the config setting for a variable."""
    name = variable.replace("-", "_").removeprefix(PREFIX).removeprefix("USE_")
    return name.lower().replace("_", "-")
