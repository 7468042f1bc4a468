"""Which actions each kind of edit runs, from Bazel's execution log, in a copy of this tree.

The sources are those of testdata/edits: core (knows no torch) <- tensor (uses torch's c10) <- leaf,
which are the library, and a Python module that calls leaf. Bazel is called without setup.py, for
which end_to_end_test.py has the tests.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bazel.pybuild.invocation import execution_log
from test.build.nested import Edit, Nested, a_comment

_SOURCES = Path(__file__).parent / "testdata" / "edits"
_NOTHING: set[str] = set()
# The module is linked to the library.
_LINKED = {"libtorch_xla_lite.so", "_XLAC.so"}
_TESTS = ["//torch_xla_lite:pool_test", "//torch_xla_lite:reduce_test"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nested]:
    tree = Nested(tmp_path_factory.mktemp("nested"), tmp_path_factory.mktemp("shared"))
    for file in _SOURCES.iterdir():
        shutil.copyfile(file, tree.root / "torch_xla_lite" / file.name.removesuffix(".txt"))
    tree.write("include/torch_xla_lite/.gitkeep", "")
    ignored = "/bazel-*\n/build\n/dist\n/.*\n!/.bazel*\n/.bazelrc.*\n*.so\n_build_info.py\n*.pyc\n"
    (tree.root / ".gitignore").write_text(ignored)
    _git(tree, "init", "--quiet")
    _git(tree, "add", "--all", ".")
    _commit(tree)
    tree.build()
    yield tree
    tree.close()


@pytest.fixture
def tree(original: Nested) -> Iterator[Nested]:
    """The tree as committed, and built; what a test has changed is put back after it."""
    original.build()
    with original.packages_as_they_were():
        yield original
    _git(original, "checkout", "--quiet", "--force", "main")
    _git(original, "clean", "--quiet", "--force", "-d")


def _git(tree: Nested, *arguments: str) -> None:
    process = tree.run("git", "-c", "init.defaultBranch=main", *arguments)
    assert process.returncode == 0, process.stderr


def _commit(tree: Nested) -> None:
    author = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.org"]
    _git(tree, *author, "commit", "--quiet", "--all", "--allow-empty", "--message=a change")


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


def _append(tree: Nested, name: str, line: str) -> None:
    with (tree.root / name).open("a") as file:
        file.write(f"{line}\n")


@pytest.mark.parametrize(
    ("name", "compiled"),
    [
        ("core.cc", ["core"]),
        ("leaf.cc", ["leaf"]),
        ("core_private.h", ["core"]),
        ("core.h", ["core", "tensor"]),
        ("tensor.h", ["tensor", "leaf"]),
        ("leaf.h", ["leaf", "module"]),
    ],
)
def test_a_comment_compiles_what_includes_the_file_and_links_nothing(
    tree: Nested, name: str, compiled: list[str]
):
    _append(tree, f"torch_xla_lite/{name}", f"// {time.time_ns()}")
    assert _build(tree) == _objects(*compiled)


@pytest.mark.parametrize(
    ("name", "old", "new", "compiled"),
    [
        ("core.cc", "return kFactor", "return 1 + kFactor", ["core"]),
        ("leaf.cc", "PrivateUse1", "CPU", ["leaf"]),
        ("core_private.h", "= 2;", "= 3;", ["core"]),
        ("tensor.cc", "static_cast<int>(type)", "static_cast<int>(type) + 1", ["tensor"]),
    ],
)
def test_code_in_the_library_compiles_one_file_and_links_it(
    tree: Nested, name: str, old: str, new: str, compiled: list[str]
):
    file = tree.root / "torch_xla_lite" / name
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert _build(tree) == _objects(*compiled) | _LINKED


@pytest.mark.parametrize(
    ("name", "compiled"),
    [("core.h", ["core", "tensor"]), ("tensor.h", ["tensor", "leaf"])],
)
def test_a_declaration_that_nothing_uses_yet_links_nothing(
    tree: Nested, name: str, compiled: list[str]
):
    _append(tree, f"torch_xla_lite/{name}", "namespace torch_xla_lite { int More(int); }")
    assert _build(tree) == _objects(*compiled)


@pytest.mark.parametrize(
    ("name", "constant", "changed"),
    [("core.h", "kOffset", ["core", "tensor"]), ("tensor.h", "kShift", ["tensor", "leaf"])],
)
def test_code_in_a_header_links_what_contains_the_changed_objects(
    tree: Nested, name: str, constant: str, changed: list[str]
):
    file = tree.root / "torch_xla_lite" / name
    assert f"{constant} = 0;" in file.read_text()
    file.write_text(file.read_text().replace(f"{constant} = 0;", f"{constant} = 5;"))
    assert _build(tree) == _objects(*changed) | _LINKED


@pytest.mark.parametrize("content", [b"damaged", None], ids=["damaged", "deleted"])
def test_an_output_that_is_damaged_or_deleted_is_linked_again_and_nothing_else(
    tree: Nested, content: bytes | None
):
    library = tree.root / "bazel-bin" / "torch_xla_lite" / "lib" / "libtorch_xla_lite.so"
    linked = library.read_bytes()
    library.unlink()
    if content is not None:
        library.write_bytes(content)
    # With the disk cache, the output is copied from there.
    tree.build("--disk_cache=")
    assert _ran(tree) == {library.name}
    assert library.read_bytes() == linked


def test_a_debug_build_compiles_all_and_back_nothing(tree: Nested):
    options = ("--compilation_mode=dbg", "--disk_cache=")
    tree.build(*options)
    assert _objects("core", "tensor", "leaf", "module") | _LINKED <= _ran(tree)
    assert _build(tree) == _NOTHING
    tree.build(*options)
    assert _ran(tree) == _NOTHING


def test_code_in_the_python_module_links_the_module_alone(tree: Nested):
    _append(tree, "torch_xla_lite/module.cc", 'extern "C" int more() { return 1; }')
    assert _build(tree) == {"module.o", "_XLAC.so"}


@pytest.mark.parametrize(
    "edit",
    [
        lambda tree: None,
        lambda tree: [os.utime(file) for file in tree.root.glob("torch_xla_lite/*.*")],
        lambda tree: _append(tree, "torch_xla_lite/pool.py", "# A comment."),
        lambda tree: _append(tree, "torch_xla_lite/BUILD.bazel", "# A comment."),
        lambda tree: _append(tree, "BUILD.bazel", "# A comment."),
        lambda tree: _append(tree, "bazel/cc.bzl", "# A comment."),
        lambda tree: _append(tree, "third_party/torch/repository.bzl", "# A comment."),
        lambda tree: _append(tree, "README.md", "A line."),
        lambda tree: _append(tree, "requirements.txt", "# A comment."),
        _commit,
    ],
    ids=[
        *("nothing", "touch", "python", "build_comment", "root_build_comment", "bzl_comment"),
        *("repository_rule_comment", "readme", "requirements_comment", "commit"),
    ],
)
def test_no_action_runs_after(tree: Nested, edit: Callable[[Nested], object]):
    edit(tree)
    assert _build(tree) == _NOTHING


def test_a_branch_and_back_compiles_the_branch_once(tree: Nested):
    _git(tree, "checkout", "--quiet", "-B", "branch")
    _append(tree, "torch_xla_lite/core.h", f"// {time.time_ns()}")
    _commit(tree)
    assert _build(tree) == _objects("core", "tensor")
    for branch in ("main", "branch"):
        _git(tree, "checkout", "--quiet", branch)
        assert _build(tree) == _NOTHING


def test_build_and_test_share_one_graph(tree: Nested):
    process = tree.bazel("test", "--config=report", *_TESTS, "//torch_xla_lite:outputs")
    assert process.returncode == 0, process.stdout + process.stderr
    spawns = execution_log.read(tree.root / execution_log.FILE)
    assert {spawn.mnemonic for spawn in spawns} == {"TestRunner"}
    assert _build(tree) == _NOTHING


def test_the_binary_log_says_the_same_as_json(tree: Nested):
    def log(name: str, *options: str) -> list[execution_log.Spawn]:
        assert tree.bazel("clean").returncode == 0
        process = tree.bazel("build", "--disk_cache=", *options, "//torch_xla_lite:outputs")
        assert process.returncode == 0, process.stderr
        return sorted(execution_log.read(tree.root / name), key=lambda spawn: spawn.outputs)

    # Bazel 7 writes one of them.
    of_json = log("build/execution.json", "--execution_log_json_file=build/execution.json")
    assert log(str(execution_log.FILE), "--config=report") == of_json != []


def test_a_binary_log_that_a_killed_bazel_left_is_read_as_far_as_it_goes(tree: Nested):
    tree.write("leaf_more.cc", "namespace torch_xla_lite { int Logged() { return 1; } }\n")
    assert "leaf_more.o" in _build(tree)
    log = tree.root / execution_log.FILE
    whole, data = list(execution_log.read(log)), log.read_bytes()
    for length in range(0, len(data), 499):
        log.write_bytes(data[:length])
        read = list(execution_log.read(log))
        assert read == whole[: len(read)] != whole


def test_a_new_source_compiles_itself(tree: Nested):
    tree.write("leaf_more.cc", "namespace torch_xla_lite { int More() { return 1; } }\n")
    assert _build(tree) == {"leaf_more.o"} | _LINKED


def test_an_edit_of_python_code_runs_the_tests_that_import_it(tree: Nested):
    def tested() -> set[str]:
        process = tree.bazel("test", *_TESTS)
        assert process.returncode == 0, process.stdout + process.stderr
        lines = [line for line in process.stdout.splitlines() if line.startswith("//")]
        return {line.split()[0].partition(":")[2] for line in lines if "(cached)" not in line}

    tested()
    assert tested() == set()
    _append(tree, "torch_xla_lite/pool.py", f"# {time.time_ns()}")
    assert tested() == {"pool_test"}


@pytest.mark.parametrize(
    ("name", "changed", "compiled"),
    [
        ("pybind11", "include/pybind11/pybind11.h", ["module"]),
        ("torch", "include/c10/core/DeviceType.h", ["tensor", "leaf"]),
        ("torch", "include/ATen/core/Tensor.h", []),
        ("torch", "", []),
        ("pybind11", "", []),
        ("numpy", "", []),
        ("numpy", "__init__.py", []),
    ],
)
def test_another_build_of_a_package_compiles_what_includes_the_changed_header(
    tree: Nested, name: str, changed: str, compiled: list[str]
):
    tree.reinstall(name, changed)
    assert _build(tree) == _objects(*compiled)


def _other_symbol(library: bytes) -> bytes:
    """With another parameter of a function that nothing here calls."""
    old, new = b"\0_ZN3c1015GetCPUAllocatorEv\0", b"\0_ZN3c1015GetCPUAllocatorEi\0"
    assert old in library
    return library.replace(old, new)


@pytest.mark.parametrize(
    ("edit", "ran"),
    # Of a library, only the symbols count: a stand-in has them, and links are linked to that.
    [(a_comment, _NOTHING), (_other_symbol, {"c10.o", "interface_c10.so"} | _LINKED)],
)
def test_another_library_of_torch_compiles_nothing(tree: Nested, edit: Edit, ran: set[str]):
    tree.reinstall("torch", "lib/libc10.so", edit)
    assert _build(tree) == ran
