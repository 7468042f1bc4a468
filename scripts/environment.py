"""Prepares a machine: system packages, .venv, and what tests need. Does nothing where all is there.

    scripts/python.sh -m scripts.environment             # what a build needs
    scripts/python.sh -m scripts.environment --build     # and builds: bootstrap.sh
    scripts/python.sh -m scripts.environment --tests     # what tests need, too

Packages are installed by apt, as root or with sudo, and by pip into .venv. A package counts as
installed where the file or the program is that it would install, wherever that comes from.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.machine import find_bazel

ENVIRONMENT = Path(".venv")
PYTHON = ENVIRONMENT / "bin" / "python"

# Debian's package -> what it installs: a program, or a file in one of several places.
_BUILD = {
    "g++": ["g++"],
    "git": ["git"],
    "libgtest-dev": ["/usr/include/gtest/gtest.h", "/usr/local/include/gtest/gtest.h"],
}
# For servers of caches.
_TESTS = {"nginx-light": ["/usr/sbin/nginx"], "openssl": ["openssl"]}
# ccache compiles for Bazel, clangd reads what scripts/compile_commands.py writes, and an engine of
# remote execution keeps its actions in PostgreSQL.
_NIGHTLY_TESTS = {
    "ccache": ["ccache"],
    "clangd": ["clangd"],
    "postgresql": ["/usr/lib/postgresql"],
}
# Debian's Bazel does not include these rule sets; other builds of Bazel download them.
_RULE_SETS = {
    "bazel-rules-java": ["/usr/share/bazel/rules/java"],
    "bazel-rules-proto": ["/usr/share/bazel/rules/proto"],
}


def prepare(*, tests: bool = False, nightly: bool = False) -> None:
    """Installs what a build needs, and what the tests do.

    Raises:
      SystemExit: something cannot be installed; the message says what to do.
    """
    wanted = _BUILD | (_TESTS if tests else {}) | (_NIGHTLY_TESTS if nightly else {})
    if missing := [*_missing_of_python(), *_missing(wanted), *_missing_of_bazel()]:
        _install(missing)
    print(f"Bazel: {_bazel()}", flush=True)
    _make_environment()
    lists = ["requirements-cuda.txt", "test/models/requirements.txt"] if tests else []
    for requirements in [*lists, *(["test/models/nightly.txt"] if nightly else [])]:
        # Complete lists; some of the libraries would install another torch.
        _install_list(Path(requirements), "--no-deps")
    if nightly:
        _install_buildgrid()
        _install_compilers()


def _missing(wanted: Mapping[str, list[str]]) -> Iterator[str]:
    for package, places in wanted.items():
        if not any(Path(p).exists() if "/" in p else shutil.which(p) for p in places):
            yield package


def _missing_of_python() -> Iterator[str]:
    name = Path(sys.executable).name
    if importlib.util.find_spec("ensurepip") is None:
        yield f"{name}-venv"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        yield f"{name}-dev"


def _bazel() -> Path | None:
    try:
        return Path(find_bazel.default())
    except find_bazel.NotInstalled:
        return None
    except BuildError as error:
        _give_up(message(error))


def _missing_of_bazel() -> Iterator[str]:
    """The distribution's Bazel is for machines that have neither bazelisk nor bazel."""
    bazel = _bazel()
    if bazel is None:
        yield "bazel-bootstrap"
    used = (bazel or "/usr/bin/bazel", os.environ.get("USE_BAZEL_VERSION", ""))
    if any(str(name).startswith("/usr/bin/bazel") for name in used):
        yield from _missing(_RULE_SETS)


def _install(packages: list[str]) -> None:
    names = " ".join(packages)
    if shutil.which("apt-get") is None:
        _give_up(
            f"Packages are missing (with Debian's names): {names}",
            "Install them with the package manager of this system, then run this again.",
        )
    as_root = [] if os.getuid() == 0 else ["sudo"]
    if as_root and shutil.which("sudo") is None:
        _give_up(
            f"Installing {names} requires root, and there is no sudo.",
            f"As root:  apt-get install {names}",
        )
    print(f"Installing system packages with apt: {names}", flush=True)
    apt = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    for words in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        # Hides hundreds of lines; errors go to stderr.
        if subprocess.run([*apt, *words], stdout=subprocess.DEVNULL, check=False).returncode:
            _give_up(f"apt could not install {names}.", "See its message above; then try again.")


