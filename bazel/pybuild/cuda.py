"""Whether the CUDA library is built, with which toolkit, and for which GPUs.

    look(options, os.environ).evidence
    # "on: torch 2.13.0+cu130 is built for CUDA 13.0; toolkit 13.0.88; sm_80 sm_90 compute_90"

What decides is what a build needs: a torch built for CUDA and a toolkit of that CUDA's major
version. Whether this machine has a GPU is never asked; the library is used where one is found at
run time. torch is read, not imported.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild import packages
from bazel.pybuild.errors import BuildError
from bazel.pybuild.find_bazel import which
from bazel.pybuild.options import Options, Switch

_STANDARD = Path("/usr/local/cuda")
# The first whose nvcc compiles C++20.
_OLDEST = 12
_WHEELS = ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime")
# One of each kind, from each of the wheels; where two places are named, layouts differ.
_PARTS = (
    ("bin/nvcc",),
    ("bin/ptxas",),
    ("nvvm/bin/cicc",),
    ("include/crt/host_config.h",),
    ("include/cuda_runtime.h",),
    (
        "lib64/libcudart_static.a",
        "lib/libcudart_static.a",
        "targets/x86_64-linux/lib/libcudart_static.a",
    ),
)


class Torch(NamedTuple):
    """What the installed torch was built for, by its version.py.

    Attributes:
      version: with its local part, such as 2.13.0+cu130.
      cuda: version of CUDA, such as 13.0; None without.
      hip: version of ROCm's HIP; None without.
    """

    version: str
    cuda: str | None
    hip: str | None


class Toolkit(NamedTuple):
    """A CUDA toolkit with all that we need of one.

    Attributes:
      home: its folder.
      version: of nvcc, such as 13.0.88.
      found: where we looked for it, in words.
    """

    home: Path
    version: str
    found: str

    @property
    def major(self) -> int:
        """The part of the version that has to be torch's."""
        return int(self.version.partition(".")[0])


class Cuda(NamedTuple):
    """The decision.

    Attributes:
      packaged: whether the package gets a CUDA library.
      toolkit: that Bazel may use; it may have one although the package gets no library, so that
        who works on kernels can compile and test them beside any torch.
      codes: what nvcc is to make, such as sm_90 and compute_90.
      evidence: why, in one line that is the same on all machines with the same inputs.
    """

    packaged: bool
    toolkit: Toolkit | None
    codes: tuple[str, ...]
    evidence: str

    @property
    def line(self) -> str:
        """The evidence for the eyes of who builds here."""
        if not self.toolkit:
            return self.evidence
        place = f"{self.toolkit.home}, found by {self.toolkit.found}"
        if self.packaged:
            return f"{self.evidence} ({place})"
        return f"{self.evidence} (toolkit {self.toolkit.version} in {place}, is not used)"


def look(options: Options, environ: Mapping[str, str]) -> Cuda:
    """Decides for the torch and the toolkits of this machine.

    Args:
      options: from the environment.
      environ: usually os.environ.

    Raises:
      BuildError: as `decide`.
    """
    folders = packages.search_path()
    torch = packages.installed(["torch"], folders).get("torch")
    if torch is None:
        return Cuda(False, None, (), "off: torch is not installed")
    read = torch_facts(torch.info.parent / "torch" / "version.py", torch.version)
    return decide(options, read, watched(options, environ, folders))


def depends_on(options: Options, environ: Mapping[str, str]) -> list[str]:
    """All that `look` depends on beside torch, in words that change when its answer can."""
    words = [options.cuda.value, str(options.cuda_arch_list)]
    for nvcc, found in watched(options, environ, packages.search_path()):
        changed = nvcc.stat().st_mtime_ns if nvcc.exists() else None
        words.append(f"{found} {nvcc} {changed}")
    return words


