"""`setup.py clean` removes what a build made in the tree, and nothing outside of it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from bazel.pybuild.commands import clean
from bazel.pybuild.errors import BuildError
from bazel.pybuild.options import Options
from test.build.shell import program

_NO_BAZEL = {"PATH": "/nowhere"}
_LIBRARY = "torch_xla_lite/lib/libx.so"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree that was built: one installed library, a wheel, and Bazel's record."""
    tree = tmp_path / "tree"
    for name in (_LIBRARY, "torch_xla_lite/mine.py", "dist/x.whl", "build/events.json"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    _record(tree, _LIBRARY)
    return tree


def _record(tree: Path, *paths: str) -> None:
    stamp = {"built": [], "installed": []}
    (tree / "build" / "installed.json").write_text(json.dumps(dict.fromkeys(paths, stamp)))


def _elsewhere(tmp_path: Path) -> Path:
    """A folder outside of the tree, with files whose names are those of a build's."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("lock", "libx.so", "installed.json"):
        (folder / name).write_text("precious")
    return folder


def _entries(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_what_was_built_goes_and_sources_stay(root: Path):
    removed = clean.clean(root, Options(), _NO_BAZEL)
    assert removed == [_LIBRARY, "dist", "build"]
    assert _entries(root) == ["torch_xla_lite", "torch_xla_lite/lib", "torch_xla_lite/mine.py"]


@pytest.mark.parametrize("name", ["build", "dist", "torch_xla_lite.egg-info", "torch_xla_lite/lib"])
def test_what_a_link_leads_to_stays(root: Path, tmp_path: Path, name: str):
    folder = _elsewhere(tmp_path)
    if (root / name).exists():
        shutil.rmtree(root / name)
    (root / name).symlink_to(folder)
    clean.clean(root, Options(), _NO_BAZEL)
    assert _entries(folder) == ["installed.json", "libx.so", "lock"]


@pytest.mark.parametrize("path", ["../elsewhere/libx.so", "torch_xla_lite/../../elsewhere/lock"])
def test_a_record_that_names_files_outside_removes_none_of_them(
    root: Path, tmp_path: Path, path: str
):
    folder = _elsewhere(tmp_path)
    _record(root, path, str(folder / "installed.json"))
    clean.clean(root, Options(), _NO_BAZEL)
    assert _entries(folder) == ["installed.json", "libx.so", "lock"]


@pytest.mark.parametrize("record", ["[]", "{", '{"torch_xla_lite": []}', '{".": [], "..": []}'])
def test_a_damaged_record_removes_nothing_beyond_build_and_dist(root: Path, record: str):
    (root / "build" / "installed.json").write_text(record)
    clean.clean(root, Options(), _NO_BAZEL)
    assert (root / _LIBRARY).exists()
    assert not (root / "build").exists()


def test_a_record_that_names_a_source_does_not_remove_it(root: Path):
    (root / "torch_xla_lite" / "lib" / "mine.py").write_text("")
    _record(root, "torch_xla_lite/mine.py", "torch_xla_lite/lib/mine.py", _LIBRARY)
    assert clean.clean(root, Options(), _NO_BAZEL) == [_LIBRARY, "dist", "build"]


@pytest.mark.parametrize(
    "prepare",
    [
        "",
        "rm -r dist; ln -s ../elsewhere dist",
        "rm -r dist; ln -s ../none dist",
        "rm -r dist; touch dist",
        "rm -r build",
        f"sed -i 's#{_LIBRARY}#../elsewhere/libx.so#' build/installed.json",
    ],
)
def test_the_printed_plan_does_what_clean_does(root: Path, tmp_path: Path, prepare: str):
    folder = _elsewhere(tmp_path)
    subprocess.run(["sh", "-ec", prepare], cwd=root, check=True)
    twin = tmp_path / "beside" / "tree"
    shutil.copytree(tmp_path / "tree", twin, symlinks=True)
    shutil.copytree(folder, tmp_path / "beside" / "elsewhere")
    clean.clean(root, Options(), _NO_BAZEL)
    for command in clean.plan(twin, Options(), _NO_BAZEL):
        subprocess.run(command, cwd=twin, check=True)
    assert _entries(twin) == _entries(root)
    assert _entries(tmp_path / "beside" / "elsewhere") == _entries(folder)


def _bazel(tmp_path: Path, script: str) -> Options:
    return Options(bazel=str(program(tmp_path / "bazel", script)))


def test_a_bazel_that_fails_is_an_error_after_the_rest_is_removed(root: Path, tmp_path: Path):
    with pytest.raises(BuildError, match="exit code 7"):
        clean.clean(root, _bazel(tmp_path, "exit 7"), {})
    assert not (root / "dist").exists()


def test_a_bazel_that_the_user_named_and_that_cannot_run_is_an_error(root: Path, tmp_path: Path):
    options = _bazel(tmp_path, "exit 0")
    Path(str(options.bazel)).chmod(0o644)
    with pytest.raises(BuildError, match="is not executable"):
        clean.clean(root, options, {})
    assert (root / "dist").exists()


def test_links_of_bazel_from_an_earlier_name_of_the_tree_go(root: Path, tmp_path: Path):
    for name in ("bazel-old", "bazel-bin", "bazel-tree"):
        (root / name).symlink_to(tmp_path)
    (root / "bazel-notes").mkdir()
    clean.clean(root, Options(), _NO_BAZEL)
    found = sorted(entry.name for entry in root.glob("bazel-*"))
    assert found == ["bazel-bin", "bazel-notes", "bazel-tree"]
