"""Measures what caches save: another clone, other tools, bytes on the network, size of the cache.

    python -m scripts.bench.cache                           # everything, about half an hour
    python -m scripts.bench.cache --only clone --rounds 5
    python -m scripts.bench.cache --json result.json

Parts:
  clone     a clone with another path and environment, with the disk cache and with a server;
            ccache and sccache, if they are installed, compile the same sources
  bytes     what such a build transfers: all outputs, and only those that are asked for
  commits   size of the cache after ten commits that changed the build; the history of git is needed
  team      from these: bandwidth and storage for --people and --builds a day

The server is that of scripts/cache_server.py. All files are in a temporary folder. Install ccache
and sccache with apt.

A table goes to the standard output. The JSON file is stable, for programs. The exit code is 0 even
if a goal is missed, and 1 if something did not build.
"""

import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bazel.pybuild.why.execution_log import Spawn
from scripts.bench import harness
from scripts.bench.build import machine
from scripts.bench.clones import JOBS, ROOT, Clone, temporary_folder
from scripts.bench.harness import Row

PARTS = ("clone", "bytes", "commits", "team")
_SOURCES = ("torch_xla_lite/csrc", "third_party", "bazel")
_GIB = 2**30
_GROWTH = "growth for a commit that changes the build"


class Server:
    """A cache server that counts the bytes it transfers.

    Attributes:
      url: of the server.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self.url = json.loads((folder / "server.json").read_text())["url"]

    def variables(self, *, writes: bool) -> dict[str, str]:
        """Variables of a build that uses it."""
        name = "WRITE" if writes else "READ"
        token = (self._folder / f"{name.lower()}-token").read_text().strip()
        cache = "TORCH_XLA_LITE_REMOTE_CACHE"
        return {cache: self.url, f"{cache}_{name}_TOKEN": token}

    def transferred(self) -> int:
        """The bytes of all requests and replies until now."""
        log = self._folder / "bytes.log"
        # nginx writes the line after the reply.
        time.sleep(0.5)
        return sum(int(word) for word in log.read_text().split())

    def stored(self) -> int:
        """The bytes of all entries."""
        return size(self._folder / "entries")


@contextlib.contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Starts a server on a free port."""
    script = [sys.executable, ROOT / "scripts" / "cache_server.py"]
    subprocess.run([*script, "start", folder, "--port", "0"], check=True, capture_output=True)
    try:
        configuration = folder / "nginx.conf"
        count = (
            f"log_format bytes '$request_length $bytes_sent'; access_log {folder}/bytes.log bytes;"
        )
        configuration.write_text(configuration.read_text().replace("access_log off;", count))
        os.kill(int((folder / "nginx.pid").read_text()), signal.SIGHUP)
        while not (folder / "bytes.log").exists():
            time.sleep(0.05)
        yield Server(folder)
    finally:
        subprocess.run([*script, "stop", folder], check=True, capture_output=True)


