"""Folders and files that another user may have written are refused, before anything is read."""

import os
import re
from pathlib import Path

import pytest

from torch_xla_lite.compiler import private_folder
from torch_xla_lite.compiler.private_folder import NotPrivateError

ANOTHER_USER = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


def open_and_close(base: Path) -> None:
    os.close(private_folder.open_folder(base, "ours", "programs"))


def read(folder: Path, name: str) -> bytes:
    opened = private_folder.open_folder(folder.parent, folder.name)
    try:
        with open(private_folder.open_file(opened, name), "rb") as file:
            return file.read()
    finally:
        os.close(opened)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A private folder with the entry "entry"."""
    open_and_close(tmp_path)
    (tmp_path / "ours" / "programs" / "entry").write_bytes(b"code")
    return tmp_path / "ours" / "programs"


def test_an_absent_folder_is_made_for_its_user_alone(tmp_path: Path):
    open_and_close(tmp_path / "new" / "cache")
    made = [tmp_path / "new" / "cache" / "ours", tmp_path / "new" / "cache" / "ours" / "programs"]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700, 0o700]


def test_the_base_may_be_a_link_and_open_to_all(tmp_path: Path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch").chmod(0o1777)
    (tmp_path / "cache").symlink_to("scratch")
    open_and_close(tmp_path / "cache")
    assert (tmp_path / "scratch" / "ours" / "programs").is_dir()


@pytest.mark.parametrize("mode", [0o720, 0o702])
@pytest.mark.parametrize("place", ["ours", "ours/programs"])
def test_a_folder_that_others_may_write_is_refused_with_the_command(
    place: str, mode: int, programs: Path, tmp_path: Path
):
    folder = tmp_path / place
    folder.chmod(mode)
    with pytest.raises(NotPrivateError, match=f"write to {re.escape(str(folder))}; run  chmod"):
        open_and_close(tmp_path)
    assert folder.stat().st_mode & 0o777 == mode


@as_root
@pytest.mark.parametrize("place", ["ours", "ours/programs"])
def test_the_folder_of_another_user_is_refused(place: str, programs: Path, tmp_path: Path):
    os.chown(tmp_path / place, ANOTHER_USER, ANOTHER_USER)
    with pytest.raises(NotPrivateError, match=f"{place} belongs to another user .65534.; set"):
        open_and_close(tmp_path)


@pytest.mark.parametrize("place", ["ours", "ours/programs"])
def test_a_link_is_refused_and_its_target_stays_as_it_is(
    place: str, programs: Path, tmp_path: Path
):
    (tmp_path / place).rename(tmp_path / "target")
    (tmp_path / place).symlink_to(tmp_path / "target")
    (tmp_path / "target").chmod(0o755)
    with pytest.raises(NotPrivateError, match=f"{place} is a link; set another folder"):
        open_and_close(tmp_path)
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o755


def test_the_command_quotes_the_folder(tmp_path: Path):
    (tmp_path / "a b" / "ours").mkdir(parents=True)
    (tmp_path / "a b" / "ours").chmod(0o777)
    with pytest.raises(NotPrivateError, match=r"run  chmod go-w '[^']*/a b/ours'$"):
        open_and_close(tmp_path / "a b")


def test_an_entry_of_the_user_is_read(programs: Path):
    assert read(programs, "entry") == b"code"


@as_root
def test_an_entry_of_another_user_is_refused(programs: Path):
    os.chown(programs / "entry", ANOTHER_USER, ANOTHER_USER)
    with pytest.raises(NotPrivateError):
        read(programs, "entry")


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_entry_that_others_may_write_is_refused(mode: int, programs: Path):
    (programs / "entry").chmod(mode)
    with pytest.raises(NotPrivateError):
        read(programs, "entry")


def test_a_link_in_the_place_of_an_entry_is_refused(programs: Path):
    (programs / "entry").rename(programs / "target")
    (programs / "entry").symlink_to("target")
    with pytest.raises(OSError, match="entry"):
        read(programs, "entry")


def test_a_pipe_in_the_place_of_an_entry_is_refused_without_a_wait(programs: Path):
    (programs / "entry").unlink()
    os.mkfifo(programs / "entry")
    with pytest.raises(NotPrivateError):
        read(programs, "entry")
