"""The error of this package: what is wrong, where, and what to do now.

    raise BuildError(
        "torch is not installed for /venv/bin/python3.", "Install what this tree is built for:
        /venv/bin/python3 -m pip install -r requirements.txt",
    )

Whoever starts the build (setup.py, a PEP 517 frontend) prints it without a traceback and fails.
"""


class BuildError(Exception):
    """A failure that the person at the keyboard can do something about.

    Attributes:
      problem: what is wrong and where; one or more lines.
      remedy: what to do; the last line is a command wherever there is one.
    """

    def __init__(self, problem: str, remedy: str):
        super().__init__(f"{problem}\n{remedy}")
        self.problem = problem
        self.remedy = remedy


def message(error: BuildError | OSError) -> str:
    """What to print, also for what the operating system refuses: a tree that is read-only, a full
    disk."""
    if isinstance(error, BuildError):
        return str(error)
    return f"{error}.\nMake that possible, and run the command again."