def size(folder: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


class Bench:
    """The clones of one run.

    Attributes:
      folder: for all files.
      rounds: number of warm clones for each cache.
      http: a server with the results of `first`.
      first: the clone that compiled everything; it wrote to `http` and to the disk cache "shared".
      cold_s: seconds that it took.
    """

    def __init__(self, folder: Path, rounds: int, http: Server):
        self.folder, self.rounds, self.http = folder, rounds, http
        self._number = 0
        self._source = ROOT
        self.first = self.clone("shared", **http.variables(writes=True))
        # The tree may be edited meanwhile.
        self._source = self.first.root
        self.cold_s = self.first.develop()

    def clone(self, cache: str, **variables: str) -> Clone:
        """A clone with its own path and environment.

        Args:
          cache: name of its disk cache; a new name is an empty cache.
          **variables: of its builds.
        """
        self._number += 1
        # Bazel unpacks itself once for each user, so the clones share these files.
        place = self.folder / f"place{self._number}" / "deeper"
        made = Clone(place, self.folder / "user", self._source)
        made.environ["XDG_CACHE_HOME"] = str(self.folder / "caches" / cache)
        made.environ.update(variables)
        return made

    def warm(self, name: str, cold_s: float, cache: str, variables: Mapping[str, str]) -> list[Row]:
        """Builds in new clones, and compares with a cold build.

        Args:
          name: of the cache.
          cold_s: seconds of a build without entries.
          cache: name of the disk cache; empty for a new one in each clone.
          variables: of the builds.
        """
        times, found, total = [], 0, 0
        for _ in range(self.rounds):
            made = self.clone(cache or f"own{self._number}", **variables)
            times.append(made.develop())
            report = made.report()
            hits = report["cache_hits"]["disk"] + report["cache_hits"]["remote"]
            found += hits
            total += hits + sum(report["actions"].values())
            made.bazel("shutdown")
        took = statistics.median(times)
        share = 100 * found / total
        return [
            _row(f"another clone, {name}", took, "s", "goal <= 3 s"),
            _row(f"  hits, {name}", share, "%", "goal 100 %"),
            _row(f"  cold / warm, {name}", cold_s / took, "", "goal >= 10"),
        ]


def measure_clone(bench: Bench) -> list[Row]:
    """Warm clones with each cache, and compilation with other tools."""
    rows = [_row("cold build", bench.cold_s, "s", f"{JOBS} jobs")]
    rows += bench.warm("disk cache", bench.cold_s, "shared", {})
    rows += bench.warm("http", bench.cold_s, "", bench.http.variables(writes=False))
    return rows + _other_tools(bench)


def _other_tools(bench: Bench) -> list[Row]:
    """ccache and sccache: the compiler calls of the build, in the folders of two clones."""
    compiles = [s for s in bench.first.spawns() if s.mnemonic == "CppCompile"]
    first = Path(bench.first.bazel("info", "execution_root"))
    other = bench.clone("shared")
    other.develop()
    second = Path(other.bazel("info", "execution_root"))
    rows = []
    for tool in ("ccache", "sccache"):
        if program := shutil.which(tool):
            store = bench.folder / tool
            cold_s = _compile_all(program, compiles, first, store)
            warm_s = _compile_all(program, compiles, second, store)
            if tool == "sccache":
                _quiet([program, "--stop-server"])
            note = f"cold {cold_s:.1f} s: {cold_s / warm_s:.1f} times; compiles only, links nothing"
            rows.append(_row(f"another clone, {tool}", warm_s, "s", note))
    other.bazel("shutdown")
    return rows


def _compile_all(program: str, compiles: Sequence[Spawn], root: Path, store: Path) -> float:
    """Seconds of all compiler calls below a tool, JOBS at once, with the outputs beside them."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(store),
        "CCACHE_DIR": str(store),
        "CCACHE_BASEDIR": str(root),
        "CCACHE_NOHASHDIR": "1",
        "SCCACHE_DIR": str(store),
        "SCCACHE_BASEDIRS": str(root),
    }
    if "sccache" in program:
        _quiet([program, "--stop-server"])
        subprocess.run([program, "--start-server"], env=environ, check=True, capture_output=True)

    def call(number: int) -> None:
        arguments = list(compiles[number].arguments)
        target = arguments.index("-o") + 1
        arguments[target] = f"{store}.o/{number}.o"
        if "-MF" in arguments:
            arguments[arguments.index("-MF") + 1] = f"{store}.o/{number}.d"
        subprocess.run([program, *arguments], cwd=root, env=environ, check=True)

    shutil.rmtree(f"{store}.o", ignore_errors=True)
    os.mkdir(f"{store}.o")
    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(call, range(len(compiles))))
    return time.perf_counter() - began


def _quiet(command: Sequence[str]) -> None:
    subprocess.run(command, check=False, capture_output=True)


def measure_bytes(bench: Bench, written: int) -> list[Row]:
    """What builds in new clones transfer, and what the server stores.

    Args:
      bench: with the server.
      written: the bytes that the first build transferred.
    """
    stored = bench.http.stored()
    rows = [
        _row("transferred by the build that writes", written / 1e6, "MB"),
        _row("stored by the server", stored / 1e6, "MB"),
    ]
    for name, options in (
        ("a build", ""),
        ("a build with --remote_download_toplevel", "--remote_download_toplevel"),
    ):
        before = bench.http.transferred()
        made = bench.clone(f"counted {options}", **bench.http.variables(writes=False))
        made.environ["TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"] = options
        made.develop()
        moved = bench.http.transferred() - before
        made.bazel("shutdown")
        rows.append(_row(f"transferred by {name}", moved / 1e6, "MB"))
    outputs = size(bench.first.root / "torch_xla_lite" / "lib")
    outputs += (bench.first.root / "torch_xla_lite" / "_XLAC.so").stat().st_size
    return [*rows, _row("the libraries themselves", outputs / 1e6, "MB")]


def measure_commits(bench: Bench, count: int) -> list[Row]:
    """Size of the disk cache after the last commits that changed the build, the newest first."""
    log = ["git", "log", f"-{count}", "--format=%h", "--", *_SOURCES]
    commits = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=True)
    source = bench.folder / "history"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    made = bench.clone("shared")
    store = bench.folder / "caches" / "shared"
    sizes = [size(store)]
    kept = ("/.git", "/bazel-*", "/build", "/.bazelrc.generated*")
    copy = ["rsync", "-a", "--delete", *(f"--exclude={name}" for name in kept)]
    for commit in commits.stdout.split():
        subprocess.run(["git", "checkout", "--quiet", commit], cwd=source, check=True)
        subprocess.run([*copy, f"{source}/", f"{made.root}/"], check=True)
        made.develop()
        sizes.append(size(store))
    made.bazel("shutdown")
    growth = (sizes[-1] - sizes[0]) / (len(sizes) - 1)
    return [
        _row("disk cache after one commit", sizes[0] / 1e6, "MB"),
        _row(f"disk cache after {count} commits", sizes[-1] / 1e6, "MB", "that change the build"),
        _row(_GROWTH, growth / 1e6, "MB"),
    ]


def estimate_team(rows: Sequence[Row], people: int, builds: int) -> list[Row]:
    """Bandwidth and storage of one server, from the measured rows."""
    number = {row.name: row.values["measured"] for row in rows}
    if "transferred by a build" not in number:
        return []
    daily = builds * number["transferred by a build"]
    growth = number.get(_GROWTH, number["stored by the server"])
    note = "a commit that changes the build" if _GROWTH in number else "everything is compiled"
    # Half of the builds in two hours, which is more than on an ordinary day.
    peak = 8 * daily / 2 / 7200
    days = 10 * _GIB / 1e6 / (builds * growth)
    team = f"{people} people, {builds} builds a day"
    return [
        _row(f"{team}: read in a day", daily, "MB", "each build in an empty clone"),
        _row(f"{team}: peak", peak, "Mbit/s", "half of them within two hours"),
        _row(f"{team}: written in a day", builds * growth, "MB", f"each: {note}"),
        _row(f"{team}: 10 GiB last", days, "days", "then the oldest entries are removed"),
    ]


def _row(name: str, value: float, unit: str, note: str = "") -> Row:
    return Row(name, unit, {"measured": value}, note=note)


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="warm clones for each cache (3)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure")
    parser.add_argument("--commits", type=int, default=10, help="for the size of the cache (10)")
    parser.add_argument("--people", type=int, default=50, help="in the team (50)")
    parser.add_argument("--builds", type=int, default=200, help="of the team in a day (200)")
    options = parser.parse_args()

    report = harness.Report(machine())
    with temporary_folder() as folder, server(folder / "http") as http:
        bench = Bench(folder, options.rounds, http)
        written = http.transferred()
        rows: list[Row] = []
        try:
            if "clone" in options.only:
                rows += measure_clone(bench)
            if "bytes" in options.only:
                rows += measure_bytes(bench, written)
            if "commits" in options.only:
                rows += measure_commits(bench, options.commits)
            if "team" in options.only:
                rows += estimate_team(rows, options.people, options.builds)
        finally:
            bench.first.bazel("shutdown")
    report.add("Caches (medians)", rows)
    report.write(options.json)


if __name__ == "__main__":
    main()
