"""Compares rebuilds with ninja, torch's BuildExtension, scikit-build-core and meson-python.

    python -m scripts.bench.peers                     # all
    python -m scripts.bench.peers --peers ninja meson --only null leaf
    python -m scripts.bench.peers --json result.json

Each peer builds the same sources into the same shared objects with the same flags: its build files
are generated from the log of what Bazel ran. Ours and a peer's command run alternately after the
same edit, and a ratio is the median of the ratios of neighbouring runs. ccache is off, except for
the rows that name it.

    null      nothing to do: `setup.py develop` and the command that installs the peer's package;
              30 rounds, whatever --rounds says
    leaf      code in csrc/ir/shape.cc
    wide      code in csrc/ir/node.h, which 30 of 69 sources include; at most three rounds, as of
              the next two
    comment   a comment in csrc/ir/node.h; CPU seconds, those of the peer with ccache
    back      `git checkout` of the content before the edit of the header

The peers are installed into a temporary environment, in the versions below. Exit code: 0 even if a
goal is missed; 1 if something did not build.
"""

import itertools
import os
import resource
import shlex
import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild.why import execution_log
from scripts.bench import harness
from scripts.bench.build import machine
from scripts.bench.clones import JOBS, ROOT, Clone, temporary_folder
from scripts.bench.harness import Row

PINS = ("ninja==1.13.2", "scikit-build-core==1.1.2", "meson-python==0.22.1", "cmake==4.4.4")
PARTS = ("null", "leaf", "wide", "comment", "back")
# Rounds of null builds. Java compiles Bazel's code meanwhile: Bazel took 0.20 s after five builds
# of a server and 0.15 s after forty.
_NULL_ROUNDS = 30
# At most, of edits of the header.
_DEAR_ROUNDS = 3
_SOURCE, _HEADER = "torch_xla_lite/csrc/ir/shape.cc", "torch_xla_lite/csrc/ir/node.h"
_PIP = ["-m", "pip", "install", "-e", ".", "--quiet"]
_PIP += ["--no-build-isolation", "--no-deps", "--no-index"]


class Unit(NamedTuple):
    """A translation unit: its source, relative to the tree, and the compiler's other arguments."""

    source: str
    flags: tuple[str, ...]


class SharedObject(NamedTuple):
    """What one link made.

    Attributes:
      name: such as lib/libtorch_xla_lite.so.
      units: those whose objects it contains.
      flags: of the linker, with absolute paths of other files.
      needs: names of other objects of this kind that it is linked to.
    """

    name: str
    units: tuple[Unit, ...]
    flags: tuple[str, ...]
    needs: tuple[str, ...]

    @property
    def target(self) -> str:
        """Its name without a folder and suffix."""
        return Path(self.name).stem

    @property
    def compile_flags(self) -> tuple[str, ...]:
        """One list for all units, for tools that have one list: the longest, with all folders."""
        return max((unit.flags for unit in self.units), key=len)


def read_build(log: Path, root: Path) -> list[SharedObject]:
    """The shared objects of the package, from the log of a build that ran everything.

    Args:
      log: written by Bazel.
      root: the folder in which Bazel ran the commands.
    """
    units, links = {}, {}
    for spawn in execution_log.read(log):
        arguments = list(_expanded(spawn.arguments, root))
        made = next((o for o in spawn.outputs if o.endswith(".o")), spawn.outputs[0])
        if spawn.mnemonic == "CppCompile":
            units[made] = _unit(arguments, root)
        elif spawn.mnemonic == "CppLink" and "/torch_xla_lite/" in made:
            links[made] = arguments
    objects = []
    for made, arguments in links.items():
        needs = [word for word in arguments[arguments.index(made) + 1 :] if word in links]
        flags = [_absolute(word, root) for word in arguments[1:] if _is_flag(word, made, units)]
        objects.append(
            SharedObject(
                made.partition("/torch_xla_lite/")[2],
                tuple(units[word] for word in arguments if word in units),
                tuple(flag for flag in flags if flag not in {_absolute(n, root) for n in needs}),
                tuple(word.partition("/torch_xla_lite/")[2] for word in needs),
            )
        )
    return sorted(objects, key=lambda one: len(one.needs))


def _expanded(arguments: tuple[str, ...], root: Path) -> Iterator[str]:
    for word in arguments:
        if word.startswith("@"):
            yield from (root / word[1:]).read_text().splitlines()
        else:
            yield word


