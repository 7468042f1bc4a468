"""Builds and installs torch_xla_lite.

    python setup.py develop        build what changed and import the package from this tree
    python setup.py clean          remove what was built; downloads and caches stay
    python setup.py options        the environment variables of the build
    python setup.py --help-commands

pyproject.toml describes the package, bazel/pybuild builds it. The __init__.py there lists the files
and what each does.
"""

import os
import sys
import time

if sys.version_info < (3, 3):
    # bazel.pybuild, which checks the version, cannot be imported there.
    sys.exit("error: Python 2 is too old. Use python3.")

SINCE = time.perf_counter()

EVERYDAY = sys.argv[1:] == ["develop"]

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
if not EVERYDAY:
    # Bytecode makes the everyday command start faster. Other commands write none, because commands
    # such as --version must not write anything.
    sys.dont_write_bytecode = True

try:
    from bazel.pybuild import flow
except KeyboardInterrupt:
    sys.stderr.write("error: interrupted. Nothing was done.\n")
    sys.exit(130)

STATUS = flow.main(sys.argv[1:], SINCE)
if EVERYDAY:
    # flow.main has flushed all output. Python would free each module first: 10 ms of 260.
    os._exit(STATUS)
if STATUS:
    sys.exit(STATUS)
