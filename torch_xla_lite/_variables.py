"""Checks the environment variables whose names begin with TORCH_XLA_LITE_.

    check(os.environ)      # ValueError for TORCH_XLA_LITE_IR_DEBUG=yes or TORCH_XLA_LITE_IRDEBUG=1

A misspelled variable would have no effect, and the user would not notice; so every name with this
prefix that is not listed here is an error. The table of the build, bazel/pybuild/variables.py, is
not part of a wheel; a test checks that both have the same names.
"""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "TORCH_XLA_LITE_"

# Stands for the values 0, 1, 2 ...
_NUMBER = ("a whole number",)

# Read when the package is imported: name -> the values it may hold.
RUN_TIME: dict[str, tuple[str, ...]] = {
    "TORCH_XLA_LITE_CHECK_INDICES": ("0", "1"),
    "TORCH_XLA_LITE_COMPILATION_CACHE": ("0", "1"),
    "TORCH_XLA_LITE_COMPILE": ("first", "repeated", "background"),
    "TORCH_XLA_LITE_IR_DEBUG": ("0", "1"),
    "TORCH_XLA_LITE_PENDING_LIMIT": _NUMBER,
    "TORCH_XLA_LITE_REBUILD_ON_IMPORT": ("0", "1"),
    "TORCH_XLA_LITE_SYNC_AFTER_STEP": ("0", "1"),
}

# Read by the build, which checks their values; at run time only the name is checked.
BUILD_TIME: tuple[str, ...] = (
    "TORCH_XLA_LITE_BAZEL",
    "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS",
    "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS",
    "TORCH_XLA_LITE_BUILD_NUMBER",
    "TORCH_XLA_LITE_BUILD_VERSION",
    "TORCH_XLA_LITE_CONTAINER",
    "TORCH_XLA_LITE_DEBUG_FILES",
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
        values = RUN_TIME[name]
        if environ[name] not in values and not (values is _NUMBER and environ[name].isdecimal()):
            example = "1000" if values is _NUMBER else values[-1]
            raise ValueError(
                f"{name}={environ[name]} is not understood: it may be {' or '.join(values)}.\n"
                f"Correct it:  export {name}={example}    (or: unset {name})"
            )


def enabled(environ: Mapping[str, str], name: str, *, default: str = "0") -> bool:
    """Whether the 0/1 variable `name` is on. `default` holds where it is unset or empty."""
    assert RUN_TIME[name] == ("0", "1"), name
    return (environ.get(name) or default) == "1"


def choice(environ: Mapping[str, str], name: str, *, default: str) -> str:
    """The value of the variable `name`. `default` holds where it is unset or empty."""
    assert default in RUN_TIME[name], name
    return environ.get(name) or default


def number(environ: Mapping[str, str], name: str, *, default: int) -> int:
    """The number of the variable `name`. `default` holds where it is unset or empty."""
    assert RUN_TIME[name] is _NUMBER, name
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
