"""`setup.py options`: the variables with their current values, and the table of docs/build.md."""

import re

import pytest

from bazel.pybuild.commands import show_options
from bazel.pybuild.errors import BuildError
from bazel.pybuild.variables import VARIABLES
from test.build.tree import ROOT


def _row(environ: dict[str, str], name: str) -> str:
    (found,) = re.findall(
        rf"^{name} = .*\n(?:    .*\n?)+", show_options.current(environ), re.MULTILINE
    )
    return " ".join(found.split())


def test_every_variable_has_a_row():
    names = re.findall(r"^(\w+) = ", show_options.current({}), re.MULTILINE)
    assert names == [variable.name for variable in VARIABLES]


def test_a_row_says_value_origin_and_what_is_accepted():
    accepted = "accepts: 0 or 1 (or no, off, false, yes, on, true)"
    assert _row({}, "VERBOSE") == f"VERBOSE = 0 from: default; {accepted}"
    assert _row({"VERBOSE": "yes"}, "VERBOSE") == (
        f"VERBOSE = yes from: environment, default 0; {accepted}"
    )


def test_the_table_fits_a_terminal_of_80_columns():
    assert max(map(len, show_options.current({}).splitlines())) <= 80


def test_an_empty_variable_is_one_that_is_not_set():
    assert _row({"VERBOSE": " "}, "VERBOSE") == _row({}, "VERBOSE")


def test_all_errors_are_reported_together_after_the_table(capsys: pytest.CaptureFixture[str]):
    environ = {
        "TORCH_XLA_LITE_BAZL": "x",
        "MAX_JOBS": "two",
        "USE_CUDA": "maybe",
        "BUILD_LIB_WHL": "1",
        "BUILD_PYTHON_ONLY": "1",
    }
    with pytest.raises(BuildError) as error:
        show_options.show(environ)
    assert "two" in capsys.readouterr().out
    assert error.value.problem.startswith("4 variables are wrong:")
    for part in ("TORCH_XLA_LITE_BAZEL.", "MAX_JOBS='two'", "USE_CUDA='maybe'", "exclude each"):
        assert part in error.value.problem


def test_the_table_of_the_documentation_is_the_one_that_is_printed():
    # Where it is not:  python setup.py options --markdown
    assert show_options.markdown() in (ROOT / "docs" / "build.md").read_text()
