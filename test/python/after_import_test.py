"""torch_xla_lite/startup/after_import.py."""

import importlib
import sys
import types
from pathlib import Path

import pytest

from torch_xla_lite.startup import after_import


def change(module: types.ModuleType) -> None:
    module.number = 2  # type: ignore[attr-defined]


def test_a_module_is_changed_as_soon_as_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "imported_late.py").write_text("number = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    after_import.call({"imported_late": change})
    assert importlib.import_module("imported_late").number == 2


def test_a_module_that_is_imported_is_changed_at_once(monkeypatch: pytest.MonkeyPatch):
    module = types.ModuleType("imported_before")
    monkeypatch.setitem(sys.modules, "imported_before", module)
    after_import.call({"imported_before": change})
    assert module.number == 2
