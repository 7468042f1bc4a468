#!/usr/bin/env python3
"""Measures update_repos.py with nothing to do, against git by hand, vcs2l and west.

    python scripts/bench_update_repos.py                    # about two minutes
    python scripts/bench_update_repos.py --wait 0 0.05 0.2  # seconds until the server answers
    python scripts/bench_update_repos.py --rounds 20 --json result.json

Three repositories, of 100, 1,000 and 5,000 files, are served over the loopback interface by git's
http-backend, which waits a while before each answer, as a distant server does. All are up to date.
vcs2l and west come from PyPI into a temporary environment, in the versions below; they are no part
of the project. vcs2l pulls, west updates.

The tools run in turn, several times; a ratio is the median of the ratios of neighbouring runs. The
slowest single fetch is the slowest of three `git fetch`, one in each repository.

A table goes to the standard output. The JSON file is the stable output for other programs. Exit
code 1 if something did not run.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
PEERS = ("vcs2l==1.1.7", "west==1.5.0")
# Name and number of files.
REPOSITORIES = {"one": 100, "two": 1_000, "three": 5_000}

# The server of the tests, in a process of its own: its work is not ours.
_SERVER = """\
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from servers import http_server
with http_server(Path(sys.argv[2]), os.environ) as server:
    server.manners.wait = float(sys.argv[3])
    print(server.url, flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True)
class Row:
    """One line of the table; times in seconds.

    Attributes:
      wait: how long the server waits before each answer.
      slowest_fetch: median of the slowest of the single fetches.
      ours: update_repos.py.
      by_hand: `git fetch` and `git merge --ff-only` in one repository after the other.
      vcs2l, west: theirs.
      ratio: median of ours / slowest_fetch, of neighbouring runs.
      vs_by_hand, vs_vcs2l, vs_west: medians of ours / theirs.
    """

    wait: float
    slowest_fetch: float
    ours: float
    by_hand: float
    vcs2l: float
    west: float
    ratio: float
    vs_by_hand: float
    vs_vcs2l: float
    vs_west: float


