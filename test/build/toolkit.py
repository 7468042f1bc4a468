"""Writes a fake CUDA toolkit of shell scripts."""

from pathlib import Path

_NVCC = """#!/bin/sh
case "$1" in
  --version) echo 'Cuda compilation tools, release {release}, V{version}' ;;
  --list-gpu-code) printf 'sm_80\\nsm_90\\n' ;;
  --dryrun) echo '#$ TOP={home}/bin/..' >&2 ;;
  -ccbin)
    test "$2" != gcc-99 && exit
    echo 'host_config.h:137:2: error: #error -- unsupported GNU version! The nvcc flag helps.' >&2
    exit 1 ;;
esac
"""


def write_toolkit(
    home: Path, version: str = "13.0.88", *, target: str = ".", libraries: str = "lib64"
) -> Path:
    """Writes what looks like a toolkit, with headers and libraries in a folder of it, and returns
    its nvcc."""
    headers = ["include/crt/host_config.h", "include/cuda_runtime.h", "include/nv/target"]
    programs = ["bin/cudafe++", "bin/fatbinary", "bin/ptxas", "nvvm/bin/cicc"]
    parts = [f"{target}/{part}" for part in (*headers, f"{libraries}/libcudart_static.a")]
    for part in [*programs, *parts, "bin/nvcc"]:
        (home / part).parent.mkdir(parents=True, exist_ok=True)
        (home / part).touch()
    nvcc = home / "bin" / "nvcc"
    nvcc.write_text(_NVCC.format(home=home, version=version, release=version.rpartition(".")[0]))
    nvcc.chmod(0o755)
    return nvcc
