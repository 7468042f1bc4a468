"""Opens the standard streams that a program was started without: `program >&-`, cron, supervisors.

Python's sys.stdout is None then, and the next file that is opened becomes the output of processes.
bazel/pybuild/streams.py is a link to this file.
"""

import os
import sys


def open_closed() -> None:
    """Connects closed streams with /dev/null."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number, which is this one.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(null, "r" if name == "stdin" else "w"))
