"""Finds the CUDA toolkits of this machine.

    toolkit, problems = find(watched(options, os.environ, folders), "gcc", 13)
    toolkit.home, toolkit.version        # Path("/usr/local/cuda-13.0"), "13.0.88"

The places are CUDA_HOME or CUDA_PATH, nvcc on PATH, CONDA_PREFIX, /usr/local/cuda and NVIDIA's
wheels. A toolkit that lacks a part or cannot compile on this machine is not used.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild.machine.find_bazel import which
from bazel.pybuild.options import Options

STANDARD = Path("/usr/local/cuda")
# Where a toolkit has headers and libraries; conda-forge's has them only below the second or, for
# 64-bit ARM, the third.
_TARGETS = ("", "targets/x86_64-linux/", "targets/sbsa-linux/")
# Files from each of NVIDIA's wheels. Toolkits have different layouts: one of each group suffices.
_PARTS = (
    ("bin/nvcc",),
    ("bin/cudafe++",),
    ("bin/fatbinary",),
    ("bin/ptxas",),
    ("nvvm/bin/cicc",),
    ("include/crt/host_config.h",),
    ("include/cuda_runtime.h",),
    ("include/nv/target", "include/cccl/nv/target"),
    ("lib64/libcudart_static.a", "lib/libcudart_static.a"),
)


class Toolkit(NamedTuple):
    """A complete CUDA toolkit.

    Attributes:
      home: its folder.
      version: of nvcc, such as 13.0.88.
      found: text that names the place in which it was found.
    """

    home: Path
    version: str
    found: str


def watched(
    options: Options, environ: Mapping[str, str], folders: Iterable[str]
) -> list[tuple[Path, str]]:
    """The nvcc programs of this machine in order of preference, and the place of each.

    Every build calls this, so it starts no process: when these files change, the tree is configured
    again.
    """
    if options.cuda_home:
        return [(Path(options.cuda_home).absolute() / "bin" / "nvcc", options.cuda_home_from)]
    found = []
    on_path = which("nvcc", environ.get("PATH", os.defpath))
    if on_path:
        found.append((on_path, "nvcc on PATH"))
    if environ.get("CONDA_PREFIX"):
        found.append((Path(environ["CONDA_PREFIX"]) / "bin" / "nvcc", "CONDA_PREFIX"))
    found.append((STANDARD / "bin" / "nvcc", str(STANDARD)))
    found += [(home / "bin" / "nvcc", "NVIDIA's wheels") for home in _wheel_homes(folders)]
    return [(nvcc, place) for nvcc, place in found if nvcc.exists()]


def _wheel_homes(folders: Iterable[str]) -> Iterator[Path]:
    """The folders in which wheels since CUDA 13 form a toolkit (nvidia/cu13), newest first."""
    for folder in folders:
        try:
            names = os.listdir(os.path.join(folder, "nvidia"))
        except OSError:
            continue
        releases = (name for name in names if re.fullmatch(r"cu\d+", name))
        for name in sorted(releases, key=lambda name: int(name[2:]), reverse=True):
            yield Path(folder) / "nvidia" / name


def find(
    candidates: Iterable[tuple[Path, str]], compiler: str, major: int | None
) -> tuple[Toolkit | None, list[str]]:
    """Finds the first toolkit that works.

    Args:
      candidates: from `watched`.
      compiler: of C++ for the host, a path or a name on PATH.
      major: the first part of its version; None for any.

    Returns:
      The toolkit, if there is one, and the problems of those that precede it.
    """
    problems: list[str] = []
    visited: set[Path] = set()
    for nvcc, found in candidates:
        home = _home(nvcc)
        if home.resolve() in visited:
            continue
        visited.add(home.resolve())
        missing = missing_part(home)
        version = re.search(r"V((\d+)\.\d+\.\d+)", nvcc_output(home, "--version"))
        if missing:
            problems.append(f"{home} ({found}) is not a complete toolkit: it has no {missing}")
        elif not version:
            problems.append(f"{nvcc} ({found}) does not run")
        elif major is not None and int(version[2]) != major:
            problems.append(f"{version[1]} is in {home} ({found})")
        elif refused := _refuses(home, compiler):
            problems.append(f"{home} ({found}) does not work with {compiler}: {refused}")
        else:
            return Toolkit(home, version[1], found), problems
    return None, problems


def _home(nvcc: Path) -> Path:
    """The toolkit of an nvcc; the nvcc on PATH may be a script that starts another one."""
    for home in (nvcc.parent.parent, nvcc.resolve().parent.parent):
        if not missing_part(home):
            return home
    process = _run(nvcc, "--dryrun", "none.cu")
    top = re.search(r"^#\$ TOP=(.*)$", process.stderr if process else "", re.MULTILINE)
    return Path(top[1].strip()).resolve() if top else nvcc.parent.parent


def missing_part(home: Path) -> str | None:
    """The first part that a toolkit lacks."""
    for places in _PARTS:
        found = (home / target / place for target in _TARGETS for place in places)
        if not any(file.exists() for file in found):
            return places[0]
    return None


def _refuses(home: Path, compiler: str) -> str | None:
    """The error of nvcc if it cannot compile an empty file as C++20 with this host compiler.

    It supports host compilers and C libraries up to some version. All programs of the toolkit run.
    """
    command = ["-ccbin", compiler, "-std=c++20", "-x", "cu", "-c", os.devnull, "-o", os.devnull]
    process = _run(home / "bin" / "nvcc", *command)
    if process is None or process.returncode == 0:
        return None
    lines = (process.stderr + process.stdout).strip().splitlines() or ["it says nothing"]
    message = next((line for line in lines if "error" in line), lines[0])
    return message.partition("#error -- ")[2].partition(" The nvcc flag")[0] or message


def nvcc_output(home: Path, *arguments: str) -> str:
    """The output of a toolkit's nvcc; empty if it does not run."""
    process = _run(home / "bin" / "nvcc", *arguments)
    return process.stdout + process.stderr if process else ""


def _run(program: Path, *arguments: str) -> "subprocess.CompletedProcess[str] | None":
    try:
        return subprocess.run(
            [program, *arguments], capture_output=True, text=True, check=False, errors="replace"
        )
    except OSError:
        return None
