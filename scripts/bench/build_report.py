"""Reports the time that a build spends on each file, layer of headers and include.

    python setup.py rebuild                                  # a cold build, to report on
    python -m scripts.bench.build_report                     # tables of the last build by setup.py
    python -m scripts.bench.build_report --html report.html  # also a page with pictures

The seconds of a file are those of its compiler in the build. To divide them, each file is compiled
again, which takes about as long as the build: gcc reports the share of parsing (-ftime-report), and
the preprocessor which header each part of the text comes from. The seconds of parsing are divided
in proportion to the sizes of these parts; the others are those of templates and code generation.
The seconds of an include are those of parsing the header and all that it includes first.

The page needs no other file and no network. Exit code 1 if the last build compiled nothing, or if a
file does not compile any more.
"""

import argparse
import ast
import collections
import html
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bazel.pybuild.why import execution_log, profile
from bazel.pybuild.why.execution_log import Spawn

ROOT = Path(__file__).resolve().parents[2]
OWN = "this project"
CODE = "templates and code generation"
# Seconds of the user and of the system.
# The first column: the processor time of the user, in newer versions of gcc the wall time.
_PHASE = re.compile(rb"^ (phase parsing|TOTAL) +: +(\d+\.\d+)", re.MULTILINE)
_MARKER = re.compile(rb'^# \d+ "([^"]*)"([ \d]*)\n', re.MULTILINE)


@dataclass(frozen=True)
class Action:
    """An action that ran: its kind, what it made or compiled, and when, in seconds."""

    mnemonic: str
    name: str
    start: float
    seconds: float


@dataclass(frozen=True)
class Text:
    """The preprocessed text of a file, in bytes.

    Attributes:
      of: header -> its own text.
      below: outside header that a file of this project includes -> its text and all that it
        includes.
    """

    of: Mapping[str, int]
    below: Mapping[str, int]


def link_sources(root: Path, folder: Path) -> None:
    """Makes a folder like Bazel's execution root, which has only the external repositories that
    its last command needed."""
    outputs = (root / "bazel-out").resolve()
    for entry in root.iterdir():
        if not entry.name.startswith(("bazel-", ".")):
            (folder / entry.name).symlink_to(entry)
    (folder / "bazel-out").symlink_to(outputs)
    (folder / "external").symlink_to(outputs.parents[2] / "external")


def divided(spawn: Spawn, folder: Path) -> tuple[Text, float]:
    """Compiles a file again, in a folder like Bazel's execution root.

    Returns:
      Its text, and the share of the compiler's time that is parsing; 1 if it does not say.
    """
    words = list(spawn.arguments)
    for flag in ("-MF", "-o"):
        place = words.index(flag)
        del words[place : place + 2]
    words.remove("-MD")

    def run(*flags: str) -> "subprocess.CompletedProcess[bytes]":
        environ = dict(spawn.variables)
        return subprocess.run(
            [*words, *flags], cwd=folder, env=environ, capture_output=True, check=True
        )

    phases = _PHASE.findall(run("-ftime-report", "-o", os.devnull).stderr)
    took = {name: float(seconds) for name, seconds in phases}
    total = took.get(b"TOTAL", 0)
    share = took.get(b"phase parsing", total) / total if total else 1.0
    # The last flag wins over -c.
    return _text(run("-E").stdout), share


def _text(output: bytes) -> Text:
    """Divides a preprocessor's output by its lines `# 1 "file" flags`: 1 enters a file, 2 leaves
    one."""
    own: collections.Counter[str] = collections.Counter()
    below: collections.Counter[str] = collections.Counter()
    # Open files, each with the size of the text before it.
    stack: list[tuple[str, int]] = [("", 0)]
    total = position = 0
    for marker in _MARKER.finditer(output):
        own[stack[-1][0]] += marker.start() - position
        total += marker.start() - position
        position = marker.end()
        file, flags = os.path.normpath(marker[1].decode()), marker[2].split()
        if b"1" in flags:
            stack.append((file, total))
        elif b"2" in flags and len(stack) > 1:
            header, before = stack.pop()
            if layer(header, {}) != OWN and layer(stack[-1][0], {}) == OWN:
                below[header] += total - before
        else:
            stack[-1] = (file, stack[-1][1])
    own[stack[-1][0]] += len(output) - position
    return Text(own, below)


def layer(header: str, torch: Mapping[str, str]) -> str:
    """The layer of a header.

    Args:
      header: its path.
      torch: header below torch's include folder -> the layer of third_party/torch.
    """
    parts = header.split("/")
    if parts[0] == "external" and len(parts) > 2:
        inside = "/".join(parts[2:])
        # Modules call it _main~external~torch.
        repository = re.split("[~+]", parts[1])[-1]
        return f"torch {torch.get(inside, '')}".strip() if repository == "torch" else repository
    # The compiler's own text has names such as <built-in>.
    if header.startswith(("/", "<")):
        return "C++ library" if "/c++/" in header else "C library"
    return OWN


