#!/usr/bin/env python3
"""Finds out why a build misses the cache entries of another: compares the keys of all actions.

    python scripts/cache_doctor.py A B                     # two execution logs of Bazel
    python scripts/cache_doctor.py --make                  # makes both: the package, all tests
    python scripts/cache_doctor.py --make //test/csrc/...  # of some targets
    python scripts/cache_doctor.py A B --json              # for programs; the form is stable

A log is what --execution_log_json_file (Bazel 4 and 7) or --execution_log_compact_file (Bazel 7)
wrote. Only actions that Bazel started or found in a cache are in it, so both builds should begin
after `bazel clean`.

--make copies this tree twice, and builds the copies with another path, Python environment, user (if
user namespaces work here), PATH, HOME, locale and umask. They use the disk cache of this
user, so the second one should compile nothing. Tests are built and prepared, and /bin/true runs in
their place.

For each action whose key differs, the output names the argument, variable, property or input that
differs. An input that another action made is named with that action, which is the one to look at.

Exit code: 0 if all keys are equal, 1 if not, 2 if there is nothing to compare.
"""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bazel.pybuild.invocation import execution_log  # noqa: E402
from bazel.pybuild.invocation.execution_log import Spawn  # noqa: E402
from scripts import clones  # noqa: E402

_TARGETS = ("//torch_xla_lite/...", "//test/...")
# In this namespace the same user has another number and name; the files stay readable.
_AS_NOBODY = ("unshare", "--user", "--map-user=65534", "--map-group=65534")


@dataclass(frozen=True)
class Difference:
    """What differs between the keys of one action.

    Attributes:
      kind: "argument", "variable", "property", "input", "output" (the same key gave another
        content) or "key" (for a reason that is not in the logs).
      name: of the variable, property or file; empty for arguments and keys.
      a, b: the values; empty where one is missing.
      made_by: the action that made the input; empty for source files.
    """

    kind: str
    name: str
    a: str
    b: str
    made_by: str = ""


@dataclass(frozen=True)
class Comparison:
    """The result.

    Attributes:
      common: number of actions that are in both builds.
      different: action -> differences of its key.
      only_a, only_b: actions of one build.
      uncached: actions that no cache may hold, such as tests with the tag "local".
    """

    common: int
    different: Mapping[str, Sequence[Difference]]
    only_a: Sequence[str]
    only_b: Sequence[str]
    uncached: Sequence[str]

    @property
    def equal(self) -> bool:
        return not (self.different or self.only_a or self.only_b)


def compare(a: Iterable[Spawn], b: Iterable[Spawn]) -> Comparison:
    """Compares the keys of the actions of two builds."""
    first, second = ({_name(spawn): spawn for spawn in log} for log in (a, b))
    common = [name for name in first if name in second]
    makers = {}
    for name in first | second:
        for spawn in (first.get(name), second.get(name)):
            for path in (*spawn.outputs, *spawn.products) if spawn else ():
                makers[_place(path)] = name
    found = {name: _differences(first[name], second[name], makers) for name in common}
    return Comparison(
        common=len(common),
        different={name: differences for name, differences in found.items() if differences},
        only_a=[name for name in first if name not in second],
        only_b=[name for name in second if name not in first],
        uncached=[name for name in common if not first[name].cacheable],
    )


def _name(spawn: Spawn) -> str:
    """Identifies an action in both builds. Two actions of one test may write the same file."""
    return f"{spawn.mnemonic} {' '.join(spawn.outputs[:1]) or spawn.arguments[-1]}"


def _place(path: str) -> str:
    """A path without the folder that contains it, so that a file in the runfiles of a test has the
    place of the file that was built."""
    _, _, inside = path.partition(".runfiles/")
    if inside:
        return inside.partition("/")[2]
    return path.partition("/bin/")[2] or path


def _differences(a: Spawn, b: Spawn, makers: Mapping[str, str]) -> list[Difference]:
    found = [Difference("argument", "", *pair) for pair in _arguments(a.arguments, b.arguments)]
    for kind, one, other in (
        ("variable", a.variables, b.variables),
        ("property", a.properties, b.properties),
        ("input", a.inputs, b.inputs),
    ):
        for name in sorted(one.keys() | other.keys()):
            values = [values.get(name, "missing") for values in (one, other)]
            if values[0] != values[1]:
                maker = makers.get(_place(name), "") if kind == "input" else ""
                found.append(Difference(kind, name, *values, maker))
    if not found and a.key != b.key:
        return [Difference("key", "", a.key, b.key)]
    if not found:
        # Whoever depends on it misses the cache, although nothing that is an input differs.
        for name in sorted(a.products.keys() & b.products.keys()):
            if a.products[name] != b.products[name]:
                found.append(Difference("output", name, a.products[name], b.products[name]))
    return found


def _arguments(a: Sequence[str], b: Sequence[str]) -> list[tuple[str, str]]:
    """Arguments that only one command line has, in pairs."""
    if a == b:
        return []
    only_a = list((collections.Counter(a) - collections.Counter(b)).elements())
    only_b = list((collections.Counter(b) - collections.Counter(a)).elements())
    if not (only_a or only_b):
        return [(" ".join(a), " ".join(b))]
    length = max(len(only_a), len(only_b))
    only_a, only_b = ([*words, *["missing"] * (length - len(words))] for words in (only_a, only_b))
    return list(zip(only_a, only_b, strict=True))


