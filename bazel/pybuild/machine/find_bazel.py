"""Finds the Bazel to call: the one that the user names, else bazelisk, else bazel.

find(options.bazel, os.environ.get("PATH", ""))     # PosixPath('/usr/bin/bazel')
"""

import os
from collections.abc import Sequence
from pathlib import Path

from bazel.pybuild.errors import BuildError

# Debian's Bazel and the rule sets that it needs; this works without Bazel's download host.
APT_COMMAND = "sudo apt-get install bazel-bootstrap bazel-rules-java bazel-rules-proto"
NPM_COMMAND = "npm install --global @bazel/bazelisk"


class NotInstalled(BuildError):
    """There is no Bazel on PATH, and the user named none."""


def find(wanted: str | None, path: str) -> Path:
    """Finds Bazel.

    Args:
      wanted: value of TORCH_XLA_LITE_BAZEL: a path or a name on `path`; None if it is not set.
      path: folders to search, as in PATH.

    Returns:
      Its absolute path, with symbolic links; the program that Debian's script starts.

    Raises:
      BuildError: none was found; the message has the command that installs one.
    """
    names = [wanted] if wanted else ["bazelisk", "bazel"]
    for name in names:
        executable = which(name, path)
        if executable:
            return executable if wanted else _behind_script(executable)
    for name in names:
        file = which(name, path, os.F_OK)
        if file:
            raise BuildError(f"{file} is not executable.", f"Make it executable:  chmod +x {file}")
    if wanted:
        raise BuildError(
            f"TORCH_XLA_LITE_BAZEL={wanted} is not a program that can be run.",
            "Correct it, or unset it to use what is on PATH:  unset TORCH_XLA_LITE_BAZEL",
        )
    has_apt = Path("/usr/bin/apt-get").exists()
    raise NotInstalled(
        "Bazel was not found: there is neither bazelisk nor bazel on PATH.",
        f"Install one, then run the command again:  {APT_COMMAND if has_apt else NPM_COMMAND}",
    )


def default() -> str:
    """The program that setup.py calls, for scripts."""
    from bazel.pybuild import options

    return str(find(options.read(os.environ).bazel, os.environ.get("PATH", "")))


def which(name: str, path: str, mode: int = os.X_OK) -> Path | None:
    """The program of a name, as a shell finds it; absolute, links kept.

    Like shutil.which, whose module takes too long to import for a null build.
    """
    folders = [""] if os.sep in name else path.split(os.pathsep)
    for folder in folders:
        candidate = os.path.abspath(os.path.join(folder, name))
        if os.path.isfile(candidate) and os.access(candidate, mode):
            return Path(candidate)
    return None


def _behind_script(executable: Path) -> Path:
    """The program that Debian's script `bazel` starts; any other program is returned as it is.

    The script takes 0.08 s to choose one among the versions that are installed beside it.
    """
    script = executable.resolve()
    with script.open("rb") as file:
        if file.read(2) != b"#!" or b"BAZEL_REAL=" not in file.read():
            return executable
    programs = [name for name in os.listdir(script.parent) if name.startswith("bazel-")]
    if os.environ.get("USE_BAZEL_VERSION") or len(programs) != 1:
        return executable
    return script.parent / programs[0]


def rc_files_of_user(root: Path) -> list[Path]:
    """The files with options that the user has written for Bazel."""
    files = [Path(os.path.expanduser("~/.bazelrc")), root / ".bazelrc.user"]
    return [file for file in files if file.is_file() and file.stat().st_size]


def cannot_start(bazel: Path, command: Sequence[str], root: Path, output: str = "") -> BuildError:
    """The error for a Bazel that fails before it reads this tree.

    Args:
      bazel: the program.
      command: its command line.
      root: of the tree.
      output: its messages; empty if they were printed already.
    """
    output = output.strip() or "(see above)"
    if " " in str(root) or not str(root).isascii():
        return BuildError(
            f"Bazel does not start in {root}; it said:\n{output}",
            "Older Bazels want a path of ASCII characters without spaces: move this tree to one.",
        )
    # npm's package installs the launcher as `bazel` too, as a link to its own folder.
    if "bazelisk" in bazel.name or "bazelisk" in str(bazel.resolve()):
        return BuildError(
            f"{bazel} could not provide a Bazel; it said:\n{output}",
            "If Bazel's download host cannot be reached from here, use the distribution's Bazel:\n"
            f"  {APT_COMMAND}\n"
            "  USE_BAZEL_VERSION=/usr/bin/bazel-4 python setup.py develop",
        )
    import shlex

    files = " and ".join(map(str, rc_files_of_user(root)))
    remedy = f"Your options are in {files}. " if files else ""
    return BuildError(
        f"Bazel does not start; it said:\n{output}",
        f"{remedy}The command was:  {shlex.join(command)}",
    )
