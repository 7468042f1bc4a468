"""Where the tool does not run: as root, in the development container, with a git that is too
old."""

import os
from collections.abc import Mapping

from scripts.repos import git
from scripts.repos.model import UsageError

# What tells that we are in a container. TORCH_XLA_LITE_CONTAINER decides when it is set: 1 in the
# development container, 0 in one that the checkouts belong to.
_VARIABLES = ("REMOTE_CONTAINERS", "CODESPACES", "DEVCONTAINER")
_FILES = ("/.dockerenv", "/run/.containerenv")


def check(allow_root: bool, environ: Mapping[str, str]) -> None:
    """Refuses to run as root and in the development container.

    Raises:
      UsageError: this is no place to run in.
    """
    if os.geteuid() == 0 and not allow_root:
        raise UsageError(
            "As root, git would leave files behind that you cannot change.",
            "Run it as yourself; or, where the checkouts are root's:  --allow-root",
        )
    if _in_container(environ):
        raise UsageError(
            "This is the development container, in which git has other users and no keys.",
            "Run it outside; in a container that owns the checkouts:  TORCH_XLA_LITE_CONTAINER=0",
        )


def check_git(version: tuple[int, ...]) -> None:
    """Refuses a git that is too old.

    Raises:
      UsageError: it is, or there is none.
    """
    if version < git.OLDEST:
        found = ".".join(map(str, version)) or "none"
        wanted = ".".join(map(str, git.OLDEST))
        raise UsageError(
            f"git {wanted} or newer is needed, found: {found}.", "Install a newer git."
        )


def _in_container(environ: Mapping[str, str]) -> bool:
    said = environ.get("TORCH_XLA_LITE_CONTAINER", "")
    if said:
        return said != "0"
    if any(environ.get(name, "").lower() not in ("", "0", "false") for name in _VARIABLES):
        return True
    return any(os.path.exists(file) for file in _FILES)
