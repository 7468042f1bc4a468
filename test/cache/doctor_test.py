"""`setup.py doctor`: what it says about both caches, and what it repairs."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bazel.pybuild.commands import doctor
from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import disk_cache, remote_cache
from bazel.pybuild.options import Options
from test.cache.servers import needs_nginx, server


@needs_nginx
def test_latency_and_the_right_to_write_are_told(tmp_path: Path):
    with server(tmp_path, "http") as cache:
        reader = remote_cache.describe(cache.options(reads=cache.read_token))
        writer = remote_cache.describe(cache.options(writes=cache.write_token))
        pretender = remote_cache.describe(cache.options(writes=cache.read_token))
        variables = {**os.environ, **cache.variables(writes=True)}
        # As `torch-xla-lite doctor` asks.
        asked = subprocess.run(
            [sys.executable, "-m", "bazel.pybuild.machine.remote_cache"],
            cwd=os.getcwd(),
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        )
    nobody = remote_cache.describe(cache.options())
    answers = f"{cache.url} answers in "
    assert reader[0] and reader[1].startswith(answers)
    assert reader[1].endswith(" ms; you may read, not write")
    assert writer[0] and writer[1].endswith(" ms; you may read and write")
    assert not pretender[0] and pretender[1].endswith(
        "not write: it does not store results: it answers 403 Forbidden"
    )
    assert nobody == (False, f"{cache.url} is not used: Connection refused")
    assert asked.stdout.startswith(answers)


def _entries(folder: Path) -> tuple[Path, Path]:
    """A disk cache with a blob, and the result of an action that only printed something."""
    name = hashlib.sha256(b"blob").hexdigest()
    blob = folder / "cas" / name[:2] / name
    result = folder / "ac" / "87" / ("87" + "0" * 62)
    for file, content in (
        (blob, b"blob"),
        (result, b"\x32\x45\n\x40" + b"a" * 64 + b"\x10\xb1\x01"),
    ):
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
    return blob, result


def _options(folder: Path) -> Options:
    return Options(build_options=(f"--disk_cache={folder}",))


def test_a_whole_disk_cache_is_healthy(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    _entries(tmp_path)
    doctor.check(_options(tmp_path), {}, repair=False)
    assert f"ok       disk cache: no entry of {tmp_path} is damaged" in capsys.readouterr().out


def _flip(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


@pytest.mark.parametrize("damage", [lambda _: b"", lambda content: content[:-1], _flip])
@pytest.mark.parametrize("which", [0, 1])
def test_a_damaged_entry_is_named_and_removed_on_request(
    tmp_path: Path,
    which: int,
    damage: Callable[[bytes], bytes],
    capsys: pytest.CaptureFixture[str],
):
    entries = _entries(tmp_path)
    entry, other = entries[which], entries[1 - which]
    entry.write_bytes(damage(entry.read_bytes()))
    with pytest.raises(BuildError, match="doctor --repair"):
        doctor.check(_options(tmp_path), {}, repair=False)
    assert f"such as {entry}" in capsys.readouterr().out
    doctor.check(_options(tmp_path), {}, repair=True)
    assert not entry.exists()
    assert other.exists()


def test_a_damaged_blob_is_replaced_by_the_output_of_the_same_name(tmp_path: Path):
    blob, _ = _entries(tmp_path / "cache")
    blob.write_bytes(b"blxb")
    (tmp_path / "out.o").write_bytes(b"blob")
    made = {"out.o": blob.name, "other.o": "0" * 64, "empty": ""}
    assert disk_cache.repair(tmp_path / "cache", made, tmp_path) == [blob]
    assert blob.read_bytes() == b"blob"
    assert disk_cache.repair(tmp_path / "cache", made, tmp_path) == []
