"""A source distribution holds what building needs and nothing else."""

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from bazel.pybuild.dist import sdist, sources
from bazel.pybuild.options import Options
from test.build.tree import ROOT, copied, source_files

# Files of the project's repository that a build does not need.
_NOT_PACKED = {".ci/run", ".github/workflows/ci.yml", ".gitignore"}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="in an unpacked one there is no git")
def test_it_holds_what_git_knows():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.check_output(command, cwd=ROOT, text=True).rstrip("\0").split("\0")
    assert {*sources.all_files(ROOT), *_NOT_PACKED} == {n for n in listed if (ROOT / n).is_file()}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="in an unpacked one there is no git")
def test_programs_are_executable_as_in_git(tmp_path: Path):
    listed = subprocess.check_output(["git", "ls-files", "--stage"], cwd=ROOT, text=True)
    programs = {
        line.partition("\t")[2] for line in listed.splitlines() if line.startswith("100755")
    }
    with tarfile.open(tmp_path / sdist.make(ROOT, Options(), tmp_path)) as archive:
        members = {member.name.partition("/")[2]: member.mode for member in archive.getmembers()}
    packed = {path for path, mode in members.items() if mode == 0o755}
    assert packed == programs - _NOT_PACKED


def test_products_caches_and_notes_in_the_tree_stay_out(tmp_path: Path):
    tree = copied(tmp_path / "tree", source_files())
    clean = (tmp_path / sdist.make(tree, Options(), tmp_path)).read_bytes()
    for name in (
        ".bazelrc.generated",
        ".bazelrc.user",
        ".venv/lib/module.py",
        "build/report.json",
        "dist/old.whl",
        "torch_xla_lite/.idea/settings.py",
        "torch_xla_lite/_XLAC.so",
        "torch_xla_lite/_build_info.py",
        "torch_xla_lite/__init__.py.orig",
        "torch_xla_lite/__pycache__/x.cpython-311.pyc",
        "torch_xla_lite/lib/libtorch_xla_lite.so",
        "torch_xla_lite/lib/libtorch_xla_lite.so.debug",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("")
    assert (tmp_path / sdist.make(tree, Options(), tmp_path)).read_bytes() == clean


def test_times_and_permissions_do_not_matter(tmp_path: Path):
    made = [copied(tmp_path / name, source_files()) for name in ("one", "other")]
    for file in made[1].rglob("*.py"):
        file.chmod(0o700)
        file.touch()
    archives = [(tree / sdist.make(tree, Options(), tree)).read_bytes() for tree in made]
    assert archives[0] == archives[1]


def test_an_unpacked_one_gives_itself_again(tmp_path: Path):
    first = tmp_path / sdist.make(ROOT, Options(), tmp_path)
    shutil.unpack_archive(first, tmp_path)
    tree = tmp_path / first.name.removesuffix(".tar.gz")
    again = tree / "dist" / sdist.make(tree, Options(), tree / "dist")
    assert again.read_bytes() == first.read_bytes()


def test_every_file_is_in_one_folder_named_after_the_version(tmp_path: Path):
    name = sdist.make(ROOT, Options(), tmp_path)
    with tarfile.open(tmp_path / name) as archive:
        names = archive.getnames()
    assert {path.split("/")[0] for path in names} == {name.removesuffix(".tar.gz")}
    assert f"{name.removesuffix('.tar.gz')}/PKG-INFO" in names
