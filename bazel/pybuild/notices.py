"""Messages that are kept while a command runs and printed at its end, where they are seen.

notices.keep(notices.box("Hot functions are not placed first.\\nSet USE_PRIORITIZED..."))
...
notices.show()      # before the error, if there is one
"""

import sys

_kept: list[str] = []


def keep(text: str) -> None:
    """Keeps a message for the end; one that is kept already is not repeated."""
    if text not in _kept:
        _kept.append(text)


def show() -> None:
    """Prints what was kept, in its order, and forgets it."""
    if not _kept:
        return
    # Keeps the order of both streams where they are not a terminal.
    sys.stdout.flush()
    for text in _kept:
        print(text, file=sys.stderr)
    _kept.clear()


def box(text: str) -> str:
    """A text with a frame around it."""
    lines = text.splitlines()
    width = max(len(line) for line in lines)
    edge = f"+{'-' * (width + 2)}+"
    return "\n".join([edge, *(f"| {line:<{width}} |" for line in lines), edge])
