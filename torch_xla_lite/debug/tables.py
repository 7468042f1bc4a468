"""Tables for terminals and notebooks: what debug's functions show.

table = Table(["seconds", "line"], [["0.31", "train.py:12 in step"]])
print(table)         # at most 80 columns; the last column is shortened or goes on below
table                # the same in an interpreter; in a notebook an HTML table
"""

from __future__ import annotations

import dataclasses
import html
import os
import textwrap
from collections.abc import Sequence

WIDTH = 80


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells, of which the last may be long.

    Attributes:
      header: a name for each column; the others but the last are right-aligned.
      rows: cells in the order of the columns.
      summary: lines below.
      wraps: whether the last cell goes on below its beginning where it is longer than 80 columns.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    summary: str = ""
    wraps: bool = False

    def __str__(self) -> str:
        rows = [self.header, *self.rows]
        widths = [max(len(row[i]) for row in rows) for i in range(len(self.header) - 1)]
        lines = []
        for row in rows:
            start = "".join(f"{row[i]:>{width}}  " for i, width in enumerate(widths))
            lines += _wrapped(start, row[-1]) if self.wraps else [start + row[-1]]
        return "\n".join([*lines, *([self.summary] if self.summary else [])])

    def html(self) -> str:
        """An HTML table with the whole cells."""
        head = _row("th", self.header)
        body = "".join(_row("td", row) for row in self.rows)
        summary = f"<p>{html.escape(self.summary)}</p>" if self.summary else ""
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{summary}"


def _wrapped(start: str, text: str) -> list[str]:
    """Lines of a long cell, which goes on below its beginning."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_on_hyphens=False,
        break_long_words=False,  # A path stays whole.
    )


def short_path(line: str) -> str:
    """Places in a program, without the folder that the process is in."""
    return line.replace(f"{os.getcwd()}/", "")


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
