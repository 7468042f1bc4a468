"""Keeps messages while a command runs, and prints them after all other output.

notices.keep(notices.box("Hot functions are not placed first.\\nSet USE_PRIORITIZED..."))
...
notices.show()      # before the error, if there is one
"""

import sys

_kept: list[str] = []


def keep(text: str) -> None:
    """Keeps a message for the end; the same message is kept once."""
    if text not in _kept:
        _kept.append(text)


def show() -> None:
    """Prints the kept messages in their order, and forgets them."""
    if not _kept:
        return
    # Keeps the order of both streams in a file, too.
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
