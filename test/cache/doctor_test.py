"""`doctor`: what it finds about builds, and what it repairs in the disk cache."""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from bazel.pybuild.cache import disk_cache, remote_cache
from bazel.pybuild.commands import doctor
from bazel.pybuild.options import Options
from bazel.pybuild.variables import Switch
from bazel.pytest_plugin import mostly_nightly
from test.build.toolkit import write_toolkit
from test.cache.servers import needs_nginx, server

_GIB = 1 << 30


@needs_nginx
def test_latency_and_the_right_to_write_are_told(tmp_path: Path):
    with server(tmp_path, "http") as cache:
        reader = remote_cache.describe(cache.options(reads=cache.read_token))
        writer = remote_cache.describe(cache.options(writes=cache.write_token))
        pretender = remote_cache.describe(cache.options(writes=cache.read_token))
        variables = {**os.environ, **cache.variables(writes=True)}
        # As `torch-xla-lite doctor` asks.
        asked = subprocess.run(
            [sys.executable, "-m", "bazel.pybuild.commands.doctor"],
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
    assert f'["remote cache", true, "{answers}' in asked.stdout


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


def _found(folder: Path, *, repair: bool = False) -> dict[str, doctor.Finding]:
    findings = doctor.inspect(_options(folder), os.environ, repair=repair)
    return {finding.name: finding for finding in findings}


def _finding(
    name: str, options: Options | None = None, environ: Mapping[str, str] = os.environ
) -> doctor.Finding:
    findings = doctor.inspect(options or Options(), environ, repair=False)
    return next(finding for finding in findings if finding.name == name)


def test_a_whole_disk_cache_is_healthy(tmp_path: Path):
    _entries(tmp_path)
    assert _found(tmp_path)["disk cache"] == doctor.Finding(
        "disk cache", True, f"no entry of {tmp_path} is damaged"
    )


def test_each_part_that_a_build_needs_is_named_and_fine_here(tmp_path: Path):
    found = _found(tmp_path)
    # A sandbox is not the tree that is installed, and its environment cannot be written to.
    found.pop("editable install")
    assert [name for name, finding in found.items() if not finding.ok] == []
    assert Path(found["Bazel"].detail).is_file()
    assert "C++20" in found["compiler"].detail
    assert "pybind11" in found["packages"].detail
    assert "GiB are free" in found["disk space"].detail


@pytest.mark.parametrize(
    ("name", "variables", "remedy"),
    [
        ("Bazel", {"PATH": "/nowhere"}, "Install one"),
        ("compiler", {"CC": "/nowhere/gcc"}, "unset CC"),
        ("linker", {"PATH": "/nowhere"}, "apt-get install binutils"),
    ],
)
def test_what_is_missing_is_found_with_the_command_that_mends_it(
    name: str, variables: dict[str, str], remedy: str
):
    assert remedy in _finding(name, environ={**os.environ, **variables}).remedy


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/false\n", "exits with 1"),
        ("#!/bin/sh\necho bazel is not here\nexit 127\n", "bazel is not here"),
        ("#!/bin/sh\necho make 4.3\n", "make 4.3"),
        ("#!/bin/sh\nsleep 300\n", "nothing within 1 s"),
        ("#!/nowhere/sh\n", "No such file or directory"),
    ],
    ids=["silent", "failure", "another_program", "hangs", "no_interpreter"],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_program_that_is_not_bazel_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str, named: bool
):
    monkeypatch.setattr(doctor, "_BAZEL_TIMEOUT_S", 1)
    program = tmp_path / "bazel"
    program.write_text(script)
    program.chmod(0o755)
    options = Options(bazel=str(program) if named else None)
    environ = {**os.environ, "PATH": f"{tmp_path}:/bin"}
    found = next(doctor.inspect(options, environ, repair=False))
    assert (found.name, found.ok) == ("Bazel", False)
    assert said in found.detail
    assert ("unset TORCH_XLA_LITE_BAZEL" if named else f"{program} --version") in found.remedy


@pytest.mark.parametrize(
    ("module", "function", "value", "problem"),
    [
        (sysconfig, "get_path", "/nowhere", "there is no /nowhere/Python.h"),
        (os, "getuid", 4242, "uid 4242 has no passwd entry"),
    ],
    ids=["headers", "user"],
)
def test_what_a_build_refuses_is_a_problem_for_the_doctor_too(
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    function: str,
    value: str | int,
    problem: str,
):
    environ = {name: text for name, text in os.environ.items() if name != "USER"}
    monkeypatch.setattr(module, function, lambda *_: value)
    found = _finding("packages", environ=environ)
    assert not found.ok
    assert problem in found.detail


