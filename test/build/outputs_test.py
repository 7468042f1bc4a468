"""Built files reach the package whole, and only when they differ."""

import os
from pathlib import Path

import pytest

from bazel.pybuild.call.events import Output
from bazel.pybuild.errors import BuildError
from bazel.pybuild.install import outputs

_PATH = "torch_xla_lite/lib/libx.so"


def _built(tmp_path: Path, content: bytes, path: str = _PATH) -> Output:
    file = tmp_path / "bazel-out" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_bytes(content)
    # Bazel's outputs have this mode.
    file.chmod(0o555)
    return Output(path, file)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


def test_a_changed_file_is_another_file_so_that_who_has_it_open_keeps_the_old_one(
    tmp_path: Path, root: Path
):
    outputs.install([_built(tmp_path, b"one")], root)
    with (root / _PATH).open("rb") as opened:
        outputs.install([_built(tmp_path, b"two")], root)
        assert opened.read() == b"one"
    assert (root / _PATH).read_bytes() == b"two"


def test_a_file_that_was_made_again_with_the_same_content_is_not_touched(
    tmp_path: Path, root: Path
):
    outputs.install([_built(tmp_path, b"one")], root)
    before = (root / _PATH).stat()
    assert outputs.install([_built(tmp_path, b"one")], root) == {_PATH: False}
    after = (root / _PATH).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_repeated_install_writes_nothing(tmp_path: Path, root: Path):
    built = _built(tmp_path, b"one")
    outputs.install([built], root)
    before = {file: file.stat().st_ctime_ns for file in root.rglob("*")}
    outputs.install([built], root)
    assert {file: file.stat().st_ctime_ns for file in root.rglob("*")} == before


def test_what_the_check_refuses_is_not_installed(tmp_path: Path, root: Path):
    def refuse(new: list[Output]) -> None:
        raise BuildError(f"{new[0].path} is bad.", "Mend it.")

    outputs.install([_built(tmp_path, b"one")], root)
    with pytest.raises(BuildError, match=r"libx\.so is bad"):
        outputs.install([_built(tmp_path, b"two")], root, refuse)
    assert [file.read_bytes() for file in (root / _PATH).parent.iterdir()] == [b"one"]


def test_only_what_is_new_is_checked(tmp_path: Path, root: Path):
    checked: list[str] = []
    same = _built(tmp_path, b"one", "torch_xla_lite/same.so")
    outputs.install([_built(tmp_path, b"one"), same], root)
    for content in (b"two", b"two"):
        outputs.install(
            [_built(tmp_path, content), same], root, lambda new: checked.extend(o.path for o in new)
        )
    assert checked == [_PATH]


def test_a_file_that_is_no_longer_built_is_removed(tmp_path: Path, root: Path):
    old = _built(tmp_path, b"old", "torch_xla_lite/old.so")
    outputs.install([old, _built(tmp_path, b"one")], root)
    outputs.install([_built(tmp_path, b"one")], root)
    assert not (root / "torch_xla_lite/old.so").exists()


def test_when_one_file_cannot_be_copied_none_is_replaced(tmp_path: Path, root: Path):
    first, second = _built(tmp_path, b"1", "p/a.so"), _built(tmp_path, b"1", "p/b.so")
    outputs.install([first, second], root)
    first, second = _built(tmp_path, b"22", "p/a.so"), _built(tmp_path, b"22", "p/b.so")
    # A folder in the way of the temporary file of the second.
    (root / "p" / ".b.so.new").mkdir()
    with pytest.raises(OSError, match="directory"):
        outputs.install([first, second], root)
    assert [(root / path).read_bytes() for path in ("p/a.so", "p/b.so")] == [b"1", b"1"]


def test_shared_objects_can_be_run_and_python_files_need_not(tmp_path: Path, root: Path):
    outputs.install([_built(tmp_path, b"x"), _built(tmp_path, b"x", "p/info.py")], root)
    assert os.access(root / _PATH, os.X_OK)
    assert not os.access(root / "p/info.py", os.X_OK)


def test_a_file_outside_of_the_tree_is_not_removed_when_it_is_no_longer_built(
    tmp_path: Path, root: Path
):
    outputs.install([_built(tmp_path, b"old", "torch_xla_lite/lib/old.so")], root)
    (root / "torch_xla_lite" / "lib").rename(tmp_path / "moved")
    (root / "torch_xla_lite" / "lib").symlink_to(tmp_path / "moved")
    outputs.install([_built(tmp_path, b"one", "torch_xla_lite/_XLAC.so")], root)
    assert (tmp_path / "moved" / "old.so").read_bytes() == b"old"


def test_nothing_is_written_through_a_link_to_another_folder(tmp_path: Path, root: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "torch_xla_lite").mkdir()
    (root / "torch_xla_lite" / "lib").symlink_to(elsewhere)
    with pytest.raises(BuildError, match="is a link to a folder outside this tree") as error:
        outputs.install([_built(tmp_path, b"one")], root)
    assert error.value.remedy == f"Remove the link:  rm {root / 'torch_xla_lite' / 'lib'}"
    assert not list(elsewhere.iterdir())


def test_a_file_with_other_content_but_the_size_and_time_of_before_is_replaced(
    tmp_path: Path, root: Path
):
    built = _built(tmp_path, b"one")
    outputs.install([built], root)
    times = (root / _PATH).stat()
    (root / _PATH).write_bytes(b"two")
    os.utime(root / _PATH, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert outputs.install([built], root) == {_PATH: True}
    assert (root / _PATH).read_bytes() == b"one"


def test_a_copy_elsewhere_leaves_the_tree_and_its_record_alone(tmp_path: Path, root: Path):
    outputs.install([_built(tmp_path, b"one")], root)
    before = {file: file.stat().st_ctime_ns for file in root.rglob("*")}
    elsewhere = tmp_path / "wheel"
    assert outputs.copy([_built(tmp_path, b"two")], elsewhere) == {_PATH: True}
    assert (elsewhere / _PATH).read_bytes() == b"two"
    assert {file: file.stat().st_ctime_ns for file in root.rglob("*")} == before