def _unit(arguments: list[str], root: Path) -> Unit:
    source = arguments[arguments.index("-c") + 1]
    flags, words = [], iter(arguments[1:])
    for word in words:
        if word in ("-c", "-o", "-MF"):
            next(words)
        elif word in ("-iquote", "-isystem", "-I"):
            flags += [word, _place(next(words), root)]
        elif word != "-MD" and not word.startswith(("-frandom-seed=", "-D__", "-Werror")):
            flags.append(word)
    return Unit(source, tuple(flags))


def _place(folder: str, root: Path) -> str:
    """Outside headers are where Bazel has them; ours are in the tree of the peer."""
    return "@TREE@" if folder == "." else str(root / folder)


def _is_flag(word: str, made: str, units: Mapping[str, Unit]) -> bool:
    skipped = ("-Wl,-rpath", "-shared", "-o")
    return word != made and word not in units and not word.startswith(skipped)


def _absolute(word: str, root: Path) -> str:
    for prefix in ("", "-Wl,--version-script="):
        path = word.removeprefix(prefix)
        if word.startswith(prefix + "bazel-out/"):
            return f"{prefix}{root / path}"
    return word


class Peer:
    """A copy of the C++ sources with the build files of another tool."""

    def __init__(self, name: str, folder: Path, clone: Clone, objects: list[SharedObject]):
        self.name, self.root, self._clone = name, folder / name, clone
        shutil.copytree(clone.root / "torch_xla_lite", self.root / "torch_xla_lite")
        for built in self.root.rglob("*.so"):
            built.unlink()
        here = str(self.root)
        self.objects = [
            one._replace(units=tuple(_here(unit, here) for unit in one.units)) for one in objects
        ]
        self.command = _GENERATORS[name](self, clone.python)

    def write(self, name: str, text: str) -> None:
        """Writes a build file."""
        (self.root / name).write_text(text)

    def build(self) -> float:
        """Seconds of the command that the peer's users run after an edit."""
        return self._clone.run(self.command, self.root)


def _here(unit: Unit, tree: str) -> Unit:
    return unit._replace(flags=tuple(flag.replace("@TREE@", tree) for flag in unit.flags))


def _ninja(peer: Peer, python: Path) -> list[str]:
    lines = [
        "rule cc\n  command = gcc $flags -MD -MF $out.d -c $in -o $out",
        "  depfile = $out.d\n  deps = gcc",
        "rule link\n  command = gcc -shared -o $out $in $flags",
    ]
    for one in peer.objects:
        made = []
        for unit in one.units:
            made.append(f"build/{one.target}/{unit.source}.o")
            lines += [f"build {made[-1]}: cc {unit.source}", f"  flags = {shlex.join(unit.flags)}"]
        needs = " ".join(f"build/{name}" for name in one.needs)
        lines += [f"build build/{one.name}: link {' '.join(made)} {needs}"]
        lines += [f"  flags = {shlex.join(one.flags)}"]
    peer.write("build.ninja", "\n".join(lines) + "\n")
    return [str(python.parent / "ninja"), f"-j{JOBS}", "--quiet"]


def _torch(peer: Peer, python: Path) -> list[str]:
    suffix = "__import__('sysconfig').get_config_var('EXT_SUFFIX')"
    lines = ["from setuptools import Extension, setup", "from torch.utils import cpp_extension"]
    lines += ["extensions = ["]
    for one in peer.objects:
        # Objects are named after their sources, and no two extensions compile with the same flags.
        (peer.root / one.target).symlink_to(".")
        needs = [f"build/lib/torch_xla_lite/{n.removesuffix('.so')}" for n in one.needs]
        links = " + ".join([repr(list(one.flags)), *(f"[{need!r} + {suffix}]" for need in needs)])
        lines += [
            f"    Extension({'torch_xla_lite.' + one.name[:-3].replace('/', '.')!r},",
            f"        sources={[f'{one.target}/{unit.source}' for unit in one.units]!r},",
            f"        extra_compile_args={list(one.compile_flags)!r},",
            f"        extra_link_args={links}),",
        ]
    lines += ["]", "setup(name='peer', version='1', packages=[], ext_modules=extensions,"]
    lines += ["    cmdclass={'build_ext': cpp_extension.BuildExtension})"]
    peer.write("setup.py", "\n".join(lines) + "\n")
    return [str(python), "setup.py", "--quiet", "build_ext", "--inplace", "--build-lib=build/lib"]


