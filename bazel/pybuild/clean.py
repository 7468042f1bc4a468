"""Removes what a build made and keeps what it downloaded.

Bazel's outputs, the shared objects in the package and the folders build/ and dist/ go. The
repositories that Bazel has fetched, the disk cache, .bazelrc.generated and the editable install
stay: the next `develop` needs no network.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild import find_bazel, outputs
from bazel.pybuild.errors import BuildError
from bazel.pybuild.options import Options


def clean(root: Path, options: Options, environ: Mapping[str, str]) -> list[str]:
    """Cleans a tree and returns the paths that were removed, relative to it.

    Raises:
      BuildError: Bazel failed; what is not Bazel's is removed nevertheless.
    """
    removed = outputs.remove(root)
    for folder in ("build", "dist", "torch_xla_lite.egg-info"):
        if (root / folder).exists():
            shutil.rmtree(root / folder)
            removed.append(folder)
    try:
        bazel = find_bazel.find(options.bazel, environ.get("PATH", os.defpath))
    except BuildError:
        # Without a Bazel there are no outputs of one, or they are no longer ours to judge.
        return removed
    command = [str(bazel.executable), *options.startup_options, "clean", "--ui_event_filters=-info"]
    process = subprocess.run(command, cwd=root, check=False)
    if process.returncode != 0:
        raise BuildError(
            f"Bazel could not remove its outputs (exit code {process.returncode}).",
            f"Run it by hand:  {' '.join(command)}",
        )
    return [*removed, "outputs of Bazel"]
