"""scripts/setup_env.sh makes an environment where there is none, and removes none."""

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