def make(folder: Path, bazel: str, targets: Sequence[str]) -> tuple[Path, Path]:
    """Makes two builds that differ in everything that must not matter, and returns their logs.

    Raises:
      subprocess.CalledProcessError: one of them failed.
    """
    path = os.environ.get("PATH", os.defpath)
    other = {
        "PATH": f"{folder / 'programs'}:/usr/local/sbin:{path}",
        "HOME": str(folder / "b/home"),
        # Both use the disk cache of this user, so that nothing is compiled twice.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Pacific/Auckland",
    }
    works = subprocess.run([*_AS_NOBODY, "true"], check=False, capture_output=True).returncode == 0
    user = _AS_NOBODY if works else ()
    first = {**os.environ, "LC_ALL": "C.UTF-8"}
    folders = (folder / "a", folder / "b/further/away")
    for place in folders:
        clones.copy_tree(place / "tree")
    return (
        _build(folders[0], bazel, targets, first, 0o022),
        _build(folders[1], bazel, targets, other, 0o077, user),
    )


def _build(
    folder: Path,
    bazel: str,
    targets: Sequence[str],
    environ: Mapping[str, str],
    umask: int,
    user: Sequence[str] = (),
) -> Path:
    """Builds a copy of this tree in a folder, and returns Bazel's log."""
    tree = folder / "tree"
    python = _environment(folder / "environment")
    startup = [bazel, f"--output_user_root={folder / 'bazel'}", "--max_idle_secs=60"]
    variable = "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS"
    environ = {**environ, "TORCH_XLA_LITE_BAZEL": bazel, variable: " ".join(startup[1:])}

    def run(*command: str | Path, allowed: Sequence[int] = (0,)) -> None:
        process = subprocess.run([*user, *command], cwd=tree, env=environ, umask=umask, stdout=2)
        if process.returncode not in allowed:
            raise subprocess.CalledProcessError(process.returncode, command)

    run(python, "-m", "bazel.pybuild.machine.configure")
    (tree / execution_log.FILE).parent.mkdir(exist_ok=True)
    options = ["--config=report", "--run_under=/bin/true", "--noshow_progress"]
    options += ["--test_summary=none"]
    try:
        # 4: there are no tests among the targets.
        run(*startup, "test", *options, *targets, allowed=(0, 4))
    finally:
        run(*startup, "shutdown")
    return tree / execution_log.FILE


def _environment(folder: Path) -> Path:
    """Makes a Python environment with the packages of the present one, and returns its Python."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for entry in sorted(entry for place in sys.path for entry in Path(place).glob("*")):
        ours = entry.name.startswith(("torch_xla_lite", "__editable__"))
        if entry.parent.name == "site-packages" and not ours and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def text(result: Comparison) -> str:
    """The result for a reader: causes first, then the actions that only follow from them."""
    lines = []
    causes = {n: d for n, d in result.different.items() if not all(each.made_by for each in d)}
    for name, differences in causes.items():
        lines.append(name)
        lines += [
            f"  {d.kind} {d.name}: {d.a[:200]} | {d.b[:200]}" for d in differences if not d.made_by
        ]
    for name, differences in result.different.items():
        if name not in causes:
            lines += [name, f"  because of what {differences[0].made_by} made"]
    for build, names in (("A", result.only_a), ("B", result.only_b)):
        lines += [f"{name}\n  only in {build}" for name in names]
    if result.uncached:
        lines.append(f"{len(result.uncached)} actions are never taken from a cache:")
        lines += [f"  {name}" for name in result.uncached]
    lines.append(f"{result.common} actions in both builds; {len(result.different)} keys differ")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="A B | TARGET", help="logs, or what to build")
    parser.add_argument("--make", action="store_true", help="make the two builds")
    parser.add_argument("--json", action="store_true", help="write the result as JSON")
    parser.add_argument(
        "--bazel", default=shutil.which("bazelisk") or "bazel", help="Bazel, for --make"
    )
    arguments = parser.parse_args()
    if not arguments.make and len(arguments.words) != 2:
        parser.error("name two execution logs, or --make")
    with tempfile.TemporaryDirectory(prefix="cache-doctor-") as folder:
        try:
            if arguments.make:
                logs = make(Path(folder), arguments.bazel, arguments.words or _TARGETS)
            else:
                logs = (Path(arguments.words[0]), Path(arguments.words[1]))
            builds = [list(execution_log.read(log)) for log in logs]
        except (execution_log.MissingPackage, subprocess.CalledProcessError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    for log, build in zip(logs, builds, strict=True):
        if not build:
            print(f"error: {log} is missing, or has no actions.", file=sys.stderr)
            return 2
    result = compare(*builds)
    print(json.dumps(asdict(result), indent=1) if arguments.json else text(result))
    return 0 if result.equal else 1


if __name__ == "__main__":
    sys.exit(main())
