"""Plain pytest reads this file, and Bazel does not: its runner loads the plugin itself."""

import os

pytest_plugins = ["bazel.pytest_plugin"]


def pytest_configure() -> None:
    """Lets the CPU stand for an accelerator, if the variable is set."""
    from bazel.pytest_plugin import AS_AN_ACCELERATOR

    if AS_AN_ACCELERATOR in os.environ:
        from torch_xla_lite.lowering.base import target

        target.has_host_memory = lambda: False
