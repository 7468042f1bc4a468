"""Builds a wheel of the whole package, of its libraries and headers, or of its Python code.

    make(root, options, os.environ, Path("dist"))
    # "torch_xla_lite-0.1.0-cp311-cp311-linux_x86_64.whl"

Bazel's outputs are copied into a folder below build/ and from there into the wheel. The package in
the tree, which an editable install imports, does not change. Neither setuptools nor the network is
needed. If the tree was unpacked from a source distribution, Bazel's server and files are removed at
the end.
"""

from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild import build, configure, lock
from bazel.pybuild.call import client
from bazel.pybuild.dist import metadata, wheel_format
from bazel.pybuild.dist.strip import strip
from bazel.pybuild.options import Mode, Options


def make(
    root: Path,
    options: Options,
    environ: Mapping[str, str],
    folder: Path,
    configured: configure.State | None = None,
) -> str:
    """Builds a wheel.

    Args:
      root: of the tree.
      options: from the environment; `wheel_kind` says what the wheel holds.
      environ: usually os.environ.
      folder: to write it to.
      configured: as for build.build.

    Returns:
      Name of the file.

    Raises:
      BuildError: the build failed; no wheel is written.
    """
    with lock.exclusive(root, wait=options.waits):
        try:
            return _make(root, options, environ, folder, configured)
        finally:
            # Without settings, no Bazel was started.
            if metadata.is_from_sdist(root) and (root / configure.FILE).exists():
                client.remove_bazel_files(root, options, environ)


def _make(
    root: Path,
    options: Options,
    environ: Mapping[str, str],
    folder: Path,
    configured: configure.State | None,
) -> str:
    stage = root / "build" / "wheel" / options.wheel_kind.name.lower()
    report = build.build(root, options, environ, into=stage, configured=configured)
    print(report.line(), flush=True)
    built = {path: stage / path for path in report.changed}
    if options.mode is Mode.RELEASE:
        built = strip(built, stage.with_name(f"{stage.name}.stripped"))
    state = configure.read(root)
    return wheel_format.write(root, options, built, folder, state.cuda if state else None)
