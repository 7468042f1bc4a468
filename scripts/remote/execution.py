"""Builds on worker machines: BuildGrid is the engine, BuildBox runs the workers.

    python -m scripts.remote.execution ROOT --check
    python -m scripts.remote.execution ROOT -- bazel build //:torch_xla_lite

Engine, client and workers (--workers, two by default) are network namespaces of this machine, which
reach each other and nothing else. COMMAND runs in the client, in a copy of this tree.

ROOT is a folder with Debian sid, as docs/remote_execution.md describes; client and workers run its
programs. The copy of the tree is ROOT/src. Only the client has this interpreter's environment.

--check builds the package here and on the workers, and compares the bytes; kills a worker during a
build; runs the C++ tests that need no torch; and starts a worker with another compiler. Each fact
is a line. It takes about 10 minutes on two cores.

Needs root, Linux, the packages iproute2 and postgresql-15, and the network once, for the
packages of scripts/remote/requirements.txt. Exit code: that of COMMAND; 1 if a fact does not hold.
"""

import argparse
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.bench.clones import ROOT, copy_tree

_POSTGRES = Path("/usr/lib/postgresql/15/bin")
_AS_POSTGRES = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
_ADDRESS = "10.77.0.1:50051"
_PATH = "/usr/local/bin:/usr/bin:/bin"
# Mounts of a machine: variables of the shell are its arguments.
_ENTER = """
root=$1 own=$2; shift 2
enter() { [ -e "$root$2" ] || mkdir -p "$root$2"; mount --bind "$1" "$root$2"; }
enter /proc /proc; enter /dev /dev; enter "$own" /machine
mount -t tmpfs tmpfs "$root/tmp"
while [ "$1" != -- ]; do enter "${1%:*}" "${1#*:}"; shift; done; shift
exec chroot "$root" "$@"
"""

# Every thread of the engine serves one stream, and each waiting action, worker and upload has one.
_CONFIGURATION = """\
server:
  - !channel
    address: "{address}"
    insecure-mode: true
authorization:
  method: none
monitoring:
  enabled: false
thread-pool-size: {threads}
connections:
  - !sql-connection &sql
    connection-string: "{database}"
    pool-size: 20
storages:
  - !disk-storage &storage
    path: {folder}/storage
caches:
  - !lru-action-cache &results
    storage: *storage
    max-cached-refs: 100000
    allow-updates: true
schedulers:
  - !sql-scheduler &scheduler
    sql: *sql
    storage: *storage
    action-cache: *results
    bot-session-keepalive-timeout: 20
    property-set: !static-property-set
      property-labels:
        - {{ label: linux, properties: [[OSFamily, linux], [toolchain, {toolchain}]] }}
      wildcard-property-keys: []
instances:
  - name: ''
    services:
      - !action-cache
        cache: *results
      - !execution
        scheduler: *scheduler
      - !cas
        storage: *storage
      - !bytestream
        storage: *storage
"""


class Network:
    """Machines that reach each other and nothing else: namespaces on one bridge.

    Attributes:
      machines: names; the bridge is in the namespace of the first one.
    """

    def __init__(self, machines: Sequence[str]):
        self.machines = machines
        self._mark = f"lite{os.getpid()}-"

    def __enter__(self) -> "Network":
        with contextlib.ExitStack() as undo:
            undo.push(self.__exit__)
            first, *others = (self._mark + machine for machine in self.machines)
            _ip("netns", "add", first)
            _ip("-n", first, "link", "add", "bridge", "type", "bridge")
            self._up(first, "bridge", 1)
            for number, (name, machine) in enumerate(
                zip(others, self.machines[1:], strict=True), start=2
            ):
                _ip("netns", "add", name)
                pair = ("type", "veth", "peer", "name", machine, "netns", first)
                _ip("-n", name, "link", "add", "eth0", *pair)
                _ip("-n", first, "link", "set", machine, "master", "bridge", "up")
                self._up(name, "eth0", number)
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for machine in reversed(self.machines):
            # Bazel's server and what a killed worker started are still there.
            for pid in self.pids(machine):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            _ip("netns", "delete", self._mark + machine, check=False)

    def enter(self, machine: str, *command: str | Path) -> list[str | Path]:
        """The command line that runs a command with the network of a machine."""
        return ["ip", "netns", "exec", self._mark + machine, *command]

    def pids(self, machine: str) -> list[int]:
        """The processes of a machine."""
        said = _ip("netns", "pids", self._mark + machine, check=False)
        return [int(word) for word in said.split()]

    def _up(self, namespace: str, device: str, number: int) -> None:
        _ip("-n", namespace, "address", "add", f"10.77.0.{number}/24", "dev", device)
        for name in (device, "lo"):
            _ip("-n", namespace, "link", "set", name, "up")


