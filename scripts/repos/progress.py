"""Bars for what is fetched, on a terminal; nothing elsewhere."""

import sys
from typing import Any

from scripts.repos import network


class Bars:
    """A context in which each repository has a bar.

    with Bars(quiet=False) as bars:
        seen.fetch(bars.of("pytorch"))
    """

    def __init__(self, quiet: bool):
        self._bars: Any = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (
                TextColumn("{task.fields[name]}"),
                BarColumn(),
                TextColumn("{task.description}"),
            )
            self._bars = Progress(*columns, console=Console(stderr=True), transient=True)

    def __enter__(self) -> "Bars":
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def of(self, name: str) -> network.Progress | None:
        """What is to be told about one repository; None when nobody watches."""
        if self._bars is None:
            return None
        task = self._bars.add_task("fetch", total=100, name=name)

        def tell(what: str, percent: int) -> None:
            self._bars.update(task, completed=percent, description=what.strip().lower())

        return tell
