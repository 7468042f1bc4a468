"""Which actions each kind of edit runs, from Bazel's execution log, in a copy of this tree.

The sources are those of testdata/edits: core (knows no torch) <- tensor (uses torch's c10) <- leaf,
which are the library, and a Python module that calls leaf. Bazel is called without setup.py, for
which test/setup_py has the tests.
"""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bazel.pybuild.why import execution_log
from test.build.nested import OUTPUTS, Edit, Nested, a_comment

_SOURCES = Path(__file__).parent / "testdata" / "edits"
_NOTHING: set[str] = set()
# The module is linked to the library.
_LINKED = {"libtorch_xla_lite.so", "_XLAC.so"}
_TESTS = ["//torch_xla_lite:pool_test", "//torch_xla_lite:reduce_test"]


def _nightly(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.nightly)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nested]:
    tree = Nested(tmp_path_factory.mktemp("nested"), tmp_path_factory.mktemp("shared"))
    for file in _SOURCES.iterdir():
        shutil.copyfile(file, tree.root / "torch_xla_lite" / file.name.removesuffix(".txt"))
    tree.keep()
    tree.build()
    yield tree
    tree.close()


@pytest.fixture
def tree(original: Nested) -> Nested:
    """The tree as committed, and built, whatever the test before did to it."""
    original.restore()
    original.build()
    return original


def _name(spawn: execution_log.Spawn) -> str:
    # A compiler's first output is the .d file, which names the headers that it read.
    made = next((name for name in spawn.outputs if name.endswith(".o")), spawn.outputs[0])
    return Path(made).name.replace(".pic.", ".")


def _ran(tree: Nested) -> set[str]:
    """The files that the actions of the last build made, without those that a cache had."""
    spawns = execution_log.read(tree.root / execution_log.FILE)
    return {_name(spawn) for spawn in spawns if not spawn.hit}


def _build(tree: Nested) -> set[str]:
    tree.build()
    return _ran(tree)


def _objects(*names: str) -> set[str]:
    return {f"{name}.o" for name in names}


@pytest.mark.parametrize(
    ("name", "compiled"),
    [
        ("core.h", ["core", "tensor"]),
        _nightly("leaf.h", ["leaf", "module"]),
        _nightly("core.cc", ["core"]),
        _nightly("leaf.cc", ["leaf"]),
        _nightly("core_private.h", ["core"]),
        _nightly("tensor.h", ["tensor", "leaf"]),
    ],
)
def test_a_comment_compiles_what_includes_the_file_and_links_nothing(
    tree: Nested, name: str, compiled: list[str]
):
    tree.append(f"torch_xla_lite/{name}", f"// {time.time_ns()}\n")
    assert _build(tree) == _objects(*compiled)


@pytest.mark.parametrize(
    ("name", "old", "new", "compiled"),
    [
        ("core_private.h", "= 2;", "= 3;", ["core"]),
        _nightly("core.cc", "return kFactor", "return 1 + kFactor", ["core"]),
        _nightly("leaf.cc", "PrivateUse1", "CPU", ["leaf"]),
        _nightly("tensor.cc", "static_cast<int>(type)", "static_cast<int>(type) + 1", ["tensor"]),
    ],
)
def test_code_in_the_library_compiles_one_file_and_links_it(
    tree: Nested, name: str, old: str, new: str, compiled: list[str]
):
    file = tree.root / "torch_xla_lite" / name
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert _build(tree) == _objects(*compiled) | _LINKED


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "compiled"), [("core.h", ["core", "tensor"]), ("tensor.h", ["tensor", "leaf"])]
)
def test_a_declaration_that_nothing_uses_yet_links_nothing(
    tree: Nested, name: str, compiled: list[str]
):
    tree.append(f"torch_xla_lite/{name}", "namespace torch_xla_lite { int More(int); }\n")
    assert _build(tree) == _objects(*compiled)


def test_code_in_the_python_module_links_the_module_alone(tree: Nested):
    tree.append("torch_xla_lite/module.cc", 'extern "C" int more() { return 1; }\n')
    assert _build(tree) == {"module.o", "_XLAC.so"}


