"""Builds and installs torch_xla_lite.

    python setup.py develop        build what changed and import the package from this tree
    python setup.py clean          remove what was built; downloads and caches stay
    python setup.py options        the environment variables that steer the build
    python setup.py --help-commands

What is packaged is named in pyproject.toml; how it is built is in bazel/pybuild, whose __init__.py
says which file does what.
"""

import os
import sys
import time

SINCE = time.perf_counter()

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
if sys.argv[1:] != ["develop"]:
    # The everyday command starts faster with bytecode; the others leave none in the tree: a
    # question like --version is to write nothing at all.
    sys.dont_write_bytecode = True

from bazel.pybuild import flow  # noqa: E402

STATUS = flow.main(sys.argv[1:], SINCE)
if STATUS:
    sys.exit(STATUS)
