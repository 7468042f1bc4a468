"""Runs functions one after the other in a background thread.

    worker = Worker("my worker")
    future = worker.submit(function)     # a concurrent.futures.Future

The thread ends when no function is left, and the next one starts another thread. So a program that
ends waits for the function that runs, which may be in the middle of native code, and the functions
after it never run. concurrent.futures.ThreadPoolExecutor would run them all.
"""

import collections
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Worker:
    """Thread-safe."""

    def __init__(self, name: str) -> None:
        self._name = name
        # The same thread may lock it twice: a __del__ that calls submit can run at any line.
        self._lock = threading.RLock()
        self._waiting: collections.deque[tuple[Future, Callable[[], Any]]] = collections.deque()
        self._is_running = False

    def submit(self, function: Callable[[], Any]) -> Future:
        """Schedules a function, which does not run if its future is cancelled or the program ends
        first."""
        future: Future = Future()
        with self._lock:
            self._waiting.append((future, function))
            if not self._is_running and threading.main_thread().is_alive():
                threading.Thread(target=self._run, name=self._name).start()
                self._is_running = True
        return future

    def _run(self) -> None:
        while (item := self._next()) is not None:
            future, function = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

    def _next(self) -> tuple[Future, Callable[[], Any]] | None:
        with self._lock:
            if self._waiting and threading.main_thread().is_alive():
                return self._waiting.popleft()
            self._is_running = False
            return None
