"""The test runner of lite_py_test, started as Bazel starts it."""

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from test.python import programs

_TESTS = """
def test_one(): pass
def test_two(): pass
def test_three(): assert False
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "some_test.py").write_text(_TESTS)
    return tmp_path


def _run(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TEST") and name != "XML_OUTPUT_FILE"
    }
    return subprocess.run(
        [
            *(*programs.python(), Path("bazel/pytest_runner.py").absolute(), "some_test.py"),
            *arguments,
        ],
        cwd=folder,
        env={"PYTHONPATH": os.getcwd()} | inherited | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_failed_test_fails_the_target_and_the_report_has_all_cases(target: Path):
    report = target / "report.xml"
    result = _run(target, XML_OUTPUT_FILE=str(report))
    assert result.returncode == 1
    assert "1 failed, 2 passed" in result.stdout
    names = {case.get("name") for case in ElementTree.parse(report).iter("testcase")}
    assert names == {"test_one", "test_two", "test_three"}


def test_the_filter_selects_tests(target: Path):
    result = _run(target, TESTBRIDGE_TEST_ONLY="two")
    assert result.returncode == 0
    assert "1 passed" in result.stdout


def test_a_filter_that_matches_nothing_here_passes(target: Path):
    assert _run(target, TESTBRIDGE_TEST_ONLY="nothing_has_this_name").returncode == 0


def test_a_target_without_tests_fails(tmp_path: Path):
    (tmp_path / "some_test.py").write_text("def helper(): pass\n")
    assert _run(tmp_path).returncode != 0


@pytest.mark.parametrize(
    "skip",
    [
        "pytest.importorskip('no_such_library')",
        "pytest.skip('no_such_library is not installed', allow_module_level=True)",
    ],
)
def test_a_file_that_is_skipped_passes_and_says_why(tmp_path: Path, skip: str):
    (tmp_path / "some_test.py").write_text(f"import pytest\n{skip}\ndef test_one(): pass\n")
    result = _run(tmp_path)
    assert (result.returncode, "no_such_library" in result.stdout.splitlines()[-1]) == (0, True)


def test_a_lowering_that_is_missing_is_an_error_though_the_test_passes(tmp_path: Path):
    for folder in (tmp_path / "torch_xla_lite", tmp_path / "torch_xla_lite" / "lowering"):
        folder.mkdir()
        (folder / "__init__.py").touch()
    (tmp_path / "some_test.py").write_text(
        "def test_one():\n"
        "    try: import torch_xla_lite.lowering.sort\n"
        "    except ImportError: pass\n"
    )
    result = _run(tmp_path, PYTHONPATH=f"{tmp_path}:{os.getcwd()}")
    assert (result.returncode, "1 passed" in result.stdout) == (1, True)
    assert result.stdout.splitlines()[-1].endswith('in its BUILD file: "sort"')


@pytest.mark.parametrize(("index", "line"), [("0", "1 failed, 1 passed"), ("1", "1 passed")])
def test_shards_divide_the_tests(target: Path, index: str, line: str):
    status = target / "status"
    result = _run(
        target,
        TEST_TOTAL_SHARDS="2",
        TEST_SHARD_INDEX=index,
        TEST_SHARD_STATUS_FILE=str(status),
    )
    assert line in result.stdout
    assert status.exists()


# The tests print what is drawn; the second of torch runs after the first, or alone.
_DRAWING = """
import torch
from hypothesis import given, strategies

DRAWN = torch.randn(2)[1].item()

@given(strategies.lists(strategies.integers()))
def test_examples(numbers): print("drawn", numbers)

def test_zero(): print("drawn", DRAWN)
def test_one(): print("drawn", torch.randn(()).item())
def test_two(): print("drawn", torch.randn(()).item())
"""


def _drawn(folder: Path, *arguments: str, **environ: str) -> tuple[list[str], list[str]]:
    """The examples of hypothesis, and the numbers of torch."""
    (folder / "some_test.py").write_text(_DRAWING)
    texts = _run(folder, "-s", *arguments, **environ).stdout.split("drawn ")[1:]
    drawn = [text.split("\n")[0].rstrip(".") for text in texts]
    return drawn[:-3], drawn[-3:]


def test_each_run_draws_the_same_and_no_test_depends_on_earlier_ones(tmp_path: Path):
    examples, (in_the_file, first, second) = _drawn(tmp_path)
    assert len(examples) > 50
    assert first == second
    part, numbers = _drawn(tmp_path, "-k", "examples or zero or two")
    assert [*part, *numbers] == [*examples, in_the_file, first]


@pytest.mark.nightly
def test_repeated_runs_draw_differently(tmp_path: Path):
    once, again = (_drawn(tmp_path, TEST_RANDOM_SEED=number) for number in ("1", "2"))
    assert once[0] != again[0]
    assert all(x != y for x, y in zip(once[1], again[1], strict=True))
