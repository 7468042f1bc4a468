"""`doctor`: what it finds about builds."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from bazel.pybuild.cache import remote_cache
from bazel.pybuild.commands import doctor
from bazel.pybuild.commands.finding import MARK, Finding
from bazel.pybuild.options import Options
from bazel.pybuild.variables import Switch
from test.build.toolkit import write_toolkit
from test.cache.servers import needs_nginx, server

_GIB = 1 << 30


@pytest.mark.nightly
@needs_nginx
def test_latency_and_the_right_to_write_are_told(tmp_path: Path):
    with server(tmp_path) as cache:
        reader = remote_cache.describe(cache.options(reads=cache.read_token))
        writer = remote_cache.describe(cache.options(writes=cache.write_token))
        pretender = remote_cache.describe(cache.options(writes=cache.read_token))
        variables = {**os.environ, **cache.variables(writes=True)}
        # `torch-xla-lite doctor` asks this way.
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
    assert f'\n{MARK}["remote cache", true, "{answers}' in asked.stdout


def _finding(
    name: str, options: Options | None = None, environ: Mapping[str, str] = os.environ
) -> doctor.Finding:
    findings = doctor.inspect(options or Options(), environ)
    return next(finding for finding in findings if finding.name == name)


def test_each_part_that_a_build_needs_is_named_and_fine_here():
    found = {finding.name: finding for finding in doctor.inspect(Options(), os.environ)}
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
    found = next(doctor.inspect(options, environ))
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


@pytest.mark.nightly
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
    found = doctor._space(cache)
    found = Finding("", True, found) if isinstance(found, str) else found
    assert found.ok == ok
    assert found.detail.startswith(f"{free / _GIB:.1f} GiB are free for ")
    assert found.detail.endswith(str(cache)) == (full == "cache")
    assert found.remedy.endswith("torch-xla-lite cache --clear") == advises
