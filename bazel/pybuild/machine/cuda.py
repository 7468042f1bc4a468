"""Decides whether the CUDA library is built, with which toolkit, and for which GPUs.

    inspect(options, os.environ).evidence
    # "on: torch 2.13.0+cu130 is built for CUDA 13.0; toolkit 13.0.88; sm_80 sm_90 compute_90"

nvcc compiles the library from jaxlib's headers, so USE_CUDA=1 needs only a toolkit. By default, the
library is built if jax has its CUDA plugin or torch is built for CUDA; either also determines the
major version of the toolkit. Whether this machine has a GPU does not matter. The packages are not
imported.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages, toolchain
from bazel.pybuild.machine.cuda_toolkits import (
    STANDARD,
    Toolkit,
    find,
    missing_part,
    nvcc_output,
    watched,
)
from bazel.pybuild.options import Options
from bazel.pybuild.variables import Switch

# One architecture as machine code, one with PTX.
_FOR_TESTS = "8.0;9.0+PTX"
# The wheels on PyPI that form a toolkit, since this version of CUDA. Those for earlier versions
# (nvidia-cuda-nvcc-cu12 ...) contain ptxas and libnvvm, but neither nvcc nor cicc nor cudafe++.
_WHEELS_SINCE = 13
_WHEELS = (
    "nvidia-cuda-nvcc",
    "nvidia-nvvm",
    "nvidia-cuda-crt",
    "nvidia-cuda-runtime",
    "nvidia-cuda-cccl",
)


# Releases of CUDA that jax has plugins for, or may have.
_PLUGINS = range(12, 20)


class Torch(NamedTuple):
    """What the installed torch was built for, read from its version.py.

    Attributes:
      version: with its local part, such as 2.13.0+cu130.
      cuda: version of CUDA, such as 13.0; None without.
      hip: version of ROCm's HIP; None without.
    """

    version: str
    cuda: str | None
    hip: str | None


class Target(NamedTuple):
    """The version of CUDA that an installed package is built for.

    Attributes:
      version: such as 13.0, or 13 if only the major version is known.
      reason: text that names the package.
    """

    version: str
    reason: str

    @property
    def major(self) -> int:
        """The first part of the version."""
        return int(self.version.partition(".")[0])


class Cuda(NamedTuple):
    """The decision.

    Attributes:
      packaged: whether the package gets a CUDA library.
      toolkit: the one that Bazel uses. Without a library in the package there may be one, too, to
        compile and test the kernels.
      codes: the codes that nvcc compiles, such as sm_90 and compute_90.
      evidence: the reason, one line that is equal on all machines with the same inputs.
      detail: what differs between machines, such as the folder of the toolkit.
    """

    packaged: bool
    toolkit: Toolkit | None
    codes: tuple[str, ...]
    evidence: str
    detail: str = ""

    @property
    def version(self) -> str:
        """The version of the toolkit for the package's library; empty without a library."""
        return self.toolkit.version if self.packaged and self.toolkit else ""

    @property
    def line(self) -> str:
        """Whether the kernels are built, and why, for the user."""
        reasons = filter(None, (self.evidence.partition(": ")[2], self.detail))
        return f"{'built' if self.packaged else 'not built'} ({'; '.join(reasons)})"

    def as_json(self) -> dict[str, Any]:
        """The values, for from_json."""
        toolkit = self.toolkit and (str(self.toolkit.home), *self.toolkit[1:])
        return {**self._asdict(), "toolkit": toolkit}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Cuda":
        """The decision with these values."""
        home, *rest = values["toolkit"] or [""]
        toolkit = Toolkit(Path(home), *rest) if home else None
        return cls(**{**values, "toolkit": toolkit, "codes": tuple(values["codes"])})


def inspect(options: Options, environ: Mapping[str, str]) -> Cuda:
    """Makes the decision for the packages and the toolkits of this machine.

    Args:
      options: from the environment.
      environ: usually os.environ.

    Raises:
      BuildError: see `decide`.
    """
    folders = packages.search_path()
    torch = packages.installed(["torch"], folders).get("torch")
    if torch is None:
        return Cuda(False, None, (), "off: torch is not installed")
    read = built_for(torch.info.parent / "torch" / "version.py", torch.version)
    nvccs, compiler = watched(options, environ, folders), toolchain.compiler(environ)
    return decide(options, read, plugin(folders), nvccs, compiler)


def depends_on(options: Options, environ: Mapping[str, str]) -> list[str]:
    """Text that changes when the result of `inspect` can change; torch is not part of it."""
    folders = packages.search_path()
    words = [options.cuda.value, str(options.cuda_arch_list), str(plugin(folders))]
    for nvcc, found in watched(options, environ, folders):
        changed = nvcc.stat().st_mtime_ns if nvcc.exists() else None
        words.append(f"{found} {nvcc} {changed}")
    return words


def built_for(version_file: Path, version: str) -> Torch:
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


def plugin(folders: Iterable[str]) -> packages.Package | None:
    """jax's plugin for CUDA, such as jax-cuda13-plugin; the newest where there are several."""
    names = {f"jax-cuda{major}-plugin": major for major in _PLUGINS}
    found = packages.installed(names, folders)
    return max(found.values(), key=lambda package: package.name, default=None)


