"""Programs that are forks of bazel/fork_server.py behave as if the interpreter had started them."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from bazel import fork_client, fork_server
from test.python import programs


def test_the_program_is_a_fork_of_a_process_that_has_imported_torch():
    assert programs.run("import sys; print('torch' in sys.modules)").stdout == "True\n"


def test_arguments_variables_folder_input_and_exit_status_are_those_of_the_call(tmp_path: Path):
    program = "import os, sys; print(*sys.argv, os.getcwd(), os.environ['A'], input()); sys.exit(3)"
    done = subprocess.run(
        [*programs.python(), "-c", program, "x", "y"],
        cwd=tmp_path,
        env=os.environ | {"A": "b"},
        input="typed\n",
        stdout=subprocess.PIPE,
        text=True,
    )
    assert (done.returncode, done.stdout) == (3, f"-c x y {tmp_path} b typed\n")


@pytest.mark.parametrize("arguments", [("program.py",), ("-m", "program")])
def test_files_and_modules_run_as_main(arguments: tuple[str, ...], tmp_path: Path):
    (tmp_path / "program.py").write_text("import sys; print(__name__, sys.argv[1:])")
    environ = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [*programs.python(), *arguments, "x"]
    printed = subprocess.check_output(command, cwd=tmp_path, env=environ, text=True)
    assert printed == "__main__ ['x']\n"


_SPAWNING = """
import multiprocessing
def show():
    print("spawned", flush=True)
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=show)
    process.start()
    process.join()
"""


def test_a_program_with_a_relative_path_starts_processes(tmp_path: Path):
    (tmp_path / "program.py").write_text(_SPAWNING)
    command = [*programs.python(), "program.py"]
    assert subprocess.check_output(command, cwd=tmp_path, text=True) == "spawned\n"


def test_the_traceback_of_an_error_begins_in_the_program():
    done = programs.run("def fail():\n    1 / 0\nfail()")
    of_python = subprocess.run(
        [sys.executable, "-c", "def fail():\n    1 / 0\nfail()"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, of_python.stderr)


_ENDING = """
import atexit, poplib, sys, torch
class Late:
    def __init__(self, owner): self.owner = owner
    def __del__(self): print(self.owner)
