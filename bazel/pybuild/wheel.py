"""Wheels: the whole package, its libraries and headers alone, or its Python code alone.

    make(root, options, os.environ, Path("dist"))
    # "torch_xla_lite-0.1.0-cp311-cp311-linux_x86_64.whl"

What is built goes from Bazel's outputs into a folder below build/ and from there into the wheel;
the package in the tree, which an editable install imports, is not touched. The same sources give
the same wheel, byte for byte. setuptools is not needed: an isolated build has nothing to fetch.
Of a tree that was made for one wheel, Bazel's server and files go with it.
"""

import base64
import hashlib
import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild import (
    archive,
    build,
    clean,
    configure,
    debug_files,
    licenses,
    lock,
    metadata,
    sdist,
    sources,
)
from bazel.pybuild import options as options_table
from bazel.pybuild.archive import Source
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.metadata import Metadata
from bazel.pybuild.options import Content, Mode, Options


def make(root: Path, options: Options, environ: Mapping[str, str], folder: Path) -> str:
    """Builds a wheel.

    Args:
      root: of the tree.
      options: from the environment; `content` says what the wheel holds.
      environ: usually os.environ.
      folder: to write it to.

    Returns:
      Name of the file.

    Raises:
      BuildError: the build failed; no wheel is written.
    """
    with lock.alone(root):
        try:
            return _make(root, options, environ, folder)
        finally:
            # Before there are settings, no Bazel has been started.
            if is_for_one_build(root) and (root / configure.FILE).exists():
                clean.forget(root, options, environ)


def is_for_one_build(root: Path) -> bool:
    """Whether a tree was made for one build and goes after it: unpacked from a source distribution,
    or fetched by pip from a repository, into a temporary folder."""
    import tempfile

    temporary = Path(tempfile.gettempdir()).resolve()
    # `pip install NAME@git+...`, `pip wheel` of the same, and either without a name.
    names = ("pip-install-", "pip-wheel-", "pip-req-build-")
    by_pip = any(
        place.parent == temporary and place.name.startswith(names)
        for place in (root, *root.parents)
    )
    return by_pip or (root / sdist.PKG_INFO).exists()


def _make(root: Path, options: Options, environ: Mapping[str, str], folder: Path) -> str:
    stage = root / "build" / "wheel" / options.content.name.lower()
    report = build.build(root, options, environ, into=stage)
    print(report.line(), flush=True)
    built = {path: stage / path for path in report.changed}
    if options.debug_files or options.mode is Mode.RELEASE:
        keep = folder if options.debug_files else None
        built = debug_files.strip(built, stage.with_name(f"{stage.name}.stripped"), keep)
    toolkit = configure.cuda_home(root)
    return write(root, options.content, built, folder, toolkit, options.archive_time_s)


def write(
    root: Path,
    content: Content,
    built: Mapping[str, Path],
    folder: Path,
    toolkit: Path | None = None,
    time_s: int | None = None,
) -> str:
    """Writes a wheel of files that are built already, and returns its name.

    Args:
      root: of the tree, for the sources in Python and pyproject.toml.
      content: what the wheel holds.
      built: path in the wheel -> file, for all that Bazel makes for it.
      folder: to write it to.
      toolkit: folder of the CUDA toolkit, whose licence a CUDA library brings.
      time_s: of all files in it, since 1970; None for a constant.
    """
    described = metadata.for_content(metadata.read(root), content)
    members: dict[str, Source] = dict(built)
    if content is not Content.LIBRARY:
        members |= {path: root / path for path in sources.package_files(root)}
    members |= dist_info(root, described, tag(content), pure=False)
    if licenses.OURS in described.license_files:
        place = f"{described.folder}/licenses/{licenses.OURS}"
        members[place] = licenses.text(root, built, toolkit).encode()
    folder.mkdir(parents=True, exist_ok=True)
    seal(folder / name(described, content), members, described, time_s)
    return name(described, content)


def seal(
    file: Path, members: Mapping[str, Source], described: Metadata, time_s: int | None = None
) -> None:
    """Writes a wheel: the members, and the list of them with their hashes."""
    record = f"{described.folder}/RECORD"
    lines = [_line(path, archive.read(source)) for path, source in sorted(members.items())]
    lines.append(f"{record},,\n")
    at_the_end = [path for path in members if path.startswith(described.folder)]
    archive.write_zip(
        file,
        {**members, record: "".join(lines).encode()},
        last=[*at_the_end, record],
        time_s=time_s,
    )


def dist_info(root: Path, described: Metadata, tag: str, *, pure: bool) -> dict[str, Source]:
    """The files of a .dist-info folder, without the list of files.

    Args:
      root: of the tree.
      described: the distribution.
      tag: as in the name of the wheel.
      pure: whether it goes into the folder for code that is the same on every platform.
    """
    wheel = (
        f"Wheel-Version: 1.0\nGenerator: {sources.PACKAGE}\n"
        f"Root-Is-Purelib: {str(pure).lower()}\nTag: {tag}\n"
    )
    files: dict[str, Source] = {
        "METADATA": described.text().encode(),
        "WHEEL": wheel.encode(),
        "top_level.txt": f"{sources.PACKAGE}\n".encode(),
    }
    if described.entry_points:
        files["entry_points.txt"] = described.entry_points_text().encode()
    files |= {f"licenses/{license}": root / license for license in described.license_files}
    return {f"{described.folder}/{file}": source for file, source in files.items()}


def name(described: Metadata, content: Content) -> str:
    """Name of a wheel's file."""
    return f"{described.name}-{described.version}-{tag(content)}.whl"


def tag(content: Content) -> str:
    """Which interpreters and platforms a wheel is for, in the words of PEP 425."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if content is Content.LIBRARY:
        return f"py3-none-{platform}"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}{sys.abiflags}-{platform}"


def _line(path: str, content: bytes) -> str:
    """One line of RECORD: its hash is URL-safe base64 without padding."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"


def main(folder: str) -> int:
    """Makes the wheel that the environment variables ask for."""
    from bazel.pybuild import flow, notices

    try:
        options = flow.platform_link_options(options_table.read(os.environ))
        make(Path(__file__).resolve().parents[2], options, os.environ, Path(folder))
    except (BuildError, OSError) as error:
        notices.show()
        print(f"error: {message(error)}", file=sys.stderr)
        return 1
    notices.show()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
