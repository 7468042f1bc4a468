#!/usr/bin/env python3
"""Calls Bazel and prints why each action ran; for setup.py, see `python setup.py explain`.

    python setup.py develop                     # once, to configure Bazel
    python scripts/explain.py build //...       # any command and options of Bazel
    python scripts/explain.py test //test/csrc/... --test_output=all

It prints each changed input, the actions that the change caused, their times, and the critical
path. Each action is compared with its previous run by this script or by setup.py, whose record is
in build/actions; runs by a bare `bazel build` are not recorded. The exit code is Bazel's.
"""

import argparse
import os
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from bazel.pybuild.machine import find_bazel  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bazel", help="Bazel, with its startup options")
    parser.add_argument("command", help="such as build or test")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its options and targets")
    options = parser.parse_args()
    bazel = [*shlex.split(options.bazel or shlex.quote(find_bazel.default())), options.command]
    module = (sys.executable, "-m", "bazel.pybuild.commands.explain_bazel", str(len(bazel)))
    os.chdir(ROOT)
    os.execv(sys.executable, [*module, *bazel, *options.arguments])


if __name__ == "__main__":
    main()