def decide(
    options: Options,
    torch: Torch,
    jax: packages.Package | None,
    candidates: Iterable[tuple[Path, str]],
    compiler: str,
) -> Cuda:
    """Makes the decision.

    Args:
      options: from the environment.
      torch: the installed torch.
      jax: jax's plugin for CUDA, if it is installed.
      candidates: nvcc programs, and the place in which each was found.
      compiler: of C++ for the host.

    Raises:
      BuildError: something that the user requested is missing.
    """
    if options.cuda is Switch.OFF:
        return Cuda(False, None, (), "off: USE_CUDA=0")
    if torch.hip:
        raise BuildError(
            f"torch {torch.version} is built for ROCm (HIP {torch.hip}), "
            "for which torch_xla_lite has no kernels.",
            "Install a torch for CUDA or for CPUs, or build without GPU code:  export USE_CUDA=0",
        )
    target = _target(torch, jax)
    wanted = target or options.cuda is Switch.ON
    # A CUDA_HOME that was set for another project must not break a build without CUDA.
    if wanted and options.cuda_home and (part := missing_part(Path(options.cuda_home))):
        raise BuildError(
            f"{options.cuda_home_from}={options.cuda_home} is not a complete CUDA toolkit: "
            f"{part} is missing.",
            f"Correct it, or unset it to look elsewhere:  unset {options.cuda_home_from}",
        )
    toolkit, problems = find(candidates, compiler, target.major if target else None)
    if not wanted:
        return _not_wanted(options, toolkit)
    if toolkit is None:
        return _without_toolkit(options, target, problems)
    codes = _codes(options, toolkit)
    reason = target.reason if target else "USE_CUDA=1"
    evidence = f"on: {reason}; toolkit {toolkit.version}; {' '.join(codes)}"
    # Why others, which come first, are not used.
    detail = "; ".join([f"{toolkit.home}, found by {toolkit.found}", *problems])
    return Cuda(True, toolkit, codes, evidence, detail)


def _target(torch: Torch, jax: packages.Package | None) -> Target | None:
    """The CUDA of jax, on whose streams the kernels run; without its plugin, the CUDA of torch."""
    if jax:
        major = jax.name.removeprefix("jax-cuda").partition("-")[0]
        return Target(major, f"jax has its plugin for CUDA {major}")
    if torch.cuda:
        return Target(torch.cuda, f"torch {torch.version} is built for CUDA {torch.cuda}")
    return None


def rule_variables(decision: Cuda) -> dict[str, str]:
    """The variables for the toolkit's repository rule (third_party/cuda)."""
    values = {"EVIDENCE": decision.evidence}
    if decision.toolkit:
        values["CODES"] = ",".join(decision.codes)
        values["HOME"] = str(decision.toolkit.home)
    return values


def _not_wanted(options: Options, toolkit: Toolkit | None) -> Cuda:
    reason = "off: torch and jax are CPU builds"
    if toolkit is None:
        return Cuda(False, None, (), reason)
    # For tests only: all architectures would take longer and test nothing more.
    options = options._replace(cuda_arch_list=options.cuda_arch_list or _FOR_TESTS)
    try:
        return Cuda(False, toolkit, _codes(options, toolkit), reason)
    except BuildError:
        # A list that was set for another project must not break a build without CUDA.
        return Cuda(False, None, (), reason)


def _without_toolkit(options: Options, target: Target | None, problems: list[str]) -> Cuda:
    none = f"no toolkit of CUDA {target.major} was found" if target else "no CUDA toolkit was found"
    reason = f"{target.reason}, but {none}" if target else none
    places = "searched CUDA_HOME, CUDA_PATH, nvcc on PATH, CONDA_PREFIX"
    places += f", {STANDARD}, NVIDIA's wheels"
    detail = "; ".join(problems) or places
    if options.cuda is not Switch.ON:
        return Cuda(False, None, (), f"off: {reason}", detail)
    remedy = "Install one, or build without it:  export USE_CUDA=0"
    version = target.version if target else str(_WHEELS_SINCE)
    if int(version.partition(".")[0]) >= _WHEELS_SINCE:
        install = "pip install " + " ".join(f"'{name}=={version}.*'" for name in _WHEELS)
        remedy += f"\nFrom PyPI:  {install}"
    else:
        remedy += f"\nNVIDIA's wheels for CUDA {version} do not help: they hold no nvcc."
    raise BuildError(f"USE_CUDA=1: {reason} ({detail}).", remedy)


def _codes(options: Options, toolkit: Toolkit) -> tuple[str, ...]:
    from bazel.pybuild.machine import cuda_archs

    def accepts(code: str) -> bool:
        arch = f"arch=compute_{code.removeprefix('sm_')},code={code}"
        return "#$" in nvcc_output(toolkit.home, "--dryrun", "-gencode", arch, "-c", "none.cu")

    listed = nvcc_output(toolkit.home, "--list-gpu-code").split()
    return cuda_archs.codes(options.cuda_arch_list, listed, accepts)
