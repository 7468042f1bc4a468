"""Translates TORCH_CUDA_ARCH_LIST into the GPU codes that nvcc compiles.

    codes("8.0;9.0+PTX", listed, accepts)      # ("sm_80", "sm_90", "compute_90")
    codes("Hopper", listed, accepts)           # ("sm_90", "compute_90")
    codes(None, listed, accepts)               # those of COMMON that nvcc lists

The list has PyTorch's format: numbers or names, separated by semicolons or spaces. sm_90 is machine
code for one kind of GPU; compute_90 is PTX, which a driver compiles for later GPUs.
"""

import re
from collections.abc import Callable, Iterable

from bazel.pybuild.errors import BuildError

# GPUs in use, from Turing to Blackwell; the GPU of the building machine does not matter.
COMMON = ("7.5", "8.0", "8.6", "9.0", "10.0", "12.0")

# Names as PyTorch understands them.
_NAMES = {
    "Maxwell": "5.0;5.2+PTX",
    "Maxwell+Tegra": "5.3",
    "Pascal": "6.0;6.1+PTX",
    "Volta": "7.0+PTX",
    "Volta+Tegra": "7.2",
    "Turing": "7.5+PTX",
    "Ampere": "8.0;8.6+PTX",
    "Ampere+Tegra": "8.7",
    "Ada": "8.9+PTX",
    "Hopper": "9.0+PTX",
    "Blackwell": "10.0;10.3;12.0;12.1+PTX",
    "Blackwell+Tegra": "11.0",
}
_NUMBER = re.compile(r"(\d+)\.(\d)([af]?)(\+PTX)?")
_EXAMPLE = "TORCH_CUDA_ARCH_LIST='8.0;9.0+PTX'"


def codes(
    text: str | None, listed: Iterable[str], accepts: Callable[[str], bool]
) -> tuple[str, ...]:
    """The codes for nvcc's -gencode options.

    Args:
      text: value of TORCH_CUDA_ARCH_LIST; None for the default.
      listed: the output of `nvcc --list-gpu-code`, such as sm_90.
      accepts: whether nvcc accepts a code that it does not list, such as sm_90a.

    Returns:
      Machine code first, then PTX, each sorted by number and without duplicates.

    Raises:
      BuildError: an entry is not an architecture, or this nvcc does not support it.
    """
    known = sorted((code for code in set(listed) if code.startswith("sm_")), key=_order)
    found: set[str] = set()
    for entry in _entries(text, known):
        match = _NUMBER.fullmatch(entry)
        if not match:
            raise _unreadable(entry)
        major, minor, suffix, ptx = match.groups()
        number = f"{major}{minor}{suffix}"
        if f"sm_{number}" not in known and not (suffix and accepts(f"sm_{number}")):
            raise _unknown(entry, known)
        found.add(f"sm_{number}")
        if ptx:
            found.add(f"compute_{number}")
    return tuple(sorted(found, key=_order))


def _entries(text: str | None, known: list[str]) -> list[str]:
    """The list with names and groups replaced by numbers."""
    everything = [f"{code[3:-1]}.{code[-1]}" for code in known]
    groups = {
        "all": everything,
        "common": [number for number in COMMON if number in everything],
    }
    entries: list[str] = []
    for entry in re.split(r"[;\s]+", (text or "").strip("; \t\n") or "Common"):
        numbers = groups.get(entry.lower())
        if numbers:
            # As in PyTorch, the last one also has PTX, for later GPUs.
            entries += [*numbers[:-1], numbers[-1] + "+PTX"]
        elif entry in _NAMES:
            entries += _NAMES[entry].split(";")
        else:
            entries.append(entry)
    return entries


def _order(code: str) -> tuple[bool, int, str]:
    kind, _, number = code.partition("_")
    digits = number.rstrip("af")
    return kind == "compute", int(digits), number


def _unreadable(entry: str) -> BuildError:
    names = ", ".join(["All", "Common", *_NAMES])
    return BuildError(
        f"TORCH_CUDA_ARCH_LIST: {entry!r} is not a GPU architecture. Use numbers such as 8.0, 9.0a "
        f"or 9.0+PTX,\nor these names: {names}.",
        f"Correct it, for example:  export {_EXAMPLE}",
    )


def _unknown(entry: str, known: list[str]) -> BuildError:
    numbers = " ".join(f"{code[3:-1]}.{code[-1]}" for code in known)
    return BuildError(
        f"TORCH_CUDA_ARCH_LIST: this nvcc cannot compile for {entry}. It knows {numbers}.",
        f"Leave it out, for example:  export {_EXAMPLE}",
    )
