"""The commands of setup.py with a real Bazel, one by one and together, in a small copy of this
tree."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bazel.pybuild.invocation import execution_log
from test.build.nested import Nested
from test.build.tree import ROOT


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nested]:
    tree = Nested(tmp_path_factory.mktemp("nested"), tmp_path_factory.mktemp("shared"))
    yield tree
    tree.close()


@pytest.fixture
def built(nested: Nested) -> Nested:
    """The tree after a `develop`, whatever the test before did to it."""
    nested.write("one.cc", "int one() { return 1; }\n")
    nested.develop()
    return nested


def _edit(tree: Nested) -> None:
    tree.write("one.cc", f"int one() {{ return {time.time_ns() % 2**30 + 2}; }}\n")


def _run(tree: Nested, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    process = tree.setup(*arguments, **environ)
    assert process.returncode == 0, process.stdout + process.stderr
    return process


def _identity(tree: Nested) -> list[tuple[int, int]]:
    return [(file.stat().st_ino, file.stat().st_mtime_ns) for file in tree.outputs]


def _actions(tree: Nested) -> dict[str, int]:
    return json.loads((tree.root / "build" / "report.json").read_text())["actions"]


def test_rebuild_compiles_everything_although_a_cache_has_it(built: Nested):
    _run(built, "clean")
    assert built.develop()["actions"]["compile"] == 0
    _run(built, "rebuild")
    actions = _actions(built)
    assert actions["compile"] == 2
    assert sum(built.develop()["actions"].values()) == 0


# What a `develop` that finds nothing to do has no use for; each costs milliseconds of its 140.
_EXPENSIVE = {
    *("argparse", "asyncio", "concurrent.futures", "dataclasses", "hashlib", "importlib.metadata"),
    *("inspect", "jax", "logging", "pip", "setuptools", "shutil", "socket", "tempfile"),
    *("tomllib", "torch", "urllib.request", "zipfile"),
}


def test_a_develop_with_nothing_to_do_imports_nothing_expensive(built: Nested):
    process = built.run(built.python, "-X", "importtime", "setup.py", "develop")
    assert "torch_xla_lite: up to date" in process.stdout
    lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    imported = {line.rpartition("|")[2].strip() for line in lines}
    assert sorted(imported & _EXPENSIVE) == []
    # At 0.3 ms each; there are 103 with those of the start of Python itself.
    assert len(imported) <= 110


def test_develop_writes_the_commands_of_the_compiler_on_request(built: Nested):
    (built.root / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/compile_commands.py", built.root / "scripts")
    process = _run(built, "develop", "--compile-commands")
    assert "compile_commands.json: 2 files, written\n" in process.stdout
    assert (built.root / "compile_commands.json").exists()


def test_build_ext_writes_to_its_build_folder_and_in_place_on_request(built: Nested):
    before = _identity(built)
    _edit(built)
    _run(built, "build_ext")
    (library,) = built.root.glob("build/setuptools/lib.*/torch_xla_lite/lib/libtorch_xla_lite.so")
    assert _identity(built) == before
    assert library.read_bytes() != built.outputs[1].read_bytes()
    _run(built, "build_ext", "--inplace")
    assert library.read_bytes() == built.outputs[1].read_bytes()


def test_commands_on_one_line_run_in_their_order(built: Nested):
    _edit(built)
    lines = _run(built, "clean", "build_ext", "develop").stdout.splitlines()
    verbs = [line.split()[1] for line in lines]
    assert [verb for verb in verbs if verb != "CUDA"] == ["removed", "built", "built"]
    assert all(file.exists() for file in built.outputs)


def test_a_quiet_command_says_nothing_when_all_is_well(built: Nested):
    _edit(built)
    process = _run(built, "-q", "develop")
    assert process.stdout + process.stderr == ""
    assert "torch_xla_lite: up to date" in _run(built, "develop").stdout


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [(["-v", "develop"], {}), (["develop", "-v"], {}), (["develop"], {"VERBOSE": "1"})],
)
def test_every_command_is_shown_on_request(
    built: Nested, arguments: list[str], environ: dict[str, str]
):
    _edit(built)
    uncached = {"TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": "--disk_cache="}
    assert "SUBCOMMAND: " in _run(built, *arguments, **uncached, **environ).stderr


def _flags(tree: Nested) -> tuple[str, ...]:
    """Those of the compiler in the last build, the same for every source."""
    spawns = execution_log.read(tree.root / execution_log.FILE)
    return next(spawn.arguments for spawn in spawns if spawn.mnemonic == "CppCompile")


def _has_debug_information(file: Path) -> bool:
    command = ["readelf", "--section-headers", "--wide", file]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return ".debug_info" in process.stdout


@pytest.mark.parametrize(
    ("environ", "optimised", "debuggable"),
    [
        ({}, True, False),
        ({"DEBUG": "1"}, False, True),
        ({"REL_WITH_DEB_INFO": "1"}, True, True),
        ({"DEBUG": "1", "REL_WITH_DEB_INFO": "1"}, False, True),
    ],
)
def test_a_mode_compiles_as_pytorch_does(
    built: Nested, environ: dict[str, str], optimised: bool, debuggable: bool
):
    _edit(built)
    built.develop(**environ)
    flags = _flags(built)
    assert bool({"-O2", "-O3"} & set(flags)) == optimised
    assert ("-g" in flags) == debuggable
    assert _has_debug_information(built.outputs[1]) == debuggable


def test_setuptools_build_collects_what_a_wheel_holds_by_mode(built: Nested, tmp_path: Path):
    def collected(**mode: str) -> set[str]:
        folder = tmp_path / "_".join(["lib", *mode])
        _run(built, "build", f"--build-lib={folder}", **mode)
        return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}

    library = collected(BUILD_LIB_WHL="1")
    assert "torch_xla_lite/lib/libtorch_xla_lite.so" in library
    assert not [file for file in library if file.endswith(".py")]
    assert collected() >= {*library, "torch_xla_lite/__init__.py"}


def test_doctor_is_the_command_of_the_package(built: Nested):
    built.write("__main__.py", "import sys\nprint(sys.argv[1:])\nsys.exit(1)\n")
    process = built.setup("doctor", "--repair")
    assert process.stdout == "['doctor', '--repair']\n"
    assert process.returncode == 1


def _editable_install(tree: Nested) -> tuple[bool, str, str]:
    """What the doctor says of it: whether it is well, the detail and the remedy."""
    process = tree.run(tree.python, "-m", "bazel.pybuild.commands.doctor")
    (found,) = [line for line in process.stdout.splitlines() if "editable install" in line]
    _, ok, detail, remedy = json.loads(found)
    return ok, detail, remedy


@pytest.mark.parametrize("fault", ["missing", "stale"])
def test_the_doctor_finds_a_missing_and_a_stale_editable_install(built: Nested, fault: str):
    assert _editable_install(built) == (
        True,
        f"{built.python} imports the package from {built.root}",
        "",
    )
    if fault == "missing":
        (built.site / "__editable__.torch_xla_lite.pth").unlink()
    else:
        # It may name other dependencies or commands than those that are installed.
        (built.root / "pyproject.toml").touch()
    ok, detail, remedy = _editable_install(built)
    assert ok
    assert detail == f"{built.python} has no current editable install of {built.root}"
    assert remedy == "Install it:  python setup.py develop"
    built.develop()
    assert _editable_install(built)[2] == ""


def test_install_says_that_it_is_pip_and_installs_a_wheel(built: Nested):
    _run(built, "clean", "develop")
    process = _run(built, "install")
    said = process.stdout.splitlines()[0]
    assert said.startswith("torch_xla_lite: pip installs it:  ")
    assert " -m pip install --no-build-isolation --no-deps " in said
    assert (built.site / "torch_xla_lite" / "lib" / "libtorch_xla_lite.so").exists()
    (info,) = built.site.glob("torch_xla_lite-*.dist-info")
    assert (info / "INSTALLER").read_text().strip() == "pip"
    built.run(built.python, "-m", "pip", "uninstall", "--yes", "torch_xla_lite")


def test_install_without_pip_names_the_command_that_gets_it(built: Nested):
    script = "import sys; sys.modules['pip'] = None; sys.argv = ['setup.py', 'install']; "
    script += "exec(compile(open('setup.py').read(), 'setup.py', 'exec'), "
    script += "{'__name__': '__main__', '__file__': 'setup.py'})"
    process = built.run(built.python, "-c", script)
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1].endswith("-m ensurepip")
