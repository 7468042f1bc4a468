"""XLA's compilers for GPUs and TPUs, on a machine that has neither: programs are compiled, not run.

    devices = paper_devices.devices("h100", 8)                     # those of one machine
    mesh = jax.sharding.Mesh(np.array(devices), ("data",))
    jax.jit(step, in_shardings=...).lower(...).compile().as_text()      # as on eight H100

Each compiler is a file of a package of jax's, which needs no driver here. jax must not find the
package beside itself, or each program would look for a device. So each has a folder of its own
(150 MB and 700 MB), which `scripts/test.sh --all` makes:

    pip install --no-deps --target .venv/gpu_compiler jax-cuda13-pjrt==0.10.2     # jaxlib's version
    pip install --no-deps --target .venv/tpu_compiler 'libtpu==0.0.42.*'     # of jax's extra "tpu"
"""

from __future__ import annotations

import functools
import math
import os
import shlex
import sys
from pathlib import Path
from unittest import mock

import jax
from jax._src import xla_bridge
from jax.experimental import topologies
from jaxlib import xla_client

from scripts import environment

_FILES = {
    "gpu": "gpu_compiler/jax_plugins/xla_cuda13/xla_cuda_plugin.so",
    "tpu": "tpu_compiler/libtpu/libtpu.so",
}
_FOLDER = Path(sys.prefix)

# Kinds of TPUs -> the dimensions in which their chips are connected.
_TPUS = {"v5e": 2, "v5p": 3, "v6e": 2}
KINDS = ("h100", *_TPUS)

# libtpu reads these once, while it is loaded. By the first, several processes may load it, because
# none of them uses a TPU. By the others it writes no logs, and looks for no TPU of this machine.
_WHILE_LOADING = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_LOG_DIR": "disabled",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_SKIP_MDS_QUERY": "1",
}

# What the compiler asks about a GPU: an H100 with 80 GB, as its driver and CUDA describe it.
_H100 = """
gpu_device_info {
  cuda_compute_capability { major: 9 minor: 0 }
  core_count: 132
  fpus_per_core: 128
  clock_rate_ghz: 1.98
  threads_per_warp: 32
  threads_per_block_limit: 1024
  threads_per_core_limit: 2048
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  l2_cache_size: 52428800
  memory_bandwidth: 3352320000000
  device_memory_size: 84942979072
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 19 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def platform(kind: str) -> str:
    """What jax calls the platform of devices of a kind."""
    return "tpu" if kind in _TPUS else "gpu"


def is_installed(kind: str) -> bool:
    """Whether there is the compiler for devices of a kind."""
    return (_FOLDER / _FILES[platform(kind)]).exists()


@functools.cache
def devices(kind: str, count: int = 1, per_machine: int = 8) -> list[jax.Device]:
    """Devices that exist on paper: the same in each call, so that meshes of them are equal.

    Args:
      kind: one of `KINDS`.
      count: 1 to 512, a power of two.
      per_machine: how many GPUs are connected by NVLink.

    Raises:
      RuntimeError: the compiler is not installed.
    """
    if not is_installed(kind):
        folder = _FOLDER / _FILES[platform(kind)].partition("/")[0]
        raise RuntimeError(
            f"There is no compiler for {kind} in {folder}. Install it:\n  "
            f"{sys.executable} -m pip install --no-deps --target {folder} "
            + shlex.quote(environment.compilers(sys.path)[folder.name])
        )
    jax.config.update("jax_platforms", "cpu")  # There is no other device to look for.
    if kind in _TPUS:
        _load_libtpu()
        return topologies.get_topology_desc(_layout(kind, count), "tpu").devices[:count]
    if not xla_client.pjrt_plugin_loaded("cuda"):
        xla_bridge.register_plugin("cuda", library_path=str(_FOLDER / _FILES["gpu"]))
    on_each = min(count, per_machine)
    return topologies.get_topology_desc(
        "h100", "cuda", topology=f"1x{count // on_each}x{on_each}", target_config=_H100
    ).devices


@functools.cache
def _load_libtpu() -> None:
    with mock.patch.dict(os.environ, _WHILE_LOADING):
        xla_client.load_pjrt_plugin_dynamically("tpu", str(_FOLDER / _FILES["tpu"]))
        xla_client.initialize_pjrt_plugin("tpu")


def _layout(kind: str, count: int) -> str:
    """The name of a grid of at least `count` chips, such as "v5e:8x4". A machine has 2x2 of it."""
    sides = [2, 2, 1][: _TPUS[kind]]
    while math.prod(sides) < count:
        sides[sides.index(min(sides))] *= 2
    return f"{kind}:{'x'.join(map(str, sorted(sides, reverse=True)))}"
