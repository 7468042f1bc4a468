"""Processes train one model together; when one fails, all end, and the last line says why."""

import itertools
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from test.python import programs
from torch_xla_lite import launch

_PROGRAM = Path(__file__).with_name("training.py")
STEPS = 3  # of that program

# What all processes may take to end after one has failed, in seconds.
_SOON = 30


@pytest.fixture
def launched(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, float]]:
    """Runs the program in so many processes: exit status, output and seconds."""

    def run(count: int, *arguments: str, **environ: str) -> tuple[int, str, float]:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        start = time.monotonic()
        status = launch.run([*programs.python(), str(_PROGRAM), *arguments], count)
        return status, "".join(capfd.readouterr()), time.monotonic() - start

    return run


def _results(output: str) -> list[tuple[list[float], float, dict]]:
    return [json.loads(text) for text in re.findall(r"RESULT (.*)", output)]


@pytest.mark.parametrize(
    ("mode", "count", "attempts"),
    [
        ("tp+fsdp", 2, ["compiles"]),
        pytest.param("dp", 2, ["compiles", "loads"], marks=pytest.mark.nightly),
        pytest.param("fsdp", 2, ["compiles", "loads"], marks=pytest.mark.nightly),
        pytest.param("tp+fsdp", 4, ["compiles", "loads"], marks=pytest.mark.nightly),
    ],
)
def test_processes_train_as_one_does(
    mode: str, count: int, attempts: list[str], tmp_path: Path, launched: Callable
):
    cache = {"TORCH_XLA_LITE_COMPILATION_CACHE": "1", "XDG_CACHE_HOME": str(tmp_path)}
    status, output, _ = launched(1, mode)
    assert status == 0, output
    ((expected, size, _),) = _results(output)
    for attempt in attempts:
        status, output, _ = launched(count, mode, **cache)
        assert status == 0, output
        results = _results(output)
        assert len(results) == count
        for losses, same_size, metrics in results:
            assert losses == pytest.approx(expected, abs=1e-5)
            assert same_size == pytest.approx(size, rel=1e-5)
            assert metrics[attempt] == metrics["compiles"] + metrics["loads"] == 1
        assert ("the first part that this process has" in output) == (mode != "dp")


@pytest.mark.nightly
def test_a_checkpoint_is_restored_by_other_processes(tmp_path: Path, launched: Callable):
    pytest.importorskip("orbax.checkpoint")
    status, output, _ = launched(2, "fsdp", SAVE=str(tmp_path / "two"))
    assert status == 0, output
    found = []
    for count, mode in [(2, "fsdp"), (1, "dp"), (4, "tp+fsdp")]:
        places = {"LOAD": str(tmp_path / "two"), "SAVE": str(tmp_path / f"{count}")}
        status, output, _ = launched(count, mode, **places)
        assert status == 0, output
        found += [losses for losses, _, _ in _results(output)]
    assert len(found) == 7
    for losses in found:
        assert losses == pytest.approx(found[0], abs=1e-5)


_ENDED = (
    r"process {0} ended after \d+ programs of the mesh, and process . of 2 goes on: it needs .+"
)
CAUSES = {
    "raise": (1, r"process {0} of 2 failed: KeyError: 'lost' at .*training.py:\d+"),
    "exit": (1, _ENDED),
    "end": (1, _ENDED),
    "SIGKILL": (128 + 9, "process {0} of 2 was ended by SIGKILL"),
    "SIGTERM": (128 + 15, "process {0} of 2 was ended by SIGTERM"),
}
_DAILY = {("raise", 1, 1), ("end", 0, 1), ("SIGKILL", 0, 2)}


@pytest.mark.parametrize(
    ("failure", "process", "step"),
    [
        pytest.param(*cell, marks=() if cell in _DAILY else pytest.mark.nightly)
        for cell in itertools.product(CAUSES, (0, 1), range(STEPS))
    ],
)
def test_a_process_that_fails_ends_all(failure: str, process: int, step: int, launched: Callable):
    wanted, message = CAUSES[failure]
    status, output, seconds = launched(2, "fsdp", failure, str(process), str(step))
    assert status == wanted, output
    assert re.search(message.format(process), output), output
    assert output.count("Traceback") <= 1, output
    assert "RESULT" not in output
    assert seconds < 2 * _SOON  # with the start


DIFFERENCES = {
    "program": r"process \d needs a program at .*|process \d of 2 needs a program at .*:\d+",
    "batch": r"needs a program at .*:\d+",
    "data": r"a tensor float32\[512\] that all devices need differs .*",
}


@pytest.mark.parametrize(
    "difference",
    [
        "data",
        pytest.param("program", marks=pytest.mark.nightly),
        pytest.param("batch", marks=pytest.mark.nightly),
    ],
)
def test_processes_that_differ_are_told(difference: str, launched: Callable):
    status, output, _ = launched(2, "fsdp", difference, "1", "1")
    assert status == 1, output
    assert re.search(DIFFERENCES[difference], output), output
    assert "RESULT" not in output


def test_a_wrong_start_is_refused(launched: Callable):
    status, output, _ = launched(1, "fsdp", TORCH_XLA_LITE_COMPILE="background")
    assert status == 1
    assert "unset TORCH_XLA_LITE_COMPILE" in output
