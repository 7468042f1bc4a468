"""Several things at once, in threads.

concurrent.futures would do, but takes 10 ms to import, mostly for its logging.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Task(Generic[_Result]):
    """A call that runs in a thread of its own."""

    def __init__(self, function: Callable[..., _Result], *arguments: object):
        self._function = function
        self._arguments = arguments
        self._result: list[_Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result.append(self._function(*self._arguments))
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        """Waits for the end, whatever it is."""
        self._thread.join()

    def result(self) -> _Result:
        """Waits; returns what the call returned or raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]


def each(function: Callable[[_Item], _Result], items: Iterable[_Item], limit: int) -> list[_Result]:
    """Calls the function for all items, at most `limit` at once; results in the items' order."""
    gate = threading.Semaphore(limit)

    def call(item: _Item) -> _Result:
        with gate:
            return function(item)

    tasks = [Task(call, item) for item in items]
    return [task.result() for task in tasks]
