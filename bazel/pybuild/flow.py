"""What setup.py does for every command but a lone `develop`, in the order of PyTorch's setup.py.

The order matters: what can be found wrong at once is said before a long build, and the last thing
on the screen is what the user has to read.
"""

import os
import sys

from bazel.pybuild import options as options_table
from bazel.pybuild.errors import BuildError


def main() -> None:
    """Runs setuptools with our commands; ends the process with a message when a build fails."""
    try:
        # Modes that exclude each other, misspelt names and malformed values.
        options_table.read(os.environ)
        # Parses the command line, then runs its commands: they look for requirements, configure and
        # build.
        _setup()
    except BuildError as error:
        sys.exit(f"error: {error}")


def _setup() -> None:
    import setuptools

    from bazel.pybuild import commands

    setuptools.setup(
        distclass=commands.Distribution,
        cmdclass=commands.COMMANDS,
        # Everything that setuptools writes goes where git does not look and `clean` does.
        options={
            "egg_info": {"egg_base": "build"},
            "build": {"build_base": "build/setuptools"},
            "bdist": {"bdist_base": "build/setuptools/bdist"},
        },
    )
