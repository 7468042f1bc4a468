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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one of this tree."""
    folder = tmp_path_factory.mktemp("made")
    return folder / sdist.make(ROOT, Options(), folder)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="in an unpacked one there is no git")
def test_programs_are_executable_as_in_git(made: Path):
    listed = subprocess.check_output(["git", "ls-files", "--stage"], cwd=ROOT, text=True)
    programs = {
        line.partition("\t")[2] for line in listed.splitlines() if line.startswith("100755")
    }
    with tarfile.open(made) as archive:
        members = {member.name.partition("/")[2]: member.mode for member in archive.getmembers()}
    packed = {path for path, mode in members.items() if mode == 0o755}
    assert packed == programs - _NOT_PACKED


def test_products_notes_times_and_permissions_in_the_tree_do_not_matter(tmp_path: Path):
    tree = copied(tmp_path / "tree", source_files())
    clean = (tmp_path / sdist.make(tree, Options(), tmp_path)).read_bytes()
    for file in tree.rglob("*.py"):
        file.chmod(0o700)
        file.touch()
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


def test_an_unpacked_one_is_one_folder_and_gives_itself_again(made: Path, tmp_path: Path):
    shutil.unpack_archive(made, tmp_path)
    (tree,) = tmp_path.iterdir()
    assert (tree.name, (tree / "PKG-INFO").exists()) == (made.name.removesuffix(".tar.gz"), True)
    again = tree / "dist" / sdist.make(tree, Options(), tree / "dist")
    assert again.read_bytes() == made.read_bytes()
