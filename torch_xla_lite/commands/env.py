"""torch-xla-lite env: describes this environment, for a bug report.

Only variables that never contain private data are printed with their values. For other variables
whose names begin with TORCH_XLA_LITE_, only that they are set: options for Bazel may contain
passwords.
"""

from __future__ import annotations

import importlib.metadata
import json as json_format
import os
import platform
from collections.abc import Mapping

from ..startup import variables

_PACKAGES = ("torch", "jax", "jaxlib", "numpy", "torch_xla_lite")
_PACKAGES += ("torch_xla_lite_lib", "torch_xla_lite_python")
_WITH_VALUES = (
    *variables.RUN_TIME,
    "CUDA_VISIBLE_DEVICES",
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_ENABLE_X64",
    "JAX_PLATFORMS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "XLA_FLAGS",
)


def main(*, json: bool) -> int:
    """Prints the report."""
    found = report(os.environ)
    if json:
        print(json_format.dumps(found, indent=1))
        return 0
    for title, rows in found.items():
        print(f"{title}:" if rows else f"{title}: none")
        for name, value in rows.items():
            print(f"  {name}: {value}")
    return 0


def report(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The report, as titles of sections -> names -> values."""
    return {
        "packages": {name: _version(name) for name in _PACKAGES},
        "built with": _build(),
        "system": {
            "Python": f"{platform.python_version()} ({platform.python_implementation()})",
            "system": f"{platform.system()} {platform.machine()}",
            "C library": " ".join(platform.libc_ver()).strip() or "unknown",
            "CPUs": str(len(os.sched_getaffinity(0))),
            "NVIDIA driver": _driver(),
        },
        "variables": _describe_variables(environ),
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _build() -> dict[str, str]:
    try:
        from .. import __config__
    except ImportError:
        return {"state": "not built"}
    return __config__.parameters()


def _driver() -> str:
    try:
        with open("/sys/module/nvidia/version", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "none"


def _describe_variables(environ: Mapping[str, str]) -> dict[str, str]:
    home = environ.get("HOME", "")
    described = {}
    for name in sorted(environ):
        if name in _WITH_VALUES:
            # The path of the home folder contains the user's name.
            described[name] = environ[name].replace(home, "~") if len(home) > 1 else environ[name]
        elif name.startswith(variables.PREFIX):
            described[name] = "(set)"
    return described
