"""Lets SIGTERM, SIGHUP and SIGQUIT end a command as Ctrl-C does: by KeyboardInterrupt.

interrupts.handle()
...                       # KeyboardInterrupt
interrupts.status()       # 143 after SIGTERM, 130 after Ctrl-C
"""

import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_received = signal.SIGINT


def awaited() -> set[signal.Signals]:
    """The signals that end a command; not those that nohup or a shell has switched off."""
    return {number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN}


def handle() -> None:
    """Raises KeyboardInterrupt from now on where one of the signals arrives."""
    for number in awaited():
        signal.signal(number, _interrupt)


def note(number: int) -> None:
    """Notes the signal that ends this command."""
    global _received
    _received = signal.Signals(number)


def status() -> int:
    """The exit code of this command, as a shell has it for a program that a signal has ended."""
    return 128 + _received


def name() -> str:
    """What ended this command."""
    return "interrupted" if _received is signal.SIGINT else f"ended by {_received.name}"


def _interrupt(number: int, _: FrameType | None) -> None:
    note(number)
    raise KeyboardInterrupt