def _cmake(peer: Peer, python: Path) -> list[str]:
    lines = ["cmake_minimum_required(VERSION 3.25)", "project(peer CXX)"]
    for one in peer.objects:
        sources = " ".join(unit.source for unit in one.units)
        compiled = " ".join(f'"{flag}"' for flag in _joined(one.compile_flags))
        linked = " ".join(f'"{flag}"' for flag in one.flags)
        needs = " ".join(Path(name).stem for name in one.needs)
        lines += [
            f"add_library({one.target} SHARED {sources})",
            f'set_target_properties({one.target} PROPERTIES PREFIX "")',
            f"target_compile_options({one.target} PRIVATE {compiled})",
            f"target_link_libraries({one.target} PRIVATE {needs} {linked})",
            f"install(TARGETS {one.target} DESTINATION peer)",
        ]
    peer.write("CMakeLists.txt", "\n".join(lines) + "\n")
    peer.write(
        "pyproject.toml", _project("scikit_build_core.build", "scikit-build-core") + _SKBUILD
    )
    return [str(python), *_PIP]


_SKBUILD = '[tool.scikit-build]\nbuild-dir = "build"\ncmake.args = ["-GNinja"]\n'


def _meson(peer: Peer, python: Path) -> list[str]:
    lines = ["project('peer', 'cpp', version: '1')"]
    lines += ["python = import('python').find_installation()"]
    for one in peer.objects:
        needs = ", ".join(Path(name).stem for name in one.needs)
        lines += [
            f"{one.target} = shared_library({one.target!r},",
            f"  {[unit.source for unit in one.units]!r}, name_prefix: '',",
            f"  cpp_args: {_joined(one.compile_flags)!r},",
            f"  link_args: {list(one.flags)!r}, link_with: [{needs}],",
            "  override_options: ['b_lundef=false', 'b_asneeded=false'],",
            "  install: true, install_dir: python.get_install_dir() / 'peer')",
        ]
    peer.write("meson.build", "\n".join(lines) + "\n")
    peer.write("pyproject.toml", _project("mesonpy", "meson-python"))
    return [str(python), *_PIP, "--config-settings=builddir=build"]


def _joined(flags: tuple[str, ...]) -> list[str]:
    """Options with their folders in one word, since tools remove repeated words."""
    words = iter(flags)
    return [w + next(words) if w in ("-iquote", "-isystem", "-I") else w for w in words]


def _project(backend: str, package: str) -> str:
    return (
        f'[build-system]\nbuild-backend = "{backend}"\nrequires = ["{package}"]\n'
        '[project]\nname = "peer"\nversion = "1"\n'
    )


_GENERATORS: Mapping[str, Callable[[Peer, Path], list[str]]] = {
    "ninja": _ninja,
    "torch": _torch,
    "scikit-build": _cmake,
    "meson": _meson,
}


# Of edits; a content that was built before would come from a cache.
_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Edits:
    """Makes the same edit in several trees; each one differs from all before."""

    trees: list[Path]

    def apply(self, file: str, template: str) -> None:
        """Appends a line, in which # is a number."""
        line = template.replace("#", str(next(_NUMBERS)))
        for tree in self.trees:
            (tree / file).write_text(f"{(ROOT / file).read_text()}\n{line}\n")

    def undo(self, file: str) -> None:
        """Puts the original back."""
        for tree in self.trees:
            (tree / file).write_text((ROOT / file).read_text())


