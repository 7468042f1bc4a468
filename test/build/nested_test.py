"""The files that tests read or copy are inputs, so that no result of an older tree is used."""

from test.bazel.made import made
from test.build.nested import COPIED, OF_OTHER_REPOSITORIES
from test.build.tree import source_files


def test_all_files_of_the_project_are_inputs_of_the_tests_that_check_all():
    inputs = made("test/file_names.txt").read_text().splitlines()
    missing = {str(file) for file in source_files()} - set(inputs)
    assert [file for file in sorted(missing) if not file.startswith(OF_OTHER_REPOSITORIES)] == []


def test_all_that_setup_py_and_bazel_consist_of_is_an_input_of_a_tree_with_setup_py():
    inputs = made("test/build/nested_files.txt").read_text().splitlines()
    missing = {str(file) for file in source_files(*COPIED)} - set(inputs)
    assert [file for file in sorted(missing) if not file.startswith(OF_OTHER_REPOSITORIES)] == []