def torch_facts(version_file: Path, version: str) -> Torch:
    """Reads what torch was built for.

    Args:
      version_file: torch/version.py.
      version: of the installed distribution.
    """
    try:
        text = version_file.read_text()
    except OSError:
        text = ""
    values = dict(
        re.findall(r"^(\w+)(?:\s*:[^=\n]*)?\s*=\s*['\"]([^'\"]*)['\"]", text, re.MULTILINE)
    )
    return Torch(version, values.get("cuda") or None, values.get("hip") or None)


def watched(
    options: Options, environ: Mapping[str, str], folders: Iterable[str]
) -> list[tuple[Path, str]]:
    """The nvcc programs of this machine in order of preference, and where each was looked for.

    A few looks at the disk, for it happens at every build: when one of these files changes, what
    follows from it is looked up again.
    """
    if options.cuda_home:
        return [(Path(options.cuda_home).absolute() / "bin" / "nvcc", "CUDA_HOME")]
    found = []
    on_path = which("nvcc", environ.get("PATH", os.defpath))
    if on_path:
        found.append((on_path, "nvcc on PATH"))
    found.append((_STANDARD / "bin" / "nvcc", str(_STANDARD)))
    found += [(home / "bin" / "nvcc", "NVIDIA's wheels") for home in _wheel_homes(folders)]
    return [(nvcc, place) for nvcc, place in found if nvcc.exists()]


def _wheel_homes(folders: Iterable[str]) -> Iterator[Path]:
    """Where wheels since CUDA 13 put a whole toolkit together: nvidia/cu13. The newest first."""
    for folder in folders:
        try:
            names = os.listdir(os.path.join(folder, "nvidia"))
        except OSError:
            continue
        releases = (name for name in names if re.fullmatch(r"cu\d+", name))
        for name in sorted(releases, key=lambda name: int(name[2:]), reverse=True):
            yield Path(folder) / "nvidia" / name


def toolkits(candidates: Iterable[tuple[Path, str]]) -> tuple[list[Toolkit], list[str]]:
    """Looks into what `watched` found.

    Returns:
      Whole toolkits in the same order, and what is wrong with the others.
    """
    whole, problems = [], []
    for nvcc, found in candidates:
        home = _home(nvcc)
        missing = _missing(home)
        version = re.search(r"V(\d+\.\d+\.\d+)", _says(home / "bin" / "nvcc", "--version"))
        if missing:
            problems.append(f"{home} ({found}) is no whole toolkit: it has no {missing}")
        elif not version:
            problems.append(f"{nvcc} ({found}) does not run")
        else:
            whole.append(Toolkit(home, version[1], found))
    return whole, problems


def _home(nvcc: Path) -> Path:
    """The toolkit that an nvcc belongs to; what is on PATH may be a script that starts another."""
    for home in (nvcc.parent.parent, nvcc.resolve().parent.parent):
        if not _missing(home):
            return home
    top = re.search(r"^#\$ TOP=(.*)$", _says(nvcc, "--dryrun", "none.cu"), re.MULTILINE)
    return Path(top[1].strip()).resolve() if top else nvcc.parent.parent


def _missing(home: Path) -> str | None:
    """The first part of a toolkit that is not there."""
    for places in _PARTS:
        if not any((home / place).exists() for place in places):
            return places[0]
    return None


