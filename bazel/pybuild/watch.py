"""`python setup.py develop --watch`: builds whenever a source is saved, until Ctrl-C.

Each build prints its last line, or the errors of the compiler with the lines that they are about.
What is saved during a build starts another one after it.
"""

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild import develop, notices
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.machine import packages
from bazel.pybuild.options import Options

# The folders with everything that a build reads, except for the files in the root of the tree.
_FOLDERS = ("torch_xla_lite", "bazel", "third_party")
# `develop` writes these into the package, each first with another name.
_OUTPUTS = (r"\.so$", r"^_build_info\.py$", r"\.pyc$", r"^\..*\.new$", r"^lib$")


def watch(root: Path, options: Options, environ: Mapping[str, str]) -> None:
    """Builds until Ctrl-C. A failed build does not end it.

    Args:
      root: of the tree.
      options: from the environment.
      environ: usually os.environ.

    Raises:
      BuildError: the package watchfiles is missing.
    """
    try:
        import watchfiles
    except ModuleNotFoundError:
        wanted = packages.wanted(root)["watchfiles"]
        raise BuildError(
            f"develop --watch needs watchfiles, which is not installed for {sys.executable}.",
            f"Install it:  {sys.executable} -m pip install watchfiles=={wanted}",
        ) from None

    class Sources(watchfiles.DefaultFilter):
        ignore_entity_patterns = (*watchfiles.DefaultFilter.ignore_entity_patterns, *_OUTPUTS)

    folders = [root / folder for folder in _FOLDERS]
    changes = watchfiles.watch(
        *folders, watch_filter=Sources(), rust_timeout=200, yield_on_timeout=True
    )
    # This starts to watch, so that nothing that is saved during the first build is missed.
    next(changes)
    try:
        _build(root, options, environ)
        places = ", ".join(_FOLDERS)
        print(f"torch_xla_lite: waits for changes in {places}; Ctrl-C ends", flush=True)
        for changed in changes:
            if changed:
                _build(root, options, environ)
    except KeyboardInterrupt as interrupt:
        # A build that is interrupted says so.
        if str(interrupt):
            raise


def _build(root: Path, options: Options, environ: Mapping[str, str]) -> None:
    problem = ""
    try:
        develop.develop(root, options, environ, since=time.perf_counter())
    except (BuildError, OSError) as error:
        problem = message(error)
    notices.show()
    if problem:
        print(f"error: {problem}", file=sys.stderr)
    sys.stdout.flush()
