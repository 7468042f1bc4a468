"""scripts/setup_env.sh makes an environment where there is none, and removes none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that needs no package."""
    (tmp_path / "requirements.txt").write_text("")
    return tmp_path


def _make(tree: Path) -> "subprocess.CompletedProcess[str]":
    script = (
        f"source '{ROOT}/scripts/setup_env.sh'; BASE_PYTHON='{sys.executable}'; make_environment"
    )
    return subprocess.run(
        ["bash", "-euc", script], cwd=tree, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.nightly
def test_an_environment_without_pip_gets_it_and_keeps_all_else(tree: Path):
    venv = [sys.executable, "-m", "venv", "--without-pip", ".venv"]
    subprocess.run(venv, cwd=tree, check=True, timeout=120)
    notes = tree / ".venv" / "notes.txt"
    notes.write_text("mine")
    done = _make(tree)
    assert done.returncode == 0, done.stderr
    assert "Installing pip into .venv" in done.stdout
    assert notes.read_text() == "mine"
    assert list(tree.glob(".venv/lib/python3*/site-packages/pip"))
    assert (tree / ".venv" / ".requirements.txt").exists()


@pytest.mark.parametrize("kind", ["broken", "link"])
def test_what_is_no_environment_is_refused_and_kept(tree: Path, kind: str):
    if kind == "broken":
        (tree / ".venv" / "bin").mkdir(parents=True)
        (tree / ".venv" / "bin" / "python").symlink_to("/nowhere/python")
    else:
        (tree / ".venv").symlink_to("elsewhere")
    done = _make(tree)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "error: .venv has no Python that works.\n"
        "Move it away, then run this again:  mv .venv .venv.old\n"
    )
    assert (tree / ".venv").is_symlink() or (tree / ".venv" / "bin" / "python").is_symlink()


def test_other_versions_are_asked_for_in_an_environment_of_their_own(tree: Path):
    (tree / "requirements.txt").write_text(
        "# A comment\ntorch==2.13.0\njax==0.10.2\nrich==15.0.0\n"
    )
    script = (
        f"source '{ROOT}/scripts/setup_env.sh'; PATH='{tree}':$PATH; "
        "other_versions 3.99 2.14; requirements; echo $ENVIRONMENT; find_python; echo $BASE_PYTHON"
    )
    (tree / "python3.99").symlink_to(sys.executable)
    environ = {**os.environ, "XDG_CACHE_HOME": str(tree / "cache"), "PYTHONPATH": str(ROOT)}
    words = ["bash", "-euc", script]
    done = subprocess.run(words, cwd=tree, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        *("# A comment", "torch==2.14.*", "jax", "rich==15.0.0"),
        f"{tree}/cache/torch_xla_lite/environments/python-3.99-torch-2.14",
        "python3.99",
    ]


def test_a_python_that_is_not_there_is_named(tree: Path):
    script = f"source '{ROOT}/scripts/setup_env.sh'; other_versions 3.98 2.14"
    done = subprocess.run(
        ["bash", "-euc", script], cwd=tree, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "error: There is no python3.98 on PATH.",
    )
