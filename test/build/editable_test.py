"""The editable install, made without pip and understood by it."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.install import editable

_PYPROJECT = """
[project]
name = "torch_xla_lite"
version = "{version}"
description = "What it is"
requires-python = ">=3.11"
dependencies = ["torch==2.13.0"]
optional-dependencies = {{ examples = ["tqdm"] }}
scripts = {{ torch-xla-lite = "torch_xla_lite.cli:main" }}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    return folder


_AUTOLOAD = "torch_xla_lite/device/autoload.py"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return _tree(tmp_path / "tree")


def _tree(folder: Path, version: str = "0.1.0") -> Path:
    (folder / _AUTOLOAD).parent.mkdir(parents=True)
    (folder / "torch_xla_lite" / "__init__.py").write_text("")
    (folder / _AUTOLOAD).write_text("def register():\n    print('called')\n")
    (folder / "pyproject.toml").write_text(_PYPROJECT.format(version=version))
    return folder


def _distribution(site: Path) -> importlib.metadata.Distribution:
    (found,) = importlib.metadata.distributions(name="torch_xla_lite", path=[str(site)])
    return found


def test_a_version_of_the_caller_replaces_that_of_the_tree_and_the_reverse(root: Path, site: Path):
    assert not editable.in_place(root, site)
    editable.install(root, site, site.parent / "bin")
    assert editable.in_place(root, site)
    assert not editable.in_place(root, site, "0.9")
    editable.install(root, site, site.parent / "bin", "0.9")
    assert editable.in_place(root, site, "0.9")
    assert _distribution(site).version == "0.9"
    assert not editable.in_place(root, site)


def test_an_unpacked_source_distribution_keeps_its_version(root: Path, site: Path):
    (root / "PKG-INFO").write_text("Metadata-Version: 2.4\nVersion: 0.9\n\n")
    editable.install(root, site, site.parent / "bin")
    assert editable.in_place(root, site)
    assert _distribution(site).version == "0.9"


def test_importlib_metadata_sees_version_dependencies_and_entry_points(root: Path, site: Path):
    editable.install(root, site, site.parent / "bin")
    found = _distribution(site)
    assert found.version == "0.1.0"
    assert found.requires == ["torch==2.13.0", 'tqdm; extra == "examples"']
    assert [entry.name for entry in found.entry_points] == ["torch-xla-lite"]
    url = json.loads(found.read_text("direct_url.json") or "")
    assert url == {"url": root.as_uri(), "dir_info": {"editable": True}}


def test_it_lists_every_file_that_it_consists_of(root: Path, site: Path):
    editable.install(root, site, site.parent / "bin")
    listed = {str(file) for file in _distribution(site).files or []}
    found = {str(f.relative_to(site)) for f in site.rglob("*") if f.is_file()}
    assert listed == {*found, "../bin/torch-xla-lite"}


@pytest.mark.parametrize("name", ["environment", "my environment"])
def test_its_commands_run_what_the_entry_points_name_also_where_the_path_has_spaces(
    root: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    (root / "torch_xla_lite" / "cli.py").write_text(
        "import sys\ndef main():\n    print(*sys.argv[1:], sep='|')\n    return 3\n"
    )
    python = tmp_path / name / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    editable.install(root, site, site.parent / "bin")
    command = [site.parent / "bin" / "torch-xla-lite", "a b", "c"]
    environ = {**os.environ, "PYTHONPATH": str(root)}
    process = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (3, "a b|c\n"), process.stderr


def test_the_module_that_torch_calls_works_without_the_tree(root: Path, site: Path):
    editable.install(root, site, site.parent / "bin")
    shutil.rmtree(root)
    program = "import torch_xla_lite_autoload as module; module.register()"
    environ = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, env=environ, capture_output=True, check=True).stdout
    assert "torch_xla_lite_autoload.py" in map(str, _distribution(site).files or [])


def test_another_tree_takes_the_place_of_the_first(tmp_path: Path, root: Path, site: Path):
    editable.install(root, site, site.parent / "bin")
    other = _tree(tmp_path / "other", version="0.2.0")
    assert not editable.in_place(other, site)
    editable.install(other, site, site.parent / "bin")
    assert editable.in_place(other, site)
    assert not editable.in_place(root, site)
    assert _distribution(site).version == "0.2.0"


def _touch_later(file: Path) -> None:
    future = file.stat().st_mtime_ns + 10**12
    os.utime(file, ns=(future, future))


@pytest.mark.parametrize(
    "change",
    [
        lambda root, site: (site / editable.FINDER).unlink(),
        lambda root, site: (site / editable.PTH).unlink(),
        lambda root, site: _touch_later(root / "pyproject.toml"),
        lambda root, site: (root / _AUTOLOAD).write_text("changed = True\n"),
    ],
    ids=["finder", "pth", "pyproject", "autoload"],
)
def test_what_is_lost_or_out_of_date_is_noticed_and_written_again(
    root: Path, site: Path, change: Callable[[Path, Path], object]
):
    editable.install(root, site, site.parent / "bin")
    change(root, site)
    assert not editable.in_place(root, site)
    editable.install(root, site, site.parent / "bin")
    assert (site / editable.FINDER).exists() and (site / editable.PTH).exists()
    assert (site / "torch_xla_lite_autoload.py").read_text() == (root / _AUTOLOAD).read_text()


def test_metadata_stays_when_the_install_cannot_be_made(root: Path, site: Path):
    editable.install(root, site, site.parent / "bin")
    (site / "torch_xla_lite").mkdir()
    (site / "torch_xla_lite" / "__init__.py").write_text("")
    with pytest.raises(BuildError, match="would be imported instead of this tree"):
        editable.install(root, site, site.parent / "bin")
    assert [other.name for other in editable.installed(site)] == ["torch_xla_lite-0.1.0.dist-info"]


