"""The commands of setup.py with a real Bazel, one by one and together, in a small copy of this
tree."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from bazel.pybuild.commands.finding import MARK
from bazel.pybuild.why import execution_log
from test.build.nested import NOTHING, Nested

_UNCACHED = {"TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": "--disk_cache="}


def _edit(tree: Nested) -> None:
    tree.write("one.cc", f"int one() {{ return {time.time_ns() % 2**30 + 2}; }}\n")


@pytest.mark.nightly
def test_clean_keeps_what_was_fetched_and_rebuild_compiles_what_a_cache_has(built: Nested):
    base = Path(built.bazel("info", "output_base").stdout.strip())
    # Modules call it _main~external~torch.
    (external,) = (base / "external").glob("*torch")
    fetched = external.stat().st_ctime_ns
    built.must("clean")
    assert not any(file.exists() for file in [*built.outputs, built.root / "build"])
    assert built.develop()["actions"]["compile"] == 0
    assert external.stat().st_ctime_ns == fetched
    built.must("rebuild")
    assert built.report()["actions"]["compile"] == 2
    assert built.develop()["actions"] == NOTHING


def test_build_ext_writes_to_its_build_folder_and_in_place_on_request(built: Nested):
    before = built.identity()
    _edit(built)
    built.must("build_ext")
    (library,) = built.root.glob("build/setuptools/lib.*/torch_xla_lite/lib/libtorch_xla_lite.so")
    assert built.identity() == before
    assert library.read_bytes() != built.outputs[1].read_bytes()
    built.must("build_ext", "--inplace")
    assert library.read_bytes() == built.outputs[1].read_bytes()


@pytest.mark.nightly
def test_a_quiet_command_says_nothing_and_a_verbose_one_every_command(built: Nested):
    _edit(built)
    process = built.must("-q", "develop")
    assert process.stdout + process.stderr == ""
    assert "torch_xla_lite: up to date" in built.must("develop").stdout
    _edit(built)
    assert "SUBCOMMAND: " in built.must("-v", "develop", **_UNCACHED).stderr


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
        pytest.param({}, True, False, marks=pytest.mark.nightly),
        ({"DEBUG": "1"}, False, True),
        pytest.param({"REL_WITH_DEB_INFO": "1"}, True, True, marks=pytest.mark.nightly),
        pytest.param(
            {"DEBUG": "1", "REL_WITH_DEB_INFO": "1"}, False, True, marks=pytest.mark.nightly
        ),
    ],
)
def test_a_mode_compiles_as_pytorch_does_and_leaves_the_others_built(
    built: Nested, environ: dict[str, str], optimised: bool, debuggable: bool
):
    _edit(built)
    built.develop(**environ, **_UNCACHED)
    flags = _flags(built)
    assert bool({"-O2", "-O3"} & set(flags)) == optimised
    assert ("-g" in flags) == debuggable
    assert _has_debug_information(built.outputs[1]) == debuggable
    if environ == {"DEBUG": "1"}:
        built.develop(**_UNCACHED)
        assert built.develop(**environ, **_UNCACHED)["actions"] == NOTHING


@pytest.mark.nightly
def test_setuptools_build_collects_what_a_wheel_holds_by_mode(built: Nested, tmp_path: Path):
    def collected(**mode: str) -> set[str]:
        folder = tmp_path / "_".join(["lib", *mode])
        built.must("build", f"--build-lib={folder}", **mode)
        return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}

    library = collected(BUILD_LIB_WHL="1")
    assert "torch_xla_lite/lib/libtorch_xla_lite.so" in library
    assert not [file for file in library if file.endswith(".py")]
    assert collected() >= {*library, "torch_xla_lite/__init__.py"}


def test_doctor_is_the_command_of_the_package(nested: Nested):
    nested.write("__main__.py", "import sys\nprint(sys.argv[1:])\nsys.exit(1)\n")
    process = nested.setup("doctor")
    assert process.stdout == "['doctor']\n"
    assert process.returncode == 1


def _editable_install(tree: Nested) -> tuple[bool, str, str]:
    """What the doctor says of it: whether it is well, the detail and the remedy."""
    # The start of an interpreter may print.
    (tree.site / "sitecustomize.py").write_text("print('sitecustomize says [1]', flush=True)\n")
    process = tree.run(tree.python, "-m", "bazel.pybuild.commands.doctor")
    assert process.stdout.startswith("sitecustomize says")
    told = [line.removeprefix(MARK) for line in process.stdout.splitlines() if MARK in line]
    (found,) = [line for line in map(json.loads, told) if line[0] == "editable install"]
    _, ok, detail, remedy = found
    return ok, detail, remedy


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["missing", "stale"])
def test_the_doctor_finds_a_missing_and_a_stale_editable_install(built: Nested, fault: str):
    if fault == "missing":
        (built.site / "__editable__.torch_xla_lite.pth").unlink()
    else:
        # It may name other dependencies or commands than those that are installed.
        (built.root / "pyproject.toml").touch()
    ok, detail, remedy = _editable_install(built)
    assert ok
    assert str(built.python) in detail
    assert remedy.endswith(":  python setup.py develop")
    built.develop()
    ok, detail, remedy = _editable_install(built)
    assert (ok, remedy) == (True, "")
    assert str(built.python) in detail


@pytest.mark.nightly
def test_install_says_that_it_is_pip_and_installs_a_wheel(nested: Nested):
    process = nested.must("install")
    said = process.stdout.splitlines()[0]
    assert said.startswith("torch_xla_lite: pip installs it:  ")
    assert " -m pip install --no-build-isolation --no-deps " in said
    assert (nested.site / "torch_xla_lite" / "lib" / "libtorch_xla_lite.so").exists()
    (info,) = nested.site.glob("torch_xla_lite-*.dist-info")
    assert (info / "INSTALLER").read_text().strip() == "pip"


def test_install_without_pip_names_the_command_that_gets_it(nested: Nested):
    script = "import sys; sys.modules['pip'] = None; sys.argv = ['setup.py', 'install']; "
    script += "exec(compile(open('setup.py').read(), 'setup.py', 'exec'), "
    script += "{'__name__': '__main__', '__file__': 'setup.py'})"
    process = nested.run(nested.python, "-c", script)
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1].endswith("-m ensurepip")
