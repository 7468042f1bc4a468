"""Archives at the limits of disks and of time; wheel_test.py and sdist_test.py look into others."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bazel.pybuild.dist import archive


@contextmanager
def _full_disk() -> Iterator[None]:
    """A disk that takes no more than a hundred bytes of a file, as far as this process can tell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("write", [archive.write_zip, archive.write_tar])
def test_a_full_disk_is_named_by_its_file_and_left_as_it_was(
    tmp_path: Path, write: Callable[..., None]
):
    (tmp_path / "archive").write_text("older")
    members = {f"file{number}": bytes(range(256)) for number in range(9)}
    with pytest.raises(OSError) as error, _full_disk():
        write(tmp_path / "archive", members)
    assert error.value.filename == str(tmp_path / "archive")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["older"]


@pytest.mark.parametrize("write", [archive.write_zip, archive.write_tar])
def test_a_time_that_is_too_late_for_an_archive_becomes_the_last_one(
    tmp_path: Path, write: Callable[..., None]
):
    for name, time_s in ("last", 2**32 - 1), ("later", 2**40):
        write(tmp_path / name, {"file": b""}, time_s=time_s)
    assert (tmp_path / "last").read_bytes() == (tmp_path / "later").read_bytes()
