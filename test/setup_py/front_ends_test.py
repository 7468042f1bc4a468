"""Wheels made and installed by setup.py, build, pip and uv, with a real Bazel in a small tree.

Nothing is downloaded: the front ends are told to stay off the network, and there is no other torch
in the environments than the one that runs this test.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pip
import pytest

from test.build.nested import Nested

_TESTDATA = Path(__file__).parent / "testdata"
# A module that says what the library says, without the cost of pybind11. What is weak in it, the
# interpreter has.
_MODULE = """#include "pybind11/conduit/wrap_include_python_h.h"
#pragma weak PyLong_FromLong
#pragma weak PyModule_Create2
int two();
static PyObject* Two(PyObject*, PyObject*) { return PyLong_FromLong(two()); }
static PyMethodDef methods[] = {{"two", Two, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module{PyModuleDef_HEAD_INIT, "_XLAC", nullptr, -1, methods,
                          nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__XLAC() { return PyModule_Create(&module); }
"""


@pytest.fixture
def tree(nested: Nested) -> Nested:
    """A tree with an extension module, and an environment without the package."""
    build_file = nested.root / "torch_xla_lite" / "BUILD.bazel"
    rules = build_file.read_text().replace('["_build_info.py"]', '["_XLAC.so", "_build_info.py"]')
    build_file.write_text(rules + (_TESTDATA / "extension.BUILD.txt").read_text())
    nested.write("module.cc", _MODULE)
    # In users' environments, what pip runs for a build is below their own packages, too.
    bytecode = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(pip.__file__).parent, nested.site / "pip", ignore=bytecode)
    return nested


@pytest.fixture
def python(tree: Nested) -> Path:
    return tree.python


def _must(process: "subprocess.CompletedProcess[str]") -> str:
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout + process.stderr


def _wheel(tree: Nested, folder: Path, python: Path | None = None, **changes: str) -> Path:
    """A wheel made by setup.py."""
    _must(tree.run(python or tree.python, "setup.py", "bdist_wheel", "-d", folder, **changes))
    (made,) = folder.glob("*.whl")
    return made


def _pip(tree: Nested, python: Path, *arguments: str | Path) -> str:
    return _must(
        tree.run(python, "-m", "pip", *arguments, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull)
    )


def _uv(
    tree: Nested, python: Path, *arguments: str, **changes: str
) -> "subprocess.CompletedProcess[str]":
    uv = Path(sys.executable).parent / "uv"
    where = ("--python", python, "--offline", "--no-deps", "--reinstall", "--no-cache")
    return tree.run(uv, "pip", "install", *where, *arguments, **changes)


def _site(python: Path) -> Path:
    (folder,) = python.parent.parent.glob("lib/python3*/site-packages")
    return folder


def _ask(python: Path, tmp_path: Path) -> tuple[int, Path]:
    """What the installed package computes, and where it is."""
    script = "import torch_xla_lite._XLAC as m; print(m.two(), m.__file__)"
    process = subprocess.run(
        [python, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    number, file = _must(process).split()
    return int(number), Path(file)


def _installed(python: Path) -> list[str]:
    return sorted(entry.name for entry in _site(python).glob("*torch_xla_lite*"))


def _members(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name
        }


@pytest.mark.nightly
def test_a_wheel_leaves_the_files_of_an_editable_install_as_they_are(tree: Nested, tmp_path: Path):
    tree.develop()
    before = tree.identity()
    tree.write("one.cc", "int one() { return 41; }\n")
    made = _wheel(tree, tmp_path)
    tree.write("one.cc", "int one() { return 1; }\n")
    assert tree.identity() == before
    assert _ask(tree.python, tmp_path)[0] == 2
    in_tree = (tree.root / "torch_xla_lite" / "lib" / "libtorch_xla_lite.so").read_bytes()
    assert _members(made)["torch_xla_lite/lib/libtorch_xla_lite.so"] != in_tree


@pytest.mark.nightly
def test_build_makes_from_an_sdist_the_wheel_that_the_tree_gives(tree: Nested, tmp_path: Path):
    isolated = tmp_path / "isolated"
    servers = tree.servers()
    _must(tree.run(tree.python, "-m", "build", "--no-isolation", "--outdir", isolated))
    assert tree.servers() == servers, "nothing is left of the tree that was unpacked"
    here = tmp_path / "here"
    _must(tree.run(tree.python, "-m", "build", "--no-isolation", "--wheel", "--outdir", here))
    (sdist,) = isolated.glob("*.tar.gz")
    (from_sdist,) = isolated.glob("*.whl")
    (from_tree,) = here.glob("*.whl")
    assert from_sdist.name == from_tree.name
    assert from_sdist.read_bytes() == from_tree.read_bytes()
    assert _wheel(tree, tmp_path / "setup").read_bytes() == from_tree.read_bytes()
    with tarfile.open(sdist) as archive:
        assert not [name for name in archive.getnames() if name.endswith((".so", "_build_info.py"))]


_UV = str(Path(sys.executable).parent / "uv")
# Every front end takes it, pip as an abbreviation; Debian's pip 23.0 does not know -C.
_SETTING = "--config-setting"


@pytest.mark.nightly
@pytest.mark.parametrize(
    "front_end",
    [
        ("{python}", "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", "{out}", "."),
        ("{python}", "-m", "build", "--no-isolation", "--wheel", "-o", "{out}"),
        (_UV, "build", "--no-build-isolation", "--wheel", "--python", "{python}", "-o", "{out}"),
    ],
    ids=["pip", "build", "uv"],
)
def test_config_settings_reach_the_build_of_each_front_end(
    tree: Nested, tmp_path: Path, front_end: tuple[str, ...]
):
    settings = (_SETTING, "build-version=0.2.0.dev1", _SETTING, "build-number=3")
    command = [word.format(python=tree.python, out=tmp_path) for word in (*front_end, *settings)]
    path = f"{tree.python.parent}{os.pathsep}{os.environ['PATH']}"
    _must(tree.run(*command, PATH=path, PIP_NO_INDEX="1", UV_NO_CACHE="1"))
    (made,) = tmp_path.glob("*.whl")
    assert made.name.startswith("torch_xla_lite-0.2.0.dev1-3-cp3")


@pytest.mark.nightly
def test_a_config_setting_that_is_misspelt_is_one_error_and_no_build(tree: Nested, tmp_path: Path):
    command = (tree.python, "-m", "pip", "wheel", "--no-build-isolation", "-w", tmp_path, ".")
    process = tree.run(*command, _SETTING, "cudaa=on", PIP_NO_INDEX="1")
    assert process.returncode != 0
    assert "error: There is no build setting cudaa. The nearest one is cuda." in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("front_end", ["pip", "uv", "build"])
def test_an_isolated_build_is_an_error_that_names_the_option(
    tree: Nested, python: Path, front_end: str
):
    if front_end == "uv":
        # uv does not read the setting of pyproject.toml where the tree is a dependency.
        process = _uv(tree, python, "--no-config", ".")
    elif front_end == "pip":
        process = tree.run(python, "-m", "pip", "install", ".", PIP_NO_INDEX="1")
    else:
        process = tree.run(python, "-m", "build", "--wheel", PIP_NO_INDEX="1")
    assert process.returncode != 0
    said = process.stderr + process.stdout
    assert "torch is not installed for " in said
    assert "pip install --no-build-isolation ." in said
    assert "python -m build --no-isolation" in said


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["torch_xla_lite @ file://{}", "-e {}"], ids=["wheel", "editable"])
def test_uv_builds_again_after_an_edit_and_only_then(
    tree: Nested, python: Path, tmp_path: Path, form: str
):
    (tmp_path / "requirements.txt").write_text(form.format(tree.root))
    where = ("--python", python, "--offline", "--no-deps", "--cache-dir", tmp_path / "cache")

    def install(**variables: str) -> bool:
        """Whether uv has built the package; without isolation, as pyproject.toml says."""
        wishes = ("-r", tmp_path / "requirements.txt")
        process = tree.run(_UV, "pip", "install", *where, *wishes, **variables)
        return "Built torch-xla-lite" in _must(process)

    assert install()
    assert not install()
    tree.write("one.cc", "int one() { return 41; }\n")
    assert install()
    assert _ask(python, tmp_path)[0] == 42
    assert not install()
    tree.write("inner/module.py", "x = 1\n")
    assert install()
    assert install(DEBUG="1")


@pytest.mark.parametrize("front_end", ["pip", pytest.param("uv", marks=pytest.mark.nightly)])
def test_a_front_end_makes_the_editable_install_that_develop_makes(
    tree: Nested, python: Path, tmp_path: Path, front_end: str
):
    _must(tree.run(python, "setup.py", "develop"))
    developed = _installed(python)
    _pip(tree, python, "uninstall", "--yes", "torch_xla_lite")
    assert _installed(python) == []
    if front_end == "uv":
        _must(_uv(tree, python, "--no-build-isolation", "-e", "."))
    else:
        _pip(tree, python, "install", "--no-build-isolation", "--no-deps", "-e", ".")
    assert _installed(python) == developed
    assert _ask(python, tmp_path)[1].is_relative_to(tree.root)
    (installed,) = tree.site.glob("torch_xla_lite-*.dist-info")
    before = installed.stat().st_ctime_ns
    process = tree.setup("develop")
    assert process.stdout.splitlines()[-1].startswith("torch_xla_lite: up to date")
    assert installed.stat().st_ctime_ns == before


def _follow_remedy(tree: Nested, refused: "subprocess.CompletedProcess[str]") -> None:
    """Runs the command that an error message ends in."""
    assert refused.returncode == 1
    _must(tree.run("/bin/sh", "-c", refused.stderr.splitlines()[-1].partition(":  ")[2]))


@pytest.mark.nightly
def test_a_wheel_takes_the_place_of_an_editable_install_and_the_reverse(
    tree: Nested, python: Path, tmp_path: Path
):
    made = _wheel(tree, tmp_path)
    _must(tree.run(python, "setup.py", "develop"))
    developed = _installed(python)
    said = _pip(tree, python, "install", made)
    assert "Found existing installation: torch_xla_lite 0.1.0" in said
    of_wheel = ["torch_xla_lite", "torch_xla_lite-0.1.0.dist-info", "torch_xla_lite_autoload.py"]
    assert _installed(python) == of_wheel
    assert _ask(python, tmp_path)[1].is_relative_to(_site(python))
    _follow_remedy(tree, tree.run(python, "setup.py", "develop"))
    _must(tree.run(python, "setup.py", "develop"))
    assert _installed(python) == developed
    assert _ask(python, tmp_path)[1].is_relative_to(tree.root)


@pytest.mark.nightly
def test_the_halves_are_made_apart_and_make_the_whole(tree: Nested, python: Path, tmp_path: Path):
    whole = _wheel(tree, tmp_path / "whole")
    library = _wheel(tree, tmp_path / "library", BUILD_LIB_WHL="1")
    refused = tree.run(python, "setup.py", "bdist_wheel", BUILD_PYTHON_ONLY="1")
    assert refused.returncode == 1
    assert "torch_xla_lite_lib 0.1.0 is not installed for" in refused.stderr
    assert "BUILD_LIB_WHL=1 " in refused.stderr.splitlines()[-1]

    _pip(tree, python, "install", library)
    _must(tree.setup("clean"))
    options = {"TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": "--disk_cache=", "BUILD_PYTHON_ONLY": "1"}
    half = _wheel(tree, tmp_path / "python", python, **options)
    assert tree.report()["actions"]["compile"] == 1, "only module.cc; the others are installed"
    assert not _members(half).keys() & _members(library).keys()
    assert _members(half) | _members(library) == _members(whole)

    _pip(tree, python, "install", "--no-deps", half)
    number, file = _ask(python, tmp_path)
    assert number == 2
    assert file.is_relative_to(_site(python))
    refused = tree.run(python, "setup.py", "develop")
    assert refused.stderr.splitlines()[-1].endswith(" torch_xla_lite_python torch_xla_lite_lib")
    _follow_remedy(tree, refused)
    _must(tree.run(python, "setup.py", "develop"))
    assert _ask(python, tmp_path)[1].is_relative_to(tree.root)
    assert not (_site(python) / "torch_xla_lite" / "__init__.py").exists()