def _cpu_s(build: Callable[[], float]) -> float:
    """CPU seconds of what a command starts; Bazel's server is not its child, so ours adds it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    build()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _server_cpu_s(clone: Clone) -> float:
    """CPU seconds so far of Bazel's server and of the processes that it has waited for."""
    fields = Path("/proc", clone.bazel("info", "server_pid"), "stat").read_text()
    times = fields.rpartition(")")[2].split()[11:15]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def measure(clone: Clone, peer: Peer, parts: list[str], rounds: int) -> Iterator[Row]:
    """The rows of one peer."""
    edits = Edits([clone.root, peer.root])
    few = min(rounds, _DEAR_ROUNDS)
    contenders = {"ours": clone.develop, "peer": peer.build}

    def row(name: str, goal: float | None, count: int, edit: Callable[[], None]) -> Row:
        return _paired(f"{name}: develop / {peer.name}", goal, count, contenders, edit)

    if "null" in parts:
        # Of the fastest install.
        yield row("null", None if peer.name == "ninja" else 1 / 8, _NULL_ROUNDS, lambda: None)
    if "leaf" in parts:
        goal = 1.5 if peer.name == "ninja" else 1 / 2.5
        # A constructor, because the linker drops what nothing uses: the library has to change.
        code = "[[gnu::constructor]] static void Bench() { volatile int value = #; (void)value; }"
        yield row("leaf, code", goal, rounds, lambda: edits.apply(_SOURCE, code))
        edits.undo(_SOURCE)
    if "wide" in parts and peer.name == "ninja":
        # Changes every object, and may be there twice: it comes after the header's guard.
        code = 'asm(".ident \\"#\\"");'
        yield row("wide header, code", 1.15, few, lambda: edits.apply(_HEADER, code))
    if "back" in parts and peer.name == "ninja":
        yield _back(clone, edits, few)
        peer.build()
    if "comment" in parts and peer.name == "meson":
        yield _comment(clone, peer, edits, few, "develop / meson with ccache")
        _use_ccache(clone)
        clone.develop()
        yield _comment(clone, peer, edits, few, "develop with ccache / meson with ccache")


def _paired(
    name: str,
    goal: float | None,
    rounds: int,
    contenders: Mapping[str, harness.Contender],
    edit: Callable[[], None],
) -> Row:
    """Compares both after the same edits; the first round does not count."""
    harness.interleave(contenders, 1, edit)
    times = harness.interleave(contenders, rounds, edit)
    return harness.compare(name, times, "s", against="peer", goal=goal)


def _back(clone: Clone, edits: Edits, rounds: int) -> Row:
    """Builds the content of the header before an edit that was built."""
    times, compiled = [], 0
    for _ in range(rounds):
        edits.apply(_HEADER, "// #")
        clone.develop()
        edits.undo(_HEADER)
        times.append(clone.develop())
        compiled += clone.report()["actions"]["compile"]
    took = statistics.median(times)
    note = f"{compiled} compiled, of which the goal is 0"
    return Row("switch back to a header of before", "s", {"ours": took}, took, 0.5, note)


def _comment(clone: Clone, peer: Peer, edits: Edits, rounds: int, what: str) -> Row:
    def ours() -> float:
        before = _server_cpu_s(clone)
        return _cpu_s(clone.develop) + _server_cpu_s(clone) - before

    contenders = {"ours": ours, "peer": lambda: _cpu_s(peer.build)}
    name = f"wide header, comment, CPU: {what}"
    return _paired(name, 1 / 5, rounds, contenders, lambda: edits.apply(_HEADER, "// #"))


def _use_ccache(clone: Clone) -> None:
    """Makes Bazel compile through ccache, as docs/build.md describes it."""
    link = clone.root.parent / "gcc"
    link.symlink_to(str(shutil.which("ccache")))
    clone.environ["CC"] = str(link)
    folder = f"--action_env=CCACHE_DIR={clone.environ['CCACHE_DIR']}"
    clone.environ["TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"] = folder


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--peers", nargs="+", choices=_GENERATORS, default=[*_GENERATORS])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    report = harness.Report(machine())
    with temporary_folder() as place:
        clone = Clone(place / "ours", place / "shared")
        clone.run([clone.python, "-m", "pip", "install", "--quiet", *PINS])
        clone.environ["PATH"] = f"{clone.python.parent}:{clone.environ['PATH']}"
        try:
            clone.develop()
            root = Path(clone.bazel("info", "execution_root"))
            objects = read_build(clone.root / execution_log.FILE, root)
            for name in options.peers:
                peer = Peer(name, place, clone, objects)
                if name == "meson" and "comment" in options.only:
                    clone.environ["CXX"] = "ccache g++"
                    clone.environ.pop("CCACHE_DISABLE", None)
                    clone.environ["CCACHE_DIR"] = str(place / "ccache")
                cold = Row("cold", "s", {"peer": peer.build()})
                rows = measure(clone, peer, options.only, options.rounds)
                report.add(name, [cold, *rows])
        finally:
            clone.bazel("shutdown")
            report.write(options.json)


if __name__ == "__main__":
    main()
