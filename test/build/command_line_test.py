"""setup.py before Bazel starts: what it prints, what fails at once, and in what order."""

import ast
import fcntl
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bazel.pybuild import flow
from bazel.pybuild.errors import BuildError
from bazel.pytest_plugin import mostly_nightly
from test.build.environments import environment
from test.build.shell import program
from test.build.tree import copied, inputs

_MARK = "bazel was started"
_ALL = ">&- 2>&- <&-"  # All streams are closed.


def _nightly(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.nightly)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what setup.py itself consists of; there is nothing that Bazel could build."""
    names = ["LICENSE", "pyproject.toml", "requirements.txt", "setup.py", "bazel/source_files.bzl"]
    folder = copied(tmp_path / "tree", inputs(*names, "bazel/pybuild", "third_party"))
    (tmp_path / "home").mkdir()
    program(tmp_path / "bin" / "bazel", f"echo {_MARK}")
    return folder


def _run(
    tree: Path,
    *arguments: str,
    python: str | Path = sys.executable,
    script: tuple[str, ...] = ("setup.py",),
    folder: Path | None = None,
    **environ: str,
) -> "subprocess.CompletedProcess[str]":
    """Runs setup.py, or other code, with a home of its own and a Bazel that only says that it was
    started."""
    return subprocess.run(
        [python, *script, *arguments],
        cwd=folder or tree,
        env=_environ(tree, **environ),
        capture_output=True,
        text=True,
        check=False,
    )


def _environ(tree: Path, **environ: str) -> dict[str, str]:
    home = str(tree.parent / "home")
    path = f"{tree.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": home, "LANG": "C.UTF-8", **environ}


def _state(tree: Path, *, but: str = "") -> dict[Path, tuple[int, int]]:
    """Every file and folder of the tree and of the home, and when each was written."""
    return {
        entry: (entry.stat().st_ino, entry.stat().st_ctime_ns)
        for folder in (tree, tree.parent / "home")
        for entry in [folder, *folder.rglob("*")]
        if not but or (but not in entry.parts and not (entry / but).exists())
    }


@pytest.mark.parametrize(
    ("arguments", "environ", "message"),
    [
        ("develop --bogus", {}, "option --bogus not recognized"),
        _nightly("build_ext --bogus", {}, "option --bogus not recognized"),
        _nightly("build_ext --include-dirs=x", {}, "option --include-dirs not recognized"),
        _nightly("sdist --bogus", {}, "option --bogus not recognized"),
        _nightly("bdist_wheel --bogus", {}, "option --bogus not recognized"),
        _nightly("--bogus develop", {}, "option --bogus not recognized"),
        _nightly("develop --watch", {}, "option --watch not recognized"),
        _nightly("explain old new", {}, "invalid command 'old'"),
        _nightly("build_ext", {"TORCH_XLA_LITE_DEBUG_FILES": "1"}, "there is no such variable"),
        _nightly("develop --dry-run", {}, "option --dry-run not recognized"),
        _nightly("--dry-run develop", {}, "option --dry-run not recognized"),
        _nightly("developp", {}, "invalid command 'developp'"),
        _nightly("build_ext developp", {}, "invalid command 'developp'"),
        _nightly("", {}, "no commands supplied"),
        _nightly("bdist_dumb", {}, "bdist_dumb is a command of setuptools' own"),
        ("build_ext install_lib", {}, "install_lib is a command of setuptools' own"),
        _nightly("build_ext", {"TORCH_XLA_LITE_BAZL": "x"}, "nearest one is TORCH_XLA_LITE_BAZEL."),
        _nightly("clean", {"TORCH_XLA_LITE_BAZL": "x"}, "nearest one is TORCH_XLA_LITE_BAZEL."),
        _nightly("bdist_wheel", {"MAX_JOBS": "two"}, "MAX_JOBS='two' is not an integer >= 1."),
        _nightly("sdist", {"BUILD_LIB_WHL": "1", "BUILD_PYTHON_ONLY": "1"}, "exclude each other"),
        ("build_ext", {"TORCH_XLA_LITE_BAZEL": "/no/bazel"}, "is not a program that can be run"),
        _nightly("bdist_wheel", {"PATH": "/nowhere"}, "neither bazelisk nor bazel on PATH"),
    ],
)
def test_an_unknown_command_is_reported_before_bazel_starts_and_before_anything_is_written(
    tree: Path, arguments: str, environ: dict[str, str], message: str
):
    before = _state(tree)
    process = _run(tree, *arguments.split(), **environ)
    assert process.returncode == 1
    assert message in process.stderr
    assert "Traceback" not in process.stderr
    assert _MARK not in process.stdout
    assert _state(tree) == before


_COUNTED = """
import sys
sys.path.insert(0, ".")
from bazel.pybuild import flow
from bazel.pybuild import configure
calls, ensure = [], configure.ensure
configure.ensure = lambda *arguments: calls.append(1) or ensure(*arguments)
flow.main(sys.argv[1:])
print(len(calls), "configured")
"""


@pytest.mark.nightly
@pytest.mark.parametrize("command", ["develop", "build_ext", "bdist_wheel", "-v develop"])
def test_a_command_configures_the_tree_once(tree: Path, command: str):
    process = _run(tree, *command.split(), script=("-c", _COUNTED))
    assert "error: Bazel" in process.stderr
    assert process.stdout.endswith("1 configured\n")


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        _nightly({"TORCH_XLA_LITE_BAZL": "x"}, "nearest one is TORCH_XLA_LITE_BAZEL."),
        ({"MAX_JOBS": "two"}, "MAX_JOBS='two' is not an integer >= 1."),
        _nightly({"BUILD_LIB_WHL": "1"}, "the package in this tree needs both"),
        _nightly({"PATH": "/nowhere"}, "neither bazelisk nor bazel on PATH"),
    ],
)
def test_a_lone_develop_leaves_nothing_but_bytecode_when_a_variable_is_wrong(
    tree: Path, environ: dict[str, str], message: str
):
    before = _state(tree, but="__pycache__")
    process = _run(tree, "develop", PYTHONDONTWRITEBYTECODE="1", **environ)
    assert process.returncode == 1
    assert message in process.stderr
    assert _state(tree, but="__pycache__") == before


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        _nightly("--help", "usage: setup.py"),
        _nightly("--help-commands", "usage: setup.py"),
        _nightly("--version", "0.1.0"),
        _nightly("--name", "torch_xla_lite"),
        _nightly("--license", "BSD-3-Clause"),
        ("build_ext --help", "--inplace"),
        _nightly("--help clean", "--dry-run"),
        ("options", "USE_CUDA"),
    ],
)
def test_a_question_is_answered_without_building_or_writing(
    tree: Path, arguments: str, answer: str
):
    before = _state(tree)
    process = _run(tree, *arguments.split(), PATH="/nowhere")
    assert process.returncode == 0, process.stderr
    assert answer in process.stdout
    assert _state(tree) == before


def test_a_hook_in_an_environment_without_torch_names_the_command_that_installs_it(
    tree: Path, tmp_path: Path
):
    python = environment(tmp_path / "bare", see_ours=False)
    hook = "from bazel.pybuild import backend; backend.build_wheel('.')"
    process = _run(tree, python=python, script=("-B", "-c", hook))
    assert f"torch is not installed for {python}" in process.stderr
    assert "Install it: " in process.stderr
    assert "pip install --no-build-isolation ." in process.stderr


def test_the_commands_are_listed_with_what_they_do(tree: Path):
    listed = _run(tree, "--help-commands").stdout.splitlines()
    described = {line.split()[0] for line in listed if len(line.split()) > 3}
    commands = {"bdist_wheel", "build_ext", "clean", "develop", "install", "options", "rebuild"}
    assert {*commands, "sdist"} <= described
    assert "bdist_egg" not in described


@pytest.mark.parametrize(
    "arguments",
    ["setup.py develop", _nightly("setup.py build_ext"), _nightly("-m bazel.pybuild.configure")],
)
def test_errors_of_the_system_are_reported_without_a_traceback(tree: Path, arguments: str):
    # Permissions would not do: root is not bound to them.
    (tree / "build").write_text("")
    (tree / ".bazelrc.generated").mkdir()
    process = _run(tree, script=tuple(arguments.split()))
    assert process.returncode == 1
    assert process.stderr.startswith("error: [Errno ")
    assert str(tree) in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("arguments", ["--version", _nightly("develop")])
def test_an_output_that_takes_nothing_more_is_an_error_as_others(tree: Path, arguments: str):
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "setup.py", arguments],
            cwd=tree,
            env=_environ(tree),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert process.returncode != 0
    assert process.stderr.startswith("error: [Errno 28] No space left on device: 'standard output'")


@pytest.mark.parametrize("closed", mostly_nightly([">&-", "2>&-", _ALL], [_ALL]))
@pytest.mark.parametrize("command", mostly_nightly(["options", "develop"], ["develop"]))
def test_closed_streams_change_no_exit_code(tree: Path, command: str, closed: str):
    # Cron and supervisors may start it so. Bazel writes to the stream that it is given.
    program(
        tree.parent / "bin" / "bazel", "case $* in *build*) echo out; echo err >&2; exit 9; esac"
    )
    call = ["sh", "-c", f'"$@" {closed}', "sh", sys.executable, "setup.py", command]
    process = subprocess.run(call, cwd=tree, env=_environ(tree), capture_output=True, check=False)
    assert process.returncode == (1 if command == "develop" else 0), process.stderr
    assert b"Traceback" not in process.stderr
    assert (tree / "build" / "lock").read_bytes() == b"" if command == "develop" else True


@pytest.mark.nightly
def test_a_bazel_that_rejects_the_path_of_the_tree_is_quoted_in_one_line(tree: Path):
    spaced = tree.parent / "a tree"
    tree.rename(spaced)
    rejects = "ERROR: bazel does not currently work properly from paths containing spaces."
    script = f"case $1 in build) echo '{rejects}' >&2; exit 36 ;; esac"
    program(tree.parent / "bin" / "bazel", script)
    process = _run(spaced, "develop")
    assert process.stderr.splitlines() == [
        rejects,
        f"error: Bazel does not start in {spaced}; it said:",
        "(see above)",
        "Older Bazels want a path of ASCII characters without spaces: move this tree to one.",
    ]
    assert "failed in" not in process.stdout


def test_the_steps_are_those_of_pytorch_in_its_order(tree: Path, monkeypatch: pytest.MonkeyPatch):
    """Each step has something to complain about, and the first one that does ends the command."""
    project = (tree / "pyproject.toml").read_text()
    (tree / "pyproject.toml").write_text(project.replace("[project]", "[project]\nreadme2 = 1"))
    bazel = {"TORCH_XLA_LITE_BAZEL": "/no/bazel", "CC": "/no/gcc"}
    halves = {"BUILD_LIB_WHL": "1", "BUILD_PYTHON_ONLY": "1"}
    monkeypatch.chdir(tree)  # Else the rest of this process would be in the tree.

    def said(*arguments: str, **environ: str) -> str:
        with pytest.raises(BuildError) as error:
            flow.run(tree, [*arguments], _environ(tree, **environ))
        return str(error.value)

    assert "exclude each other" in said("build_ext", "--bogus", **halves, **bazel)
    assert "[project] has readme2" in said("build_ext", "--bogus", **bazel)
    (tree / "pyproject.toml").write_text(project)
    assert "option --bogus" in said("build_ext", "--bogus", **bazel)
    assert "TORCH_XLA_LITE_BAZEL=/no/bazel" in said("build_ext", **bazel)
    assert "The compiler /no/gcc" in said("build_ext", CC="/no/gcc")
    assert not (tree / ".bazelrc.generated").exists()


def test_a_command_that_builds_nothing_is_not_kept_from_running_by_a_missing_bazel(tree: Path):
    (tree / "build").mkdir()
    process = _run(tree, "clean", PATH="/nowhere")
    assert process.returncode == 0, process.stderr
    assert not (tree / "build").exists()


def test_clean_waits_for_a_build_and_removes_nothing_before(tree: Path):
    (tree / "build").mkdir()
    (tree / "build" / "events.json").touch()
    with (tree / "build" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen(
            [sys.executable, "setup.py", "clean"],
            cwd=tree,
            env=_environ(tree),
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout.readline().endswith("waiting for another command in this tree\n")
            assert (tree / "build" / "events.json").exists()
            fcntl.flock(lock, fcntl.LOCK_UN)
            process.communicate()
    assert process.returncode == 0
    assert not (tree / "build").exists()


def test_a_dry_run_of_clean_names_what_would_go(tree: Path):
    (tree / "build").mkdir()
    before = _state(tree)
    bazel, removed = _run(tree, "clean", "-n").stdout.splitlines()
    assert removed == "rm -r build"
    assert "clean" in shlex.split(bazel)
    assert _state(tree) == before


@pytest.mark.parametrize(
    ("setuptools", "command", "error"),
    [
        ("raise ModuleNotFoundError(name='setuptools')\n", "bdist_wheel", "setuptools >=77 of "),
        # It could not read our pyproject.toml.
        _nightly('__version__ = "65.5.0"\n', "--version", "setuptools 65.5.0 of "),
    ],
    ids=["missing", "old"],
)
def test_setuptools_that_is_missing_or_old_is_reported_with_the_command_that_installs_it(
    tree: Path, setuptools: str, command: str, error: str
):
    (tree / "setuptools.py").write_text(setuptools)
    process = _run(tree, command)
    assert process.returncode == 1
    assert f"error: {error}" in process.stderr
    assert process.stderr.splitlines()[-1].endswith("-m pip install 'setuptools>=77'")


@pytest.mark.parametrize("command", [("setup.py", "develop"), ("-m", "bazel.pybuild.backend")])
def test_an_older_python_gets_an_error_without_a_traceback(tree: Path, command: tuple[str, ...]):
    first = tree / "bazel" / "pybuild" / "__init__.py"
    for file in (tree / "setup.py", first):
        ast.parse(file.read_text(), feature_version=(3, 6))
    # There is no old Python on every machine, so the limit is moved instead.
    first.write_text(first.read_text().replace("(3, 11)", "(9, 0)"))
    process = _run(tree, script=command)
    assert process.returncode == 1
    assert process.stderr.startswith("error: Python ")
    assert "torch_xla_lite needs 9.0 or newer" in process.stderr
    assert len(process.stderr.splitlines()) == 2


def test_a_command_of_setuptools_needs_no_earlier_build(tree: Path):
    process = _run(tree, "egg_info")
    assert process.returncode == 0, process.stderr
    assert (tree / "build" / "torch_xla_lite.egg-info").is_dir()


def test_relative_paths_are_relative_to_the_callers_folder(tree: Path):
    elsewhere = tree.parent / "elsewhere"
    elsewhere.mkdir()
    script = (str(tree / "setup.py"), "sdist", "-d", "out")
    process = _run(tree, script=script, folder=elsewhere)
    assert process.returncode == 0, process.stderr
    assert [file.suffix for file in (elsewhere / "out").iterdir()] == [".gz"]
    assert not (tree / "out").exists()
