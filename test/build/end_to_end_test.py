"""setup.py with a real Bazel, in a small copy of this tree."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bazel.pybuild.invocation import execution_log
from bazel.pybuild.machine import packages
from test.build.environments import environment
from test.build.nested import Nested


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Iterator[Nested]:
    tree = Nested(tmp_path_factory.mktemp("nested"), shared)
    yield tree
    tree.close()


@pytest.fixture
def built(nested: Nested) -> Nested:
    """The tree after a `develop`, whatever the test before did to it."""
    nested.write("one.cc", "int one() { return 1; }\n")
    nested.develop()
    return nested


def _identity(tree: Nested) -> list[tuple[int, int]]:
    return [(file.stat().st_ino, file.stat().st_mtime_ns) for file in tree.outputs]


def _at_work(tree: Nested, **changes: str) -> "subprocess.Popen[str]":
    """A `develop` that has got so far that Bazel works."""
    events = tree.root / "build" / "events.json"
    events.unlink()
    process = subprocess.Popen(
        [tree.python, "setup.py", "develop"],
        cwd=tree.root,
        env=tree.environ(**changes),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not events.exists():
        assert process.poll() is None
        time.sleep(0.01)
    return process


_NOTHING = {"compile": 0, "link": 0, "other": 0}


def test_the_first_develop_builds_all_and_makes_the_package_importable(
    tmp_path: Path, shared: Path
):
    tree = Nested(tmp_path, shared)
    try:
        # Otherwise Bazel leaves out what takes a short time.
        options = "--disk_cache= --record_full_profiler_data"
        report = tree.develop(TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS=options)
        profile = json.loads(gzip.decompress((tree.root / "build" / "profile.gz").read_bytes()))
    finally:
        tree.close()
    # torch and jaxlib: Bazel repeats a repository rule that meets a label late. What meets one at
    # once takes 0.2 ms, and a program at least 10.
    calls = [event for event in profile["traceEvents"] if event["name"] == "find_package"]
    assert len([call for call in calls if call["dur"] > 5000]) == 2
    assert report["succeeded"]
    assert report["actions"]["compile"] == 2
    assert {output["path"] for output in report["outputs"]} == {
        str(file.relative_to(tree.root)) for file in tree.outputs
    }
    assert all(output["changed"] for output in report["outputs"])
    script = (
        "import importlib.metadata, torch_xla_lite._build_info as info;"
        "print(info.__file__, importlib.metadata.version('torch_xla_lite'))"
    )
    # Outside the tree, so that the editable install is what finds the package.
    process = subprocess.run(
        [tree.python, "-P", "-c", script], cwd="/", capture_output=True, text=True, check=True
    )
    imported, version = process.stdout.split()
    assert Path(imported).samefile(tree.outputs[0])
    assert version == "0.1.0"


def test_a_second_develop_runs_no_action_and_replaces_no_file(built: Nested):
    before = _identity(built)
    process = built.setup("develop")
    report = json.loads((built.root / "build" / "report.json").read_text())
    assert report["actions"] == _NOTHING
    assert not any(output["changed"] for output in report["outputs"])
    assert _identity(built) == before
    cuda, line = process.stdout.splitlines()
    assert cuda.startswith("torch_xla_lite: CUDA off: ")
    assert line.startswith("torch_xla_lite: up to date in ")


def test_a_develop_that_changes_nothing_does_not_load_the_code_that_reads_libraries(
    built: Nested,
):
    process = built.run(built.python, "-X", "importtime", "setup.py", "develop")
    assert "bazel.pybuild.install.outputs" in process.stderr
    assert "bazel.pybuild.install.verify" not in process.stderr
    assert "third_party.elf" not in process.stderr


def test_develop_and_a_bare_bazel_build_do_not_disturb_each_other(built: Nested):
    process = built.bazel("build", "//...")
    assert process.returncode == 0, process.stderr
    assert built.develop()["actions"] == _NOTHING
    process = built.bazel("build", "//...", "--config=report")
    assert process.returncode == 0, process.stderr
    assert (built.root / execution_log.FILE).read_bytes() == b""


def test_an_edit_of_one_source_compiles_one_source(built: Nested):
    built.write("one.cc", f"int one() {{ return {time.time_ns() % 2**31}; }}\n")
    report = built.develop()
    assert report["actions"] == {"compile": 1, "link": 1, "other": 0}
    changed = {Path(output["path"]).name: output["changed"] for output in report["outputs"]}
    assert changed == {"_build_info.py": False, "libtorch_xla_lite.so": True}


def test_another_version_of_the_package_runs_no_action(built: Nested):
    assert built.develop(TORCH_XLA_LITE_BUILD_VERSION="7.0")["actions"] == _NOTHING
    assert built.develop()["actions"] == _NOTHING


@pytest.mark.parametrize(
    "lose",
    [Path.unlink, lambda file: file.write_bytes(b"damaged")],
    ids=["deleted", "damaged"],
)
def test_outputs_that_were_lost_are_installed_again_without_an_action(
    built: Nested, lose: Callable[[Path], object]
):
    before = [file.read_bytes() for file in built.outputs]
    for file in built.outputs:
        lose(file)
    assert built.develop()["actions"] == _NOTHING
    assert [file.read_bytes() for file in built.outputs] == before


def test_an_order_of_functions_links_again_and_compiles_nothing(built: Nested):
    actions = built.develop(USE_PRIORITIZED_TEXT_FOR_LD="1")["actions"]
    # The linker's script is made too, unless a `bazel build //...` has done that before.
    assert (actions["compile"], actions["link"]) == (0, 1)


def test_without_the_variable_no_order_of_functions_is_part_of_the_graph(built: Nested):
    built.develop(USE_PRIORITIZED_TEXT_FOR_LD="1")
    reached = built.bazel("cquery", "deps(//torch_xla_lite:outputs)")
    assert reached.returncode == 0, reached.stderr
    assert "//torch_xla_lite:two" in reached.stdout
    assert "//bazel/link_order:link_order" not in reached.stdout
    # A bare build and one without the variable are the same.
    assert built.bazel("build", "//torch_xla_lite:outputs").returncode == 0
    assert built.develop()["actions"] == _NOTHING


_MORE = """
lite_cc_shared_library(
    name = "lib/libmore.so",
    dynamic_deps = ["lib/libtorch_xla_lite.so"],
    deps = [":two"],
)
"""


def test_the_graph_can_be_queried_where_no_library_wheel_is_installed(built: Nested):
    file = built.root / "torch_xla_lite" / "BUILD.bazel"
    text = file.read_text()
    file.write_text(text + _MORE)
    # A server that has built before knows packages that a new one has to find.
    built.bazel("shutdown")
    queries = (
        "deps(//...)",
        "rdeps(//..., //torch_xla_lite:one)",
        "somepath(//torch_xla_lite:lib/libmore.so, //torch_xla_lite:one)",
    )
    answers = [built.bazel("query", query) for query in queries]
    file.write_text(text)
    for answer in answers:
        assert answer.returncode == 0, answer.stderr
        assert "//torch_xla_lite:one" in answer.stdout.split()


def test_a_link_to_an_installed_library_that_is_missing_is_an_error_that_names_it(built: Nested):
    file = built.root / "torch_xla_lite" / "BUILD.bazel"
    text = file.read_text()
    file.write_text(text + _MORE)
    installed = "--define=torch_xla_lite_lib=installed"
    process = built.bazel("build", installed, "//torch_xla_lite:lib/libmore.so")
    file.write_text(text)
    assert process.returncode != 0
    assert "torch_xla_lite_lib has no libtorch_xla_lite.so, or is not installed" in process.stderr


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


def test_a_cross_compiler_that_is_missing_is_named_with_the_way_to_get_it(built: Nested):
    missing = "--repo_env=TORCH_XLA_LITE_AARCH64=none"
    process = built.bazel("build", "--config=aarch64", missing, "//torch_xla_lite:one")
    assert process.returncode != 0
    assert "There is no C++ compiler for 64-bit ARM here" in process.stderr
    assert "apt-get install g++-aarch64-linux-gnu" in process.stderr


def test_a_compile_error_is_shown_and_does_not_change_the_installed_files(built: Nested):
    before = _identity(built)
    built.write("one.cc", "int one() { return unknown_name; }\n")
    process = built.setup("develop")
    assert process.returncode == 1
    assert "unknown_name" in process.stderr
    assert "The installed files have not changed." in process.stderr
    assert process.stderr.splitlines()[-1].endswith("VERBOSE=1 python setup.py develop")
    # Bazel says so twice.
    assert "Build did NOT complete" not in process.stderr
    assert _identity(built) == before
    assert not json.loads((built.root / "build" / "report.json").read_text())["succeeded"]


def test_a_library_that_would_not_work_elsewhere_is_not_installed(built: Nested):
    before = _identity(built)
    place = built.root / "torch_xla_lite" / "one.cc"
    built.write("one.cc", f'const char* place = "{place}";\nint one() {{ return 1; }}\n')
    process = built.setup("develop")
    assert process.returncode != 0
    assert "lib/libtorch_xla_lite.so contains the path of this tree" in process.stderr
    assert _identity(built) == before


def test_a_develop_that_was_killed_is_repaired_by_the_next(built: Nested):
    built.write("one.cc", f"int one() {{ return {time.time_ns() % 2**31}; }}\n")
    before = _identity(built)
    process = _at_work(built, TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS="--disk_cache=")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert _identity(built) == before
    report = built.develop()
    assert report["succeeded"]
    assert any(output["changed"] for output in report["outputs"])


def test_an_interrupted_develop_says_so_without_a_traceback(built: Nested):
    before = _identity(built)
    # Long enough to be met at work, on a slow machine and on a fast one.
    source = '#include <regex>\nint one() { return std::regex_match("a", std::regex("a")); }\n'
    built.write("one.cc", f"{source}// {time.time_ns()}\n")
    process = _at_work(built)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert _identity(built) == before


def test_another_clone_with_another_environment_compiles_nothing(
    built: Nested, shared: Path, tmp_path: Path
):
    other = Nested(tmp_path / "far" / "away", shared)
    try:
        report = other.develop()
    finally:
        other.close()
    assert report["actions"] == _NOTHING
    assert report["cache_hits"]["disk"] > 0
    assert [file.read_bytes() for file in other.outputs] == [
        file.read_bytes() for file in built.outputs
    ]


def test_another_toolchain_at_the_same_place_never_hits(shared: Path, tmp_path: Path):
    compiler = tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "@{tmp_path}/options" "$@"\n')
    compiler.chmod(0o755)
    reports = []
    for clone, options in (("a", "-O1"), ("b", "-fwrapv"), ("c", "-O1")):
        (tmp_path / "options").write_text(options)
        tree = Nested(tmp_path / clone, shared)
        try:
            reports.append(tree.develop(CC=str(compiler)))
        finally:
            tree.close()
    assert [report["actions"]["compile"] for report in reports] == [2, 2, 0]
    # Actions that only copy files may hit; those of the compiler and the linker did not.
    assert reports[1]["cache_hits"]["disk"] == 0
    assert reports[2]["cache_hits"]["disk"] > 0


def test_bazel_refuses_a_compiler_that_was_changed_until_the_tree_is_configured_for_it(
    shared: Path, tmp_path: Path
):
    compiler = tmp_path / "cc"

    def install(options: str) -> None:
        compiler.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} {options} "$@"\n')
        compiler.chmod(0o755)

    tree = Nested(tmp_path / "clone", shared)

    def build() -> "subprocess.CompletedProcess[str]":
        return tree.bazel("build", "//torch_xla_lite:outputs", CC=str(compiler))

    try:
        for before, after, configured in (("-O1", "-O2", "-O2"), ("-O2", "-O1", "-O2")):
            install(before)
            tree.configure(CC=str(compiler))
            assert build().returncode == 0
            install(after)
            process = build()
            assert process.returncode != 0
            assert f"The compiler was changed after this tree was configured: {compiler}\n" in (
                process.stderr
            )
            assert "python setup.py develop" in process.stderr
            # The second time it is the one before.
            install(configured)
            tree.configure(CC=str(compiler))
            assert build().returncode == 0
        compiler.unlink()
        assert f"configured: {compiler}\n" in build().stderr
    finally:
        tree.close()


def _fetched_torch(built: Nested) -> Path:
    """The folder that the repository rule filled. Modules call it _main~external~torch."""
    base = Path(built.bazel("info", "output_base").stdout.strip())
    (folder,) = (base / "external").glob("*torch")
    return folder


def test_clean_removes_what_was_built_and_keeps_what_was_fetched(built: Nested):
    external = _fetched_torch(built)
    fetched = external.stat().st_ctime_ns
    process = built.setup("clean")
    assert process.returncode == 0, process.stderr
    assert not any(file.exists() for file in [*built.outputs, built.root / "build"])
    report = built.develop()
    assert report["actions"]["compile"] == 0
    assert external.stat().st_ctime_ns == fetched


def test_a_wheel_with_debug_files_beside_it(built: Nested, tmp_path: Path):
    folder = tmp_path / "dist"
    process = built.setup("bdist_wheel", "-d", str(folder), TORCH_XLA_LITE_DEBUG_FILES="1")
    assert process.returncode == 0, process.stderr
    debug = folder / "libtorch_xla_lite.so.debug"
    (wheel,) = folder.glob("*.whl")
    assert sorted(folder.iterdir()) == sorted([debug, wheel])
    with zipfile.ZipFile(wheel) as archive:
        library = Path(archive.extract("torch_xla_lite/lib/libtorch_xla_lite.so", tmp_path))
    debug.rename(library.with_name(debug.name))
    # The address of one() in the table for the loader; the rest of the names is in the debug file.
    names = _printed("nm", "--dynamic", library)
    (address,) = re.findall(r"^(\w+) T _Z3onev$", names, re.MULTILINE)
    assert "torch_xla_lite/one.cc:1\n" in _printed("addr2line", "--exe", library, address)


def _printed(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_debug_is_another_configuration_that_leaves_the_first_one_built(built: Nested):
    release = built.outputs[1].stat().st_size
    built.develop(DEBUG="1")
    assert built.outputs[1].stat().st_size > release
    assert built.develop()["actions"] == _NOTHING
    assert built.outputs[1].stat().st_size == release
    assert built.develop(DEBUG="1")["actions"] == _NOTHING


def test_an_upgrade_of_torch_is_noticed(nested: Nested, built: Nested):
    folders = [Path(line) for line in (nested.site / "ours.pth").read_text().split()]
    (installed,) = [info for folder in folders for info in folder.glob("torch-*.dist-info")]
    upgraded = nested.site / installed.name
    shutil.copytree(installed, upgraded)
    (upgraded / "RECORD").write_text("torch/__init__.py,sha256=other,1\n")
    (nested.site / "torch").symlink_to(installed.parent / "torch")
    settings = nested.root / ".bazelrc.generated"
    before = settings.read_text()
    try:
        nested.develop()
        assert settings.read_text() != before
    finally:
        shutil.rmtree(upgraded)
        (nested.site / "torch").unlink()


def test_a_comment_in_the_requirements_does_not_make_bazel_read_torch_again(built: Nested):
    layers = _fetched_torch(built) / "layers.bzl"
    before = layers.stat()
    with (built.root / "requirements.txt").open("a") as file:
        file.write("# A comment.\n")
    assert built.develop()["actions"] == _NOTHING
    assert layers.stat() == before


def test_an_upgrade_of_any_package_runs_tests_again(built: Nested):
    (built.root / "checks").mkdir()
    (built.root / "checks" / "one_test.py").write_text("def test_one():\n    pass\n")
    (built.root / "checks" / "BUILD.bazel").write_text(
        'load("//bazel:defs.bzl", "lite_py_test")\n'
        'lite_py_test(name = "one_test", srcs = ["one_test.py"])\n'
    )

    def is_cached() -> bool:
        process = built.bazel("test", "//checks:one_test")
        assert process.returncode == 0, process.stdout + process.stderr
        return "(cached) PASSED" in process.stdout

    is_cached()
    assert is_cached()
    package = built.site / "one_more-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: one_more\nVersion: 1.0\n")
    try:
        built.configure()
        assert not is_cached()
    finally:
        shutil.rmtree(package)
        shutil.rmtree(built.root / "checks")


def test_settings_of_bazel_7_do_not_stop_bazel_4(built: Nested):
    settings = built.root / ".bazelrc.generated"
    right = settings.read_text()
    settings.write_text(f"{right}common --noenable_bzlmod --no_such_option_of_a_later_bazel\n")
    assert built.develop()["actions"] == _NOTHING
    assert settings.read_text() == right


@pytest.mark.parametrize(
    ("removed", "installed", "message"),
    [
        ("torch", None, "torch is not installed for "),
        ("jaxlib", None, "jaxlib is not installed for "),
        ("torch", "2.14.1", "is built for torch 2.13.0, but torch 2.14.1 is installed"),
        ("jax", "0.11.0", "is built for jax 0.10.2, but jax 0.11.0 is installed"),
    ],
)
def test_a_missing_or_other_package_is_reported_before_bazel_builds(
    built: Nested, tmp_path: Path, removed: str, installed: str | None, message: str
):
    before = _identity(built)
    python = environment(tmp_path / "environment", see_ours=False)
    (site,) = python.parent.parent.glob("lib/python3*/site-packages")
    wanted = packages.wanted(built.root)
    versions = {**wanted, removed: installed}
    for name, version in versions.items():
        if version:
            (site / f"{name}-{version}.dist-info").mkdir()
    process = built.run(python, "setup.py", "develop")
    assert process.returncode == 1
    assert message in process.stderr
    assert process.stderr.splitlines()[-1].endswith(f" install {removed}=={wanted[removed]}")
    assert _identity(built) == before
    assert not list(site.glob("*torch_xla_lite*"))


def test_bazel_reports_a_deleted_interpreter_and_develop_corrects_it(built: Nested):
    settings = built.root / ".bazelrc.generated"
    right = settings.read_text()
    settings.write_text(right.replace(str(built.python), "/gone/bin/python"))
    process = built.bazel("build", "//torch_xla_lite:outputs")
    assert process.returncode != 0
    assert "/gone/bin/python" in process.stderr
    assert "python setup.py develop" in process.stderr
    assert built.develop()["actions"] == _NOTHING
    assert settings.read_text() == right


def _pip(tree: Nested, *arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
    return tree.run(tree.python, "-m", "pip", *arguments, **changes)


def test_settings_of_wheels_are_named_as_ignored_and_the_version_is_used(built: Nested):
    process = built.setup(
        "develop", TORCH_XLA_LITE_BUILD_NUMBER="3", TORCH_XLA_LITE_BUILD_VERSION="0.9"
    )
    assert process.returncode == 0, process.stderr
    assert "torch_xla_lite: only wheels use TORCH_XLA_LITE_BUILD_NUMBER\n" in process.stderr
    assert (built.site / "torch_xla_lite-0.9.dist-info").exists()
    built.develop()
    assert (built.site / "torch_xla_lite-0.1.0.dist-info").exists()


def test_pip_makes_the_same_editable_install_and_develop_accepts_it(built: Nested):
    def files() -> list[str]:
        return sorted(entry.name for entry in built.site.glob("*torch_xla_lite*"))

    developed = files()
    _pip(built, "uninstall", "--yes", "torch_xla_lite")
    assert files() == []
    process = _pip(built, "install", "--no-build-isolation", "--no-deps", "--no-index", "-e", ".")
    assert process.returncode == 0, process.stdout + process.stderr
    assert files() == developed
    (installed,) = built.site.glob("torch_xla_lite-*.dist-info")
    before = installed.stat().st_ctime_ns
    process = built.setup("develop")
    assert process.stdout.splitlines()[-1].startswith("torch_xla_lite: up to date")
    assert installed.stat().st_ctime_ns == before


def test_develop_names_the_command_that_removes_an_installed_wheel(built: Nested):
    _pip(built, "uninstall", "--yes", "torch_xla_lite")
    process = _pip(built, "install", "--no-build-isolation", "--no-deps", "--no-index", ".")
    assert process.returncode == 0, process.stdout + process.stderr
    assert (built.site / "torch_xla_lite" / "lib" / "libtorch_xla_lite.so").exists()
    process = built.setup("develop")
    assert process.returncode == 1
    assert "torch_xla_lite, installed from a wheel in " in process.stderr
    assert (built.site / "torch_xla_lite" / "lib" / "libtorch_xla_lite.so").exists()
    command = process.stderr.splitlines()[-1].partition(":  ")[2]
    assert built.run("/bin/sh", "-c", command).returncode == 0
    built.develop()
    assert not (built.site / "torch_xla_lite").exists()
    (_, info) = sorted(entry.name for entry in built.site.glob("*torch_xla_lite*"))
    assert info == "torch_xla_lite-0.1.0.dist-info"


def test_pip_shows_our_message_and_not_a_traceback(built: Nested):
    process = _pip(
        built, "install", "--no-build-isolation", "--no-deps", "-e", ".", MAX_JOBS="many"
    )
    assert process.returncode != 0
    assert "error: MAX_JOBS='many' is not an integer >= 1." in process.stdout + process.stderr
    assert "Traceback" not in process.stdout + process.stderr


# root may write to every folder; without this capability it is bound to permissions as others are.
_AS_A_USER = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []


@pytest.fixture
def read_only(built: Nested) -> Iterator[Nested]:
    """The tree, with an editable install in a folder of packages that the user may not write to."""
    built.site.chmod(0o555)
    yield built
    built.site.chmod(0o755)


def test_develop_works_where_the_folder_of_packages_is_read_only(read_only: Nested):
    read_only.write("one.cc", f"int one() {{ return {time.time_ns() % 2**31}; }}\n")
    process = read_only.run(*_AS_A_USER, read_only.python, "setup.py", "develop")
    assert process.returncode == 0, process.stderr
    assert "1 compiled, 1 linked" in process.stdout


def test_an_install_into_a_read_only_folder_is_refused_before_the_build(read_only: Nested):
    read_only.write("one.cc", "int one() { return 1 }\n")
    (read_only.root / ".editable" / "torch_xla_lite").unlink()
    process = read_only.run(*_AS_A_USER, read_only.python, "setup.py", "develop")
    assert process.returncode == 1
    assert f"are in {read_only.site}, where you may not write." in process.stderr
    assert process.stdout == ""


def test_options_that_bazel_rejects_are_reported_with_their_variables(built: Nested):
    process = built.setup("develop", TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS="--no_such_option")
    assert process.returncode == 1
    assert "Unrecognized option: --no_such_option" in process.stderr
    assert "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS" in process.stderr


def _report(tree: Nested) -> dict[str, Any]:
    return json.loads((tree.root / "build" / "report.json").read_text())


def test_two_develops_at_once_take_turns(built: Nested):
    # Compiled for longer than the second one takes to start.
    source = f"#include <regex>\nint one() {{ return {time.time_ns() % 2**31}; }}\n"
    built.write("one.cc", source)
    command = [built.python, "setup.py", "develop"]
    processes = [
        subprocess.Popen(
            command, cwd=built.root, env=built.environ(), stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    waiting = "torch_xla_lite: waiting for another command in this tree\n"
    assert sorted(output.count(waiting) for output in outputs) == [0, 1]
    # The later one has found all done.
    assert _report(built)["actions"] == _NOTHING
