"""Changes other libraries when they are imported, and costs nothing where they are not.

call({"accelerate.accelerator": change})    # change(module), now or after its import
"""

import sys
import types
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

Change = Callable[[types.ModuleType], None]


def call(changes: Mapping[str, Change]) -> None:
    """Calls each function with the module of its name, as soon as that is imported."""
    missing = {}
    for name, change in changes.items():
        if name in sys.modules:
            change(sys.modules[name])
        else:
            missing[name] = change
    if missing:
        sys.meta_path.insert(0, _Finder(missing))


class _Finder:
    """A finder of modules that calls a function with a module as soon as that is imported."""

    def __init__(self, changes: dict[str, Change]) -> None:
        self._changes = changes

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        change = self._changes.pop(name, None)
        spec = PathFinder.find_spec(name, path, target) if change else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
