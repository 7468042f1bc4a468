"""Shows the pending graph as text and as a picture, for debug.graph().

    graph = torch_xla_lite.debug.graph()
    print(graph)
    # %0 = input float32[8,4]
    # %1 = aten::relu(%0) -> float32[8,4]      # train.py:12 in forward
    # needed: %1
    graph.save("graph.svg")

The lines are those of TORCH_XLA_LITE_IR_DEBUG=1. In the picture, each op is a box below the ops
whose results it takes, and an input is just above the first op that takes it. The picture is at
most 1,850 pixels wide: what has no place in a row goes on in the next one, and a long graph in the
next column. Where a pointer rests, the line of a box appears.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from .. import _XLAC
from ..compiler.graph_differences import shapes_text
from ..compiler.recorded_graph import Leaf, RecordedGraph

# A picture of more steps cannot be read; the text has them all.
_MOST_STEPS = 3_000

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 190, 38, 14, 34  # of a box, and between boxes, in pixels
_BOXES_IN_ROW = 9
# A column that is longer is divided where there is room beside it.
_ROWS_IN_COLUMN = 40


class PendingGraph(RecordedGraph):
    """What the next sync would run. Its roots are the values that the program can still read."""

    def __str__(self) -> str:
        lines = [self._line(number) for number in range(len(self.steps))]
        needed = ", ".join(self._value(root[:2]) for root in self.roots) or "nothing"
        return "\n".join([*lines, f"needed: {needed}"])

    __repr__ = __str__

    def save(self, path: str | Path) -> None:
        """Writes the picture, a self-contained SVG file."""
        Path(path).write_text(self._repr_svg_(), encoding="utf-8")

    def _repr_svg_(self) -> str:
        """The picture; notebooks call this."""
        places = self._places()
        width = max((x for x, _ in places), default=0) + _WIDTH + _GAP_X
        height = max((y for _, y in places), default=0) + _HEIGHT + _GAP_Y
        left_out = len(self.steps) - len(places)
        note = f"{left_out} more steps are not drawn" if left_out else f"{len(places)} steps"
        roots = {step for step, *_ in self.roots}
        edges = [
            _edge(places[used], places[number])
            for number in range(len(places))
            for used, _ in self.steps[number].operands
        ]
        boxes = [
            _box(place, self._kind(number, roots), self._line(number), self._texts(number))
            for number, place in enumerate(places)
        ]
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 24}" '
                'font-family="sans-serif" font-size="12">',
                _STYLE,
                *edges,
                *boxes,
                f'<text x="{_GAP_X}" y="{height + 12}">{note}; needed values are dark</text>',
                "</svg>",
            ]
        )

    def _value(self, position: tuple[int, int]) -> str:
        step, result = position
        several = len(self.steps[step].outputs) != 1
        return f"%{step}.{result}" if several else f"%{step}"

    def _line(self, number: int) -> str:
        step = self.steps[number]
        if isinstance(step, Leaf):
            return f"%{number} = input {shapes_text(step)}" + (", donated" if step.donated else "")
        operands = ", ".join(map(self._value, step.operands))
        source = f"      # {step.source}" if step.source else ""
        return f"%{number} = {step.label}({operands}) -> {shapes_text(step)}{source}"

    def _texts(self, number: int) -> tuple[str, str]:
        step = self.steps[number]
        op = step.label.removeprefix("aten::") or "input"
        return f"%{number} {op}", shapes_text(step)

    def _kind(self, number: int, roots: set[int]) -> str:
        if number in roots:
            return "root"
        return "op" if self.steps[number].op else "input"

    def _depths(self) -> list[int]:
        """How deep each step that is drawn is in the graph."""
        depths: list[int] = []
        above_user: dict[int, int] = {}
        for step in self.steps[:_MOST_STEPS]:
            used = [operand for operand, _ in step.operands]
            depths.append(max((depths[operand] for operand in used), default=-1) + 1)
            for operand in used:
                above_user[operand] = min(above_user.get(operand, depths[-1]), depths[-1] - 1)
        return [
            depth if self.steps[number].op else above_user.get(number, depth)
            for number, depth in enumerate(depths)
        ]

    def _places(self) -> list[tuple[int, int]]:
        """The corner of each box: a row for each depth, or several, in recorded order."""
        depths = self._depths()
        steps_at: list[list[int]] = [[] for _ in range(max(depths, default=-1) + 1)]
        for number, depth in enumerate(depths):
            steps_at[depth].append(number)
        places = [(0, 0)] * len(depths)
        left = _GAP_X
        for column in _columns(steps_at):
            for number, row in enumerate(column):
                for place, step in enumerate(row):
                    x, y = place * (_WIDTH + _GAP_X), number * (_HEIGHT + _GAP_Y)
                    places[step] = left + x, _GAP_Y + y
            left += max(map(len, column)) * (_WIDTH + _GAP_X)
        return places


def _columns(steps_at: list[list[int]]) -> list[list[list[int]]]:
    """Columns of rows of steps, the lowest that have room beside each other."""
    fitting = []
    for boxes in range(_BOXES_IN_ROW, 0, -1):
        rows = [row for steps in steps_at for row in _divided(steps, boxes)]
        for columns in range(1, _BOXES_IN_ROW + 1):
            divided = _divided(rows, max(_ROWS_IN_COLUMN, -(-len(rows) // columns)))
            if sum(max(map(len, column)) for column in divided) <= _BOXES_IN_ROW:
                fitting.append(divided)
    # Of equally low ones that with the widest rows.
    return min(fitting, key=lambda columns: max(map(len, columns), default=0))


def _divided(items: list[Any], size: int) -> list[list[Any]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def pending() -> PendingGraph:
    """The ops that this thread has recorded and that nothing has run yet. Runs nothing."""
    return PendingGraph.of(*_XLAC.pending_graph())


_STYLE = (
    "<style>rect{stroke:#456;fill:#fff}.input{fill:#eef}.root{fill:#246}.root+text,"
    ".root+text+text{fill:#fff}path{stroke:#89a;fill:none}</style>"
)


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1 = start[0] + _WIDTH // 2, start[1] + _HEIGHT
    x2, y2 = end[0] + _WIDTH // 2, end[1]
    middle = (y1 + y2) // 2
    return f'<path d="M{x1} {y1}C{x1} {middle} {x2} {middle} {x2} {y2}"/>'


def _box(place: tuple[int, int], kind: str, line: str, texts: tuple[str, str]) -> str:
    """A box with two lines of text, and the line of the graph for a pointer that rests on it."""
    x, y = place
    return (
        f'<g><title>{html.escape(line)}</title><rect class="{kind}" x="{x}" y="{y}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" rx="4"/>'
        f'<text x="{x + 6}" y="{y + 15}">{_fitting(texts[0])}</text>'
        f'<text x="{x + 6}" y="{y + 31}">{_fitting(texts[1])}</text></g>'
    )


def _fitting(text: str, length: int = 25) -> str:
    return html.escape(text if len(text) <= length else f"{text[: length - 1]}…")