def test_running_servers_of_bazel_are_counted_and_named():
    # Bazel names the process of a server after the folder of its tree.
    trees = [b"one-tree", b"gr\xfcn"]
    sleep = str(shutil.which("sleep"))
    servers = [subprocess.Popen([b"bazel(%b)" % tree, "300"], executable=sleep) for tree in trees]
    try:
        found = _finding("Bazel's servers")
    finally:
        for server in servers:
            server.kill()
            server.wait()
    count, _, names = found.detail.partition(" run, for ")
    assert found.ok
    assert {"one-tree", "gr\ufffdn"} <= set(names.split(", "))
    assert int(count) == len(names.split(", "))


def test_a_cuda_toolkit_that_fails_is_a_problem(tmp_path: Path):
    nvcc = write_toolkit(tmp_path)
    options = Options(cuda=Switch.ON, cuda_home=str(tmp_path))
    assert "toolkit 13.0.88" in _finding("CUDA toolkit", options).detail
    nvcc.write_text("#!/bin/sh\nexit 1\n")
    found = _finding("CUDA toolkit", options)
    assert not found.ok
    assert f"{nvcc} (CUDA_HOME) does not run" in found.detail
    assert "export USE_CUDA=0" in found.remedy


@pytest.mark.parametrize(
    ("free", "ok", "advises"),
    [(6 * _GIB, True, False), (5 * _GIB, True, True), (1 * _GIB, False, True)],
    ids=["ok", "warn", "bad"],
)
@pytest.mark.parametrize("full", ["tree", "cache"])
def test_little_disk_space_is_a_warning_and_then_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str, free: int, ok: bool, advises: bool
):
    cache = tmp_path / "torch_xla_lite"
    cache.mkdir()

    def usage(folder: Path) -> SimpleNamespace:
        return SimpleNamespace(free=free if (folder == cache) == (full == "cache") else 9 * _GIB)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    # Without programs, the checks before this one take no time.
    environ = {"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path)}
    found = _finding("disk space", environ=environ)
    assert found.ok == ok
    assert found.detail.startswith(f"{free / _GIB:.1f} GiB are free for ")
    assert found.detail.endswith(str(cache)) == (full == "cache")
    assert found.remedy.endswith("torch-xla-lite cache --clear") == advises


def _flip(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


_DAMAGES = [lambda _: b"", lambda content: content[:-1], _flip]


@pytest.mark.parametrize("damage", mostly_nightly(_DAMAGES, [_flip]))
@pytest.mark.parametrize("which", mostly_nightly([0, 1], [0]))
def test_a_damaged_entry_is_named_and_removed_on_request(
    tmp_path: Path,
    which: int,
    damage: Callable[[bytes], bytes],
):
    entries = _entries(tmp_path)
    entry, other = entries[which], entries[1 - which]
    entry.write_bytes(damage(entry.read_bytes()))
    found = _found(tmp_path)["disk cache"]
    assert not found.ok
    assert f"such as {entry}" in found.detail
    assert found.remedy.endswith("doctor --repair")
    assert _found(tmp_path, repair=True)["disk cache"].ok
    assert not entry.exists()
    assert other.exists()


def test_what_cannot_be_read_is_a_problem_and_the_other_checks_go_on(tmp_path: Path):
    blob, _ = _entries(tmp_path)
    blob.unlink()
    blob.symlink_to(blob)
    found = _found(tmp_path)
    assert not found["disk cache"].ok
    assert str(blob) in found["disk cache"].detail
    assert found["disk cache"].remedy == "Remove the cause, and run the command again."
    assert found["disk space"].ok


def test_a_damaged_blob_is_replaced_by_the_output_of_the_same_name(tmp_path: Path):
    blob, _ = _entries(tmp_path / "cache")
    blob.write_bytes(b"blxb")
    (tmp_path / "out.o").write_bytes(b"blob")
    made = {"out.o": blob.name, "other.o": "0" * 64, "empty": ""}
    assert disk_cache.repair(tmp_path / "cache", made, tmp_path) == [blob]
    assert blob.read_bytes() == b"blob"
    assert disk_cache.repair(tmp_path / "cache", made, tmp_path) == []


def test_the_logs_of_all_servers_of_a_tree_are_redacted(tmp_path: Path):
    """Bazel's link leads to the log of the server that runs, and those before have left theirs."""
    base = tmp_path / "base"
    (base / "execroot/tree/bazel-out").mkdir(parents=True)
    (tmp_path / "bazel-out").symlink_to(base / "execroot/tree/bazel-out")
    logs = [base / "java.log.host.1", base / "java.log.host.2"]
    for log in logs:
        log.write_text("Authorization=Bearer s3cret\n")
    (base / "java.log").symlink_to(logs[1])
    remote_cache.redact([], tmp_path)
    assert [log.read_text() for log in logs] == ["Authorization=Bearer ******\n"] * 2
    assert base.stat().st_mode & 0o077 == 0
