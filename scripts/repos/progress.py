"""One line on the terminal that tells how far transfers are; nothing elsewhere."""

import sys
import threading
from collections.abc import Callable


class Progress:
    """Shows what the transfers of several repositories do."""

    def __init__(self, wanted: bool):
        self._wanted = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._parts: dict[str, str] = {}
        self._guard = threading.Lock()

    def of(self, name: str) -> Callable[[str, int], None] | None:
        """What is to be told about one repository."""
        if not self._wanted:
            return None

        def tell(what: str, percent: int) -> None:
            with self._guard:
                self._parts[name] = f"{name}: {what.strip().lower()} {percent}%"
                self._write("  ".join(self._parts.values())[:100])

        return tell

    def clear(self) -> None:
        """Removes the line."""
        if self._parts:
            self._parts.clear()
            self._write("")

    def _write(self, text: str) -> None:
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
