"""The files that tests read or copy are inputs, so that no result of an older tree is used."""

from test.build.nested import COPIED
from test.build.tree import source_files

# Bazel takes no file of one repository for an input of another.
_OF_OTHER_REPOSITORIES = ("third_party/bazel_rules/modules/",)


def test_all_files_of_the_project_are_inputs_of_the_tests_that_check_all():
    missing = [str(file) for file in source_files() if not file.exists()]
    assert [file for file in missing if not file.startswith(_OF_OTHER_REPOSITORIES)] == []


def test_all_that_is_copied_is_an_input_so_that_no_result_of_an_older_tree_is_kept():
    missing = [str(file) for file in source_files(*COPIED) if not file.exists()]
    assert [file for file in missing if not file.startswith(_OF_OTHER_REPOSITORIES)] == []
