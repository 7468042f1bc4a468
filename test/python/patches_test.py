"""torch_xla_lite/startup/patches.py."""

import importlib
import sys
import types
from pathlib import Path

import pytest

from test.models import libraries
from torch_xla_lite.startup import patches
from torch_xla_lite.startup.patches import Patch

_APPLIED = [*patches.applied]


def twice(original):
    return lambda *args: 2 * original(*args)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "patched.py").write_text(
        "def number(): return 1\nclass Machine:\n    def count(self): return 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    yield "patched"
    sys.modules.pop("patched", None)


def test_several_patches_change_a_module_when_it_is_imported(library: str):
    patches.apply([Patch(library, "number", "", twice), Patch(library, "Machine.count", "", twice)])
    patches.apply([Patch(library, "number", "", twice)])
    module = importlib.import_module(library)
    assert module.number() == 4
    assert module.Machine().count() == 6


def test_who_has_imported_a_function_gets_its_replacement(library: str, monkeypatch):
    user = types.ModuleType("user")
    user.number = importlib.import_module(library).number  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "user", user)
    patches.apply([Patch(library, "number", "", twice)])
    assert user.number() == 2


def test_a_version_without_the_function_is_not_changed(library: str):
    patches.apply([Patch(library, "Missing.name", "", twice)])
    assert importlib.import_module(library).number() == 1


@pytest.mark.nightly
@pytest.mark.parametrize("patch", _APPLIED, ids=lambda patch: f"{patch.module}.{patch.name}")
def test_the_installed_library_has_what_is_replaced(patch: Patch):
    if patch.module.startswith("pytorch_lightning"):
        pytest.skip("its other name is tested")
    found = libraries.require(patch.module)
    for part in patch.name.split("."):
        found = getattr(found, part)