def torch_layers(folder: Path) -> dict[str, str]:
    """Header -> layer of torch; empty if torch is not used."""
    file = next(folder.glob("external/*torch/layers.bzl"), None)
    layers: dict[str, str] = {}
    for node in ast.parse(file.read_text()).body if file else ():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id.lower()
            layers |= dict.fromkeys(ast.literal_eval(node.value), name)
    return layers


@dataclass(frozen=True)
class Report:
    """Where the time went.

    Attributes:
      actions: all that ran.
      files: compiled file -> layer -> seconds.
      includes: outside header -> seconds, and number of files that include it.
    """

    actions: Sequence[Action]
    files: Mapping[str, Mapping[str, float]]
    includes: Mapping[str, tuple[float, int]]

    def layers(self) -> dict[str, float]:
        """Layer -> seconds in all files."""
        total: collections.Counter[str] = collections.Counter()
        for shares in self.files.values():
            total.update(shares)
        return dict(total.most_common())

    def seconds(self) -> dict[str, float]:
        """File -> seconds, the slowest first."""
        took = {file: sum(shares.values()) for file, shares in self.files.items()}
        return dict(sorted(took.items(), key=lambda item: -item[1]))


def analyse(root: Path) -> Report:
    """Reads the logs of the last build in a tree, and compiles its files again."""
    spans = profile.read(root / "build/profile.gz").spans
    compiled: dict[str, tuple[Spawn, float]] = {}
    actions = []
    for spawn in execution_log.read(root / execution_log.FILE):
        span = next((spans[path] for path in reversed(spawn.outputs) if path in spans), None)
        if spawn.hit or spawn.failed or span is None:
            continue
        name = re.sub(r"^bazel-out/[^/]+/bin/", "", spawn.outputs[-1])
        if spawn.mnemonic == "CppCompile":
            name = spawn.arguments[spawn.arguments.index("-c") + 1]
            compiled[name] = spawn, span.seconds
        actions.append(Action(spawn.mnemonic, name, span.start, span.seconds))
    files: dict[str, dict[str, float]] = {}
    includes: dict[str, tuple[float, int]] = {}
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(place)
        link_sources(root, folder)
        torch = torch_layers(folder)
        parts = pool.map(lambda pair: divided(pair[0], folder), compiled.values())
        for (file, (_, seconds)), (text, parsing) in zip(compiled.items(), parts, strict=True):
            each = seconds * parsing / max(sum(text.of.values()), 1)
            shares = collections.Counter({CODE: seconds * (1 - parsing)})
            for header, size in text.of.items():
                shares[layer(header, torch)] += size * each
            files[file] = dict(shares.most_common())
            for header, size in text.below.items():
                before, count = includes.get(header, (0.0, 0))
                includes[header] = before + size * each, count + 1
    return Report(actions, files, includes)


def table(report: Report) -> str:
    """The report as text."""
    files, took = report.seconds(), sum(report.seconds().values())
    wall = max(action.start + action.seconds for action in report.actions)
    wall -= min(action.start for action in report.actions)
    lines = [f"{len(files)} files compiled in {took:.1f} s; all actions in {wall:.1f} s", ""]
    lines += ["seconds  file"]
    lines += [f"{seconds:7.1f}  {file}" for file, seconds in files.items()]
    lines += ["", "seconds  share  layer"]
    lines += [f"{s:7.1f}  {s / took:4.0%}   {name}" for name, s in report.layers().items()]
    lines += ["", "seconds  files  include"]
    for header, (seconds, count) in sorted(report.includes.items(), key=lambda i: -i[1][0])[:20]:
        lines.append(f"{seconds:7.1f}  {count:5}  {_short(header)}")
    return "\n".join(lines)


def _short(header: str) -> str:
    return re.sub(r"^(external/[^/]+/include|/usr/include/c\+\+/\d+|/usr/include)/", "", header)


