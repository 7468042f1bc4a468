"""Changes other libraries when they are imported, and costs nothing where they are not.

call({"accelerate.accelerator": change})    # change(module), now or after its import
"""

import sys
import types
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
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
        if change is None:
            return None
        # Asks the others, of which another one of this class may change the module, too.
        finders = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in finders)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
