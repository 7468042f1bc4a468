"""Processes train one model together; when one fails, all end, and the last line says why."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from test.mesh.transformer import VOCABULARY, LanguageModel
from test.python import programs
from torch_xla_lite import launch
from torch_xla_lite.mesh.base import distributed

_PROGRAM = Path(__file__).with_name("training.py")
STEPS = 3  # of that program

# What all processes may take to end after one has failed, in seconds.
_SOON = 30


@pytest.fixture
def launched(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """Runs the program in so many processes: exit status and output."""

    def run(count: int, *arguments: str, **environ: str) -> tuple[int, str]:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        status = launch.run([*programs.python(), str(_PROGRAM), *arguments], count)
        return status, "".join(capfd.readouterr())

    return run


def _results(output: str) -> list[tuple[list[float], float, dict]]:
    return [json.loads(text) for text in re.findall(r"RESULT (.*)", output)]


def _on_the_cpu() -> tuple[list[float], float]:
    """The losses of the program with torch's CPU kernels, and the size of a weight at its end."""
    torch.manual_seed(0)
    model = LanguageModel(blocks=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    draw, losses = torch.Generator().manual_seed(1), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        tokens = torch.randint(VOCABULARY, (16, 33), generator=draw)
        scores = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model.head.weight.abs().sum().item()


@pytest.mark.parametrize(
    ("mode", "count", "attempts"),
    [
        ("dp", 2, ["compiles"]),
        pytest.param("dp", 2, ["compiles", "loads"], marks=pytest.mark.nightly),
        pytest.param("tp+fsdp", 2, ["compiles"], marks=pytest.mark.nightly),
        pytest.param("fsdp", 2, ["compiles", "loads"], marks=pytest.mark.nightly),
        pytest.param("tp+fsdp", 4, ["compiles", "loads"], marks=pytest.mark.nightly),
    ],
)
def test_processes_train_as_the_cpu_does(
    mode: str, count: int, attempts: list[str], tmp_path: Path, launched: Callable
):
    cache = {"TORCH_XLA_LITE_COMPILATION_CACHE": "1", "XDG_CACHE_HOME": str(tmp_path)}
    expected, size = _on_the_cpu()
    for attempt in attempts:
        status, output = launched(count, mode, **cache)
        assert status == 0, output
        assert output.count("threads at the end: 1\n") == count
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
    status, output = launched(2, "fsdp", SAVE=str(tmp_path / "two"))
    assert status == 0, output
    found = []
    for count, mode in [(2, "fsdp"), (1, "dp"), (4, "tp+fsdp")]:
        places = {"LOAD": str(tmp_path / "two"), "SAVE": str(tmp_path / f"{count}")}
        status, output = launched(count, mode, **places)
        assert status == 0, output
        found += [losses for losses, _, _ in _results(output)]
    assert len(found) == 7
    for losses in found:
        assert losses == pytest.approx(found[0], abs=1e-5)


_GOES_ON = r" after \d+ programs of the mesh, and process . of 2 goes on: it needs .+:\d+"
_WAITS = r"process . of 2 (has waited 5 s in|needs) a .+ at .+:\d+.* process {0},? "
CAUSES = {
    "raise": (1, r"process {0} of 2 failed: KeyError: 'lost' at .*training.py:\d+"),
    "exit": (3, r"process {0} of 2 ended by sys.exit\(3\) at .*training.py:\d+" + _GOES_ON),
    "end": (1, "process {0} of 2 ended" + _GOES_ON),
    "hang": (1, _WAITS + r"(which lives and has run|has done) nothing .*since .+"),
    "SIGKILL": (128 + 9, "process {0} of 2 was ended by SIGKILL"),
    "SIGTERM": (128 + 15, "process {0} of 2 was ended by SIGTERM"),
}
_DAILY = {("SIGKILL", 0, 0)}


@pytest.mark.parametrize(
    ("failure", "process", "step"),
    [
        pytest.param(*cell, marks=() if cell in _DAILY else pytest.mark.nightly)
        for cell in itertools.product(CAUSES, (0, 1), range(STEPS))
    ],
)
def test_a_process_that_fails_ends_all(failure: str, process: int, step: int, launched: Callable):
    wanted, message = CAUSES[failure]
    status, output = launched(2, "fsdp", failure, str(process), str(step))
    assert status == wanted, output
    assert re.search(message.format(process), output), output
    assert len(re.findall("Traceback|most recent call first", output)) <= 1, output
    # jax may end those that process 0 connects before they can say where they are.
    if failure.startswith("SIG") and (failure, process) != ("SIGKILL", 0):
        assert re.search(r'training.py", line \d+ in main\n', output), output
    assert "RESULT" not in output
    failed_at = float(re.search(r"FAILS AT (.+)", output)[1])
    assert time.time() - failed_at < _SOON


_SAVES_WHEN_ENDED = """
import faulthandler, os, signal, sys, time
def save(*_):
    print("saved", flush=True)
    sys.exit("saved all")
signal.signal(signal.SIGTERM, save)
faulthandler.register(signal.SIGTERM, all_threads=False, chain=True)
time.sleep(1 if os.environ["RANK"] == "1" else 30)
sys.exit(3)
"""


def test_of_the_others_only_where_they_stand_is_left_out(capfd: pytest.CaptureFixture[str]):
    assert launch.run([sys.executable, "-c", _SAVES_WHEN_ENDED], 2) == 3
    output = "".join(capfd.readouterr())
    assert "[0] saved\n" in output
    assert "[0] saved all\n" in output
    assert "most recent call first" not in output
    assert output.endswith("process 1 of 2 failed with exit status 3\n")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["TERM", "HUP", "QUIT"])