def test_comments_times_and_commits_run_no_action(tree: Nested):
    for file in tree.root.glob("torch_xla_lite/*.*"):
        os.utime(file)
    tree.append("torch_xla_lite/pool.py", "# A comment.\n")
    tree.append("torch_xla_lite/BUILD.bazel", "# A comment.\n")
    tree.append("BUILD.bazel", "# A comment.\n")
    tree.append("bazel/cc.bzl", "# A comment.\n")
    tree.append("third_party/jaxlib/repository.bzl", "# A comment.\n")
    tree.append("README.md", "A line.\n")
    assert _build(tree) == _NOTHING
    (torch,) = _output_base(tree).glob("external/*torch/layers.bzl")
    before = torch.stat()
    tree.append("requirements.txt", "# A comment.\n")
    assert _build(tree) == _NOTHING
    assert torch.stat() == before, "torch was read again"
    tree.keep()
    assert _build(tree) == _NOTHING


def _output_base(tree: Nested) -> Path:
    return Path(tree.bazel("info", "output_base").stdout.strip())


@pytest.mark.nightly
def test_a_branch_and_back_compiles_the_branch_once(tree: Nested):
    tree.git("checkout", "--quiet", "-B", "branch")
    tree.append("torch_xla_lite/core.h", f"// {time.time_ns()}\n")
    tree.keep()
    assert _build(tree) == _objects("core", "tensor")
    for branch in ("main", "branch"):
        tree.git("checkout", "--quiet", branch)
        assert _build(tree) == _NOTHING


def _tested(tree: Nested) -> set[str]:
    """The tests whose results no cache has."""
    process = tree.bazel("test", "--config=report", *_TESTS, OUTPUTS, check=True)
    lines = [line for line in process.stdout.splitlines() if line.startswith("//")]
    return {line.split()[0].partition(":")[2] for line in lines if "(cached)" not in line}


@pytest.mark.nightly
def test_tests_use_what_a_build_has_made_and_run_again_after_an_edit_of_what_they_import(
    tree: Nested,
):
    assert _tested(tree) == {"pool_test", "reduce_test"}
    spawns = execution_log.read(tree.root / execution_log.FILE)
    assert {spawn.mnemonic for spawn in spawns} == {"TestRunner"}
    assert _build(tree) == _NOTHING
    tree.append("torch_xla_lite/pool.py", f"# {time.time_ns()}\n")
    assert _tested(tree) == {"pool_test"}


@pytest.mark.nightly
def test_an_upgrade_of_any_package_runs_tests_again(tree: Nested):
    _tested(tree)
    assert _tested(tree) == set()
    package = tree.site / "one_more-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: one_more\nVersion: 1.0\n")
    tree.configure()
    assert _tested(tree) == {"pool_test", "reduce_test"}


def test_a_new_source_compiles_itself(tree: Nested):
    tree.write("leaf_more.cc", "namespace torch_xla_lite { int Logged() { return 1; } }\n")
    assert _build(tree) == {"leaf_more.o"} | _LINKED


@pytest.mark.parametrize(
    ("name", "changed", "compiled"),
    [
        _nightly("torch", "include/c10/core/DeviceType.h", ["tensor", "leaf"]),
        _nightly("pybind11", "include/pybind11/conduit/wrap_include_python_h.h", ["module"]),
        _nightly("torch", "include/ATen/core/Tensor.h", []),
        _nightly("torch", "", []),
        _nightly("pybind11", "", []),
        _nightly("numpy", "", []),
        _nightly("numpy", "__init__.py", []),
    ],
)
def test_another_build_of_a_package_compiles_what_includes_the_changed_header(
    tree: Nested, name: str, changed: str, compiled: list[str]
):
    settings = (tree.root / ".bazelrc.generated").read_text()
    tree.reinstall(name, changed)
    assert _build(tree) == _objects(*compiled)
    assert (tree.root / ".bazelrc.generated").read_text() != settings


def _other_symbol(library: bytes) -> bytes:
    """With another parameter of a function that nothing here calls."""
    old, new = b"\0_ZN3c1015GetCPUAllocatorEv\0", b"\0_ZN3c1015GetCPUAllocatorEi\0"
    assert old in library
    return library.replace(old, new)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("edit", "ran"),
    # Only the symbols of a library count: a stand-in has them, and links are linked to that.
    [(a_comment, _NOTHING), (_other_symbol, {"c10.o", "interface_c10.so"} | _LINKED)],
)
def test_another_library_of_torch_compiles_nothing(tree: Nested, edit: Edit, ran: set[str]):
    tree.reinstall("torch", "lib/libc10.so", edit)
    assert _build(tree) == ran