def decide(options: Options, torch: Torch, candidates: Iterable[tuple[Path, str]]) -> Cuda:
    """Decides.

    Args:
      options: from the environment.
      torch: the installed one.
      candidates: from `watched`.

    Raises:
      BuildError: something is missing that was asked for, or makes no sense.
    """
    if options.cuda is Switch.OFF:
        return Cuda(False, None, (), "off: USE_CUDA=0")
    if torch.hip:
        raise BuildError(
            f"torch {torch.version} is built for ROCm (HIP {torch.hip}), "
            "for which torch_xla_lite has no kernels.",
            "Install a torch for CUDA or for CPUs, or build without GPU code:  export USE_CUDA=0",
        )
    whole, problems = toolkits(candidates)
    if options.cuda_home and not whole:
        raise BuildError(
            f"CUDA_HOME={options.cuda_home} cannot be used: {problems[0]}.",
            "Correct it, or unset it to look elsewhere:  unset CUDA_HOME",
        )
    reason = _obstacle(torch, whole, problems)
    if reason:
        if options.cuda is Switch.ON:
            raise BuildError(f"USE_CUDA=1, but {reason[0]}.", reason[1])
        return _off(options, reason[0], whole)
    toolkit = next(kit for kit in whole if kit.major == _major(torch.cuda))
    made = _codes(options, toolkit)
    return Cuda(
        True,
        toolkit,
        made,
        f"on: torch {torch.version} is built for CUDA {torch.cuda}; toolkit {toolkit.version}; "
        + " ".join(made),
    )


def facts(decision: Cuda) -> dict[str, str]:
    """What the repository rule of the toolkit is told (third_party/cuda)."""
    values = {"EVIDENCE": decision.evidence, "PACKAGED": "1" if decision.packaged else "0"}
    if decision.toolkit:
        values["CODES"] = ",".join(decision.codes)
        values["HOME"] = str(decision.toolkit.home)
        values["VERSION"] = decision.toolkit.version
    return values


def _off(options: Options, reason: str, whole: list[Toolkit]) -> Cuda:
    """No CUDA library; a toolkit that works is still there for `bazel build //...`."""
    for toolkit in whole:
        if toolkit.major < _OLDEST:
            continue
        try:
            return Cuda(False, toolkit, _codes(options, toolkit), f"off: {reason}")
        except BuildError:
            # A list for other machines must not break a build that has no use for it.
            break
    return Cuda(False, None, (), f"off: {reason}")


def _obstacle(torch: Torch, whole: list[Toolkit], problems: list[str]) -> tuple[str, str] | None:
    """Why CUDA cannot be built, and what to do; None when it can."""
    without = "or build without it:  export USE_CUDA=0"
    if not torch.cuda:
        return (
            f"torch {torch.version} is built without CUDA",
            f"Install a torch that is built for CUDA, {without}",
        )
    major = _major(torch.cuda)
    if any(kit.major == major for kit in whole):
        return None
    install = "pip install " + " ".join(f"'{name}=={torch.cuda}.*'" for name in _WHEELS)
    remedy = f"Install one, {without}\nFrom PyPI:  {install}"
    wanted = f"torch {torch.version} is built for CUDA {torch.cuda} and no toolkit of CUDA {major}"
    seen = [f"{kit.version} in {kit.home}" for kit in whole] + problems
    if seen:
        return f"{wanted} is there, only {'; '.join(seen)}", remedy
    places = f"CUDA_HOME, nvcc on PATH, {_STANDARD}, NVIDIA's wheels"
    return f"{wanted} was found ({places})", remedy


def _major(version: str | None) -> int:
    return int((version or "0").partition(".")[0])


def _codes(options: Options, toolkit: Toolkit) -> tuple[str, ...]:
    from bazel.pybuild import cuda_archs

    nvcc = toolkit.home / "bin" / "nvcc"

    def accepts(code: str) -> bool:
        arch = f"arch=compute_{code.removeprefix('sm_')},code={code}"
        return "#$" in _says(nvcc, "--dryrun", "-gencode", arch, "-c", "none.cu")

    listed = _says(nvcc, "--list-gpu-code").split()
    return cuda_archs.codes(options.cuda_arch_list, listed, accepts)


def _says(program: Path, *arguments: str) -> str:
    """What a program prints; nothing when it cannot be run."""
    import subprocess

    try:
        process = subprocess.run(
            [program, *arguments], capture_output=True, text=True, check=False, errors="replace"
        )
    except OSError:
        return ""
    return process.stdout + process.stderr
