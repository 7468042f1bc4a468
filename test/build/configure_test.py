"""Tests .bazelrc.generated and its state."""

import base64
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bazel.pybuild import bazelrc, configure
from bazel.pybuild.cache import folders
from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import cuda, inputs, packages, preflight, toolchain
from bazel.pybuild.options import Options
from bazel.pybuild.variables import PREFIX, Switch
from bazel.pybuild.why import execution_log
from bazel.pytest_plugin import mostly_nightly
from test.build.shell import program
from test.build.toolkit import write_toolkit
from test.build.tree import ROOT

_OFF = Options(cuda=Switch.OFF)
_NO_CUDA = cuda.Cuda(False, None, (), "off: for a test")


def _settings(environ: dict[str, str], *flags: str) -> list[str]:
    installed = packages.installed(packages.BUILT_AGAINST, packages.search_path())
    tools, cache = toolchain.Toolchain("3f1a0c9b2d44", ()), folders.home(environ)
    return bazelrc.settings(installed, _NO_CUDA, set(flags), tools, cache)


def _value(lines: list[str], option: str) -> str:
    words = [word for line in lines if not line.startswith("#") for word in shlex.split(line)]
    return next(word for word in words if word.startswith(option + "=")).removeprefix(option + "=")


def test_the_interpreter_is_this_one_under_each_of_its_names():
    assert Path(inputs.python_executable()).samefile(sys.executable)
    assert Path(inputs.python_executable()).name in ("python", "python3")


def test_a_file_that_has_its_old_time_again_has_changed(tmp_path: Path):
    file = tmp_path / "compiler"
    file.write_text("old")
    os.utime(file, (1, 1))
    before = inputs.times([file])
    changed_ns = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == changed_ns:
        file.write_text("new")
        os.utime(file, (1, 1))
    assert inputs.times([file]) != before


def test_repository_rules_learn_what_they_depend_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packages, "buildgrid", lambda: "buildgrid==0.4.4\n")
    lines = _settings(dict(os.environ))
    rules = [line for line in lines if f"--repo_env={PREFIX}" in line]
    names = ["PYTHON", "FINGERPRINT", "ENVIRONMENT", "CUDA_EVIDENCE"]
    names += ["TOOLCHAIN", "BUILDGRID"]
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
    assert folders.home({"XDG_CACHE_HOME": "cache"}) == expected


def test_a_user_without_a_home_gets_an_error_that_asks_for_a_folder(
    monkeypatch: pytest.MonkeyPatch,
):
    # The system does not know such a user.
    monkeypatch.setattr("os.path.expanduser", str)
    with pytest.raises(BuildError, match="has no home folder") as error:
        folders.home({})
    assert error.value.remedy.endswith("export HOME=...")


def _once(inspect: Callable[..., object]) -> Callable[..., object]:
    """Inspects each compiler once, which takes seconds. Other files test the inspections."""
    found: dict[tuple[str | None, ...], object] = {}

    def call(environ: Mapping[str, str]) -> object:
        key = environ.get("CC"), environ.get("PATH")
        if key not in found:
            found[key] = inspect(environ)
        return found[key]

    return call


_INSPECTIONS = {
    (toolchain, "inspect"): _once(toolchain.inspect),
    (preflight, "check_compiler"): _once(preflight.check_compiler),
}


class _Tree:
    """A tree to configure, whose environment has links to the packages of this one.

    Attributes:
      root: of the tree.
      site: folder of packages.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, bazel: str = ""):
        self.root, self._bazel = folder / "tree", folder / "bazel"
        self.site = folder / "site-packages"
        self.root.mkdir()
        self.site.mkdir()
        (self.root / "requirements.txt").write_text("")
        program(self._bazel, bazel)
        found = packages.installed(packages.BUILT_AGAINST, packages.search_path())
        for name, package in found.items():
            for path in (package.info, package.info.parent / name):
                (self.site / path.name).symlink_to(path)
        for (module, name), inspect in _INSPECTIONS.items():
            monkeypatch.setattr(module, name, inspect)
        monkeypatch.setattr(packages, "search_path", lambda: [str(self.site)])
        monkeypatch.setattr(packages, "own_folders", lambda: [str(self.site)])
        monkeypatch.setattr(sys, "prefix", str(folder))
        monkeypatch.setenv("HOME", str(folder))  # In a sandbox the user's cannot be written.

    def ensure(self, options: Options = _OFF, **changes: str) -> configure.State:
        environ = {**os.environ, "XDG_CACHE_HOME": str(self.root), **changes}
        return configure.ensure(self.root, options._replace(bazel=str(self._bazel)), environ)

    def writes(self) -> bool:
        """Whether to configure the tree writes the file."""
        before = (self.root / configure.FILE).stat() if self.is_configured() else None
        self.ensure()
        return before is None or (self.root / configure.FILE).stat() != before

    def is_configured(self) -> bool:
        return (self.root / configure.FILE).exists()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Tree:
    return _Tree(tmp_path, monkeypatch)


def test_the_file_is_written_once(tree: _Tree):
    assert tree.writes()
    assert not tree.writes()
    assert configure.read(tree.root) == tree.ensure()


def test_the_decision_about_cuda_is_stored_and_printed_when_it_has_changed(
    tree: _Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write_toolkit(tmp_path / "cuda")
    on = Options(cuda=Switch.ON, cuda_home=str(tmp_path / "cuda"))
    for options, has_cuda in ((_OFF, False), (on, True)):
        assert tree.ensure(options).cuda.packaged is has_cuda
        assert configure.read(tree.root) == tree.ensure(options)
        said = f"torch_xla_lite: CUDA kernels: {'built' if has_cuda else 'not built'} ("
        assert capsys.readouterr().out.startswith(said)
        (tree.site / f"numpy-{has_cuda}.dist-info").mkdir()
        tree.ensure(options)
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("version", "problem"),
    [(None, "torch is not installed"), ("2.11.0", "built with: torch 2.13 to 2.15")],
)
def test_a_package_that_is_gone_or_of_another_version_is_an_error(
    tree: _Tree, version: str | None, problem: str
):
    shutil.copy(ROOT / "pyproject.toml", tree.root)
    tree.ensure()
    info = next(tree.site.glob("torch-*.dist-info"))
    info.rename(info.with_name(f"torch-{version}.dist-info") if version else tree.root / "torch")
    with pytest.raises(BuildError, match=problem):
        tree.ensure()


@pytest.mark.parametrize(
    "name", mostly_nightly([configure.FILE, configure.STATE], [configure.FILE])
)
def test_a_file_that_was_edited_is_written_again(tree: _Tree, name: str):
    expected = tree.ensure().settings
    with (tree.root / name).open("a") as file:
        file.write("build --nonsense\n")
    assert tree.writes()
    assert (tree.root / configure.FILE).read_text() == expected


def test_the_install_of_this_project_changes_nothing(tree: _Tree):
    tree.ensure()
    (tree.site / "torch_xla_lite-0.1.0.dist-info").mkdir()
    assert not tree.writes()


# It behaves like a Bazel that has no such option and reads the rc files of its tree.
_REJECTS = """case "$*" in
  *--noworkspace_rc*) ;;
  *) ! grep -qs noenable_bzlmod .bazelrc.generated ;;