def _make_environment() -> None:
    installed = ENVIRONMENT / ".requirements.txt"
    if _is_current(installed, Path("requirements.txt")) and _runs(PYTHON, "-c", ""):
        return
    if not os.path.lexists(ENVIRONMENT):
        print(f"Creating {ENVIRONMENT} with Python {sys.version.split()[0]}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    elif not _runs(PYTHON, "-m", "pip", "--version"):
        # uv makes environments without pip, and an interrupted creation leaves one.
        print(f"Installing pip into {ENVIRONMENT}", flush=True)
        if not _runs(PYTHON, "-m", "ensurepip"):
            _give_up(
                f"{ENVIRONMENT} has no Python that works.",
                f"Move it away, then try again:  mv {ENVIRONMENT} {ENVIRONMENT}.old",
            )
    _install_list(Path("requirements.txt"), installed=installed)


def _is_current(installed: Path, requirements: Path) -> bool:
    return installed.exists() and installed.read_bytes() == requirements.read_bytes()


def _runs(program: Path, *arguments: str) -> bool:
    try:
        return not subprocess.run([program, *arguments], capture_output=True).returncode
    except OSError:
        return False


def _install_list(requirements: Path, *options: str, installed: Path | None = None) -> None:
    """Installs the packages of a list into .venv, and copies the list there.

    Args:
      requirements: a file for pip.
      *options: of pip.
      installed: the copy. It is written last, so an interrupted installation is repeated.
    """
    installed = installed or ENVIRONMENT / f".{str(requirements).replace('/', '-')}"
    if _is_current(installed, requirements):
        return
    _pip(installed.parent, f"the packages of {requirements}", *options, "-r", requirements)
    shutil.copyfile(requirements, installed)


def _pip(environment: Path, packages: str, *arguments: str | Path) -> None:
    """Installs packages into an environment. pip would compile their code on one core, and their
    tests, too."""
    print(f"Installing {packages} into {environment}", flush=True)
    python = environment / "bin" / "python"
    options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    if subprocess.run([python, "-m", "pip", "install", *options, *arguments]).returncode:
        _give_up(f"pip could not install {packages}.", "See its message above; then try again.")
    folders = environment.glob("lib/python*/site-packages")
    # Its status is not checked: some of the files are templates.
    compile_all = [python, "-m", "compileall", "-qq", "-j", "0", "-x", "/tests?/", *folders]
    subprocess.run(compile_all, check=False)


def _install_buildgrid() -> None:
    """For the test of remote execution. Its versions do not fit to those of requirements.txt."""
    environment = ENVIRONMENT / "buildgrid"
    if not environment.exists():
        subprocess.run([PYTHON, "-m", "venv", environment], check=True)
    installed = environment / ".requirements.txt"
    _install_list(Path("test/cache/buildgrid.txt"), "--no-deps", installed=installed)


def compilers(folders: Sequence[str]) -> dict[str, str]:
    """Folder of .venv -> the package in it: XLA's compilers for other devices, of the versions that
    the jax in one of `folders` needs (scripts/bench/paper_devices.py)."""
    (jaxlib, *_), (jax, *_) = (
        metadata.distributions(name=x, path=folders) for x in ("jaxlib", "jax")
    )
    needed = [text.partition(";")[0].strip() for text in jax.requires or ()]
    (libtpu, *_) = [text for text in needed if text.startswith("libtpu")]
    return {"gpu_compiler": f"jax-cuda13-pjrt=={jaxlib.version}", "tpu_compiler": libtpu}


def _install_compilers() -> None:
    site = str(next(ENVIRONMENT.glob("lib/python*/site-packages")))
    for name, package in compilers([site]).items():
        folder, (of, version) = ENVIRONMENT / name, package.replace("-", "_").split("==")
        if not [*folder.glob(f"{of}-{version}.dist-info")]:
            shutil.rmtree(folder, ignore_errors=True)
            _pip(ENVIRONMENT, package, "--no-deps", "--target", folder, package)


def _give_up(problem: str, remedy: str = "") -> NoReturn:
    sys.exit(f"error: {problem}\n{remedy}".rstrip())


def build() -> None:
    """Builds the package and trains a model with it."""
    for words in (["setup.py", "develop"], ["-m", "torch_xla_lite.examples.digits"]):
        if code := subprocess.run([PYTHON, *words], check=False).returncode:
            sys.exit(code)
    print("Done. Next:  source .venv/bin/activate, or run the tests:  scripts/test.sh")


def main() -> None:
    """Runs the command line."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--tests", action="store_true")
    arguments = parser.parse_args()
    prepare(tests=arguments.tests)
    if arguments.build:
        build()


if __name__ == "__main__":
    main()
