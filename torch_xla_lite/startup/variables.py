"""Checks the environment variables whose names begin with TORCH_XLA_LITE_.

    check(os.environ)      # ValueError for TORCH_XLA_LITE_IR_DEBUG=yes or TORCH_XLA_LITE_IRDEBUG=1

A misspelled variable would have no effect, and the user would not notice; so every name with this
prefix that is not listed here is an error. The table of the build, bazel/pybuild/variables.py, is
not part of a wheel, and takes the rows of RUN_TIME from here; a test checks that both have the same
names.
"""

from collections.abc import Mapping
from typing import NamedTuple

PREFIX = "TORCH_XLA_LITE_"

# Stands for the values 0, 1, 2 ...
NUMBER = ("a whole number",)


class Row(NamedTuple):
    """A variable that is read when the package is imported.

    Attributes:
      values: that it may hold.
      default: description of the value that replaces an unset or empty variable.
      meaning: one sentence.
    """

    values: tuple[str, ...]
    default: str
    meaning: str


RUN_TIME = {
    "TORCH_XLA_LITE_AUTOLOAD": Row(
        ("0", "1"),
        "unset: 1 where torch has no other accelerator",
        "import torch names device 'jax', and its first use imports this package.",
    ),
    "TORCH_XLA_LITE_CHECK_INDICES": Row(
        ("0", "1"),
        "unset: an index out of range raises when a value is read",
        "1 raises when the graph runs, with the line that recorded the operation; 0 checks "
        "nothing.",
    ),
    "TORCH_XLA_LITE_CHECK_PROCESSES": Row(
        ("0", "1"),
        "0",
        "several processes compare the program each time that one runs on all their devices.",
    ),
    "TORCH_XLA_LITE_IR_DEBUG": Row(
        ("0", "1"), "0", "each operation remembers the line and the module that recorded it."
    ),
    "TORCH_XLA_LITE_COMPILATION_CACHE": Row(
        ("0", "1"), "1", "compiled programs are stored on disk for other processes."
    ),
    "TORCH_XLA_LITE_COMPILE": Row(
        ("first", "repeated", "background"),
        "repeated",
        "a graph is compiled the first time, or interpreted and compiled when its runs have cost "
        "as much as that, or in that case compiled in a background thread.",
    ),
    "TORCH_XLA_LITE_SYNC_AFTER_STEP": Row(
        ("0", "1"), "1", "the end of an optimizer's step runs what is recorded."
    ),
    "TORCH_XLA_LITE_PROGRESS": Row(
        ("0", "1"), "1", "on a terminal, a compilation that takes more than two seconds says so."
    ),
    "TORCH_XLA_LITE_PENDING_LIMIT": Row(
        NUMBER,
        "2000",
        "the runtime starts a graph after about this many recorded operations, or 128 MB "
        "of copies to the device, even if no value is read; 0: no limit.",
    ),
}

# Read by the build, which checks their values; at run time only the name is checked.
BUILD_TIME: tuple[str, ...] = (
    "TORCH_XLA_LITE_ANY_VERSION",
    "TORCH_XLA_LITE_BAZEL",
    "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS",
    "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS",
    "TORCH_XLA_LITE_BUILD_NUMBER",
    "TORCH_XLA_LITE_BUILD_VERSION",
    "TORCH_XLA_LITE_CONTAINER",
    "TORCH_XLA_LITE_REMOTE_CACHE",
    "TORCH_XLA_LITE_REMOTE_CACHE_CERTIFICATE",
    "TORCH_XLA_LITE_REMOTE_CACHE_READ_TOKEN",
    "TORCH_XLA_LITE_REMOTE_CACHE_WRITE_TOKEN",
)


def check(environ: Mapping[str, str]) -> None:
    """Raises ValueError for an unknown name or value; the last line is the remedy."""
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in BUILD_TIME or not environ[name]:
            continue  # empty means unset, as in most programs
        if name not in RUN_TIME:
            raise ValueError(_unknown(name))
        values = RUN_TIME[name].values
        if environ[name] not in values and not (values is NUMBER and environ[name].isdecimal()):
            example = "1000" if values is NUMBER else values[-1]
            raise ValueError(
                f"{name}={environ[name]} is not understood: it may be {' or '.join(values)}.\n"
                f"Correct it:  export {name}={example}    (or: unset {name})"
            )


def enabled(environ: Mapping[str, str], name: str, *, default: str = "0") -> bool:
    """Whether the 0/1 variable `name` is on. `default` holds where it is unset or empty."""
    assert RUN_TIME[name].values == ("0", "1"), name
    return (environ.get(name) or default) == "1"


def choice(environ: Mapping[str, str], name: str, *, default: str) -> str:
    """The value of the variable `name`. `default` holds where it is unset or empty."""
    assert default in RUN_TIME[name].values, name
    return environ.get(name) or default


def number(environ: Mapping[str, str], name: str, *, default: int) -> int:
    """The number of the variable `name`. `default` holds where it is unset or empty."""
    assert RUN_TIME[name].values is NUMBER, name
    return int(environ.get(name) or default)


def _unknown(name: str) -> str:
    import difflib  # slow; only needed for this error

    known = sorted([*RUN_TIME, *BUILD_TIME])
    near = difflib.get_close_matches(name, known, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    return (
        f"{name} is set, but there is no such variable.{guess}\n"
        f"Known: {', '.join(known)}.\n"
        f"Remove it:  unset {name}"
    )
