"""The error that this package raises: what is wrong, where, and what the user can do.

    raise BuildError(
        "torch is not installed for /venv/bin/python3.",
        "Install what this tree is built for:  /venv/bin/python3 -m pip install torch==2.13.0",
    )

setup.py and the PEP 517 hooks print it without a traceback and fail.
"""

import errno

# Ends messages about builds that failed.
AS_BEFORE = "The installed files have not changed."
_REMEDIES = {
    errno.EACCES: "Give yourself the permission, with chmod or chown",
    errno.EDQUOT: "Free some of your quota",
    errno.ENOSPC: "Free some space on that disk",
    errno.EROFS: "Mount that file system for writing",
}


class BuildError(Exception):
    """A failure that the user can correct.

    Attributes:
      problem: what is wrong and where; one or more lines.
      remedy: what to do; the last line is a command if there is one.
    """

    def __init__(self, problem: str, remedy: str):
        super().__init__(f"{problem}\n{remedy}")
        self.problem = problem
        self.remedy = remedy


def message(error: BuildError | OSError) -> str:
    """The text to print, also for errors of the operating system, such as a full disk."""
    if isinstance(error, BuildError):
        return str(error)
    if error.errno == errno.ENOSPC and error.filename is None:
        # Errors of files have the file's name.
        error.filename = "standard output"
    remedy = _REMEDIES.get(error.errno or 0, "Remove the cause")
    return f"{error}.\n{remedy}, and run the command again."
