"""XLA's compiler for GPUs, on a machine that has none: programs are compiled, and never run.

    devices = gpu_compiler.devices(8)                              # those of one machine
    mesh = jax.sharding.Mesh(np.array(devices), ("data",))
    jax.jit(step, in_shardings=...).lower(...).compile().as_text()      # as on eight H100

It is a file of jax's package for CUDA, which needs neither CUDA nor a driver here. jax must not
find the package beside itself, or each program would look for a GPU. So it has a folder of its own
(150 MB, which `scripts/test.sh --all` makes):

    pip install --no-deps --target .venv/gpu_compiler jax-cuda13-pjrt==0.10.2     # jaxlib's version
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jaxlib
from jax._src import xla_bridge
from jax.experimental import topologies
from jaxlib import xla_client

FOLDER = Path(sys.prefix) / "gpu_compiler"
_FILE = FOLDER / "jax_plugins/xla_cuda13/xla_cuda_plugin.so"

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


def is_installed() -> bool:
    """Whether there is the compiler in its folder."""
    return _FILE.exists()


def devices(count: int = 1, per_machine: int = 8) -> list[jax.Device]:
    """H100s that exist on paper.

    Args:
      count: how many; a multiple of `per_machine`, if more than that.
      per_machine: how many are connected by NVLink.

    Raises:
      RuntimeError: the compiler is not installed.
    """
    if not is_installed():
        raise RuntimeError(
            f"There is no compiler for GPUs in {FOLDER}. Install it:\n"
            f"  {sys.executable} -m pip install --no-deps --target {FOLDER} "
            f"jax-cuda13-pjrt=={jaxlib.__version__}"
        )
    jax.config.update("jax_platforms", "cpu")  # There is no GPU to look for.
    if not xla_client.pjrt_plugin_loaded("cuda"):
        xla_bridge.register_plugin("cuda", library_path=str(_FILE))
    on_each = min(count, per_machine)
    return topologies.get_topology_desc(
        "h100", "cuda", topology=f"1x{count // on_each}x{on_each}", target_config=_H100
    ).devices
