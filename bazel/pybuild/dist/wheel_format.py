"""The file format of wheels: names, tags, the .dist-info folder and the archive.

    write(root, Options(), {"torch_xla_lite/_XLAC.so": file}, Path("dist"))
    # "torch_xla_lite-0.1.0-cp311-cp311-linux_x86_64.whl"

The same files give the same wheel, byte for byte. Editable installs use the same .dist-info folder.
"""

import base64
import hashlib
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild.dist import archive, licenses, metadata, sources
from bazel.pybuild.dist.archive import Source
from bazel.pybuild.dist.metadata import Metadata
from bazel.pybuild.machine.cuda import Cuda
from bazel.pybuild.options import Options, WheelKind


def write(
    root: Path, options: Options, built: Mapping[str, Path], folder: Path, gpu: Cuda | None = None
) -> str:
    """Writes a wheel of files that are built already, and returns its name.

    Args:
      root: of the tree, for the sources in Python and pyproject.toml.
      options: content, version and build number of the wheel, and the time of its files.
      built: path in the wheel -> file, for each file that Bazel built.
      folder: to write it to.
      gpu: the CUDA decision of the build; None is the same as no CUDA.
    """
    described = metadata.for_wheel(root, options, gpu.version if gpu else "")
    described = described._replace(license=licenses.expression(described.license, built))
    members: dict[str, Source] = dict(built)
    if options.wheel_kind is not WheelKind.LIBRARY:
        members |= {path: root / path for path in sources.package_files(root)}
        members[sources.AUTOLOAD] = root / sources.AUTOLOAD_SOURCE
    tag, build = _tag(options.wheel_kind), options.build_number
    members |= dist_info(root, described, tag, pure=False, build=build)
    if licenses.OURS in described.license_files:
        place = f"{described.folder}/licenses/{licenses.OURS}"
        toolkit = gpu.toolkit.home if gpu and gpu.toolkit else None
        members[place] = licenses.text(root, built, toolkit).encode()
    folder.mkdir(parents=True, exist_ok=True)
    parts = [described.name, described.version, *([str(build)] if build else []), tag]
    name = f"{'-'.join(parts)}.whl"
    write_archive(folder / name, members, described, options.archive_time_s)
    return name


def write_archive(
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


def dist_info(
    root: Path, described: Metadata, tag: str, *, pure: bool, build: int | None = None
) -> dict[str, Source]:
    """The files of a .dist-info folder, without the list of files.

    Args:
      root: of the tree.
      described: the distribution.
      tag: as in the name of the wheel.
      pure: whether it is installed into the folder for code without a platform.
      build: number in the name of the wheel.
    """
    number = f"Build: {build}\n" if build else ""
    wheel = (
        f"Wheel-Version: 1.0\nGenerator: {sources.PACKAGE}\n"
        f"Root-Is-Purelib: {str(pure).lower()}\n{number}Tag: {tag}\n"
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


def _tag(kind: WheelKind) -> str:
    """Which interpreters and platforms a wheel is for, in the words of PEP 425."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if kind is WheelKind.LIBRARY:
        return f"py3-none-{platform}"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}{sys.abiflags}-{platform}"


def _line(path: str, content: bytes) -> str:
    """One line of RECORD: its hash is URL-safe base64 without padding."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"
