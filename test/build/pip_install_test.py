"""`setup.py install` refuses what pip would do wrong."""

import sys
from pathlib import Path

import pytest

from bazel.pybuild.commands import pip_install
from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages
from bazel.pybuild.options import WheelKind


@pytest.mark.parametrize(
    ("installed", "kind"),
    [
        (["torch-xla-lite-lib"], WheelKind.ALL),
        (["torch-xla-lite-lib", "torch-xla-lite-python"], WheelKind.ALL),
        (["torch-xla-lite"], WheelKind.PYTHON),
        (["torch-xla-lite"], WheelKind.LIBRARY),
    ],
)
def test_files_of_another_wheel_are_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: list[str], kind: WheelKind
):
    for name in installed:
        (tmp_path / f"{name.replace('-', '_')}-0.1.0.dist-info").mkdir()
    monkeypatch.setattr(packages, "search_path", lambda: [str(tmp_path)])
    with pytest.raises(BuildError) as error:
        pip_install.install(tmp_path, kind)
    command = f"{sys.executable} -m pip uninstall --yes {' '.join(installed)}"
    assert error.value.remedy == f"Uninstall it first:  {command}"
