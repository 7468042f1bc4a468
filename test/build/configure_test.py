"""What Bazel is told of this machine."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import configure, cuda, find_bazel, packages
from bazel.pybuild.options import PREFIX, Options, Switch

_NO_CUDA = cuda.Cuda(False, None, (), "off: for a test")


def _settings(environ: dict[str, str], *flags: str) -> list[str]:
    installed = packages.installed(packages.BUILT_AGAINST, packages.search_path())
    return configure.settings(installed, _NO_CUDA, frozenset(flags), environ)


def _value(lines: list[str], option: str) -> str:
    words = [word for line in lines if not line.startswith("#") for word in shlex.split(line)]
    return next(word for word in words if word.startswith(option + "=")).removeprefix(option + "=")


def test_the_interpreter_is_this_one_whatever_it_was_called():
    assert Path(configure.python_executable()).samefile(sys.executable)
    assert Path(configure.python_executable()).name in ("python", "python3")


def test_repository_rules_learn_what_they_depend_on():
    lines = _settings(dict(os.environ))
    rules = [line for line in lines if f"--repo_env={PREFIX}" in line]
    names = ["PYTHON", "FINGERPRINT", "CUDA_EVIDENCE", "CUDA_PACKAGED", "AARCH64"]
    assert [line.split("=")[1] for line in rules] == [PREFIX + name for name in names]
    # Every command, not only `build`: a `bazel query` without them would fetch everything again.
    assert all(line.startswith("common ") for line in rules)


def test_the_disk_cache_is_in_the_cache_folder_of_the_user(tmp_path: Path):
    lines = _settings({"XDG_CACHE_HOME": str(tmp_path / "with space")})
    expected = tmp_path / "with space" / "torch_xla_lite" / "bazel"
    assert _value(lines, "--disk_cache") == str(expected)


def test_a_relative_cache_folder_is_ignored(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/user")
    expected = Path("/home/user/.cache/torch_xla_lite")
    assert configure.cache_home({"XDG_CACHE_HOME": "cache"}) == expected


def test_a_user_without_a_home_is_asked_for_a_folder(monkeypatch: pytest.MonkeyPatch):
    # As for one that the system does not know.
    monkeypatch.setattr("os.path.expanduser", str)
    with pytest.raises(BuildError, match="has no home folder") as error:
        configure.cache_home({})
    assert error.value.remedy.endswith("export HOME=...")


def test_a_package_that_was_uninstalled_since_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "requirements.txt").write_text("")
    program = tmp_path / "bazel"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = packages.installed(packages.BUILT_AGAINST, packages.search_path())
    site = tmp_path / "site"
    site.mkdir()
    for package in found.values():
        (site / package.info.name).symlink_to(package.info)
    monkeypatch.setattr(packages, "search_path", lambda: [str(site)])
    monkeypatch.setattr(packages, "own_folders", lambda: [str(site)])

    def ensure() -> bool:
        bazel = find_bazel.Bazel(program, False)
        options = Options(cuda=Switch.OFF)
        environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
        return configure.ensure(tmp_path, bazel, options, environ).written

    assert ensure()
    assert not ensure()
    (site / found["torch"].info.name).unlink()
    with pytest.raises(BuildError, match="torch is not installed"):
        ensure()


def test_an_old_bazel_is_told_nothing_that_it_would_reject():
    lines = "\n".join(_settings({}))
    assert "bzlmod" not in lines
    assert "gc_max_size" not in lines


def test_a_bazel_with_a_binary_log_is_told_where_to_put_it():
    option = "--experimental_execution_log_file=build/execution.bin"
    assert f"build:report {option}" in _settings({}, "experimental_execution_log_file")
    assert option not in "\n".join(_settings({}))


def test_a_newer_bazel_is_told_to_read_workspace():
    lines = _settings({}, "enable_bzlmod", "enable_workspace")
    assert "common --noenable_bzlmod" in lines
    assert "common --enable_workspace" in lines