torch.late, poplib.late = Late("torch"), Late("program")
atexit.register(print, "ended")
sys.exit(3)
"""


def test_at_its_end_a_program_takes_apart_what_it_has_loaded_itself():
    done = programs.run(_ENDING)
    assert (done.returncode, done.stdout) == (3, "ended\nprogram\n")


def test_a_program_that_a_signal_ends_is_seen_to_end_by_it():
    assert programs.run("import os; os.kill(os.getpid(), 9)").returncode == -signal.SIGKILL


_WAITING = """
import os, time
try:
    print(os.getpid(), flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
"""


def _waiting() -> "subprocess.Popen[str]":
    return subprocess.Popen([*programs.python(), "-c", _WAITING], stdout=subprocess.PIPE, text=True)


def test_signals_reach_the_program():
    with _waiting() as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"


def test_a_program_ends_when_what_asked_for_it_is_killed():
    with _waiting() as process:
        program = int(process.stdout.readline())
        process.kill()
    for _ in range(200):
        if not Path(f"/proc/{program}").exists():
            return
        time.sleep(0.05)
    pytest.fail("the program still runs")


def test_a_program_is_in_the_namespaces_of_its_caller():
    show = 'import os; print(os.readlink("/proc/self/ns/net"), os.listdir("/sys/class/net"))'
    enter = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*enter, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine allows no namespaces")
    command = [*enter, "sh", "-c", 'readlink /proc/self/ns/net; exec "$@"', "sh"]
    printed = subprocess.check_output([*command, *programs.python(), "-c", show], text=True)
    outer, inner = printed.splitlines()
    assert inner.startswith(outer)
    assert outer != os.readlink("/proc/self/ns/net")


def test_no_compiled_program_comes_from_another_process():
    # A program that is loaded needs no lowering, so a missing dependency would not be noticed.
    program = "import jax; print(jax.config.jax_compilation_cache_dir)"
    assert programs.run(program).stdout == "None\n"


def test_a_variable_that_an_import_reads_gets_an_interpreter_of_its_own():
    program = "import sys; print('torch' in sys.modules)"
    assert programs.run(program, JAX_ENABLE_X64="1").stdout == "False\n"
    assert not fork_server.changes_imports({"TORCH_XLA_LITE_COMPILE": "first", "XLA_FLAGS": "x"})


class _Copy:
    """A client, with a server that imports little and ends when nothing has run for a second."""

    def __init__(self, folder: Path):
        self.client = folder / "fork_client.py"
        self.server = folder / "fork_server.py"
        self.place = Path(tempfile.mkdtemp(), "socket")  # The paths of sockets are short.
        shutil.copy(fork_client.__file__, self.client)
        text = Path(fork_server.__file__).read_text()
        for old, new in (
            (str(fork_server._IMPORTED), "('colorsys',)"),
            ("SECONDS = 300", "SECONDS = 1"),
        ):
            assert old.replace("'", '"') in text
            text = text.replace(old.replace("'", '"'), new)
        self.server.write_text(text)

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-ISP", self.client, *arguments]
        environ = {"FORK_SERVER": str(self.place)}
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)

    def is_fork(self) -> bool:
        done = self.call("-c", "import sys; print('colorsys' in sys.modules)")
        return done.stdout == "True\n"


def test_without_a_server_the_interpreter_starts(tmp_path: Path):
    copy = _Copy(tmp_path)
    done = copy.call("-c", "import sys; print(*sys.argv[1:]); sys.exit(3)", "x")
    assert (done.returncode, done.stdout) == (3, "x\n")
    assert not copy.is_fork()
    assert not copy.place.exists()


def test_one_server_is_started_and_it_ends_when_nothing_runs(tmp_path: Path):
    copy = _Copy(tmp_path)
    copy.call("--start")
    listener = copy.place.stat().st_ino
    copy.call("--start")
    time.sleep(3)  # a build
    assert (copy.is_fork(), copy.place.stat().st_ino) == (True, listener)
    copy.call("-c", "import time; time.sleep(3)")  # longer than a server waits that runs nothing
    assert (copy.is_fork(), copy.place.stat().st_ino) == (True, listener)
    while copy.place.exists():
        time.sleep(0.05)
    assert not copy.is_fork()
    copy.call("--start")
    assert copy.is_fork()


def test_a_server_that_was_killed_is_replaced(tmp_path: Path):
    copy = _Copy(tmp_path)
    copy.place.touch()
    copy.call("--start")
    assert copy.is_fork()


def test_a_server_of_an_older_state_runs_nothing_and_is_replaced(tmp_path: Path):
    copy = _Copy(tmp_path)
    copy.call("--start")
    assert copy.is_fork()
    os.utime(copy.server, ns=(0, 0))
    assert not copy.is_fork()
    copy.call("--start")
    assert copy.is_fork()
    os.utime(copy.server, ns=(1, 1))
    copy.call("--start")  # the first that finds the old one
    assert copy.is_fork()


def test_a_program_below_another_root_runs_in_an_interpreter_of_its_own(tmp_path: Path):
    copy = _Copy(tmp_path)
    copy.call("--start")
    text = copy.client.read_text()
    assert 'os.stat("/")' in text
    copy.client.write_text(text.replace('os.stat("/")', 'os.stat("/usr")'))
    assert not copy.is_fork()


def test_bazel_starts_a_server_before_the_tests():
    lines = Path(".bazelrc").read_text().splitlines()
    (script,) = (line.partition("=")[2] for line in lines if "--workspace_status_command" in line)
    done = subprocess.run([Path(script).absolute()], capture_output=True, cwd="/", timeout=60)
    # Without settings, as in that folder, it starts nothing; what it printed would be in outputs.
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
