"""Writes zip and tar archives that are reproducible to the byte.

    write_zip(Path("a.whl"), {"a/b.py": Path("tree/a/b.py"), "a/RECORD": b"..."})
    write_tar(Path("a.tar.gz"), {"a-1/setup.py": Path("tree/setup.py")})

They do not contain the files' owners, times and permissions; members are sorted by name and have
one time, which a caller may choose (SOURCE_DATE_EPOCH).
"""

import gzip
import io
import tarfile
import time
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from bazel.pybuild import files

# A file on disk, or its content.
Source = Path | bytes

# The first time of the zip format, in 1980, and the last one of gzip, in 2106. The first is the
# default.
_FIRST_S = 315532800
_LAST_S = 2**32 - 1


def write_zip(
    file: Path,
    members: Mapping[str, Source],
    last: Iterable[str] = (),
    time_s: int | None = None,
) -> None:
    """Writes a zip archive atomically.

    Args:
      file: to write.
      members: path in the archive -> source.
      last: paths that are written last; readers of wheels expect the .dist-info folder there.
      time_s: of the members, since 1970; limited to the times that the format can represent.
    """
    date = time.gmtime(_time_s(time_s))[:6]
    at_the_end = set(last)
    order = sorted(members, key=lambda path: (path in at_the_end, path))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in order:
            entry = zipfile.ZipInfo(path, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            data = read(members[path])
            entry.external_attr = (0o100000 | _mode(path, data)) << 16
            archive.writestr(entry, data, compresslevel=9)
    files.replace(file, content.getvalue())


def write_tar(file: Path, members: Mapping[str, Source], time_s: int | None = None) -> None:
    """Writes a compressed tar archive; arguments as of `write_zip`."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(members):
            data = read(members[path])
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime = len(data), _time_s(time_s)
            entry.mode = _mode(path, data)
            archive.addfile(entry, io.BytesIO(data))
    files.replace(file, gzip.compress(content.getvalue(), mtime=_time_s(time_s)))


def read(source: Source) -> bytes:
    """The content of a member."""
    return source if isinstance(source, bytes) else source.read_bytes()


def _time_s(wanted: int | None) -> int:
    return _FIRST_S if wanted is None else min(max(wanted, _FIRST_S), _LAST_S)


def _mode(path: str, data: bytes) -> int:
    """Executable for programs and shared objects; the permissions of the file do not matter."""
    return 0o755 if ".so" in path.rpartition("/")[2] or data.startswith(b"#!") else 0o644
