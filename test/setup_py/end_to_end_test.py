"""`setup.py develop` with a real Bazel, in a small copy of this tree."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bazel.pybuild.install import verify
from bazel.pybuild.why import execution_log
from test.build.nested import NOTHING, First, Nested
from test.build.shell import AS_A_USER, program
from third_party import elf

_OPTIONS = "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"
_BUILD_FILE = "torch_xla_lite/BUILD.bazel"


def test_the_first_develop_builds_all_and_makes_the_package_importable(
    first_build: First, built: Nested
):
    # torch and jaxlib: Bazel repeats a repository rule that meets a label late. What meets one at
    # once takes 0.2 ms, and a program at least 10.
    calls = [
        event for event in first_build.profile["traceEvents"] if event["name"] == "find_package"
    ]
    assert len([call for call in calls if call["dur"] > 5000]) == 2
    assert first_build.report["succeeded"]
    assert first_build.report["actions"]["compile"] == 2
    assert {output["path"] for output in first_build.report["outputs"]} == {
        str(file.relative_to(built.root)) for file in built.outputs
    }
    assert all(output["changed"] for output in first_build.report["outputs"])
    script = (
        "import importlib.metadata, torch_xla_lite._build_info as info;"
        "print(info.__file__, importlib.metadata.version('torch_xla_lite'))"
    )
    # Outside the tree, so that the editable install is what finds the package.
    process = subprocess.run(
        [built.python, "-P", "-c", script], cwd="/", capture_output=True, text=True, check=True
    )
    imported, version = process.stdout.split()
    assert Path(imported).samefile(built.outputs[0])
    assert version == "0.1.0"


# What a `develop` that finds nothing to do has no use for; each costs milliseconds of its 140.
_EXPENSIVE = {
    *("argparse", "asyncio", "concurrent.futures", "dataclasses", "hashlib", "importlib.metadata"),
    *("inspect", "jax", "logging", "pip", "setuptools", "shutil", "socket", "tempfile"),
    *("tomllib", "torch", "urllib.request", "zipfile", verify.__name__, elf.__name__),
}


def test_a_second_develop_runs_no_action_replaces_no_file_and_imports_nothing_expensive(
    built: Nested,
):
    before = built.identity()
    process = built.run(built.python, "-X", "importtime", "setup.py", "develop")
    report = built.report()
    assert report["actions"] == NOTHING
    assert not any(output["changed"] for output in report["outputs"])
    assert built.identity() == before
    assert process.stdout.splitlines()[-1].startswith("torch_xla_lite: up to date in ")
    lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    imported = {line.rpartition("|")[2].strip() for line in lines}
    assert sorted(imported & _EXPENSIVE) == []
    # At 0.3 ms each; there are 103 with those of the start of Python itself.
    assert len(imported) <= 112


def test_develop_and_a_bare_bazel_build_do_not_disturb_each_other(built: Nested):
    built.bazel("build", "//...", check=True)
    assert built.develop()["actions"] == NOTHING
    built.bazel("build", "//...", "--config=report", check=True)
    assert (built.root / execution_log.FILE).read_bytes() == b""


def test_outputs_that_were_lost_are_installed_again_without_an_action(built: Nested):
    before = [file.read_bytes() for file in built.outputs]
    built.outputs[0].unlink()
    built.outputs[1].write_bytes(b"damaged")
    assert built.develop()["actions"] == NOTHING
    assert [file.read_bytes() for file in built.outputs] == before


@pytest.mark.nightly
def test_an_order_of_functions_links_again_and_is_not_part_of_other_builds(built: Nested):
    actions = built.develop(USE_PRIORITIZED_TEXT_FOR_LD="1")["actions"]
    # The linker's script is made too, unless a `bazel build //...` has done that before.
    assert (actions["compile"], actions["link"]) == (0, 1)
    reached = built.bazel("cquery", "deps(//torch_xla_lite:outputs)", check=True)
    assert "//torch_xla_lite:two" in reached.stdout
    assert "//bazel/link_order:link_order" not in reached.stdout
    assert built.develop()["actions"] == NOTHING


_MORE = """
lite_cc_shared_library(
    name = "lib/libmore.so",
    dynamic_deps = ["lib/libtorch_xla_lite.so"],
    deps = [":two"],
)
"""


@pytest.mark.nightly
def test_the_graph_can_be_queried_where_no_library_wheel_is_installed(built: Nested):
    built.append(_BUILD_FILE, _MORE)
    # A server that has built before knows packages that a new one has to find.
    built.bazel("shutdown")
    queries = (
        "deps(//...)",
        "rdeps(//..., //torch_xla_lite:one)",
        "somepath(//torch_xla_lite:lib/libmore.so, //torch_xla_lite:one)",
    )
    for query in queries:
        answer = built.bazel("query", query, check=True)
        assert "//torch_xla_lite:one" in answer.stdout.split()


@pytest.mark.nightly
def test_a_link_to_an_installed_library_that_is_missing_is_an_error_that_names_it(built: Nested):
    built.append(_BUILD_FILE, _MORE)
    installed = "--define=torch_xla_lite_lib=installed"
    process = built.bazel("build", installed, "//torch_xla_lite:lib/libmore.so")
    assert process.returncode != 0
    assert "torch_xla_lite_lib has no libtorch_xla_lite.so" in process.stderr


@pytest.mark.nightly
@pytest.mark.skipif(
    shutil.which("aarch64-linux-gnu-g++") is None, reason="only scripts/test.sh installs it"
)
def test_the_version_of_the_cross_compiler_is_an_input_of_what_it_compiles(built: Nested):
    # Not of what is compiled for this machine, which installing it must not compile again.
    query = 'inputs(".*aarch64_gcc/identity.txt", mnemonic("CppCompile", //torch_xla_lite:one))'
    command = ["aquery", "--output=text", query]
    for_arm = built.bazel(*command, "--config=aarch64")
    assert "Compiling torch_xla_lite/one.cc" in for_arm.stdout, for_arm.stderr
    assert "Compiling" not in built.bazel(*command).stdout


@pytest.mark.nightly
def test_a_cross_compiler_that_is_missing_is_named_with_the_way_to_get_it(built: Nested):
    missing = "--repo_env=TORCH_XLA_LITE_AARCH64=none"
    process = built.bazel("build", "--config=aarch64", missing, "//torch_xla_lite:one")
    assert process.returncode != 0
    assert "apt-get install g++-aarch64-linux-gnu" in process.stderr


def test_a_compile_error_is_shown_and_does_not_change_the_installed_files(built: Nested):
    before = built.identity()
    built.write("one.cc", "int one() { return unknown_name; }\n")
    process = built.setup("develop")
    assert process.returncode == 1
    assert "unknown_name" in process.stderr
    assert "The installed files have not changed." in process.stderr
    assert process.stderr.splitlines()[-1].endswith("VERBOSE=1 python setup.py develop")
    # Bazel says so twice.
    assert "Build did NOT complete" not in process.stderr
    assert built.identity() == before
    assert not built.report()["succeeded"]


def test_a_library_that_would_not_work_elsewhere_is_not_installed(built: Nested):
    before = built.identity()
    place = built.root / "torch_xla_lite" / "one.cc"
    built.write("one.cc", f'const char* place = "{place}";\nint one() {{ return 1; }}\n')
    process = built.setup("develop")
    assert process.returncode != 0
    assert "lib/libtorch_xla_lite.so contains the path of this tree" in process.stderr
    assert built.identity() == before


@pytest.mark.nightly
def test_another_clone_with_another_environment_compiles_nothing(
    built: Nested, shared: Path, tmp_path: Path
):
    with closing(Nested(tmp_path / "far" / "away", shared)) as other:
        report = other.develop()
    assert report["actions"] == NOTHING
    assert report["cache_hits"]["disk"] > 0
    assert [file.read_bytes() for file in other.outputs] == [
        file.read_bytes() for file in built.outputs
    ]


def _compiler(file: Path, options: str) -> str:
    """Writes a compiler that is gcc with some options."""
    return str(program(file, f'exec {shutil.which("gcc")} {options} "$@"'))


@pytest.mark.nightly
def test_another_toolchain_at_the_same_place_never_hits(nested: Nested, tmp_path: Path):
    compiler = _compiler(tmp_path / "cc", f"@{tmp_path}/options")
    reports = []
    for options in ("-O1", "-fwrapv", "-O1"):
        (tmp_path / "options").write_text(options)
        nested.must("clean")
        # As in another clone; the file of the compiler is that of before.
        for state in nested.root.glob(".bazelrc.generated*"):
            state.unlink()
        reports.append(nested.develop(CC=compiler))
    assert [report["actions"]["compile"] for report in reports] == [2, 2, 0]
    # Actions that only copy files may hit; those of the compiler and the linker did not.
    assert reports[1]["cache_hits"]["disk"] == 0
    assert reports[2]["cache_hits"]["disk"] > 0


@pytest.mark.nightly
def test_bazel_refuses_a_compiler_that_was_changed_until_the_tree_is_configured_for_it(
    nested: Nested, tmp_path: Path
):
    compiler = tmp_path / "cc"

    def build() -> "subprocess.CompletedProcess[str]":
        return nested.bazel("build", "//torch_xla_lite:outputs", CC=str(compiler))

    for before, after, configured in (("-O1", "-O2", "-O2"), ("-O2", "-O1", "-O2")):
        nested.configure(CC=_compiler(compiler, before))
        assert build().returncode == 0
        _compiler(compiler, after)
        process = build()
        assert process.returncode != 0
        assert f"changed after this tree was configured: {compiler}\n" in process.stderr
        assert "python setup.py develop" in process.stderr
        # The second time it is the one before.
        nested.configure(CC=_compiler(compiler, configured))
        assert build().returncode == 0
    compiler.unlink()
    assert f"configured: {compiler}\n" in build().stderr


@pytest.mark.nightly
def test_a_wheel_with_debug_files_beside_it(built: Nested, tmp_path: Path):
    folder = tmp_path / "dist"
    built.must("bdist_wheel", "-d", str(folder), TORCH_XLA_LITE_DEBUG_FILES="1")
    debug = folder / "libtorch_xla_lite.so.debug"
    (wheel,) = folder.glob("*.whl")
    assert sorted(folder.iterdir()) == sorted([debug, wheel])
    shutil.unpack_archive(wheel, tmp_path, "zip")
    library = tmp_path / "torch_xla_lite/lib/libtorch_xla_lite.so"
    debug.rename(library.with_name(debug.name))
    # The address of one() in the table for the loader; the rest of the names is in the debug file.
    names = _printed("nm", "--dynamic", library)
    (address,) = re.findall(r"^(\w+) T _Z3onev$", names, re.MULTILINE)
    assert "torch_xla_lite/one.cc:1\n" in _printed("addr2line", "--exe", library, address)


def _printed(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.nightly
def test_bazel_reports_a_deleted_interpreter_and_develop_corrects_it(built: Nested):
    settings = built.root / ".bazelrc.generated"
    right = settings.read_text()
    settings.write_text(right.replace(str(built.python), "/gone/bin/python"))
    process = built.bazel("build", "//torch_xla_lite:outputs")
    assert process.returncode != 0
    assert "/gone/bin/python" in process.stderr
    assert "python setup.py develop" in process.stderr
    assert built.develop()["actions"] == NOTHING
    assert settings.read_text() == right


def test_another_version_runs_no_action_and_settings_of_wheels_are_named_as_ignored(
    built: Nested,
):
    variables = {"TORCH_XLA_LITE_BUILD_NUMBER": "3", "TORCH_XLA_LITE_BUILD_VERSION": "0.9"}
    process = built.must("develop", **variables)
    assert "torch_xla_lite: only wheels use TORCH_XLA_LITE_BUILD_NUMBER\n" in process.stderr
    assert built.report()["actions"] == NOTHING
    assert (built.site / "torch_xla_lite-0.9.dist-info").exists()
    built.develop()
    assert (built.site / "torch_xla_lite-0.1.0.dist-info").exists()


@pytest.fixture
def read_only(built: Nested) -> Iterator[Nested]:
    """The tree, with an editable install in a folder of packages that the user may not write to."""
    built.site.chmod(0o555)
    yield built
    built.site.chmod(0o755)


def test_develop_works_where_the_folder_of_packages_is_read_only(read_only: Nested):
    read_only.write("one.cc", f"int one() {{ return {time.time_ns() % 2**31}; }}\n")
    process = read_only.run(*AS_A_USER, read_only.python, "setup.py", "develop", check=True)
    assert "1 compiled, 1 linked" in process.stdout
    pth = read_only.site / "__editable__.torch_xla_lite.pth"
    pth.write_text("outdated\n")
    process = read_only.run(*AS_A_USER, read_only.python, "setup.py", "develop")
    assert process.returncode == 1
    assert str(read_only.site) in process.stderr
    assert process.stdout == "", "it is refused before the build"


def test_options_that_bazel_rejects_are_reported_with_their_variables(nested: Nested):
    process = nested.setup("develop", **{_OPTIONS: "--no_such_option"})
    assert process.returncode == 1
    assert "Unrecognized option: --no_such_option" in process.stderr
    assert _OPTIONS in process.stderr


@pytest.mark.nightly
def test_two_develops_at_once_take_turns(built: Nested):
    # Compiled for longer than the second one takes to start.
    source = f"#include <regex>\nint one() {{ return {time.time_ns() % 2**31}; }}\n"
    built.write("one.cc", source)
    processes = [built.start() for _ in range(2)]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    waiting = "torch_xla_lite: waiting for another command in this tree\n"
    assert sorted(output.count(waiting) for output in outputs) == [0, 1]
    # The later one has found all done.
    assert built.report()["actions"] == NOTHING


def test_an_interrupted_develop_says_so_and_the_next_repairs_what_one_that_was_killed_left(
    built: Nested,
):
    before = built.identity()
    # Long enough to be met at work, on a slow machine and on a fast one.
    source = '#include <regex>\nint one() { return std::regex_match("a", std::regex("a")); }\n'
    built.write("one.cc", f"{source}// {time.time_ns()}\n")
    process = built.at_work(**{_OPTIONS: "--disk_cache="})
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert built.identity() == before
    process = built.at_work(**{_OPTIONS: "--disk_cache="})
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert built.identity() == before
    report = built.develop()
    assert report["succeeded"]
    assert any(output["changed"] for output in report["outputs"])


def test_folders_and_links_that_developers_have_break_no_query(built: Nested):
    ignored = set((built.root / ".bazelignore").read_text().split()) - {"build", "dist"}
    assert {".claude", ".tox", ".venv", "venv", "wheelhouse", "worktrees"} <= ignored
    places = [built.root / name / "inner" for name in ignored]
    for place in places:
        place.mkdir(parents=True)
        (place / "BUILD.bazel").write_text("fail('read')\n")
    # Of a tree that was renamed.
    (built.root / "bazel-earlier-name").symlink_to(places[0])
    try:
        built.develop()
        process = built.bazel("query", "//...", check=True)
        assert "//torch_xla_lite:outputs" in process.stdout
    finally:
        for place in places:
            shutil.rmtree(place.parent)


@pytest.mark.nightly
def test_a_wheel_is_built_of_a_tree_that_may_not_be_written(built: Nested, tmp_path: Path):
    with built.read_only():
        words = (built.python, "setup.py", "bdist_wheel", "-d", tmp_path)
        process = built.run(*AS_A_USER, *words)
    assert process.returncode == 0, process.stderr
    assert "may not be written; building in" in process.stdout
    assert list(tmp_path.glob("torch_xla_lite-*.whl"))
