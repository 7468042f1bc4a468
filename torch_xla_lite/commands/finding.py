"""The result of one check of `doctor`. bazel/pybuild/commands/finding.py is a link to this file: a
checkout's doctor has checks of the build, too, and a wheel has no file of the build."""

from __future__ import annotations

from typing import NamedTuple

# Begins the lines with which a process tells its findings to another one. Other lines are what
# libraries and the start of an interpreter (sitecustomize) print.
MARK = "torch_xla_lite finding: "


class Finding(NamedTuple):
    """The result of one check.

    Attributes:
      name: of what was checked.
      ok: whether it works.
      detail: what was found.
      remedy: what to do; with `ok`, what should be done all the same.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""