def _ip(*arguments: str, check: bool = True) -> str:
    return _run(["ip", *arguments], check=check)


def _run(command: Sequence[str | Path], *, check: bool = True, both: bool = False) -> str:
    """Standard output of a command, with `both` also its errors; a failure shows what it said."""
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    said = process.stdout + process.stderr
    if check and process.returncode:
        raise RuntimeError(f"{shlex.join(map(str, command))}:\n{said}")
    return said if both else process.stdout


@contextlib.contextmanager
def _background(command: Sequence[str | Path], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that ends with the block; SIGINT from the terminal does not reach it."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # gRPC would ask a proxy for the engine.
            env={name: text for name, text in os.environ.items() if "proxy" not in name.lower()},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(log: Path, text: str, process: "subprocess.Popen[bytes]", seconds: int = 60) -> None:
    """Waits until a program has written a text.

    Raises:
      RuntimeError: it ended before, or takes longer.
    """
    end = time.monotonic() + seconds
    while text not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > end:
            said = log.read_text(errors="replace")
            raise RuntimeError(f"{log.name}: no {text!r}:\n{said[-3000:]}")
        time.sleep(0.2)


class Site:
    """An engine, its workers and a client.

    Attributes:
      root: the folder with Debian sid.
      folder: for the files of engine and workers.
      network: with the machines "engine", "client", "worker1" ...
      toolchain: fingerprint of the client's compiler.
    """

    def __init__(self, root: Path, folder: Path, network: Network):
        self.root, self.folder, self.network = root, folder, network
        shutil.rmtree(root / "src", ignore_errors=True)
        copy_tree(root / "src")
        _run(self.client("python", "-m", "bazel.pybuild.configure"))
        said = _run(self.client("python", "-m", "bazel.pybuild.machine.toolchain"))
        self.toolchain = said.strip()

    def client(self, *command: str | Path) -> list[str | Path]:
        """The command line that runs a command in the tree, in the client's machine."""
        mounts = [f"{prefix}:{prefix}" for prefix in {sys.prefix, sys.base_prefix}]
        environ = (f"PATH={sys.prefix}/bin:{_PATH}", "HOME=/machine", "USER=root")
        inside = ("env", "-i", *environ, "sh", "-c", 'cd /src && exec "$@"', "sh", *command)
        return self._machine("client", mounts, inside)

    def _machine(
        self, name: str, mounts: Sequence[str], command: Sequence[str | Path]
    ) -> list[str | Path]:
        own = self.folder / name
        own.mkdir(exist_ok=True)
        enter = ("sh", "-e", "-c", _ENTER, "sh", self.root, own, *mounts, "--", *command)
        return self.network.enter(name, *enter)

    @contextlib.contextmanager
    def engine(self, programs: Path, threads: int = 200) -> Iterator[None]:
        """Runs BuildGrid and its database."""
        data = self.folder / "database"
        data.mkdir()
        shutil.chown(data, "postgres", "postgres")
        _run([*_AS_POSTGRES, _POSTGRES / "initdb", "-A", "trust", "-U", "bgd", "-D", data / "data"])
        sockets = ("-k", data, "-c", "listen_addresses=", "-c", "fsync=off")
        server = [*_AS_POSTGRES, _POSTGRES / "postgres", "-D", data / "data", *sockets]
        log = self.folder / "database.log"
        configuration = self.folder / "engine.yml"
        database = f"postgresql+psycopg2://bgd@/postgres?host={data}"
        configuration.write_text(
            _CONFIGURATION.format(
                address=_ADDRESS,
                database=database,
                folder=self.folder,
                threads=threads,
                toolchain=self.toolchain,
            )
        )
        command = self.network.enter("engine", programs / "bgd", "server", "start", configuration)
        with _background(server, log) as process:
            _wait_for(log, "ready to accept connections", process)
            _run([programs / "bgd", "migrate", "apply", database])
            log = self.folder / "engine.log"
            with _background(command, log) as process:
                _wait_for(log, "Starting BuildGrid server", process)
                yield

    @contextlib.contextmanager
    def worker(self, name: str, compiler: str = "") -> Iterator["subprocess.Popen[bytes]"]:
        """Runs a worker that announces the fingerprint of its own toolchain.

        Args:
          name: of the machine.
          compiler: a program of the root that replaces /usr/bin/gcc in this machine.
        """
        replaced = [f"{self.root}{compiler}:/usr/bin/gcc"] if compiler else []
        # The engine refuses a name that it knows.
        unique = f"{name}-{time.time_ns()}"
        script = f"""
        cd /src
        toolchain=$(python3 -m bazel.pybuild.machine.toolchain)
        echo "toolchain $toolchain"
        buildbox-casd --cas-remote=http://{_ADDRESS} --bind=unix:/machine/socket /machine/storage &
        while [ ! -S /machine/socket ]; do sleep 0.1; done
        exec buildbox-worker --bots-remote=http://{_ADDRESS} --cas-remote=unix:/machine/socket \
          --buildbox-run=/usr/bin/buildbox-run-hosttools \
          --platform OSFamily=linux --platform toolchain="$toolchain" {unique}
        """
        inside = ("env", "-i", f"PATH={_PATH}", "HOME=/machine", "sh", "-e", "-c", script)
        with _background(self._machine(name, replaced, inside), self.log(name)) as process:
            _wait_for(self.log(name), "toolchain ", process)
            yield process

    def log(self, machine: str) -> Path:
        """What a machine has written."""
        return self.folder / f"{machine}.log"

    def kill(self, machine: str) -> None:
        """Ends a machine as a power cut does."""
        for pid in self.network.pids(machine):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def retried(self) -> int:
        """How many actions the engine gave to a second worker."""
        query = "select count(*) from jobs where n_tries > 1"
        psql = [_POSTGRES / "psql", "-h", self.folder / "database", "-U", "bgd", "-d", "postgres"]
        return int(_run([*psql, "-At", "-c", query]))


@contextlib.contextmanager
def site(root: Path, workers: int) -> Iterator[Site]:
    """Starts everything; files are in a temporary folder, and BuildGrid in the user's cache."""
    names = ["engine", "client", *(f"worker{number + 1}" for number in range(workers))]
    with (
        tempfile.TemporaryDirectory(prefix="lite-remote-", ignore_cleanup_errors=True) as folder,
        Network([*names, "stranger"]) as network,
        contextlib.ExitStack() as running,
    ):
        # The database's user opens its folder.
        os.chmod(folder, 0o755)
        made = Site(root, Path(folder), network)
        running.enter_context(made.engine(_programs()))
        for name in names[2:]:
            running.enter_context(made.worker(name))
        yield made


def _programs() -> Path:
    """BuildGrid's programs. Its packages do not fit those of this tree."""
    requirements = ROOT / "scripts" / "remote" / "requirements.txt"
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "torch_xla_lite" / "buildgrid"
    installed = folder / requirements.name
    if not installed.exists() or installed.read_bytes() != requirements.read_bytes():
        venv.create(folder, clear=True, with_pip=True)
        _run([folder / "bin" / "pip", "install", "--quiet", "-r", requirements])
        shutil.copy(requirements, installed)
    return folder / "bin"


# As in docs/remote_execution.md.
_REMOTE = (
    f"--remote_executor=grpc://{_ADDRESS}",
    "--spawn_strategy=remote,local",
    "--remote_default_exec_properties=OSFamily=linux",
    "--remote_timeout=60",
    "--remote_retries=5",
)
_QUIET = ("--noshow_progress", "--disk_cache=")
_TORCH_FREE = ("//test/csrc/ir/...", "//test/csrc/runtime/...")


def same_bytes(made: Site) -> str:
    """All object files, archives and libraries are those of a local build."""
    local = _build(made, "--output_user_root=/machine/local", "--spawn_strategy=local")
    begin = time.monotonic()
    options = ("--remote_download_outputs=all", *_REMOTE)
    remote = _build(made, "--output_user_root=/machine/remote", *options)
    seconds = time.monotonic() - begin
    different = sorted(name for name in local if local[name] != remote.get(name))
    assert len(local) > 50 and not different, different
    logs = [made.log(machine) for machine in made.network.machines if "worker" in machine]
    used = [log.read_text().count("Runner exited with code 0") for log in logs]
    assert all(used), used
    shares = " + ".join(map(str, used))
    return f"{len(local)} files have the bytes of a local build; {shares} actions, {seconds:.0f} s"


def _build(made: Site, startup: str, *options: str) -> dict[str, str]:
    """Builds the package; relative path -> hash of each file that a compiler or linker made."""
    bazel = ("bazel", startup)
    _run(made.client(*bazel, "build", *_QUIET, *options, "//torch_xla_lite:outputs"))
    folder = _run(made.client(*bazel, "info", "bazel-bin")).strip()
    files = (made.folder / "client" / Path(folder).relative_to("/machine")).rglob("*")
    kinds = (".a", ".o", ".so", "_build_info.py")
    return {
        str(file).partition("/bin/")[2]: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.name.endswith(kinds) and file.is_file()
    }


def survives_the_death_of_a_worker(made: Site) -> str:
    """A worker is killed while it compiles; another one repeats its action."""
    options = (*_QUIET, *_REMOTE, "--noremote_accept_cached")
    command = made.client("bazel", "build", *options, "//torch_xla_lite/csrc/runtime/...")
    victim = made.network.machines[2]
    log = made.folder / "build.log"
    with _background(command, log) as process:
        while not any(_is_compiler(pid) for pid in made.network.pids(victim)):
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        made.kill(victim)
        assert process.wait(600) == 0, log.read_text()
    assert made.retried(), "no action was repeated"
    return f"{victim} was killed while it compiled: the build passed, {made.retried()} repeated"


def _is_compiler(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text() == "cc1plus\n"
    return False


def runs_tests(made: Site) -> str:
    """The tests that need no torch run on the workers."""
    said = _run(made.client("bazel", "test", *_QUIET, *_REMOTE, *_TORCH_FREE), both=True)
    found = re.search(r"(\d+) remote(?! cache hit)", said)
    passed = re.search(r"Executed (\d+) out of \d+ tests: \1 tests? pass", said)
    assert found and passed and not re.search(r"\d local", said), said
    return f"{passed[1]} tests passed, {found[1]} actions ran remotely"


def refuses_another_compiler(made: Site) -> str:
    """The engine gives nothing to a worker whose compiler is another one."""
    with made.worker("stranger", "/usr/bin/clang") as process:
        log = made.log("stranger")
        _wait_for(log, "Could not find property set", process)
        own = log.read_text(errors="replace").split()[1]
    assert own != made.toolchain
    return f"a worker with clang (toolchain {own}) was refused; the client has {made.toolchain}"


_FACTS = (same_bytes, survives_the_death_of_a_worker, runs_tests, refuses_another_compiler)


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path, metavar="ROOT")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("command", nargs="*", metavar="COMMAND")
    arguments = parser.parse_args()
    if arguments.check == bool(arguments.command):
        parser.error("say --check or a command")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with site(arguments.root.resolve(), arguments.workers) as made:
        if not arguments.check:
            return subprocess.run(made.client(*arguments.command), check=False).returncode
        failed = False
        for fact in _FACTS:
            try:
                print(f"holds: {fact(made)}", flush=True)
            except AssertionError as error:
                failed = True
                print(f"fails: {fact.__name__}: {error}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
