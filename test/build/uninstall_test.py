"""What was installed from a wheel goes, and nothing else does."""

from pathlib import Path

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.install import uninstall


def _install(site: Path, name: str, *files: str) -> Path:
    info = site / f"{name}-0.1.0.dist-info"
    info.mkdir(parents=True)
    for file in files:
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text("")
    listed = [*files, f"{info.name}/RECORD"]
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in listed))
    return info


def test_files_compiled_files_and_empty_folders_are_removed(tmp_path: Path):
    info = _install(tmp_path, "torch_xla_lite", "torch_xla_lite/a.py", "torch_xla_lite/lib/b.so")
    compiled = tmp_path / "torch_xla_lite" / "__pycache__" / "a.cpython-311.pyc"
    compiled.parent.mkdir()
    compiled.write_text("")
    uninstall.remove([info])
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_somebody_else_has_put_there_stays(tmp_path: Path):
    info = _install(tmp_path, "torch_xla_lite", "torch_xla_lite/a.py")
    other = tmp_path / "torch_xla_lite" / "notes.txt"
    other.write_text("")
    uninstall.remove([info])
    assert list(tmp_path.rglob("*")) == [other.parent, other]


def test_commands_outside_of_the_folder_of_packages_are_removed_too(tmp_path: Path):
    site = tmp_path / "lib" / "site-packages"
    info = _install(site, "torch_xla_lite", "torch_xla_lite/a.py", "../../bin/torch-xla-lite")
    uninstall.remove([info])
    assert not (tmp_path / "bin" / "torch-xla-lite").exists()
    assert (tmp_path / "bin").exists()


def test_it_says_what_is_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    infos = [_install(tmp_path, name) for name in ("torch_xla_lite", "torch_xla_lite_lib")]
    uninstall.remove(infos)
    assert "torch_xla_lite and torch_xla_lite_lib, installed from a wheel, are removed" in (
        capsys.readouterr().out
    )


def test_what_cannot_be_removed_is_said_with_the_command(tmp_path: Path):
    info = _install(tmp_path, "torch_xla_lite", "torch_xla_lite/a.py")
    (info / "RECORD").write_text("torch_xla_lite,,\n")
    with pytest.raises(BuildError, match="pip uninstall --yes torch_xla_lite"):
        uninstall.remove([info])


def test_a_remainder_without_a_list_of_files_is_removed_itself(tmp_path: Path):
    info = _install(tmp_path, "torch_xla_lite")
    (info / "RECORD").unlink()
    uninstall.remove([info])
    assert not info.exists()


def test_the_list_of_files_is_there_until_all_others_are_gone(tmp_path: Path):
    info = _install(tmp_path, "torch_xla_lite")
    # In the order in which pip writes it.
    (info / "RECORD").write_text(f"{info.name}/RECORD,,\ntorch_xla_lite/a.py,,\n")
    (tmp_path / "torch_xla_lite" / "a.py").mkdir(parents=True)
    with pytest.raises(BuildError):
        uninstall.remove([info])
    assert (info / "RECORD").exists()


def test_a_file_outside_of_the_environment_stays(tmp_path: Path):
    site = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    inside, outside = tmp_path / "venv" / "share" / "ours", tmp_path / "theirs"
    info = _install(site, "torch_xla_lite", "../../../share/ours", str(outside))
    uninstall.remove([info])
    assert not inside.exists()
    assert outside.exists()
