"""The copies of this tree that tests build in."""

from test.build.nested import COPIED
from test.build.tree import source_files


def test_all_that_is_copied_is_an_input_so_that_no_result_of_an_older_tree_is_kept():
    # Bazel takes no file of one repository for an input of another.
    others = ("third_party/bazel_rules/coverage_tools/", "third_party/bazel_rules/rules_cc/")
    missing = [str(file) for file in source_files(*COPIED) if not file.exists()]
    assert [file for file in missing if not file.startswith(others)] == []