@pytest.mark.parametrize("what", ["packages", "commands"])
def test_a_folder_that_cannot_be_written_is_reported_before_the_build(
    site: Path, monkeypatch: pytest.MonkeyPatch, what: str
):
    commands = site.parent / "bin"
    commands.mkdir()
    closed = site if what == "packages" else commands
    # Root may write anywhere.
    monkeypatch.setattr(os, "access", lambda folder, mode: folder != closed)
    with pytest.raises(BuildError, match=f"The {what} of .* are in {closed}, where you may not"):
        editable.check(site, commands)


def test_a_pyproject_of_the_future_is_installed_once(root: Path, site: Path):
    _touch_later(root / "pyproject.toml")
    editable.install(root, site, site.parent / "bin")
    assert editable.in_place(root, site)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


@pytest.mark.nightly
def test_pip_lists_and_uninstalls_it(environment: Path, root: Path):
    subprocess.run([environment, "-m", "ensurepip"], capture_output=True, check=True)

    def run(*arguments: str) -> str:
        command = [environment, *arguments]
        process = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
        return process.stdout

    site = Path(run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    editable.install(root, site, environment.parent)
    assert run("-c", "import torch_xla_lite; print(torch_xla_lite.__file__)").startswith(str(root))
    listed = json.loads(run("-m", "pip", "--disable-pip-version-check", "list", "--format=json"))
    (entry,) = [entry for entry in listed if entry["name"] == "torch_xla_lite"]
    assert entry["editable_project_location"] == str(root)
    run("-m", "pip", "uninstall", "--yes", "torch_xla_lite")
    assert not [entry for entry in site.iterdir() if "torch_xla_lite" in entry.name]
    assert not (environment.parent / "torch-xla-lite").exists()


def _import(environment: Path, root: Path, script: str, cwd: Path) -> subprocess.CompletedProcess:
    (site,) = environment.parent.parent.glob("lib/python3*/site-packages")
    editable.install(root, site, environment.parent)
    return _run([environment, "-c", script], cwd)


def _run(command: list[Path | str], cwd: Path) -> subprocess.CompletedProcess:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, check=False
    )


def test_the_real_files_are_imported_so_that_breakpoints_stop(environment: Path, root: Path):
    file = root / "torch_xla_lite" / "cli.py"
    file.write_text("def main():\n    pass\n")
    script = (
        "import bdb, torch_xla_lite.cli as cli\n"
        "class Debugger(bdb.Bdb):\n"
        "    def user_line(self, frame): print('stopped at', frame.f_lineno)\n"
        f"debugger = Debugger(); print(debugger.set_break({str(file)!r}, 2))\n"
        "debugger.runcall(cli.main)\n"
    )
    done = _import(environment, root, f"{script}print(cli.__file__)", root.parent)
    assert "stopped at 2" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == str(file)


def test_a_folder_of_the_packages_name_does_not_hide_it(
    environment: Path, root: Path, tmp_path: Path
):
    # A person is beside the clone, which has the name of the package.
    (tmp_path / "torch_xla_lite" / "torch_xla_lite").mkdir(parents=True)
    done = _import(environment, root, "import torch_xla_lite as t; print(t.__file__)", tmp_path)
    assert done.stdout.strip() == str(root / "torch_xla_lite" / "__init__.py")


def test_a_package_that_comes_first_on_the_path_is_imported(
    environment: Path, root: Path, tmp_path: Path
):
    other = _tree(tmp_path / "other")
    done = _import(environment, root, "import torch_xla_lite as t; print(t.__file__)", other)
    assert done.stdout.strip() == str(other / "torch_xla_lite" / "__init__.py")


def test_a_tree_that_is_gone_is_named(environment: Path, root: Path, tmp_path: Path):
    (root / "torch_xla_lite" / "__init__.py").unlink()
    done = _import(environment, root, "import torch_xla_lite", tmp_path)
    assert f"torch_xla_lite is installed from {root}, where it is not any more" in done.stderr


def test_nothing_else_of_the_tree_can_be_imported(environment: Path, root: Path):
    for name in ("setup.py", "scripts/__init__.py", "bazel/__init__.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    script = (
        "import importlib.util, torch_xla_lite; print(torch_xla_lite.__file__)\n"
        "print([n for n in ('setup', 'scripts', 'bazel') if importlib.util.find_spec(n)])"
    )
    imported, others = _import(environment, root, script, Path("/")).stdout.splitlines()
    assert Path(imported).samefile(root / "torch_xla_lite" / "__init__.py")
    assert others == "[]"


def test_the_folder_of_packages_is_the_one_of_the_interpreter():
    assert str(editable.site_folder()) in sys.path


def test_mypy_finds_the_package(environment: Path, root: Path, tmp_path: Path):
    (root / "torch_xla_lite" / "py.typed").touch()
    (root / "torch_xla_lite" / "__init__.py").write_text("count: int = 1\n")
    (root / "setup.py").touch()
    editable.link(root)
    editable.link(root)  # As each build does.
    script = (
        "import torch_xla_lite, importlib.util\n"
        "print(torch_xla_lite.__file__, importlib.util.find_spec('setup'))\n"
    )
    done = _import(environment, root, script, tmp_path)
    assert done.stdout.strip() == f"{root / 'torch_xla_lite' / '__init__.py'} None"
    (tmp_path / "mine.py").write_text("import torch_xla_lite\ntorch_xla_lite.count = 'two'\n")
    options = ["--python-executable", environment, "--cache-dir", tmp_path / "cache"]
    done = _run([sys.executable, "-m", "mypy", *options, "mine.py"], tmp_path)
    (line, _) = done.stdout.splitlines()
    assert "mine.py:2: error: Incompatible types" in line
