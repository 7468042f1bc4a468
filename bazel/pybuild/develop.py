"""`python setup.py develop`: builds what changed and makes the tree importable.

It uses neither setuptools nor pip.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild import build, configure
from bazel.pybuild.install import editable
from bazel.pybuild.options import Options


def develop(
    root: Path,
    options: Options,
    environ: Mapping[str, str],
    *,
    since: float | None = None,
    configured: configure.State | None = None,
) -> None:
    """Builds, and makes the editable install if it is missing or outdated.

    Args:
      root: of the tree.
      options: from the environment.
      environ: usually os.environ.
      since: time.perf_counter() when the command began; None for now.
      configured: as for build.build.

    Raises:
      BuildError: the build or the install failed.
    """
    site = editable.site_folder()
    in_place = editable.in_place(root, site, options.version)
    if not in_place:
        # Errors of the install are reported before the long build.
        editable.check(site, editable.commands_folder())
    report = build.build(root, options, environ, since=since, configured=configured)
    editable.link(root)
    if not in_place:
        editable.install(root, site, editable.commands_folder(), options.version)
        print(
            f"torch_xla_lite: installed in editable mode: {sys.executable} now imports "
            f"torch_xla_lite from {root}"
        )
    print(report.line())
