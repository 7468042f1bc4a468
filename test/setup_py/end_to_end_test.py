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


def test_a_compile_error_is_shown_and_does_not_change_the_installed_files(built: Nested):
    before = built.identity()
    built.write("one.cc", "int one() { return unknown_name; }\n")
    process = built.setup("develop")
    assert process.returncode == 1
    assert "unknown_name" in process.stderr
    assert "The installed files have not changed." in process.stderr
    assert process.stderr.splitlines()[-1].endswith("VERBOSE=1 python setup.py develop")
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
def test_bazel_refuses_a_compiler_that_was_changed_until_the_tree_is_configured_for_it(
    nested: Nested, tmp_path: Path
):
    compiler = tmp_path / "cc"

    def build() -> "subprocess.CompletedProcess[str]":
        return nested.bazel("build", "//torch_xla_lite:outputs", CC=str(compiler))

    for before, after, configured in (("-O1", "-O2", "-O2"), ("-O2", "-O1", "-O2")):
        nested.configure(CC=_compiler(compiler, before))
        if "enable_workspace" not in (nested.root / ".bazelrc.generated").read_text():
            pytest.skip("a Bazel before 7.1 watches no file")
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


@pytest.mark.nightly
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
    # The tree of the tests has startup options, too.
    assert f" and {_OPTIONS}. The command was:" in process.stderr


@pytest.mark.nightly
@pytest.mark.parametrize(
    "line",
    [
        "build --config=unknown",
        "build --remote_cache=grpc://127.0.0.1:9",
        "build --bes_backend=grpc://127.0.0.1:9 --bes_timeout=1s",
        "common --no_such_option",
    ],
)
def test_a_bazelrc_of_the_user_that_ends_a_build_is_named(built: Nested, line: str):
    file = built.shared / "home" / ".bazelrc"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{line}\n")
    built.write("one.cc", f"int one() {{ return {time.time_ns() % 2**30}; }}\n")
    if line.startswith("common"):
        # Bazel is asked for its flags first.
        (built.root / ".bazelrc.generated").unlink()
    try:
        process = built.setup("develop")
    finally:
        file.unlink()
    assert process.returncode == 1
    assert re.search(rf"Your options are in .*{file}\. ", process.stderr), process.stderr


def test_the_record_of_a_build_has_the_time_at_which_it_began(built: Nested):
    # So a source that is saved during a build is newer than the libraries.
    record = built.root / "build" / "installed.json"
    before = time.time_ns()
    built.develop()
    after = (built.root / "build" / "report.json").stat().st_mtime_ns
    assert before < record.stat().st_mtime_ns < after


@pytest.mark.nightly
def test_an_interrupted_develop_says_so_and_the_next_repairs_what_one_that_was_killed_left(
    built: Nested,
):
    before = built.identity()
    # Long enough to be met at work, on a slow machine and on a fast one.
    source = '#include <regex>\nint one() { return std::regex_match("a", std::regex("a")); }\n'
    built.write("one.cc", f"{source}// {time.time_ns()}\n")
    process = built.at_work(**{_OPTIONS: "--disk_cache="})
    # A closed terminal sends this signal.
    process.send_signal(signal.SIGHUP)
    _, errors = process.communicate()
    assert process.returncode == 128 + signal.SIGHUP
    assert errors.endswith("error: ended by SIGHUP. The installed files have not changed.\n")
    assert "Traceback" not in errors
    assert built.identity() == before
    process = built.at_work(**{_OPTIONS: "--disk_cache="})
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert built.identity() == before
    report = built.develop()
    assert report["succeeded"]
    assert any(output["changed"] for output in report["outputs"])


@pytest.mark.nightly
def test_folders_and_links_that_developers_have_break_no_query(built: Nested):
    ignored = set((built.root / ".bazelignore").read_text().split()) - {"build", "dist"}
    assert {".claude", ".tox", ".venv", "venv", "wheelhouse", "worktrees"} <= ignored
    places = [built.root / name / "inner" for name in ignored]
    for place in places:
        place.mkdir(parents=True)
        (place / "BUILD.bazel").write_text("fail('read')\n")
    # A link of a tree that was renamed.
    (built.root / "bazel-earlier-name").symlink_to(places[0])
    try:
        built.develop()
        process = built.bazel("query", "//...", check=True)
        assert "//torch_xla_lite:outputs" in process.stdout
    finally:
        for place in places:
            shutil.rmtree(place.parent)
