"""A long compilation says so on a terminal, once, and nowhere else."""

import io
import time

import pytest
import torch

import torch_xla_lite  # noqa: F401  device jax
from torch_xla_lite.compiler import compilation_cache, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch) -> Terminal:
    """The standard error from now on. pytest has one of its own for each phase of a test."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    return stream


def test_what_takes_long_has_a_line(monkeypatch):
    terminal = a_terminal(monkeypatch)
    with progress.shown("compiling 3 ops of train.py:12", "kept for the next run"):
        time.sleep(0.2)
    assert terminal.getvalue() == (
        "torch_xla_lite: compiling 3 ops of train.py:12 . 0 s, kept for the next run\n"
    )


def test_an_error_ends_the_line(monkeypatch):
    terminal = a_terminal(monkeypatch)
    with pytest.raises(KeyError), progress.shown("compiling"):
        time.sleep(0.2)
        raise KeyError
    assert terminal.getvalue().endswith(" s\n")


@pytest.mark.parametrize("reason", ["a moment", "a pipe", "a variable"])
def test_other_work_has_none(monkeypatch, reason: str):
    stream = a_terminal(monkeypatch) if reason != "a pipe" else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 60 if reason == "a moment" else 0.05)
    monkeypatch.setenv("TORCH_XLA_LITE_PROGRESS", "0" if reason == "a variable" else "")
    with progress.shown("compiling"):
        time.sleep(0.2)
    assert stream.getvalue() == ""


def test_a_graph_names_its_ops_and_line(monkeypatch):
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.setattr(compilation_cache, "is_on", lambda: True)
    (torch.ones(7, 5, device="jax") @ torch.ones(5, 3, device="jax")).tolist()
    assert "compiling 3 ops of " in terminal.getvalue()
    assert "progress_test.py:" in terminal.getvalue()
    assert terminal.getvalue().endswith(" s, kept for the next run\n")
