"""Writes the source distribution, with tests, scripts and documentation.

    make(root, options, Path("dist"))      # torch_xla_lite-0.1.0.tar.gz

A wheel built from it is equal to one built in the tree, byte for byte.
"""

from pathlib import Path

from bazel.pybuild.dist import archive, metadata, sources
from bazel.pybuild.dist.archive import Source
from bazel.pybuild.options import Options


def make(root: Path, options: Options, folder: Path) -> str:
    """Writes the archive and returns its name.

    Args:
      root: of the tree.
      options: the version, and the time of the files.
      folder: to write it to.
    """
    dynamic = ("License-Expression", "Requires-Dist")
    described = metadata.read(root, options.version)._replace(dynamic=dynamic)
    top = f"{described.name}-{described.version}"
    members: dict[str, Source] = {f"{top}/{metadata.PKG_INFO}": described.text().encode()}
    members |= {f"{top}/{path}": root / path for path in sources.all_files(root)}
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{top}.tar.gz"
    archive.write_tar(folder / name, members, options.archive_time_s)
    return name
