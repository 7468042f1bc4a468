"""What is left of a tree that was unpacked for one build; command_line_test.py has `clean`."""

import hashlib
from pathlib import Path

from bazel.pybuild.call import client
from bazel.pybuild.options import Options
from test.build.shell import program

# Says where its files are, and notes what else it is asked for.
_BAZEL = """
test "$1" = info && echo {base} && exit
echo "$@" >> {notes}
"""


def _asked(root: Path, base: Path) -> str:
    """What is asked of a Bazel that has its files in `base`, to forget a tree."""
    bazel, notes = root.parent / "bazel", root.parent / "notes"
    root.mkdir()
    program(bazel, _BAZEL.format(base=base, notes=notes))
    client.remove_bazel_files(root, Options(bazel=str(bazel)), {})
    return notes.read_text()


def test_what_bazel_has_made_for_the_tree_alone_is_removed(tmp_path: Path):
    root = tmp_path / "tree"
    name = hashlib.md5(str(root).encode()).hexdigest()
    assert _asked(root, tmp_path / "user_root" / name) == "clean --expunge\n"


def test_a_place_that_the_user_has_named_keeps_its_files(tmp_path: Path):
    assert _asked(tmp_path / "tree", tmp_path / "named") == "shutdown\n"


def test_without_a_bazel_there_is_nothing_to_forget(tmp_path: Path):
    client.remove_bazel_files(tmp_path, Options(), {"PATH": str(tmp_path)})
