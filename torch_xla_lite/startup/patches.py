"""Changes torch and other libraries: each change is a row that says what it replaces, and why.

Patch("torch.nn.parallel.data_parallel", "_get_available_device_type", "...", make)

def make(original): return replacement
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from . import after_import


@dataclasses.dataclass(frozen=True)
class Patch:
    """One function, class or method of another library that is replaced.

    Attributes:
      module: where it is defined. It is replaced there, and in the modules that have imported it,
        as soon as that module is imported.
      name: in the module, such as `Trainer.train`.
      why: what is wrong without it.
      make: gives the replacement of the original.
      versions: of the library, where it is known to be there. In others that do not have it,
        nothing is changed.
    """

    module: str
    name: str
    why: str
    make: Callable[[Any], Any]
    versions: str = "all"


# All that this process has: docs/architecture.md prints it.
applied: list[Patch] = []


def apply(*tables: Iterable[Patch]) -> None:
    """Makes all changes, now or as soon as their modules are imported."""
    of_module: dict[str, list[Patch]] = {}
    for patch in itertools.chain(*tables):
        applied.append(patch)
        of_module.setdefault(patch.module, []).append(patch)
    after_import.call({name: functools.partial(_change, of_module[name]) for name in of_module})


def _change(patches: list[Patch], module: types.ModuleType) -> None:
    for patch in patches:
        _replace(patch, module)


def _replace(patch: Patch, module: types.ModuleType) -> None:
    *path, name = patch.name.split(".")
    owner = functools.reduce(lambda found, part: getattr(found, part, None), path, module)
    original = getattr(owner, name, None)
    if original is None:
        return
    changed = patch.make(original)
    if isinstance(changed, types.FunctionType):
        changed.__doc__ = changed.__doc__ or original.__doc__
    if owner is not module:
        setattr(owner, name, changed)
        return
    for other in list(sys.modules.values()):
        # Not by getattr, which would import what some libraries import late.
        if getattr(other, "__dict__", {}).get(name) is original:
            setattr(other, name, changed)
