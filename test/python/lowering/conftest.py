"""Lets the tests of this folder import `comparison`, which lies beside them and in no package."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