def test_a_signal_to_the_launcher_ends_its_processes(name: str, tmp_path: Path):
    script = tmp_path / "sleeps.py"
    script.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(300)\n")
    # A fork of the tests' server would not get the signal.
    command = [sys.executable, "-m", "torch_xla_lite.launch", "-n", "2", script]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as launcher:
        started = [int(launcher.stdout.readline().split()[1]) for _ in range(2)]
        number = getattr(signal, f"SIG{name}")
        launcher.send_signal(number)
        assert launcher.wait() == 128 + number
    assert not [process for process in started if Path(f"/proc/{process}").exists()]


_OTHER = r"process 1 of 2 needs a program at .+:\d+.*, and process 0 runs a program at .+:\d+"
DIFFERENCES = {
    "program": _OTHER,
    "batch": _OTHER,
    "known": r"process 1 of 2 has run another program than process 0: .+:\d+.* that at .+:\d+",
    "rate": r"process 1 of 2 has run other numbers than process 0: .+:\d+.* that at .+:\d+",
    "data": r"needs a tensor float32\[512\] .+:\d+, and process \d has other data: .+:\d+",
}


@pytest.mark.nightly
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_processes_that_differ_are_told(difference: str, launched: Callable):
    status, output = launched(2, "fsdp", difference, "1", "1")
    assert status == 1, output
    assert re.search(DIFFERENCES[difference], output), output
    # What both have compiled before may run to the end.
    assert "RESULT" not in output or difference in ("known", "rate")


_AFTER_TORCH = """
import os, torch, torch_xla_lite as txl
txl.distributed.initialize()
torch.distributed.init_process_group("gloo")
raise KeyError(f"lost {os.environ['RANK']}")
"""


@pytest.mark.nightly
def test_an_error_is_told_beside_torch_distributed(capfd: pytest.CaptureFixture[str]):
    assert launch.run([*programs.python(), "-c", _AFTER_TORCH], 2) == 1
    assert re.search(r"KeyError: 'lost [01]' at", "".join(capfd.readouterr()))


@pytest.mark.nightly
def test_a_batch_that_devices_cannot_share_is_refused(launched: Callable):
    status, output = launched(2, "fsdp", "uneven")
    assert status == 1, output
    assert "dimension 0 has 12 elements, which 8 devices" in output
    assert all(remedy in output for remedy in ("Pad it", "drop_last=True", "replicate(x)"))


@pytest.mark.nightly
def test_the_variables_of_slurm_say_who_the_processes_are():
    first_port = 61_440  # jax derives the port from the number of the job.
    with socket.socket() as free:
        port = next(p for p in range(first_port, 65_536) if _is_bound(free, p))
    job = {
        "SLURM_JOB_ID": str(port - first_port),
        "SLURM_STEP_NODELIST": "127.0.0.1",
        "SLURM_NTASKS": "2",
        "JAX_COORDINATOR_BIND_ADDRESS": f"127.0.0.1:{port}",
    }
    command = [*programs.python(), str(_PROGRAM), "dp"]
    processes = [
        subprocess.Popen(
            command,
            env=os.environ | job | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    (first,), (second,) = map(_results, outputs)
    assert first[0] == second[0]


def _is_bound(listener: socket.socket, port: int) -> bool:
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


def test_the_port_that_torchrun_names_is_left_to_it(monkeypatch: pytest.MonkeyPatch):
    torchrun = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29400", "WORLD_SIZE": "8", "RANK": "3"}
    for name, value in torchrun.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    expected = {"coordinator_address": "10.0.0.1:29401", "num_processes": 8, "process_id": 3}
    assert distributed._given_to_jax(None, None, None) == expected


@pytest.mark.nightly
def test_a_wrong_start_is_refused(launched: Callable):
    status, output = launched(1, "fsdp", TORCH_XLA_LITE_COMPILE="background")
    assert status == 1
    assert "unset TORCH_XLA_LITE_COMPILE" in output