esac"""


def test_the_startup_options_of_the_tree_stay_so_that_bazel_keeps_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tree = _Tree(tmp_path, monkeypatch, 'echo "$@" > arguments')
    (tree.root / ".bazelrc").write_text("# startup --no\nstartup --one='a b'  # x\nbuild --no\n")
    (tree.root / ".bazelrc.user").write_text("startup --two\n")
    tree.ensure(_OFF._replace(startup_options=("--three",)))
    assert (tree.root / "arguments").read_text() == (
        "--noworkspace_rc --one=a b --two --three help flags-as-proto\n"
    )


def test_only_another_pin_in_requirements_txt_configures_the_tree_again(tree: _Tree):
    tree.ensure()
    file = tree.root / "requirements.txt"
    file.touch()
    assert not tree.writes()
    version = packages.installed(["torch"], packages.search_path())["torch"].version
    file.write_text(f"torch=={version.partition('+')[0]}\n")
    assert tree.writes()


def test_settings_for_a_newer_bazel_do_not_stop_an_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tree = _Tree(tmp_path, monkeypatch, _REJECTS)
    (tree.root / configure.FILE).write_text("common --noenable_bzlmod\n")
    assert "noenable_bzlmod" not in tree.ensure().settings


def test_a_bazel_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tree = _Tree(tmp_path, monkeypatch, "exit 1")
    (tree.root / configure.FILE).write_text("# old\n")
    with pytest.raises(BuildError, match="Bazel does not start"):
        tree.ensure()
    assert [file.name for file in tree.root.glob(".bazelrc*")] == [configure.FILE]
    assert (tree.root / configure.FILE).read_text() == "# old\n"


def test_a_bazel_that_cannot_be_executed_is_an_error_with_its_command(tree: _Tree):
    tree._bazel.write_text("\x7fnot a program")
    with pytest.raises(BuildError, match="Exec format error") as error:
        tree.ensure()
    assert str(tree._bazel) in error.value.remedy


def test_the_tree_is_locked_while_it_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tree = _Tree(
        tmp_path, monkeypatch, "mkdir -p build; flock --nonblock build/lock touch unlocked || true"
    )
    tree.ensure()
    assert not (tree.root / "unlocked").exists()


@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ("experimental_execution_log_file", "--experimental_execution_log_file={}"),
        ("execution_log_sort", "--execution_log_binary_file={} --noexecution_log_sort"),
    ],
)
def test_each_bazel_writes_the_binary_log_where_it_is_read(flag: str, options: str):
    assert f"build:report {options.format(execution_log.FILE)}" in _settings({}, flag)
    assert "execution_log" not in "\n".join(_settings({}))


def test_a_bazel_with_modules_reads_no_workspace():
    lines = _settings({}, "enable_bzlmod", "enable_workspace", "lockfile_mode")
    assert "common --enable_bzlmod" in lines
    assert "common --noenable_workspace" in lines
    assert "common --lockfile_mode=off" in lines


def test_only_a_bazel_of_debian_has_replaced_modules(tree: _Tree):
    # Another Bazel downloads them, and may need them.
    names = ("enable_bzlmod", "enable_workspace")
    # Each is the first field of a message in the first field.
    flags = "".join(f"\n{chr(len(name) + 2)}\n{chr(len(name))}{name}" for name in names)
    encoded = base64.b64encode(flags.encode()).decode()
    (tree.root.parent / "bazel").write_text(f"#!/bin/sh\necho {encoded}\n")
    settings = tree.ensure().settings
    assert "--enable_bzlmod" in settings
    assert "--override_module" not in settings
