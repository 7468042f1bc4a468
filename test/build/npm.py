"""Fetches programs for tests with npm."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest


def install(package: str, folder: Path) -> Path:
    """Installs a package into a folder, and returns its `node_modules`; skips the test without npm
    or network."""
    npm = shutil.which("npm")
    if not npm:
        pytest.skip(f"there is no npm to fetch {package} with")
    # An audit asks a server of its own, which need not answer here: a minute of waiting.
    # Without a network, or a certificate that it knows, npm tries thrice: another minute.
    quick = ["--silent", "--no-audit", "--no-fund", "--fetch-retries=0"]
    process = subprocess.run(
        [npm, "install", *quick, "--prefix", folder, package],
        env={
            **os.environ,
            "HOME": pwd.getpwuid(os.getuid()).pw_dir,
            "npm_config_cache": str(folder / "npm"),
            # npm trusts its own list only, and a network's proxy may have another certificate.
            "NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        pytest.skip(f"npm could not fetch {package}: {process.stderr.strip()}")
    return folder / "node_modules"


def bazelisk(folder: Path) -> Path:
    """The launcher of this machine, else npm's."""
    found = shutil.which("bazelisk")
    return Path(found) if found else install("@bazel/bazelisk", folder) / ".bin" / "bazelisk"


def bazel_of_bazelisk() -> str:
    """A Bazel of this machine for bazelisk to start; skips the test if there is none."""
    # Programs, and not Debian's script `bazel`, which names the version that a tree asks for.
    for path in ("/usr/bin/bazel-4", "/usr/bin/bazel-real"):
        if Path(path).exists():
            return path
    pytest.skip("no Bazel is installed for bazelisk to start")
