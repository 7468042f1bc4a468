"""Another Bazel workspace can use our libraries and rules, by local_repository or as a module."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

from bazel.pybuild.machine import find_bazel
from test.build.tree import ROOT
from torch_xla_lite.utils import cpp_extension

pytestmark = pytest.mark.nightly
_SOURCES = Path("test/extension/workspace")
# As in our .bazelrc, which the other workspace does not read.
_QUICK_START = "--host_jvm_args=-XX:TieredStopAtLevel=1"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the files that the other workspace has built."""
    root = tmp_path_factory.mktemp("elsewhere")
    for name in ("elements.cc", "handlers.cc"):
        shutil.copy(_SOURCES / name, root)
    shutil.copy(_SOURCES / "BUILD.bazel.txt", root / "BUILD.bazel")
    # Bazel 7 reads the second file, older versions the first.
    for name in ("WORKSPACE", "MODULE.bazel"):
        text = (_SOURCES / f"{name}.txt").read_text().replace("{tree}", str(ROOT))
        (root / name).write_text(text)
    (root / ".bazelrc").write_text(f"try-import {ROOT / '.bazelrc.generated'}\n")
    own = tmp_path_factory.mktemp("bazel")
    bazel = find_bazel.default()
    startup = [bazel, f"--output_user_root={own}", "--max_idle_secs=60", _QUICK_START]

    def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        # Without the variables that Bazel sets for tests, which would affect the inner Bazel.
        environ = {"PATH": os.environ["PATH"], "HOME": str(own)}
        return subprocess.run(
            [*startup, *arguments],
            cwd=root,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    process = run("build", "--spawn_strategy=local", "--nosandbox_debug", "//...")
    assert process.returncode == 0, process.stderr
    yield root / "bazel-bin"
    run("shutdown")


def test_its_library_can_use_a_public_library_of_ours(built: Path):
    assert ctypes.CDLL(str(built / "libelements.so")).Elements() == 6


def test_our_rule_builds_a_shared_object_with_an_ffi_handler(built: Path):
    cpp_extension.register_ffi_library(built / "libhandlers.so", {"elsewhere.two": "WriteTwo"})
    assert jax.ffi.ffi_call("elsewhere.two", jax.ShapeDtypeStruct((1,), np.float32))() == 2