# Of Okabe and Ito, which colour-blind readers can tell apart.
_COLOURS = (
    *("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"),
    *("#999999", "#c8b28a", "#7fc9b0", "#b0a4d8", "#e8c1a0"),
)
_KINDS = {"CppCompile": "#56b4e9", "CppArchive": "#e69f00", "CppLink": "#d55e00"}
_WIDTH, _HEIGHT, _ROW = 1160, 620, 26
_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 20px; width: 1160px; color: #222; }
h2 { margin: 28px 0 8px; } td { padding: 1px 14px 1px 0; } td:first-child { text-align: right; }
svg text { font: 11px system-ui, sans-serif; pointer-events: none; }
.legend span { display: inline-block; margin-right: 14px; }
.legend i { display: inline-block; width: 12px; height: 12px; margin-right: 5px; }
"""


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


def treemap(sizes: Mapping[str, float], box: Box) -> Iterator[tuple[str, Box]]:
    """Divides a box in proportion to sizes, which have to be in falling order: each half of the
    sum gets a half of the longer side."""
    sizes = {name: size for name, size in sizes.items() if size > 0}
    if len(sizes) < 2:
        yield from ((name, box) for name in sizes)
        return
    total, first = sum(sizes.values()), {}
    for name, size in sizes.items():
        if first and sum(first.values()) + size / 2 > total / 2:
            break
        first[name] = size
    rest = {name: size for name, size in sizes.items() if name not in first}
    share = sum(first.values()) / total
    if box.width >= box.height:
        cut = box.width * share
        halves = (
            Box(box.x, box.y, cut, box.height),
            Box(box.x + cut, box.y, box.width - cut, box.height),
        )
    else:
        cut = box.height * share
        halves = (
            Box(box.x, box.y, box.width, cut),
            Box(box.x, box.y + cut, box.width, box.height - cut),
        )
    yield from treemap(first, halves[0])
    yield from treemap(rest, halves[1])


def page(report: Report) -> str:
    """The report as one HTML page."""
    layers = report.layers()
    colours = dict.fromkeys(layers, "#dddddd") | dict(zip(layers, _COLOURS, strict=False))
    return "\n".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Build report</title>',
            f"<style>{_STYLE}</style><h1>Where the time of a build goes</h1>",
            "<h2>Files, by seconds; colours are layers of headers</h2>",
            _legend(colours),
            *_treemap_svg(report, colours),
            "<h2>Timeline</h2>",
            _legend(_KINDS),
            *_timeline_svg(report.actions),
            "<h2>Tables</h2>",
            f"<pre>{html.escape(table(report))}</pre></html>",
        ]
    )


def _legend(colours: Mapping[str, str]) -> str:
    items = (
        f'<span><i style="background: {colour}"></i>{html.escape(name)}</span>'
        for name, colour in colours.items()
    )
    return f'<p class="legend">{"".join(items)}</p>'


def _rectangle(box: Box, colour: str, title: str, more: str = "") -> str:
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'fill="{colour}" {more}><title>{html.escape(title)}</title></rect>'
    )


def _label(box: Box, text: str) -> str:
    """A text in the corner of a box, as far as there is room."""
    room = int(box.width / 6.5)
    if box.height < 15 or room < 4:
        return ""
    label = text if len(text) <= room else text[: room - 1] + "…"
    return f'<text x="{box.x + 4:.1f}" y="{box.y + 13:.1f}">{html.escape(label)}</text>'


def _treemap_svg(report: Report, colours: Mapping[str, str]) -> Iterator[str]:
    yield f'<svg id="treemap" width="{_WIDTH}" height="{_HEIGHT}">'
    for file, box in treemap(report.seconds(), Box(0, 0, _WIDTH, _HEIGHT)):
        shares = dict(sorted(report.files[file].items(), key=lambda item: -item[1]))
        for name, part in treemap(shares, box):
            yield _rectangle(part, colours[name], f"{file}\n{shares[name]:.2f} s in {name}")
        seconds = sum(shares.values())
        yield _rectangle(box, "none", file, 'stroke="white" stroke-width="2"')
        yield _label(box, f"{Path(file).name} {seconds:.1f} s")
    yield "</svg>"


def _timeline_svg(actions: Sequence[Action]) -> Iterator[str]:
    begin = min(action.start for action in actions)
    end = max(action.start + action.seconds for action in actions)
    scale = _WIDTH / max(end - begin, 1e-6)
    # The end of the last action in each row; those that run at once are in different rows.
    rows: list[float] = []
    shapes = []
    for action in sorted(actions, key=lambda action: action.start):
        free = (row for row, last in enumerate(rows) if last <= action.start)
        row = next(free, len(rows))
        rows[row : row + 1] = [action.start + action.seconds]
        box = Box((action.start - begin) * scale, row * _ROW, action.seconds * scale, _ROW - 3)
        title = f"{action.name}\n{action.seconds:.2f} s from {action.start - begin:.2f} s"
        colour = _KINDS.get(action.mnemonic, "#999999")
        shapes += [
            _rectangle(box, colour, title, 'stroke="white" stroke-width="0.5"'),
            _label(box, Path(action.name).name),
        ]
    yield f'<svg id="timeline" width="{_WIDTH}" height="{len(rows) * _ROW + 18}">'
    yield from shapes
    for tenth in range(0, 11):
        anchor = "start" if tenth == 0 else "end" if tenth == 10 else "middle"
        place = f'x="{_WIDTH * tenth / 10:.0f}" y="{len(rows) * _ROW + 14}"'
        seconds = (end - begin) * tenth / 10
        yield f'<text {place} text-anchor="{anchor}">{seconds:.3g} s</text>'
    yield "</svg>"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the page to this file")
    options = parser.parse_args()
    try:
        report = analyse(ROOT)
    except subprocess.CalledProcessError as error:
        print(
            f"error: A file does not compile as in the last build:\n{error.stderr.decode()}\n"
            "Compile all:  python setup.py rebuild",
            file=sys.stderr,
        )
        return 1
    if not report.files:
        print(
            "error: The last build compiled nothing.\nCompile all:  python setup.py rebuild",
            file=sys.stderr,
        )
        return 1
    print(table(report))
    if options.html:
        options.html.write_text(page(report), encoding="utf-8")
        print(f"\nwrote {options.html}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