class Bench:
    """Repositories, their servers, and the tools."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.environ = {
            # PYTHONDONTWRITEBYTECODE would have all our modules compiled again in each run, and
            # none of theirs.
            **{n: v for n, v in os.environ.items() if not n.startswith(("GIT_", "PYTHON"))},
            "HOME": str(folder / "home"),
            "XDG_CONFIG_HOME": str(folder / "home" / ".config"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "TORCH_XLA_LITE_CONTAINER": "0",
        }
        (folder / "home").mkdir()
        settings = "[user]\n\tname = b\n\temail = b@b.invalid\n[init]\n\tdefaultBranch = main\n"
        (folder / "home" / ".gitconfig").write_text(settings)
        for name, count in REPOSITORIES.items():
            self._server(folder / "servers" / name, count)

    def _server(self, path: Path, count: int) -> None:
        path.mkdir(parents=True)
        for i in range(count):
            file = path / f"{i // 100}" / f"{i}"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{i}\n")
        self.call("git", "init", "-q", folder=path)
        self.call("git", "add", "-A", folder=path)
        self.call("git", "commit", "-q", "-m", "all", folder=path)

    def call(self, *words: str | Path, folder: Path) -> float:
        """Runs a command that has to succeed; the seconds it took."""
        began = time.perf_counter()
        done = subprocess.run(
            [str(word) for word in words],
            cwd=folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.perf_counter() - began
        if done.returncode != 0:
            text = " ".join(str(word) for word in words)
            sys.exit(f"error: {text}\nfailed in {folder}:\n{done.stdout}{done.stderr}")
        return took

    def peers(self) -> Path:
        """An environment with the other tools; its folder of programs."""
        place = self.folder / "peers"
        venv.create(place, with_pip=True, symlinks=True)
        pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet"]
        self.call(*pip, "--disable-pip-version-check", *PEERS, folder=self.folder)
        return place / "bin"


def measure(bench: Bench, programs: Path, wait: float, rounds: int) -> Row:
    """All tools in turn, against a server that waits."""
    places = (str(ROOT / "test" / "scripts"), str(bench.folder / "servers"))
    words = [sys.executable, "-c", _SERVER, *places, str(wait)]
    server = subprocess.Popen(
        words, env=bench.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        tools = _tools(bench, programs, url, bench.folder / f"clones-{wait}")
        for tool in tools.values():
            tool()
        description = f"{wait:g} s"
        runs = [
            {name: tool() for name, tool in tools.items()}
            for _ in track(range(rounds), description, transient=True)
        ]
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait()
    median = {name: statistics.median(run[name] for run in runs) for name in tools}

    def ratio(other: str) -> float:
        return statistics.median(run["ours"] / run[other] for run in runs)

    return Row(
        wait=wait,
        **median,
        ratio=ratio("slowest_fetch"),
        vs_by_hand=ratio("by_hand"),
        vs_vcs2l=ratio("vcs2l"),
        vs_west=ratio("west"),
    )


def _tools(
    bench: Bench, programs: Path, url: str, clones: Path
) -> Mapping[str, Callable[[], float]]:
    """What is measured, each on the same clones but west, which makes its own."""
    clones.mkdir()
    for name in REPOSITORIES:
        bench.call("git", "clone", "-q", f"{url}/{name}/.git", name, folder=clones)
    ours = _ours(bench, url, clones)
    west = clones / "west"
    _west(bench, programs, url, west)

    def slowest_fetch() -> float:
        return max(bench.call("git", "fetch", "-q", folder=clones / name) for name in REPOSITORIES)

    def by_hand() -> float:
        took = 0.0
        for name in REPOSITORIES:
            took += bench.call("git", "fetch", "-q", folder=clones / name)
            took += bench.call("git", "merge", "-q", "--ff-only", folder=clones / name)
        return took

    vcs = [programs / "vcs", "pull", *REPOSITORIES]
    return {
        "slowest_fetch": slowest_fetch,
        "ours": lambda: bench.call(*ours, folder=clones),
        "by_hand": by_hand,
        "vcs2l": lambda: bench.call(*vcs, folder=clones),
        "west": lambda: bench.call(programs / "west", "update", folder=west),
    }


def _ours(bench: Bench, url: str, clones: Path) -> Sequence[str]:
    lines = [f"default = {json.dumps(list(REPOSITORIES))}"]
    for name in REPOSITORIES:
        place = f'path = "{clones / name}"\nupstream = ["{url}/{name}/.git"]'
        lines.append(f'[repository.{name}]\n{place}\nbranch = "main"')
    table = clones / "repositories.toml"
    table.write_text("\n".join(lines) + "\n")
    script = str(ROOT / "scripts" / "update_repos.py")
    return [sys.executable, script, "--allow-root", f"--config={table}"]


def _west(bench: Bench, programs: Path, url: str, folder: Path) -> None:
    """A workspace of west's with the same repositories."""
    manifest = folder / "manifest"
    manifest.mkdir(parents=True)
    lines = ["manifest:", "  projects:"]
    for name in REPOSITORIES:
        lines += [f"    - name: {name}", f"      url: {url}/{name}/.git", "      revision: main"]
    (manifest / "west.yml").write_text("\n".join(lines) + "\n")
    bench.call("git", "init", "-q", folder=manifest)
    bench.call(programs / "west", "init", "-l", "manifest", folder=folder)
    bench.call(programs / "west", "update", folder=folder)


def show(rows: Sequence[Row], machine: Mapping[str, object]) -> None:
    """Prints the table."""
    console = Console(width=None if sys.stdout.isatty() else 130)
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()), style="dim")
    table = Table(title="Three repositories, nothing to do (s; medians, ratios of neighbours)")
    names = ("server waits", "slowest fetch", "ours", "ratio", "by hand", "vcs2l")
    for name in (*names, "west", "ours / by hand", "ours / vcs2l", "ours / west"):
        table.add_column(name, justify="right")
    for row in rows:
        times = (row.by_hand, row.vcs2l, row.west)
        ratios = (row.vs_by_hand, row.vs_vcs2l, row.vs_west)
        table.add_row(
            f"{row.wait:g}",
            f"{row.slowest_fetch:.3f}",
            f"{row.ours:.3f}",
            f"{row.ratio:.2f}",
            *(f"{value:.3f}" for value in times),
            *(f"{value:.2f}" for value in ratios),
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="of each (9)")
    parser.add_argument(
        "--wait",
        type=float,
        nargs="+",
        default=[0.0, 0.05, 0.15],
        metavar="S",
        help="seconds before each answer of the server (0 0.05 0.15)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there too")
    arguments = parser.parse_args()
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
    machine: dict[str, object] = {
        "cores": len(os.sched_getaffinity(0)),
        "git": git.split()[2],
        "python": platform.python_version(),
        "peers": " ".join(PEERS),
        "rounds": arguments.rounds,
        "load_before": round(os.getloadavg()[0], 2),
    }
    folder = Path(tempfile.mkdtemp(prefix="bench_update_repos_"))
    try:
        bench = Bench(folder)
        programs = bench.peers()
        rows = [measure(bench, programs, wait, arguments.rounds) for wait in arguments.wait]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    machine["load_after"] = round(os.getloadavg()[0], 2)
    show(rows, machine)
    if arguments.json:
        content = {"machine": machine, "rows": [asdict(row) for row in rows]}
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
