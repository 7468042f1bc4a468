"""The source distribution: what building needs, and nothing else.

    make(root, Path("dist"))      # torch_xla_lite-0.1.0.tar.gz

A wheel built from it is the one that the tree itself gives, byte for byte.
"""

from pathlib import Path

from bazel.pybuild.dist import archive, metadata, sources
from bazel.pybuild.dist.archive import Source

# What a tree has in its root that was unpacked from one.
PKG_INFO = "PKG-INFO"


def make(root: Path, folder: Path, time_s: int | None = None) -> str:
    """Writes the archive and returns its name.

    Args:
      root: of the tree.
      folder: to write it to.
      time_s: of all files in it, since 1970; None for a constant.
    """
    described = metadata.read(root)
    top = f"{described.name}-{described.version}"
    members: dict[str, Source] = {f"{top}/{PKG_INFO}": described.text().encode()}
    members |= {f"{top}/{path}": root / path for path in sources.build_files(root)}
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{top}.tar.gz"
    archive.write_tar(folder / name, members, time_s)
    return name
